// @ts-check
import express from 'express'
import { getIronSession } from 'iron-session'
import { expressSessionServer, fastifySessionServer, koaSessionServer } from './frameworks.mjs'
import { coatcheckEdge, coatcheckHandler, newId } from './handlers.mjs'
import { coatcheck, idOf, send, serve, userOf } from './serve.mjs'

/** @type {Map<string | undefined, { id: number, name: string }>} */
const sessions = new Map()

/** @param {Record<string, string>} headers @returns {import('./serve.mjs').Handler} */
const floor = headers => (request, response) => {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
  if (request.method === 'POST') {
    const id = newId()
    sessions.set(id, userOf(request.url))
    response.setHeader('Set-Cookie', `session_id=${id}; HttpOnly`)
    return send(response, '"ok"')
  }
  send(response, JSON.stringify(sessions.get(idOf(request)) ?? null))
}

async function memoryStore() {
  const { MemoryStore } = await coatcheck('stores/memory.js')
  return new MemoryStore()
}

await serve({
  floor: () => floor({}),
  'floor, same headers': () => floor({ Vary: 'Cookie', 'Cache-Control': 'no-store' }),
  async coatcheck() {
    return coatcheckHandler(await memoryStore())
  },
  'express alone'() {
    const app = express()
    app.post('/login', (request, response) => {
      const id = newId()
      sessions.set(id, userOf(request.url))
      response.cookie('session_id', id).json('ok')
    })
    app.get('/profile', (request, response) => {
      response.json(sessions.get(idOf(request)) ?? null)
    })
    return /** @type {any} */ (app)
  },
  async 'express, coatcheck'() {
    const { visitOf, stringify } = await coatcheckEdge(await memoryStore())
    const app = express()
    app.post('/login', async (request, response) => {
      await visitOf(request, response).logIn({ user: userOf(request.url) })
      response.json('ok')
    })
    app.get('/profile', async (request, response) => {
      const session = await visitOf(request, response).get()
      response.type('json').send(stringify(session?.user ?? null))
    })
    return /** @type {any} */ (app)
  },
  'express-session': () => expressSessionServer(),
  async '@fastify/session'() {
    return fastifySessionServer()
  },
  'koa-session'() {
    // koa-session has no memory store of its own: without a store it keeps the data in the cookie.
    const stored = new Map()
    return koaSessionServer({
      get: async (/** @type {string} */ key) => stored.get(key),
      set: async (/** @type {string} */ key, /** @type {unknown} */ value) => void stored.set(key, value),
      destroy: async (/** @type {string} */ key) => void stored.delete(key),
    })
  },
  'iron-session': () => async (request, response) => {
    const options = {
      password: 'a password of more than thirty-two characters',
      cookieName: 'session_id',
      cookieOptions: { secure: false },
    }
    const session = /** @type {any} */ (await getIronSession(request, response, options))
    if (request.method === 'POST') {
      session.user = userOf(request.url)
      await session.save()
      return send(response, '"ok"')
    }
    send(response, JSON.stringify(session.user ?? null))
  },
})
