// @ts-check
// Each library as its own documentation sets it up, with the same requests: POST /login?user=NAME, GET /profile,
// POST /write?name=a, POST /access, GET /stream (or a socket of socket.io), POST /logout, and POST /everywhere (where it
// has that). A handler reads the session, waits if it is told to (as for a query of its own), and then writes: `routes` has
// that for all, and each library says how it reads, writes and ends a session.
import { createSecretKey } from 'node:crypto'
import { postgresChannel, redisChannel } from '../../examples/channels.mjs'
import { leases, once } from '../../examples/once.mjs'
import { watchSessions } from '../../examples/watch.mjs'
import { nodeRedis, pgPool, storeOver } from '../clients.mjs'
import { QUIET } from '../servers/better-auth.mjs'
import {
  expressSession as expressMiddleware,
  fastifyHandler,
  koaSessionApp,
  MINUTES_30,
  registerFastifySession,
  SECRET,
} from '../servers/frameworks.mjs'
import { coatcheck } from '../servers/serve.mjs'
import { current, pass } from './gate.mjs'
import { provider, refreshed } from './provider.mjs'

/**
 * @typedef {{ url: string, kind: 'memory' | 'Redis' | 'PostgreSQL', limit?: number }} Place `limit`: the time limit of the
 *   database's client, ms; without it the client has its defaults
 * @typedef {((request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) => unknown) & { attach?: (server: import('node:http').Server) => unknown }} Handler
 * @typedef {object} Peer
 * @property {string} library
 * @property {string} store
 * @property {string} [variant] what sets it apart from the other rows of its library
 * @property {Place['kind']} kind
 * @property {readonly string[]} packages the first is the library
 * @property {boolean} [everywhere] it has a logout-everywhere
 * @property {boolean} [unforced] it reads once more inside its own write, where no gate can wait
 * @property {boolean} [isAlone] one node cannot share with another
 * @property {boolean} [keepsNothing] all is in the cookie
 * @property {boolean} [hasSocketIo] that is where it is documented how a logout closes what is open
 * @property {(place: Place) => Promise<Handler>} make
 */

/** The parameters of a request. @param {{ url?: string | undefined }} request */
const asked = request => new URL(request.url ?? '', 'http://localhost').searchParams
/** @param {{ url?: string | undefined }} request */
const userOf = request => String(asked(request).get('user'))
/** @param {{ url?: string | undefined }} request */
const nameOf = request => String(asked(request).get('name'))
/** @param {{ url?: string | undefined }} request */
const givenValue = request => asked(request).get('value') ?? 1

/** What a page shows of a session. @param {any} session */
const shown = session => ({ user: session?.user ?? null, a: session?.a ?? null, b: session?.b ?? null })

/** A response without an end, for who is logged in. @param {import('node:http').ServerResponse} response @param {Handle} handle */
async function stream(response, handle) {
  if (!(await handle.read())?.user) return response.writeHead(401).end()
  const watch = /** @type {any} */ (await handle.watch?.())
  if (watch)
    response.on(
      'close',
      watch(() => response.end()),
    )
  return response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: hello\n\n')
}

/** The application's own column, and its two uses. */
function passwordVersions() {
  /** @type {Map<string, number>} */
  const versions = new Map()
  const of = (/** @type {string} */ id) => versions.get(id) ?? 0
  return {
    of,
    raise(/** @type {string} */ id) {
      versions.set(id, of(id) + 1)
      return of(id)
    },
  }
}

/** Waits if the request says so. @param {{ url?: string | undefined }} request */
const passed = request => pass(asked(request).get('gate') ?? '')

/**
 * One request, as its library answers it.
 * @typedef {object} Handle
 * @property {() => any} read the user, and what was written, or nothing
 * @property {(user: string, passwordVersion: number) => unknown} logIn
 * @property {boolean} [waitsItself] in its login, which compares the password
 * @property {(values: object) => unknown} write
 * @property {() => unknown} logOut
 * @property {(user: string, passwordVersion: number) => unknown} [endOthers] a password change; this one goes on
 * @property {() => unknown} [access] a good access token; without it the session keeps the tokens
 * @property {() => unknown} [watch] what tells that the session has ended
 */

/** What all do with a request. @param {ReturnType<typeof passwordVersions>} [versions] */
function routes(versions = passwordVersions()) {
  /** @type {Record<string, (handle: Handle, request: { url?: string | undefined }) => unknown>} */
  const all = {
    '/profile': async handle => shown(await handle.read()),
    async '/login'(handle, request) {
      const user = userOf(request)
      const passwordVersion = versions.of(user)
      if (!handle.waitsItself) await passed(request)
      await handle.logIn(user, passwordVersion)
    },
    async '/write'(handle, request) {
      await handle.read()
      await passed(request)
      await handle.write({ [nameOf(request)]: givenValue(request) })
    },
    async '/access'(handle) {
      if (handle.access) return handle.access()
      const session = await handle.read()
      if (session.access === undefined) await handle.write(await refreshed(session.refresh))
    },
    async '/logout'(handle) {
      await handle.logOut()
    },
    async '/everywhere'(handle) {
      const { user } = await handle.read()
      await handle.endOthers?.(user, versions.raise(user))
    },
  }
  return async (/** @type {string} */ path, /** @type {Handle} */ handle, /** @type {any} */ request) =>
    (await all[path]?.(handle, request)) ?? 'ok'
}

/** A socket that is silent for so long is closed; pings keep an idle one open. @param {Place} place */
const redisAt = ({ url, limit }) =>
  nodeRedis(url, limit && { socket: { socketTimeout: limit }, pingInterval: limit / 4 })
/** With pg's own idle time. @param {Place} place */
const pgAt = ({ url, limit }) =>
  pgPool(url, {
    idleTimeoutMillis: 10_000,
    ...(limit && { query_timeout: limit, connectionTimeoutMillis: limit }),
  })

/**
 * Express with its own handler of errors.
 * @param {(request: any, response: any) => Handle | Promise<Handle>} open
 * @param {any} [middleware]
 * @returns {Promise<Handler>}
 */
async function express(open, middleware) {
  const { default: make } = await import('express')
  const app = make()
  // It would print each error.
  app.set('env', 'test')
  if (middleware) app.use(middleware)
  const answer = routes()
  app.use(async (request, response) => {
    const handle = await open(request, response)
    if (request.path === '/stream') return stream(response, handle)
    return response.json(await answer(request.path, handle, request))
  })
  return /** @type {any} */ (app)
}

/** A manager whose sessions can be watched at each node, as docs/guide/sockets.md. @param {Place} place @param {object} options */
async function watchable(place, options) {
  const { SessionManager } = await coatcheck('index.js')
  const channels = {
    memory: () => undefined,
    Redis: async () => redisChannel(await redisAt(place)),
    PostgreSQL: async () => postgresChannel(await pgAt(place)),
  }
  const { onEvent, start, watch } = watchSessions({ channel: await channels[place.kind]() })
  const sessions = new SessionManager({ ...options, userIds: 'string', onEvent })
  await start(sessions)
  return { sessions, watch }
}

/** @param {(place: Place) => Promise<any>} storeOf @param {boolean} [hasVersions] @returns {Peer['make']} */
const withCoatcheck =
  (storeOf, hasVersions = true) =>
  async place => {
    const { nodeVisits } = await coatcheck('node.js')
    const { sessions, watch } = await watchable(place, { store: await storeOf(place), initial: leases })
    const visits = nodeVisits(sessions)
    return express((request, response) => {
      const visit = visits.of(request, response)
      const userOf = (/** @type {string} */ id, /** @type {number} */ passwordVersion) => ({
        user: { id, name: id, ...(hasVersions && { passwordVersion }) },
      })
      return {
        async read() {
          const session = await visit.get()
          return session && { ...session.data, user: session.user?.id }
        },
        logIn: (user, passwordVersion) => visit.logIn(userOf(user, passwordVersion)),
        write: values => visit.update(values),
        logOut: () => visit.logOut(),
        async endOthers(user, passwordVersion) {
          const except = await visit.logIn(userOf(user, passwordVersion))
          await sessions.invalidateUser(user, { except, ...(hasVersions && { minPasswordVersion: passwordVersion }) })
        },
        // As docs/guide/refresh-tokens.md.
        async access() {
          const work = {
            due: (/** @type {any} */ { access }) => access === undefined,
            work: (/** @type {any} */ { refresh }) => refreshed(refresh),
          }
          return (await once(sessions, await visit.requireUser(), 'refresh', work))?.data.access
        },
        async watch() {
          const session = await visit.requireUser()
          return (/** @type {() => void} */ end) => watch(session, end)
        },
      }
    })
  }

/** Of coatcheck/connect alone. @param {any} store @param {string} id @param {string} user @param {number} minPasswordVersion */
const endOthers = async (store, id, user, minPasswordVersion) =>
  store.sessions.invalidateUser(user, { except: await store.sessions.get(store.idOf(id)), minPasswordVersion })

/** As socket.io's page on express-session: a room for each session; an adapter reaches those of other nodes. @param {Place} place */
async function socketIo(place) {
  const { Server } = await import('socket.io')
  const io = new Server()
  io.use(({ request }, next) =>
    next(/** @type {any} */ (request).session.user ? undefined : new Error('nobody is logged in')),
  )
  io.on('connection', socket => socket.join(/** @type {any} */ (socket.request).session.id))
  if (place.kind === 'Redis') {
    const { createAdapter } = await import('@socket.io/redis-adapter')
    io.adapter(createAdapter(await redisAt(place), await redisAt(place)))
  } else if (place.kind === 'PostgreSQL') {
    const { createAdapter } = await import('@socket.io/postgres-adapter')
    const pool = await pgAt(place)
    // The adapter has no listener for its connection: one that breaks would end the process.
    pool.on('connect', (/** @type {any} */ client) => client.on('error', () => {}))
    const columns = 'id bigserial UNIQUE, created_at timestamptz DEFAULT NOW(), payload bytea'
    await pool.query(`CREATE TABLE IF NOT EXISTS socket_io_attachments (${columns})`)
    io.adapter(createAdapter(pool))
  }
  return io
}

/** @param {(place: Place, expressSession: any) => Promise<any>} storeOf @returns {Peer['make']} */
const withExpressSession = storeOf => async place => {
  const { default: expressSession } = await import('express-session')
  const store = await storeOf(place, expressSession)
  const middleware = await expressMiddleware(store)
  const io = await socketIo(place)
  // Login and logout as in "User login" of its README.
  const app = await express(request => {
    const done = (/** @type {'regenerate' | 'save'} */ method) =>
      new Promise((resolve, reject) =>
        request.session[method]((/** @type {unknown} */ error) => (error ? reject(error) : resolve(undefined))),
      )
    const logIn = async (/** @type {string} */ user, /** @type {number} */ passwordVersion) => {
      await done('regenerate')
      Object.assign(request.session, { user, passwordVersion })
      await done('save')
    }
    return {
      read: () => request.session,
      logIn,
      write: values => Object.assign(request.session, values),
      async logOut() {
        const { sessionID } = request
        request.session.user = null
        await done('save')
        await done('regenerate')
        io.in(sessionID).disconnectSockets()
      },
      async endOthers(user, passwordVersion) {
        await logIn(user, passwordVersion)
        await endOthers(store, request.sessionID, user, passwordVersion)
      },
    }
  }, middleware)
  return Object.assign(app, {
    attach: (/** @type {import('node:http').Server} */ server) => io.attach(server).engine.use(middleware),
  })
}

/** @param {(place: Place) => Promise<any>} storeOf @param {object} [options] @returns {Peer['make']} */
const withFastifySession = (storeOf, options) => async place => {
  const store = await storeOf(place)
  const answer = routes()
  return fastifyHandler(app => {
    registerFastifySession(app, store, options)
    app.all('/*', async (/** @type {any} */ request, /** @type {any} */ reply) => {
      const logIn = async (/** @type {string} */ user, /** @type {number} */ passwordVersion) => {
        await request.session.regenerate()
        Object.assign(request.session, { user, passwordVersion })
      }
      /** @type {Handle} */
      const handle = {
        read: () => request.session,
        logIn,
        write: values => Object.assign(request.session, values),
        logOut: () => request.session.destroy(),
        async endOthers(user, passwordVersion) {
          await logIn(user, passwordVersion)
          await request.session.save()
          await endOthers(store, request.session.sessionId, user, passwordVersion)
        },
        watch: () => store?.watching?.(request.session.sessionId),
      }
      const path = /^[^?]*/.exec(request.url)?.[0] ?? ''
      if (path !== '/stream') return answer(path, handle, request)
      reply.hijack()
      await stream(reply.raw, handle)
    })
  })
}

/**
 * koa-session has no store of its own: the application writes one with three functions.
 * @param {(place: Place) => Promise<any>} mapOf a map with `get`, `set` and `del`, or a whole store
 * @returns {Peer['make']}
 */
const withKoaSession = mapOf => async place => {
  const map = await mapOf(place)
  const store = map.idOf
    ? map
    : {
        get: async (/** @type {string} */ key) => JSON.parse((await map.get(key)) ?? 'null'),
        set: async (/** @type {string} */ key, /** @type {unknown} */ value) => map.set(key, JSON.stringify(value)),
        destroy: async (/** @type {string} */ key) => map.del(key),
      }
  const app = await koaSessionApp(store)
  app.silent = true
  const answer = routes()
  app.use(async context => {
    const session = /** @type {any} */ (context.session)
    /** @type {Handle} */
    const handle = {
      read: () => session,
      async logIn(user, passwordVersion) {
        Object.assign(session, { user, passwordVersion })
        await session.regenerate()
      },
      write: values => Object.assign(session, values),
      logOut() {
        context.session = null
      },
      async endOthers(user, passwordVersion) {
        session.passwordVersion = passwordVersion
        await session.save()
        await endOthers(store, session.externalKey, user, passwordVersion)
      },
      watch: () => store.watching?.(session.externalKey),
    }
    if (context.path === '/stream') {
      context.respond = false
      await stream(context.res, handle)
    } else context.body = await answer(context.path, handle, context)
  })
  return app.callback()
}

/** @returns {Promise<Handler>} */
async function ironSession() {
  const { getIronSession } = await import('iron-session')
  const options = { password: SECRET, cookieName: 'session', cookieOptions: { secure: false } }
  return express(async (request, response) => {
    const session = /** @type {any} */ (await getIronSession(request, response, options))
    const write = (/** @type {object} */ values) => Object.assign(session, values).save()
    return { read: () => session, logIn: user => write({ user }), write, logOut: () => session.destroy() }
  })
}

/** A signed token in the cookie, which is signed anew for each write. @returns {Promise<Handler>} */
async function jwt() {
  const { SignJWT, jwtVerify } = await import('jose')
  const key = createSecretKey(Buffer.from(SECRET))
  return express(async (request, response) => {
    const token = /(?:^|; )token=([\w.-]+)/.exec(request.headers.cookie ?? '')?.[1]
    const verified = token ? await jwtVerify(token, key, { algorithms: ['HS256'] }) : null
    const { iat: _, exp: __, ...claims } = /** @type {any} */ (verified?.payload ?? {})
    const write = async (/** @type {object} */ values) => {
      const signed = await new SignJWT({ ...claims, ...values })
        .setProtectedHeader({ alg: 'HS256' })
        .setIssuedAt()
        .setExpirationTime('30m')
        .sign(key)
      response.cookie('token', signed, { httpOnly: true, maxAge: MINUTES_30 })
    }
    return { read: () => claims, logIn: user => write({ user }), write, logOut: () => response.clearCookie('token') }
  })
}

/** @param {(place: Place) => Promise<Record<string, any>>} optionsOf @returns {Peer['make']} */
const withBetterAuth = optionsOf => async place => {
  const [{ betterAuth }, { fromNodeHeaders }, { getMigrations }, { genericOAuth }] = await Promise.all([
    import('better-auth'),
    import('better-auth/node'),
    import('better-auth/db/migration'),
    import('better-auth/plugins'),
  ])
  const idp = {
    providerId: 'idp',
    clientId: 'shop',
    clientSecret: 'secret',
    authorizationUrl: provider.url,
    tokenUrl: provider.url,
  }
  const field = { type: /** @type {const} */ ('number'), required: false }
  const options = await optionsOf(place)
  const settings = /** @type {any} */ ({
    ...QUIET,
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
    plugins: [genericOAuth({ config: [idp] })],
    ...options,
    session: { additionalFields: { a: field, b: field }, ...options.session },
  })
  if (!options.isInMemory) await (await getMigrations(settings)).runMigrations()
  const auth = /** @type {any} */ (betterAuth(settings))
  /** @type {Set<string>} */
  const known = new Set()
  return express((request, response) => {
    const headers = fromNodeHeaders(request.headers)
    const getSession = () => auth.api.getSession({ headers })
    const call = async (/** @type {string} */ method, body = {}) =>
      response.append(
        'Set-Cookie',
        (await auth.api[method]({ headers, body, returnHeaders: true })).headers.getSetCookie(),
      )
    return {
      waitsItself: true,
      async read() {
        const found = await getSession()
        return found && { ...found.session, user: found.user.name }
      },
      async logIn(user) {
        const who = { email: `${user}@example.com`, password: 'the old password' }
        if (!known.has(user)) {
          known.add(user)
          await auth.api.signUpEmail({ body: { ...who, name: user } })
        }
        await current.run(asked(request).get('gate') ?? '', () => call('signInEmail', who))
      },
      async write(values) {
        const [[name, value] = []] = Object.entries(values)
        if (name !== 'refresh') return call('updateSession', { [name]: 1 })
        // As a login with the provider leaves it.
        const { user } = await getSession()
        const account = { userId: user.id, providerId: 'idp', accountId: user.id, accessToken: 'old' }
        const over = { refreshToken: value, accessTokenExpiresAt: new Date(0) }
        await (await auth.$context).internalAdapter.createAccount({ ...account, ...over })
      },
      async access() {
        const accounts = await auth.api.listUserAccounts({ headers })
        const { id: accountId } = accounts.find((/** @type {any} */ { providerId }) => providerId === 'idp')
        return (await auth.api.getAccessToken({ headers, body: { accountId } })).accessToken
      },
      logOut: () => call('signOut'),
      endOthers: () =>
        call('changePassword', {
          currentPassword: 'the old password',
          newPassword: 'the new password',
          revokeOtherSessions: true,
        }),
    }
  })
}

/** better-auth keeps its accounts in a database, also where Redis has its sessions. */
async function accountsInMemory() {
  const { memoryAdapter } = await import('better-auth/adapters/memory')
  return { isInMemory: true, database: memoryAdapter({ user: [], session: [], account: [], verification: [] }) }
}
async function inRedis(/** @type {Place} */ place) {
  const client = await redisAt(place)
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
const connectRedis = (/** @type {object} */ options) => async (/** @type {Place} */ place) => {
  const { RedisStore } = await import('connect-redis')
  return new RedisStore({ client: await redisAt(place), ...options })
}
const connectPg = (/** @type {object} */ options) => async (/** @type {Place} */ place, /** @type {any} */ session) => {
  const { default: connect } = await import('connect-pg-simple')
  const pool = await pgAt(place)
  return new (connect(session))({ pool, createTableIfMissing: true, pruneSessionInterval: false, ...options })
}
/** A store of coatcheck behind the middleware. @param {(place: Place) => Promise<any>} storeOf */
const connectOn = storeOf => async (/** @type {Place} */ place) => {
  const { connectStore } = await coatcheck('connect.js')
  const { sessions, watch } = await watchable(place, { store: await storeOf(place) })
  const userOf = (/** @type {any} */ { user, passwordVersion }) => (user ? { id: user, passwordVersion } : null)
  const store = connectStore(sessions, { userOf })
  const watching = async (/** @type {string} */ id) => {
    const session = await sessions.get(store.idOf(id))
    return (/** @type {() => void} */ end) => watch(session, end)
  }
  return Object.assign(store, { sessions, watching })
}
const memoryStore = () => storeOver('Memory', undefined)
const redisStore = (/** @type {object} */ options) => async (/** @type {Place} */ place) =>
  storeOver('Redis', await redisAt(place), options)
const postgresStore = async (/** @type {Place} */ place) => storeOver('Postgres', await pgAt(place))

/** @param {string} library @param {readonly string[]} packages @param {Partial<Peer>} [all] @returns {(store: string, kind: Place['kind'], make: Peer['make'], more?: Partial<Peer>) => Peer} */
const rowsOf =
  (library, packages, all) =>
  (store, kind, make, more = {}) => ({ library, store, kind, make, packages, ...all, ...more })
const everywhere = { everywhere: true }
const own = rowsOf('coatcheck', ['express'])
const SOCKET_IO = ['socket.io', '@socket.io/redis-adapter', '@socket.io/postgres-adapter']
const expressRow = rowsOf('express-session', ['express-session', 'express', ...SOCKET_IO], { hasSocketIo: true })
const fastifyRow = rowsOf('@fastify/session', ['@fastify/session', '@fastify/cookie', 'fastify'])
const koaRow = rowsOf('koa-session', ['koa-session', 'koa'])
const authRow = rowsOf('better-auth', ['better-auth', 'express'])
const ironRow = rowsOf('iron-session', ['iron-session', 'express'])
const jwtRow = rowsOf('a JWT, signed anew', ['jose', 'express'])
const none = async () => null
const disableTouch = { disableTouch: true }
/** @param {object} [options] */
const onPostgres = options => async (/** @type {Place} */ place) => ({ database: await pgAt(place), ...options })
/** @type {readonly [Place['kind'], (place: Place) => Promise<any>][]} */
const CONNECT = [
  ['memory', memoryStore],
  ['Redis', redisStore({ singleSlot: true })],
  ['PostgreSQL', postgresStore],
]

/** The rows of a library over coatcheck/connect. @param {typeof own} row @param {typeof withExpressSession} make */
const overConnect = (row, make) =>
  CONNECT.map(([kind, storeOf]) => row(`coatcheck/connect, ${kind}`, kind, make(connectOn(storeOf)), everywhere))

/** @type {readonly Peer[]} */
export const PEERS = [
  own('memory', 'memory', withCoatcheck(memoryStore), everywhere),
  own('Redis', 'Redis', withCoatcheck(redisStore({})), everywhere),
  own('PostgreSQL', 'PostgreSQL', withCoatcheck(postgresStore), everywhere),
  own('memory', 'memory', withCoatcheck(memoryStore, false), { ...everywhere, variant: 'without a password version' }),
  expressRow('its MemoryStore', 'memory', withExpressSession(none)),
  expressRow('connect-redis', 'Redis', withExpressSession(connectRedis({}))),
  expressRow('connect-redis', 'Redis', withExpressSession(connectRedis(disableTouch)), {
    variant: 'with `disableTouch`',
  }),
  expressRow('connect-pg-simple', 'PostgreSQL', withExpressSession(connectPg({}))),
  expressRow('connect-pg-simple', 'PostgreSQL', withExpressSession(connectPg(disableTouch)), {
    variant: 'with `disableTouch`',
  }),
  ...overConnect(expressRow, withExpressSession),
  fastifyRow('its MemoryStore', 'memory', withFastifySession(none)),
  fastifyRow('connect-redis', 'Redis', withFastifySession(connectRedis({}))),
  fastifyRow('connect-redis', 'Redis', withFastifySession(connectRedis({}), { rolling: false }), {
    variant: 'with `rolling: false`',
  }),
  ...overConnect(fastifyRow, withFastifySession),
  koaRow(
    'a Map',
    'memory',
    withKoaSession(async () => {
      const map = new Map()
      return { get: key => map.get(key), set: (key, value) => map.set(key, value), del: key => map.delete(key) }
    }),
  ),
  koaRow('Redis by hand', 'Redis', withKoaSession(redisAt)),
  ...overConnect(koaRow, withKoaSession),
  authRow('PostgreSQL', 'PostgreSQL', withBetterAuth(onPostgres()), everywhere),
  authRow('PostgreSQL', 'PostgreSQL', withBetterAuth(onPostgres({ advanced: { database: { joins: true } } })), {
    ...everywhere,
    variant: 'with `joins`',
  }),
  authRow(
    'PostgreSQL',
    'PostgreSQL',
    withBetterAuth(onPostgres({ session: { cookieCache: { enabled: true, maxAge: 300 } } })),
    { ...everywhere, variant: 'with `cookieCache` (5 minutes)' },
  ),
  authRow('Redis', 'Redis', withBetterAuth(inRedis), {
    ...everywhere,
    unforced: true,
    isAlone: true,
    variant: 'with `secondaryStorage`',
  }),
  ironRow('the cookie', 'memory', ironSession, { keepsNothing: true }),
  jwtRow('the cookie', 'memory', jwt, { keepsNothing: true }),
]
