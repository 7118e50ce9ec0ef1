// Services on the real packages are replaced under load: no user is logged out, and a logout at the new service is final.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import fastifyCookie from '@fastify/cookie'
import fastifySession from '@fastify/session'
import {
  type CallbackStore,
  fromBetterAuth,
  fromCookieSession,
  fromExpressSession,
  fromFastifySession,
  fromKoaSession,
  fromLucia,
  fromNextAuth,
  type OldSessions,
} from 'coatcheck/import'
import { MemoryStore } from 'coatcheck/stores/memory'
import { RedisStore as ConnectRedis } from 'connect-redis'
import express from 'express'
import session from 'express-session'
import Fastify from 'fastify'
import Koa from 'koa'
import { createSession } from 'koa-session'
import { type DatabaseSession, Lucia } from 'lucia'
import { createClient } from 'redis'
import { describe, expect, it, vi } from 'vitest'
import { describeEngine } from '../../support/services/engines.ts'
import { startRedis } from '../../support/services/redis.ts'
import {
  expectAllMoved,
  front,
  loggedIn,
  newService,
  type OldData,
  open,
  replaceUnderLoad,
  type ToLogin,
} from './moving.ts'

// By names that the compiler does not follow: the types of these packages bring those of a browser into all files.
const load = (name: string): Promise<any> => import(name)
const { Auth, skipCSRFCheck } = await load('@auth/core')
const { default: GitHub } = await load('@auth/core/providers/github')
const { betterAuth } = await load('better-auth')
const { memoryAdapter } = await load('better-auth/adapters/memory')
const { default: cookieSession } = await load('cookie-session')
const require = createRequire(import.meta.url)
const drivers = createRequire(new URL('../../support/drivers/package.json', import.meta.url))

/** Each sends six requests at a time. */
const BROWSERS = 4
vi.setConfig({ testTimeout: 240_000 })
const SECRET = 'a secret of the old service, 32 characters or more'

/** What the old service does, and how its sessions are read. */
interface Library<T> {
  readonly listener: RequestListener
  readonly from: OldSessions<T>
  readonly toLogin: ToLogin<T>
  /** Cookies that a browser may keep beside ours. */
  readonly kept?: readonly string[]
  /** Whether the old store has no session any more. */
  readonly isEmpty?: () => Promise<boolean>
}
const library = <T>(made: Library<T>): Library<any> => made

const user = (id: number | string) => ({ id: Number(id), name: `user ${id}` })
const loginOf = ({ url = '' }: IncomingMessage) => /^\/login\/(\d+)$/.exec(url)?.[1]
/** One that logs in at /login/ID, and says who it is anywhere else. */
const service =
  (
    logIn: (id: string, request: IncomingMessage, response: ServerResponse) => unknown,
    nameOf: (request: IncomingMessage, response: ServerResponse) => unknown,
  ): RequestListener =>
  async (request, response) => {
    try {
      const id = loginOf(request)
      if (id !== undefined) await logIn(id, request, response)
      const name = id === undefined ? await nameOf(request, response) : 'welcome'
      response.statusCode = name ? 200 : 401
      response.end(name ?? 'none')
    } catch (error) {
      response.statusCode = 500
      response.end(String(error))
    }
  }
const cookieOf = (request: IncomingMessage, name: string) =>
  new RegExp(`(?:^|; )${name}=([^;]*)`).exec(request.headers.cookie ?? '')?.[1]
const pass = (answer: Response, response: ServerResponse) => {
  for (const line of answer.headers.getSetCookie()) response.appendHeader('Set-Cookie', line)
  return answer
}

const byUser: ToLogin<OldData> = ({ user }) => (user ? { user } : null)

/** With a store that calls back; `isEmpty`: whether that has no session any more. */
function ofExpressSession(store: session.Store, isEmpty?: () => Promise<boolean>) {
  const app = express()
  app.use(session({ store, secret: SECRET, resave: false, saveUninitialized: false, cookie: { maxAge: 3_600_000 } }))
  app.use((request, response, next) => {
    const held = request.session as OldData
    const id = loginOf(request)
    if (id === undefined) response.status(held.user ? 200 : 401).send(held.user?.name)
    else
      request.session.regenerate(error => {
        Object.assign(request.session, { user: user(id) })
        if (error) next(error)
        else response.send('welcome')
      })
  })
  const from = fromExpressSession<OldData>({ secret: SECRET, store: store as CallbackStore })
  return library({ listener: app, from, toLogin: byUser, ...(isEmpty && { isEmpty }) })
}

async function ofConnectRedis() {
  const server = await startRedis()
  open.push(() => server.stop())
  const client = createClient({ url: server.url })
  await client.connect()
  open.push(() => client.destroy())
  return ofExpressSession(new ConnectRedis({ client }), async () => (await server.cli('KEYS', 'sess:*')) === '')
}

async function ofFastifySession() {
  const store = new fastifySession.MemoryStore(new Map())
  const app = Fastify()
  await app.register(fastifyCookie)
  const cookie = { secure: false, maxAge: 3_600_000 }
  await app.register(fastifySession, { secret: SECRET, store, saveUninitialized: false, cookie })
  app.post<{ Params: { id: string } }>('/login/:id', async request => {
    await request.session.regenerate()
    Object.assign(request.session, { user: user(request.params.id) })
    return 'welcome'
  })
  app.get('/profile', async (request, reply) => {
    const held = (request.session as unknown as OldData).user
    return reply.status(held ? 200 : 401).send(held?.name)
  })
  await app.ready()
  open.push(() => app.close())
  return library({
    listener: (request, response) => app.routing(request, response),
    from: fromFastifySession<OldData>({ secret: SECRET, store: store as CallbackStore }),
    toLogin: byUser,
  })
}

function ofKoaSession(records?: Map<string, unknown>) {
  const keys = ['the newer key', 'the older key']
  const store = records && {
    get: async (key: string) => records.get(key),
    set: async (key: string, value: unknown) => void records.set(key, value),
    destroy: async (key: string) => void records.delete(key),
  }
  const app = new Koa()
  app.keys = keys
  app.use(createSession({ maxAge: 3_600_000, ...(store && { store: store as never }) }, app))
  app.use(context => {
    const held = context.session as OldData
    const id = loginOf(context.req)
    if (id !== undefined) held.user = user(id)
    context.status = held.user ? 200 : 401
    context.body = held.user?.name ?? 'none'
  })
  return library({
    listener: app.callback(),
    from: fromKoaSession<OldData>({ keys, ...(store && { store }) }),
    toLogin: byUser,
    isEmpty: async () => !records || records.size === 0,
  })
}

function ofCookieSession() {
  const keys = ['the newer key', 'the older key']
  const app = express()
  app.use(cookieSession({ keys, maxAge: 3_600_000 }))
  app.use((request, response) => {
    const held = request.session as unknown as OldData
    const id = loginOf(request)
    if (id !== undefined) held.user = user(id)
    response.status(held.user ? 200 : 401).send(held.user?.name)
  })
  return library({ listener: app, from: fromCookieSession<OldData>({ keys }), toLogin: byUser })
}

function ofLucia() {
  const rows = new Map<string, DatabaseSession>()
  const adapter = {
    getSessionAndUser: async (
      id: string,
    ): Promise<[DatabaseSession | null, { id: string; attributes: object } | null]> => {
      const row = rows.get(id)
      return row ? [row, { id: row.userId, attributes: {} }] : [null, null]
    },
    setSession: async (row: DatabaseSession) => void rows.set(row.id, row),
    updateSessionExpiration: async () => {},
    deleteSession: async (id: string) => void rows.delete(id),
    getUserSessions: async () => [],
    deleteUserSessions: async () => {},
    deleteExpiredSessions: async () => {},
  }
  const lucia = new Lucia(adapter, { sessionCookie: { attributes: { secure: false } } })
  return library({
    listener: service(
      async (id, _, response) => {
        const session = await lucia.createSession(id, {})
        response.appendHeader('Set-Cookie', lucia.createSessionCookie(session.id).serialize())
      },
      async request => {
        const { user } = await lucia.validateSession(cookieOf(request, 'auth_session') ?? '')
        return user && `user ${user.id}`
      },
    ),
    from: fromLucia({ adapter }),
    toLogin: ({ user: { id } }) => ({ user: user(id) }),
  })
}

function ofAuthDatabase() {
  // With the rows of its table of sessions: what Auth.js asks of an adapter beyond a login.
  const rows = new Map<string, { sessionToken: string; userId: string; expires: Date }>()
  const asked = ['createUser', 'getUser', 'getUserByEmail', 'getUserByAccount', 'updateUser', 'linkAccount']
  const unused = Object.fromEntries([...asked, 'createSession', 'updateSession'].map(name => [name, async () => null]))
  const adapter = {
    ...unused,
    async getSessionAndUser(token: string) {
      const session = rows.get(token)
      return session
        ? { session, user: { ...user(session.userId), id: session.userId, email: '', emailVerified: null } }
        : null
    },
    deleteSession: async (token: string) => void rows.delete(token),
  }
  /** As the callback of an OAuth login does. */
  const logIn = (userId: string, _: IncomingMessage, response: ServerResponse) => {
    const row = { sessionToken: crypto.randomUUID(), userId, expires: new Date(Date.now() + 3_600_000) }
    rows.set(row.sessionToken, row)
    response.appendHeader('Set-Cookie', `authjs.session-token=${row.sessionToken}; Path=/; HttpOnly`)
  }
  const config = {
    secret: SECRET,
    trustHost: true,
    basePath: '/auth',
    providers: [GitHub({ clientId: 'an ID', clientSecret: 'a secret' })],
    adapter,
    session: { strategy: 'database' },
    skipCSRFCheck,
  }
  const nameOf = async (request: IncomingMessage, response: ServerResponse) => {
    const headers = { cookie: request.headers.cookie ?? '' }
    const answer = pass(await Auth(new Request('http://localhost/auth/session', { headers }), config), response)
    return ((await answer.json()) as OldData | null)?.user?.name
  }
  return library({
    listener: service(logIn, nameOf),
    from: fromNextAuth({ cookie: 'authjs.session-token', adapter }),
    toLogin: ({ user: { id } }) => ({ user: user(id) }),
    kept: ['authjs.callback-url'],
  })
}

/** NextAuth 4 itself, which its handlers for Next wrap. */
function nextAuth4(options: object) {
  const { AuthHandler } = drivers(join(dirname(drivers.resolve('next-auth')), 'core/index.js'))
  const logger = { warn() {} } // that NEXTAUTH_URL is not set
  return async (path: string, request: IncomingMessage, response: ServerResponse, body?: object) => {
    const method = body ? 'POST' : 'GET'
    const headers = { 'Content-Type': 'application/json', cookie: request.headers.cookie ?? '' }
    const made = { method, headers, ...(body && { body: JSON.stringify(body) }) }
    const asked = new Request(`http://localhost:3000/api/auth/${path}`, made)
    const answer = await AuthHandler({ req: asked, options: { secret: SECRET, logger, ...options } })
    for (const { name, value } of answer.cookies ?? [])
      response.appendHeader('Set-Cookie', `${name}=${encodeURIComponent(value)}; Path=/; HttpOnly`)
    return answer.body
  }
}

function ofNextAuth4Tokens() {
  const { default: credentials } = drivers('next-auth/providers/credentials')
  const picture = 'x'.repeat(4000)
  // Every second token is so long that it comes in pieces.
  const authorize = ({ id }: { id: string }) => ({ id, name: `user ${id}`, image: Number(id) % 2 ? '' : picture })
  const ask = nextAuth4({ providers: [credentials({ authorize, credentials: { id: {} } })] })
  return library({
    listener: service(
      async (id, request, response) => {
        const { csrfToken } = await ask('csrf', request, response)
        request.headers.cookie = `${response.getHeader('set-cookie')}`.split(';', 1)[0]
        await ask('callback/credentials', request, response, { id, csrfToken })
      },
      async (request, response) => (await ask('session', request, response)).user?.name,
    ),
    from: fromNextAuth({ cookie: 'next-auth.session-token', secret: SECRET }),
    toLogin: ({ sub }) => ({ user: user(sub!) }),
    // It gives a new token with each answer, and a late one may come after our cookie.
    kept: ['callback-url', 'csrf-token', 'session-token', 'session-token.0', 'session-token.1'].map(
      name => `next-auth.${name}`,
    ),
  })
}

function ofBetterAuth(storage?: Map<string, string>) {
  const better = betterAuth({
    secret: SECRET,
    baseURL: 'http://localhost',
    database: memoryAdapter({ user: [], session: [], account: [], verification: [] }),
    rateLimit: { enabled: false },
    emailAndPassword: {
      enabled: true,
      password: {
        hash: async (password: string) => password,
        verify: async ({ hash, password }: Record<string, string>) => hash === password,
      },
    },
    ...(storage && {
      secondaryStorage: {
        get: (key: string) => storage.get(key) ?? null,
        set: (key: string, value: string) => void storage.set(key, value),
        delete: (key: string) => void storage.delete(key),
        getAndDelete: () => null,
        increment: () => 1,
      },
    }),
  })
  const inside = async () => (await better.$context).internalAdapter
  return library({
    listener: service(
      async (id, _, response) => {
        const body = { email: `${id}@example.com`, password: 'a long password', name: `user ${id}` }
        pass(await better.api.signUpEmail({ body, asResponse: true }), response)
      },
      async request => {
        const headers = new Headers({ cookie: request.headers.cookie ?? '' })
        return (await better.api.getSession({ headers }))?.user.name
      },
    ),
    from: fromBetterAuth({
      secret: SECRET,
      cookie: 'better-auth.session_token',
      read: storage ? token => storage.get(token) : async token => (await inside()).findSession(token),
      destroy: storage ? token => storage.delete(token) : async token => (await inside()).deleteSession(token),
    }),
    toLogin: ({ user: { name } }) => ({ user: user(name.slice(5)) }),
  })
}

type Libraries = [name: string, open: () => Library<any> | Promise<Library<any>>][]
const LIBRARIES: Libraries = [
  [
    'express-session with memorystore',
    () => ofExpressSession(new (require('memorystore')(session))({ checkPeriod: 86_400_000 })),
  ],
  ['express-session with its own MemoryStore', () => ofExpressSession(new session.MemoryStore())],
  ['@fastify/session', ofFastifySession],
  ['koa-session in the cookie', () => ofKoaSession()],
  ['koa-session with a store', () => ofKoaSession(new Map())],
  ['cookie-session', ofCookieSession],
  ['lucia', ofLucia],
  ['Auth.js with a database', ofAuthDatabase],
  ['better-auth with a database', () => ofBetterAuth()],
  ['better-auth with a secondary storage', () => ofBetterAuth(new Map())],
]
describe.each(LIBRARIES)('%s', (_, open) => moves(open))
describeEngine('other clients', 'NextAuth 4 with tokens', () => moves(ofNextAuth4Tokens))
describeEngine('redis', 'express-session with connect-redis', () => moves(ofConnectRedis))

function moves(open: Libraries[number][1]) {
  it('is replaced under load: no user is logged out, and a logout is final', async () => {
    const { listener, from, toLogin, kept, isEmpty } = await open()
    const to = await front()
    to.replaceBy(listener)
    const browsers = await loggedIn(to, BROWSERS)
    const next = newService(new MemoryStore(), 3, from, toLogin)
    await replaceUnderLoad(to, browsers, next.listener)
    await expectAllMoved(browsers, next.sessions, kept)
    expect((await isEmpty?.()) ?? true, 'the old store is empty').toBe(true)
  })
}
