// @ts-check
// Each peer as its documentation sets it up for a login, with the store that it is given; a store of `undefined` is the
// peer's own memory store. A package is loaded by the server that needs it, so that one that is missing costs its row alone.
import { Server } from 'node:http'
import { coatcheckHandler, coatcheckVisits, valueIn } from './handlers.mjs'
import { idOf, pathOf, send, userOf } from './serve.mjs'

export const SECRET = 'a secret of more than thirty-two characters'
const SECONDS_30_MINUTES = 1800
export const MINUTES_30 = SECONDS_30_MINUTES * 1000

/**
 * Express with the routes of all servers.
 * @param {unknown} middleware
 * @param {Record<'login' | 'profile' | 'write' | 'logout', (request: any, response: any, next: any) => unknown>} routes
 * @returns {Promise<any>}
 */
async function expressApp(middleware, routes) {
  const { default: express } = await import('express')
  const app = express()
  if (middleware) app.use(/** @type {any} */ (middleware))
  app.get('/profile', routes.profile)
  for (const name of /** @type {const} */ (['login', 'write', 'logout'])) app.post(`/${name}`, routes[name])
  return app
}

/** Express with a Map: what the framework costs. @param {import('./handlers.mjs').ByHand} service @param {() => string} newId */
export const expressByHand = (service, newId) =>
  expressApp(null, {
    login(request, response) {
      const id = newId()
      service.create(id, userOf(request.url))
      response.cookie('session_id', id).json('ok')
    },
    profile(request, response) {
      const id = idOf(request)
      response.json((id === undefined ? null : service.get(id)) ?? null)
    },
    write(request, response) {
      service.write(idOf(request) ?? '', valueIn(request.url))
      response.json('ok')
    },
    logout(request, response) {
      service.end(idOf(request) ?? '')
      response.clearCookie('session_id').json('ok')
    },
  })

/** @param {{ visits: any, stringify: any }} parts */
export const expressCoatcheck = ({ visits, stringify }) =>
  expressApp(null, {
    async login(request, response) {
      await visits.of(request, response).logIn({ user: userOf(request.url) })
      response.json('ok')
    },
    async profile(request, response) {
      const session = await visits.of(request, response).get()
      response.type('json').send(stringify(session?.user ?? null))
    },
    async write(request, response) {
      await visits.of(request, response).update({ value: valueIn(request.url) })
      response.json('ok')
    },
    async logout(request, response) {
      await visits.of(request, response).logOut()
      response.json('ok')
    },
  })

/** @param {any} store */
export async function expressSession(store) {
  const { default: session } = await import('express-session')
  const cookie = { maxAge: MINUTES_30 }
  return session({ secret: SECRET, resave: false, saveUninitialized: false, cookie, ...(store && { store }) })
}

/** @param {any} [store] */
export async function expressSessionServer(store) {
  return expressApp(await expressSession(store), {
    login(request, response, next) {
      request.session.regenerate((/** @type {unknown} */ error) => {
        if (error) return next(error)
        request.session.user = userOf(request.url)
        response.json('ok')
      })
    },
    profile(request, response) {
      response.json(request.session.user ?? null)
    },
    write(request, response) {
      request.session.value = valueIn(request.url)
      response.json('ok')
    },
    logout(request, response, next) {
      request.session.destroy((/** @type {unknown} */ error) => (error ? next(error) : response.json('ok')))
    },
  })
}

/**
 * Fastify as a handler of requests.
 * @param {(app: any) => unknown} register what it is to know
 * @returns {Promise<any>}
 */
export async function fastifyHandler(register) {
  const { default: Fastify } = await import('fastify')
  let handle = null
  const app = Fastify({
    serverFactory: handler => {
      handle = handler
      return /** @type {any} */ (new Server())
    },
  })
  await register(app)
  await app.ready()
  return handle
}

/**
 * Fastify with the routes of all servers.
 * @param {(app: any) => unknown} register
 * @param {Record<'login' | 'profile' | 'write' | 'logout', (request: any, reply: any) => unknown>} routes
 */
export const fastifyApp = (register, routes) =>
  fastifyHandler(async app => {
    await register(app)
    app.get('/profile', async (request, reply) => {
      // Fastify sends an empty answer for null.
      return (await routes.profile(request, reply)) ?? reply.type('application/json').send('null')
    })
    for (const name of /** @type {const} */ (['login', 'write', 'logout']))
      app.post(`/${name}`, async (request, reply) => {
        await routes[name](request, reply)
        return { ok: true }
      })
  })

/** @param {{ visits: any, stringify: any }} parts */
export const fastifyCoatcheck = ({ visits, stringify }) => {
  const visitOf = (/** @type {any} */ request, /** @type {any} */ reply) => visits.of(request.raw, reply.raw)
  return fastifyApp(() => {}, {
    login: (request, reply) => visitOf(request, reply).logIn({ user: userOf(request.url) }),
    async profile(request, reply) {
      const session = await visitOf(request, reply).get()
      return session && reply.type('application/json').send(stringify(session.user))
    },
    write: (request, reply) => visitOf(request, reply).update({ value: valueIn(request.url) }),
    logout: (request, reply) => visitOf(request, reply).logOut(),
  })
}

/** @param {any} app @param {any} store @param {object} [options] more of them */
export function registerFastifySession(app, store, options) {
  const cookie = { secure: false, maxAge: MINUTES_30 }
  app.register(import('@fastify/cookie'))
  app.register(import('@fastify/session'), {
    ...{ secret: SECRET, saveUninitialized: false, cookie, ...(store && { store }) },
    ...options,
  })
}

/** @param {any} [store] */
export async function fastifySessionServer(store) {
  return fastifyApp(app => registerFastifySession(app, store), {
    async login(request) {
      await request.session.regenerate()
      request.session.user = userOf(request.url)
    },
    profile: request => request.session.user,
    write(request) {
      request.session.value = valueIn(request.url)
    },
    logout: request => request.session.destroy(),
  })
}

/**
 * koa-session has no memory store of its own: without a store it keeps the data in the cookie.
 * @typedef {{ get(key: string): unknown, set(key: string, value: unknown): unknown, destroy(key: string): unknown }} KoaStore
 * @param {KoaStore} store
 */
export async function koaSessionApp(store) {
  const [{ default: Koa }, { default: koaSession }] = await Promise.all([import('koa'), import('koa-session')])
  const app = new Koa()
  app.keys = [SECRET]
  app.use(koaSession(/** @type {any} */ ({ store, maxAge: MINUTES_30 }), app))
  return app
}

/** @param {KoaStore} store */
export async function koaSessionServer(store) {
  const app = await koaSessionApp(store)
  app.use(async context => {
    const session = /** @type {any} */ (context.session)
    if (context.path === '/profile') {
      // Koa sends an empty answer for null.
      context.type = 'json'
      context.body = JSON.stringify(session.user ?? null)
      return
    }
    if (context.path === '/login') {
      session.user = userOf(context.url)
      await session.regenerate()
    } else if (context.path === '/write') session.value = valueIn(context.url)
    else context.session = null
    context.body = 'ok'
  })
  return app.callback()
}

/** @returns {Promise<import('./serve.mjs').Handler>} */
export async function ironSessionServer() {
  const { getIronSession } = await import('iron-session')
  const options = { password: SECRET, cookieName: 'session_id', cookieOptions: { secure: false } }
  return async (request, response) => {
    const session = /** @type {any} */ (await getIronSession(request, response, options))
    if (request.method === 'GET') return send(response, JSON.stringify(session.user ?? null))
    const path = pathOf(request.url)
    if (path === '/logout') session.destroy()
    else {
      if (path === '/login') session.user = userOf(request.url)
      else session.value = valueIn(request.url)
      await session.save()
    }
    send(response, '"ok"')
  }
}

/**
 * What a kind of store has servers of: by hand, ours, and the peers over a store of theirs.
 * @param {{ byHand: () => unknown, store: () => Promise<unknown>, peerStore: () => Promise<any> }} parts
 * @returns {Record<string, () => any>}
 */
export const serversOn = ({ byHand, store, peerStore }) => ({
  'by hand': byHand,
  coatcheck: async () => coatcheckHandler(await store()),
  'coatcheck in Express': async () => expressCoatcheck(await coatcheckVisits(await store())),
  'coatcheck in Fastify': async () => fastifyCoatcheck(await coatcheckVisits(await store())),
  'express-session': async () => expressSessionServer(await peerStore()),
  '@fastify/session': async () => fastifySessionServer(await peerStore()),
})
