// Services that run on other libraries are replaced while their users go on clicking: the real packages, real stores, and
// browsers that send several requests at a time.
import { createRequire } from 'node:module'
import fastifyCookie from '@fastify/cookie'
import fastifySessionPlugin from '@fastify/session'
import { type CallbackStore, fromExpressSession, fromFastifySession, fromKoaSession } from 'coatcheck/import'
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
import { describe, expect, it, vi } from 'vitest'
import { describeEngine } from '../../support/services/engines.ts'
import { sharedPostgres } from '../../support/services/postgres.ts'
import { startRedis } from '../../support/services/redis.ts'
import { expectAllMoved, front, loggedIn, newService, type OldData, open, replaceUnderLoad } from './moving.ts'

const require = createRequire(import.meta.url)
const SECRET = 'a secret of the old service, 32 characters or more'

// Many requests of many browsers, beside whatever else this machine does.
vi.setConfig({ testTimeout: 240_000 })

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
    await expectAllMoved(browsers, sessions)
    expect(await server.cli('KEYS', 'sess:*')).toBe('')
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
    await expectAllMoved(browsers, sessions)
    expect((await pool.query('SELECT count(*)::int FROM session')).rows).toEqual([{ count: 0 }])
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
    await expectAllMoved(browsers, sessions)
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
    await expectAllMoved(browsers, sessions)
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
    await expectAllMoved(browsers, sessions)
    expect(records.size).toBe(0)
  })

  it('in the cookie alone is replaced under load: no user is logged out', async () => {
    const to = await front()
    to.replaceBy(oldKoa())
    const browsers = await loggedIn(to, 12)
    const { listener, sessions } = newService(new MemoryStore(), 3, fromKoaSession<OldData>({ keys: KEYS }))
    await replaceUnderLoad(to, browsers, listener)
    await expectAllMoved(browsers, sessions)
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
