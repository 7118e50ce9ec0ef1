// Services that run on other libraries are replaced while their users go on clicking: the real packages, real stores, and
// browsers that send several requests at a time.
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import fastifyCookie from '@fastify/cookie'
import fastifySessionPlugin from '@fastify/session'
import { SessionManager, type Store } from 'coatcheck'
import { expressSession as bridgeOf } from 'coatcheck/express-session'
import {
  type CallbackStore,
  fromExpressSession,
  fromFastifySession,
  fromKoaSession,
  type OldSessions,
  type SessionImporterOptions,
  sessionImporter,
} from 'coatcheck/import'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { RedisStore } from 'coatcheck/stores/redis'
import { RedisStore as ConnectRedis } from 'connect-redis'
import express from 'express'
import session from 'express-session'
import Fastify from 'fastify'
import Koa from 'koa'
import { createSession } from 'koa-session'
import { createClient } from 'redis'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { sender } from '../support/edge-service.ts'
import { Jar } from '../support/parallel.ts'
import { describeEngine } from '../support/services/engines.ts'
import { sharedPostgres } from '../support/services/postgres.ts'
import { startRedis } from '../support/services/redis.ts'

const require = createRequire(import.meta.url)
const SECRET = 'a secret of the old service, 32 characters or more'

// Many requests of many browsers, beside whatever else this machine does.
vi.setConfig({ testTimeout: 240_000 })

const open: (() => unknown)[] = []
afterEach(async () => {
  while (open.length > 0) await open.pop()!()
})

interface OldData {
  user?: { id: number; name: string }
}
type Old = SessionImporterOptions<Record<string, unknown>, 'bigint', Record<string, unknown>, OldData>
const toLogin: Old['toLogin'] = ({ user }) => (user ? { user } : null)

/** One port, whose service can be replaced while requests come in. */
async function front() {
  let serve: RequestListener = (_, response) => response.end()
  const server = createServer((request, response) => serve(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  open.push(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  const { port } = server.address() as AddressInfo
  return {
    port,
    send: sender(port),
    replaceBy(listener: RequestListener) {
      serve = listener
    },
  }
}
type Front = Awaited<ReturnType<typeof front>>

/** Nodes of the new service, each with a manager of its own, by turns. */
function newService(store: Store, nodes: number, from: OldSessions<OldData>, options: Partial<Old> = {}) {
  const made = Array.from({ length: nodes }, () => {
    const sessions = new SessionManager({ store, storeTimeout: '20s' })
    open.push(() => sessions.close())
    const visits = nodeVisits(sessions, { cookie: { secure: false } })
    const importer = sessionImporter(sessions, { from, toLogin, ...options })
    const app = express()
    app.use(importer.middleware(visits))
    app.get('/profile', async (request, response) => {
      const { user } = await visits.of(request, response).requireUser()
      response.send(user.name)
    })
    app.post('/logout', async (request, response) => {
      await visits.of(request, response).logOut()
      response.send('bye')
    })
    return { sessions, app }
  })
  let turn = 0
  const listener: RequestListener = (request, response) => {
    turn += 1
    made[turn % nodes]!.app(request, response)
  }
  return { listener, sessions: made[0]!.sessions }
}

/** One browser: what it was answered, and its cookies. */
class Browser {
  readonly jar = new Jar()
  readonly statuses: number[] = []
  onAnswer = () => {}
  readonly #front: Front

  constructor(to: Front) {
    this.#front = to
  }

  async ask(path: string, method = 'GET') {
    const cookie = [...this.jar.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const reply = await this.#front.send(path, { method, headers: cookie === '' ? {} : { cookie } })
    this.jar.apply(reply.cookies)
    this.statuses.push(reply.status)
    this.onAnswer()
    return reply
  }
}

async function loggedIn(to: Front, count: number): Promise<Browser[]> {
  const browsers = Array.from({ length: count }, () => new Browser(to))
  await Promise.all(browsers.map((browser, at) => browser.ask(`/login/${at + 1}`, 'POST')))
  for (const browser of browsers) expect(browser.statuses.pop()).toBe(200)
  return browsers
}

/** Every browser asks for its page and what belongs to it, several requests at a time, until `isOver`. */
async function clickOn(browsers: readonly Browser[], isOver: () => boolean): Promise<void> {
  await Promise.all(
    browsers.map(async browser => {
      do await Promise.all(Array.from({ length: 6 }, () => browser.ask('/profile')))
      while (!isOver())
    }),
  )
}

/** Replaces the old service by the new one under load; answers when each browser has met the new one twice. */
async function replaceUnderLoad(to: Front, browsers: readonly Browser[], listener: RequestListener): Promise<void> {
  let isOver = false
  const clicking = clickOn(browsers, () => isOver)
  const answers = () => Math.min(...browsers.map(({ statuses }) => statuses.length))
  const until = (count: number) =>
    new Promise<void>(resolve => {
      const look = () => void (answers() >= count && resolve())
      for (const browser of browsers) browser.onAnswer = look
    })
  await until(6)
  to.replaceBy(listener)
  await until(answers() + 18)
  isOver = true
  await clicking
}

async function expectAllMoved(browsers: readonly Browser[], sessions: SessionManager, oldCookie: string) {
  const refused = browsers.flatMap(({ statuses }) => statuses).filter(status => status !== 200)
  expect(refused).toEqual([])
  for (const [at, browser] of browsers.entries()) {
    expect(await sessions.list(BigInt(at + 1)), `sessions of user ${at + 1}`).toHaveLength(1)
    expect([...browser.jar.cookies.keys()]).toEqual(['session_id'])
    expect(browser.jar.cookies.has(oldCookie)).toBe(false)
    expect((await browser.ask('/profile')).body).toBe(`user ${at + 1}`)
  }
  // And out again, for good.
  const [first] = browsers
  const left = new Map(first!.jar.cookies)
  expect((await first!.ask('/logout', 'POST')).status).toBe(200)
  for (const [name, value] of left) first!.jar.cookies.set(name, value)
  expect((await first!.ask('/profile')).status).toBe(401)
}

/** A service of express-session, as it stands in many places. */
function oldExpress(store: session.Store | undefined): express.Express {
  const app = express()
  app.use(
    session({
      secret: SECRET,
      resave: false,
      saveUninitialized: false,
      rolling: true,
      cookie: { maxAge: 3_600_000 },
      ...(store && { store }),
    }),
  )
  app.post('/login/:id', (request, response, next) => {
    request.session.regenerate(error => {
      if (error) return next(error)
      Object.assign(request.session, { user: { id: Number(request.params.id), name: `user ${request.params.id}` } })
      response.send('welcome')
    })
  })
  app.post('/logout', (request, response, next) => {
    request.session.destroy(error => (error ? next(error) : response.send('bye')))
  })
  app.get('/profile', (request, response) => {
    const { user } = request.session as unknown as OldData
    response.status(user ? 200 : 401).send(user?.name)
  })
  return app
}

describeEngine('redis', 'express-session with connect-redis', () => {
  async function redis() {
    const server = await startRedis()
    open.push(() => server.stop())
    const client = createClient({ url: server.url })
    await client.connect()
    open.push(() => client.destroy())
    return { server, client }
  }

  it('is replaced under load: no user is logged out, and each has one session in the end', async () => {
    const { server, client } = await redis()
    const to = await front()
    const old = new ConnectRedis({ client })
    to.replaceBy(oldExpress(old))
    const browsers = await loggedIn(to, 30)
    const store = new RedisStore(client)
    const { listener, sessions } = newService(
      store,
      3,
      fromExpressSession({ secret: SECRET, store: old as CallbackStore }),
    )
    await replaceUnderLoad(to, browsers, listener)
    await expectAllMoved(browsers, sessions, 'connect.sid')
    expect(await server.cli('--scan', '--pattern', 'sess:*')).toBe('')
  })
})

describeEngine('postgresql', 'express-session with connect-pg-simple', () => {
  it('is replaced under load: no user is logged out, and each has one session in the end', async () => {
    const server = await sharedPostgres()
    open.push(() => server.stop())
    const pool = server.pool()
    const old = new (require('connect-pg-simple')(session))({
      pool,
      createTableIfMissing: true,
      pruneSessionInterval: false,
    })
    const to = await front()
    to.replaceBy(oldExpress(old))
    const browsers = await loggedIn(to, 12)
    const store = new PostgresStore(pool)
    await store.migrate()
    const { listener, sessions } = newService(store, 3, fromExpressSession({ secret: SECRET, store: old }))
    await replaceUnderLoad(to, browsers, listener)
    await expectAllMoved(browsers, sessions, 'connect.sid')
    expect((await pool.query('SELECT count(*)::int FROM session')).rows).toEqual([{ count: 0 }])
  })
})

describe('express-session, replaced by our bridge of that name', () => {
  it('under load: handlers go on with req.session, and no user is logged out', async () => {
    const old = new session.MemoryStore()
    const to = await front()
    to.replaceBy(oldExpress(old))
    const browsers = await loggedIn(to, 12)
    const store = new MemoryStore()
    const nodes = Array.from({ length: 3 }, () => {
      const sessions = new SessionManager({ store })
      open.push(() => sessions.close())
      const userOf = ({ user }: OldData) => user
      const bridge = bridgeOf(sessions, { cookie: { secure: false }, userOf })
      const importer = sessionImporter(sessions, {
        from: fromExpressSession<OldData>({ secret: SECRET, store: old as CallbackStore }),
        toLogin: data => (data.user ? { user: data.user, data: { ...data } } : null),
      })
      const app = express()
      app.use(importer.middleware(bridge.visits))
      app.use(bridge)
      app.get('/profile', (request, response) => {
        const { user } = request.session as unknown as OldData
        response.status(user ? 200 : 401).send(user?.name)
      })
      app.post('/logout', (request, response, next) => {
        request.session.destroy(error => (error ? next(error) : response.send('bye')))
      })
      return { app, sessions }
    })
    let turn = 0
    await replaceUnderLoad(to, browsers, (request, response) => {
      turn += 1
      nodes[turn % 3]!.app(request, response)
    })
    await expectAllMoved(browsers, nodes[0]!.sessions, 'connect.sid')
  })
})

describe('express-session in memory', () => {
  it.each([
    ['memorystore', () => new (require('memorystore')(session))({ checkPeriod: 86_400_000 })],
    ['its own MemoryStore', () => new session.MemoryStore()],
  ])('with %s is replaced under load: no user is logged out', async (_, makeStore) => {
    const old = makeStore()
    const to = await front()
    to.replaceBy(oldExpress(old))
    const browsers = await loggedIn(to, 12)
    const { listener, sessions } = newService(new MemoryStore(), 3, fromExpressSession({ secret: SECRET, store: old }))
    await replaceUnderLoad(to, browsers, listener)
    await expectAllMoved(browsers, sessions, 'connect.sid')
  })
})

describe('@fastify/session', () => {
  it.each([
    ['in memory', undefined],
    ['with a prefix and sha512', { cookiePrefix: 's:', algorithm: 'sha512' }],
  ])('%s is replaced under load: no user is logged out', async (_, options) => {
    const old = new fastifySessionPlugin.MemoryStore(new Map())
    const app = Fastify()
    await app.register(fastifyCookie)
    await app.register(fastifySessionPlugin, {
      secret: SECRET,
      store: old,
      saveUninitialized: false,
      cookie: { secure: false, maxAge: 3_600_000 },
      ...options,
    })
    app.post<{ Params: { id: string } }>('/login/:id', async request => {
      await request.session.regenerate()
      Object.assign(request.session, { user: { id: Number(request.params.id), name: `user ${request.params.id}` } })
      return 'welcome'
    })
    app.get('/profile', async (request, reply) => {
      const { user } = request.session as unknown as OldData
      return reply.status(user ? 200 : 401).send(user?.name)
    })
    await app.ready()
    open.push(() => app.close())
    const to = await front()
    to.replaceBy((request, response) => app.routing(request, response))
    const browsers = await loggedIn(to, 12)
    const from = fromFastifySession<OldData>({ secret: SECRET, store: old as CallbackStore, ...options })
    const { listener, sessions } = newService(new MemoryStore(), 3, from)
    await replaceUnderLoad(to, browsers, listener)
    await expectAllMoved(browsers, sessions, 'sessionId')
  })
})

describe('koa-session', () => {
  const KEYS = ['the newer key', 'the older key']

  function oldKoa(store?: object) {
    const app = new Koa()
    app.keys = KEYS
    app.use(createSession({ maxAge: 3_600_000, ...(store && { store: store as never }) }, app))
    app.use(context => {
      const held = context.session as OldData
      const id = /^\/login\/(\d+)$/.exec(context.path)?.[1]
      if (id !== undefined) held.user = { id: Number(id), name: `user ${id}` }
      context.status = held.user ? 200 : 401
      context.body = held.user?.name ?? 'none'
    })
    return app.callback()
  }

  it('with a store is replaced under load: no user is logged out', async () => {
    const records = new Map<string, unknown>()
    const store = {
      get: async (key: string) => records.get(key),
      set: async (key: string, value: unknown) => void records.set(key, value),
      destroy: async (key: string) => void records.delete(key),
    }
    const to = await front()
    to.replaceBy(oldKoa(store))
    const browsers = await loggedIn(to, 12)
    const { listener, sessions } = newService(new MemoryStore(), 3, fromKoaSession<OldData>({ keys: KEYS, store }))
    await replaceUnderLoad(to, browsers, listener)
    await expectAllMoved(browsers, sessions, 'koa.sess')
    expect(records.size).toBe(0)
  })

  it('in the cookie alone is replaced under load: no user is logged out', async () => {
    const to = await front()
    to.replaceBy(oldKoa())
    const browsers = await loggedIn(to, 12)
    const { listener, sessions } = newService(new MemoryStore(), 3, fromKoaSession<OldData>({ keys: KEYS }))
    await replaceUnderLoad(to, browsers, listener)
    await expectAllMoved(browsers, sessions, 'koa.sess')
  })

  it('a cookie whose signature is missing, or of another key, is refused', async () => {
    const to = await front()
    to.replaceBy(oldKoa())
    const [browser] = await loggedIn(to, 1)
    const cookies = new Map(browser!.jar.cookies)
    const { listener } = newService(new MemoryStore(), 1, fromKoaSession<OldData>({ keys: KEYS }))
    to.replaceBy(listener)
    const forged = Buffer.from(JSON.stringify({ user: { id: 1, name: 'user 1' } })).toString('base64')
    for (const [sess, signature] of [
      [cookies.get('koa.sess')!, ''],
      [cookies.get('koa.sess')!, 'x'.repeat(27)],
      [forged, cookies.get('koa.sess.sig')!],
    ] as const) {
      browser!.jar.cookies.clear()
      browser!.jar.cookies.set('koa.sess', sess)
      if (signature !== '') browser!.jar.cookies.set('koa.sess.sig', signature)
      expect((await browser!.ask('/profile')).status).toBe(401)
    }
    browser!.jar.cookies.clear()
    for (const [name, value] of cookies) browser!.jar.cookies.set(name, value)
    expect((await browser!.ask('/profile')).status).toBe(200)
  })
})
