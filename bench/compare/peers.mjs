// @ts-check
// Each library as its own documentation sets it up, with the same six requests: POST /login?user=NAME, GET /profile,
// POST /write?name=a, POST /logout, POST /everywhere (where it has that), and a GET of a page that needs a user. A handler
// reads the session, waits if it is told to (as for a query of its own), and then writes.
import { createServer } from 'node:http'
import { coatcheck } from '../servers/serve.mjs'
import { current, pass } from './gate.mjs'

const SECRET = 'a secret of more than thirty-two characters'
const MINUTES_30 = 1_800_000

/**
 * @typedef {{ url: string, kind: 'memory' | 'Redis' | 'PostgreSQL' }} Place
 * @typedef {(request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) => unknown} Handler
 * @typedef {object} Peer
 * @property {string} library
 * @property {string} store
 * @property {Place['kind']} kind
 * @property {readonly string[]} packages what has to be installed; the first is the library
 * @property {boolean} [everywhere] it has a logout-everywhere
 * @property {boolean} [keepsNothing] all is in the cookie
 * @property {(place: Place) => Promise<Handler>} make
 */

/** The parameters of a request. @param {{ url?: string | undefined }} request */
const asked = request => new URL(request.url ?? '', 'http://localhost').searchParams
/** @param {{ url?: string | undefined }} request */
const userOf = request => String(asked(request).get('user'))
/** @param {{ url?: string | undefined }} request */
const nameOf = request => String(asked(request).get('name'))

/** What a page shows of a session. @param {any} session @param {unknown} [user] */
const shown = (session, user = session?.user) => ({ user: user ?? null, a: session?.a ?? null, b: session?.b ?? null })

/** @returns {Promise<any>} */
async function nodeRedis(/** @type {Place} */ { url }) {
  const { createClient } = await import('redis')
  const client = createClient({ url })
  // A client without a listener ends the process when its server goes away.
  client.on('error', () => {})
  await client.connect()
  return client
}
/** @returns {Promise<any>} */
async function pgPool(/** @type {Place} */ { url }) {
  const { default: pg } = await import('pg')
  const pool = new pg.Pool({ connectionString: url })
  pool.on('error', () => {})
  return pool
}

/**
 * Express with its own handler of errors.
 * @param {Record<string, (request: any, response: any, next: any) => unknown>} routes
 * @param {any} [middleware]
 * @returns {Promise<Handler>}
 */
async function express({ '/profile': profile, ...routes }, middleware) {
  const { default: make } = await import('express')
  const app = make()
  // It would print each error.
  app.set('env', 'test')
  if (middleware) app.use(middleware)
  app.get('/profile', /** @type {any} */ (profile))
  for (const [path, handler] of Object.entries(routes)) app.post(path, handler)
  return /** @type {any} */ (app)
}

/** @param {(place: Place) => Promise<any>} storeOf @returns {Peer['make']} */
const withCoatcheck = storeOf => async place => {
  const [{ SessionManager }, { nodeVisits }] = await Promise.all([coatcheck('index.js'), coatcheck('node.js')])
  const sessions = new SessionManager({ store: await storeOf(place), userIds: 'string' })
  const visits = nodeVisits(sessions)
  /** The application's own column. @type {Map<string, number>} */
  const passwordVersions = new Map()
  const versionOf = (/** @type {string} */ id) => passwordVersions.get(id) ?? 0
  return express({
    async '/login'(request, response) {
      const id = userOf(request)
      const passwordVersion = versionOf(id)
      await pass(asked(request).get('gate') ?? '')
      await visits.of(request, response).logIn({ user: { id, name: id, passwordVersion } })
      response.json('ok')
    },
    async '/profile'(request, response) {
      const session = await visits.of(request, response).get()
      response.json(shown(session?.data, session?.user?.id))
    },
    async '/write'(request, response) {
      const visit = visits.of(request, response)
      await visit.get()
      await pass(asked(request).get('gate') ?? '')
      await visit.update({ [nameOf(request)]: 1 })
      response.json('ok')
    },
    async '/logout'(request, response) {
      await visits.of(request, response).logOut()
      response.json('ok')
    },
    async '/everywhere'(request, response) {
      const visit = visits.of(request, response)
      const { id, name } = (await visit.requireUser()).user
      const passwordVersion = versionOf(id) + 1
      passwordVersions.set(id, passwordVersion)
      const session = await visit.logIn({ user: { id, name, passwordVersion } })
      await sessions.invalidateUser(id, { except: session, minPasswordVersion: passwordVersion })
      response.json('ok')
    },
  })
}

/** @param {(place: Place, expressSession: any) => Promise<any>} storeOf @returns {Peer['make']} */
const withExpressSession = storeOf => async place => {
  const { default: expressSession } = await import('express-session')
  const store = await storeOf(place, expressSession)
  const middleware = expressSession({
    secret: SECRET,
    resave: false,
    saveUninitialized: false,
    cookie: { maxAge: MINUTES_30 },
    ...(store && { store }),
  })
  /** The application's own column. @type {Map<string, number>} */
  const passwordVersions = new Map()
  const versionOf = (/** @type {string} */ id) => passwordVersions.get(id) ?? 0
  return express(
    {
      // Login and logout as in "User login" of its README.
      async '/login'(request, response, next) {
        const passwordVersion = versionOf(userOf(request))
        await pass(asked(request).get('gate') ?? '')
        request.session.regenerate((/** @type {unknown} */ error) => {
          if (error) return next(error)
          Object.assign(request.session, { user: userOf(request), passwordVersion })
          request.session.save((/** @type {unknown} */ failure) => (failure ? next(failure) : response.json('ok')))
        })
      },
      // Of coatcheck alone.
      '/everywhere'(request, response, next) {
        const { user } = request.session
        const passwordVersion = versionOf(user) + 1
        passwordVersions.set(user, passwordVersion)
        request.session.regenerate((/** @type {unknown} */ error) => {
          if (error) return next(error)
          Object.assign(request.session, { user, passwordVersion })
          request.session.save(async (/** @type {unknown} */ failure) => {
            if (failure) return next(failure)
            const except = await store.sessions.get(store.idOf(request.sessionID))
            await store.sessions.invalidateUser(user, { except, minPasswordVersion: passwordVersion })
            response.json('ok')
          })
        })
      },
      '/profile': (request, response) => response.json(shown(request.session)),
      async '/write'(request, response) {
        await pass(asked(request).get('gate') ?? '')
        request.session[nameOf(request)] = 1
        response.json('ok')
      },
      '/logout'(request, response, next) {
        request.session.user = null
        request.session.save((/** @type {unknown} */ error) => {
          if (error) return next(error)
          request.session.regenerate((/** @type {unknown} */ failure) =>
            failure ? next(failure) : response.json('ok'),
          )
        })
      },
    },
    middleware,
  )
}

/** @param {(place: Place) => Promise<any>} storeOf @returns {Peer['make']} */
const withFastifySession = storeOf => async place => {
  const [{ default: fastify }, { default: cookie }, { default: session }] = await Promise.all([
    import('fastify'),
    import('@fastify/cookie'),
    import('@fastify/session'),
  ])
  let handle = /** @type {any} */ (null)
  const app = fastify({
    serverFactory(handler) {
      handle = handler
      return createServer()
    },
  })
  const store = await storeOf(place)
  app.register(cookie)
  app.register(session, {
    secret: SECRET,
    saveUninitialized: false,
    cookie: { secure: false, maxAge: MINUTES_30 },
    ...(store && { store }),
  })
  app.get('/profile', async request => shown(request.session))
  app.post('/login', async request => {
    await pass(asked(request).get('gate') ?? '')
    await request.session.regenerate()
    Object.assign(request.session, { user: userOf(request) })
    return { ok: true }
  })
  app.post('/write', async request => {
    await pass(asked(request).get('gate') ?? '')
    Object.assign(request.session, { [nameOf(request)]: 1 })
    return { ok: true }
  })
  app.post('/logout', async request => {
    await request.session.destroy()
    return { ok: true }
  })
  await app.ready()
  return handle
}

/**
 * koa-session has no store of its own: the application writes one with three functions.
 * @param {(place: Place) => Promise<any>} mapOf a map with `get`, `set` and `del`, or a whole store
 * @returns {Peer['make']}
 */
const withKoaSession = mapOf => async place => {
  const [{ default: Koa }, { default: koaSession }] = await Promise.all([import('koa'), import('koa-session')])
  const map = await mapOf(place)
  const store = map.idOf
    ? map
    : {
        get: async (/** @type {string} */ key) => JSON.parse((await map.get(key)) ?? 'null'),
        set: async (/** @type {string} */ key, /** @type {unknown} */ value) => map.set(key, JSON.stringify(value)),
        destroy: async (/** @type {string} */ key) => map.del(key),
      }
  const app = new Koa()
  app.silent = true
  app.keys = [SECRET]
  app.use(koaSession(/** @type {any} */ ({ store, maxAge: MINUTES_30 }), app))
  app.use(async context => {
    const session = /** @type {any} */ (context.session)
    if (context.path === '/profile') {
      context.body = shown(session)
      return
    }
    if (context.path !== '/logout') await pass(asked(context).get('gate') ?? '')
    if (context.path === '/login') {
      session.user = userOf(context)
      await session.regenerate()
    } else if (context.path === '/write') session[nameOf(context)] = 1
    else context.session = null
    context.body = 'ok'
  })
  return app.callback()
}

/** @returns {Promise<Handler>} */
async function ironSession() {
  const { getIronSession } = await import('iron-session')
  const options = { password: SECRET, cookieName: 'session', cookieOptions: { secure: false } }
  const open = async (/** @type {any} */ request, /** @type {any} */ response) =>
    /** @type {any} */ (await getIronSession(request, response, options))
  return express({
    async '/login'(request, response) {
      const session = await open(request, response)
      session.user = userOf(request)
      await session.save()
      response.json('ok')
    },
    '/profile': async (request, response) => response.json(shown(await open(request, response))),
    async '/write'(request, response) {
      const session = await open(request, response)
      await pass(asked(request).get('gate') ?? '')
      session[nameOf(request)] = 1
      await session.save()
      response.json('ok')
    },
    async '/logout'(request, response) {
      ;(await open(request, response)).destroy()
      response.json('ok')
    },
  })
}

/** A signed token in the cookie, as `jose` documents it. @returns {Promise<Handler>} */
async function jwt() {
  const { SignJWT, jwtVerify } = await import('jose')
  const key = new TextEncoder().encode(SECRET)
  const read = async (/** @type {any} */ request) => {
    const token = /(?:^|; )token=([\w.-]+)/.exec(request.headers.cookie ?? '')?.[1]
    return token ? /** @type {any} */ ((await jwtVerify(token, key, { algorithms: ['HS256'] })).payload) : null
  }
  const send = async (/** @type {any} */ response, /** @type {any} */ claims) => {
    const token = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256' })
      .setIssuedAt()
      .setExpirationTime('30m')
      .sign(key)
    response.cookie('token', token, { httpOnly: true, maxAge: MINUTES_30 }).json('ok')
  }
  return express({
    '/login': (request, response) => send(response, { user: userOf(request) }),
    '/profile': async (request, response) => response.json(shown(await read(request))),
    async '/write'(request, response) {
      const { iat: _, exp: __, ...claims } = (await read(request)) ?? {}
      await pass(asked(request).get('gate') ?? '')
      await send(response, { ...claims, [nameOf(request)]: 1 })
    },
    '/logout': (_request, response) => response.clearCookie('token').json('ok'),
  })
}

/** @param {(place: Place) => Promise<Record<string, any>>} optionsOf @returns {Peer['make']} */
const withBetterAuth = optionsOf => async place => {
  const [{ betterAuth }, { fromNodeHeaders }, { getMigrations }] = await Promise.all([
    import('better-auth'),
    import('better-auth/node'),
    import('better-auth/db/migration'),
  ])
  const field = { type: /** @type {const} */ ('number'), required: false }
  const options = await optionsOf(place)
  const settings = /** @type {any} */ ({
    secret: SECRET,
    baseURL: 'http://127.0.0.1',
    telemetry: { enabled: false },
    logger: { disabled: true },
    rateLimit: { enabled: false },
    // Its own hash takes a tenth of a second. The wait is after the comparison with the old password.
    emailAndPassword: {
      enabled: true,
      password: {
        hash: async (/** @type {string} */ password) => `hash of ${password}`,
        async verify(/** @type {{ hash: string, password: string }} */ { hash, password }) {
          const isRight = hash === `hash of ${password}`
          await pass()
          return isRight
        },
      },
    },
    ...options,
    session: { additionalFields: { a: field, b: field }, ...options.session },
  })
  if (!options.isInMemory) await (await getMigrations(settings)).runMigrations()
  const auth = /** @type {any} */ (betterAuth(settings))
  /** @type {Set<string>} */
  const known = new Set()
  /** @param {any} response @param {Promise<{ headers: Headers }>} call */
  const answer = async (response, call) => response.append('Set-Cookie', (await call).headers.getSetCookie()).json('ok')
  const headersOf = (/** @type {any} */ request) => fromNodeHeaders(request.headers)
  return express({
    async '/login'(request, response) {
      const user = userOf(request)
      const who = { email: `${user}@example.com`, password: 'the old password' }
      if (!known.has(user)) {
        known.add(user)
        await auth.api.signUpEmail({ body: { ...who, name: user } })
      }
      const body = { body: who, headers: headersOf(request), returnHeaders: true }
      await current.run(asked(request).get('gate') ?? '', () => answer(response, auth.api.signInEmail(body)))
    },
    async '/profile'(request, response) {
      const found = await auth.api.getSession({ headers: headersOf(request) })
      response.json(shown(found?.session, found?.user.name))
    },
    async '/write'(request, response) {
      const headers = headersOf(request)
      await auth.api.getSession({ headers })
      await pass(asked(request).get('gate') ?? '')
      await answer(response, auth.api.updateSession({ headers, body: { [nameOf(request)]: 1 }, returnHeaders: true }))
    },
    '/logout': (request, response) =>
      answer(response, auth.api.signOut({ headers: headersOf(request), returnHeaders: true })),
    '/everywhere': (request, response) =>
      answer(
        response,
        auth.api.changePassword({
          headers: headersOf(request),
          body: {
            currentPassword: 'the old password',
            newPassword: 'the new password',
            revokeOtherSessions: true,
          },
          returnHeaders: true,
        }),
      ),
  })
}

/** better-auth keeps its accounts in a database, also where Redis has its sessions. */
async function accountsInMemory() {
  const { memoryAdapter } = await import('better-auth/adapters/memory')
  return { isInMemory: true, database: memoryAdapter({ user: [], session: [], account: [], verification: [] }) }
}
async function inRedis(/** @type {Place} */ place) {
  const client = await nodeRedis(place)
  return {
    ...(await accountsInMemory()),
    secondaryStorage: {
      get: (/** @type {string} */ key) => client.get(key),
      set: (/** @type {string} */ key, /** @type {string} */ value, /** @type {number | undefined} */ ttl) =>
        ttl ? client.set(key, value, { EX: ttl }) : client.set(key, value),
      delete: (/** @type {string} */ key) => client.del(key),
    },
  }
}
async function connectRedis(/** @type {Place} */ place) {
  const { RedisStore } = await import('connect-redis')
  return new RedisStore({ client: await nodeRedis(place) })
}
async function connectPg(/** @type {Place} */ place, /** @type {any} */ expressSession) {
  const { default: connect } = await import('connect-pg-simple')
  const pool = await pgPool(place)
  return new (connect(expressSession))({ pool, createTableIfMissing: true, pruneSessionInterval: false })
}
/** A store of coatcheck behind the middleware. @param {(place: Place) => Promise<any>} storeOf */
const connectOn = storeOf => async (/** @type {Place} */ place) => {
  const [{ SessionManager }, { connectStore }] = await Promise.all([coatcheck('index.js'), coatcheck('connect.js')])
  const sessions = new SessionManager({ store: await storeOf(place), userIds: 'string' })
  const userOf = (/** @type {any} */ { user, passwordVersion }) => (user ? { id: user, passwordVersion } : null)
  return Object.assign(connectStore(sessions, { userOf }), { sessions })
}
async function memoryStore() {
  return new (await coatcheck('stores/memory.js')).MemoryStore()
}
const redisStore = (/** @type {object} */ options) => async (/** @type {Place} */ place) =>
  new (await coatcheck('stores/redis.js')).RedisStore(await nodeRedis(place), options)
async function postgresStore(/** @type {Place} */ place) {
  const { PostgresStore } = await coatcheck('stores/postgres.js')
  const store = new PostgresStore(await pgPool(place))
  await store.migrate()
  return store
}

/** @param {string} library @param {string} store @param {Place['kind']} kind @param {Peer['make']} make @param {string[]} packages @param {Partial<Peer>} [more] */
const peer = (library, store, kind, make, packages, more = {}) =>
  /** @satisfies {Peer} */ ({ library, store, kind, make, packages, ...more })
const everywhere = { everywhere: true }
const keepsNothing = { keepsNothing: true }
const FASTIFY = ['@fastify/session', '@fastify/cookie', 'fastify']

/** @type {readonly [Place['kind'], (place: Place) => Promise<any>, ...string[]][]} */
const CONNECT = [
  ['memory', memoryStore],
  ['Redis', redisStore({ singleSlot: true }), 'redis'],
  ['PostgreSQL', postgresStore, 'pg'],
]

/** @type {readonly Peer[]} */
export const PEERS = [
  peer('coatcheck', 'memory', 'memory', withCoatcheck(memoryStore), ['express'], everywhere),
  peer('coatcheck', 'Redis', 'Redis', withCoatcheck(redisStore({})), ['express', 'redis'], everywhere),
  peer('coatcheck', 'PostgreSQL', 'PostgreSQL', withCoatcheck(postgresStore), ['express', 'pg'], everywhere),
  peer(
    'express-session',
    'its MemoryStore',
    'memory',
    withExpressSession(async () => null),
    ['express-session', 'express'],
  ),
  peer('express-session', 'connect-redis', 'Redis', withExpressSession(connectRedis), [
    'express-session',
    'express',
    'connect-redis',
    'redis',
  ]),
  peer('express-session', 'connect-pg-simple', 'PostgreSQL', withExpressSession(connectPg), [
    'express-session',
    'express',
    'connect-pg-simple',
    'pg',
  ]),
  ...CONNECT.map(([kind, storeOf, ...clients]) =>
    peer(
      'express-session',
      `coatcheck/connect, ${kind}`,
      kind,
      withExpressSession(connectOn(storeOf)),
      ['express-session', 'express', ...clients],
      everywhere,
    ),
  ),
  peer(
    '@fastify/session',
    'its MemoryStore',
    'memory',
    withFastifySession(async () => null),
    FASTIFY,
  ),
  peer('@fastify/session', 'connect-redis', 'Redis', withFastifySession(connectRedis), [
    ...FASTIFY,
    'connect-redis',
    'redis',
  ]),
  peer('@fastify/session', 'coatcheck/connect, memory', 'memory', withFastifySession(connectOn(memoryStore)), FASTIFY),
  peer(
    'koa-session',
    'a Map',
    'memory',
    withKoaSession(async () => {
      const map = new Map()
      return { get: key => map.get(key), set: (key, value) => map.set(key, value), del: key => map.delete(key) }
    }),
    ['koa-session', 'koa'],
  ),
  peer('koa-session', 'Redis, by hand', 'Redis', withKoaSession(nodeRedis), ['koa-session', 'koa', 'redis']),
  peer('koa-session', 'coatcheck/connect, memory', 'memory', withKoaSession(connectOn(memoryStore)), [
    'koa-session',
    'koa',
  ]),
  peer(
    'better-auth',
    'PostgreSQL',
    'PostgreSQL',
    withBetterAuth(async place => ({ database: await pgPool(place) })),
    ['better-auth', 'express', 'pg'],
    everywhere,
  ),
  peer(
    'better-auth',
    'PostgreSQL, `cookieCache`',
    'PostgreSQL',
    withBetterAuth(async place => ({
      database: await pgPool(place),
      session: { cookieCache: { enabled: true, maxAge: 300 } },
    })),
    ['better-auth', 'express', 'pg'],
    everywhere,
  ),
  peer(
    'better-auth',
    'Redis, `secondaryStorage`',
    'Redis',
    withBetterAuth(inRedis),
    ['better-auth', 'express', 'redis'],
    everywhere,
  ),
  peer('iron-session', 'the cookie', 'memory', ironSession, ['iron-session', 'express'], keepsNothing),
  peer('a JWT (jose)', 'the cookie', 'memory', jwt, ['jose', 'express'], keepsNothing),
]
