// @ts-check
// Each peer as its documentation sets it up for a login, with the store that it is given. A store of `undefined` is the
// peer's own memory store.

import { Server } from 'node:http'
import fastifyCookie from '@fastify/cookie'
import fastifySession from '@fastify/session'
import express from 'express'
import expressSession from 'express-session'
import Fastify from 'fastify'
import Koa from 'koa'
import koaSession from 'koa-session'
import { userOf } from './serve.mjs'

const SECRET = 'a secret of more than thirty-two characters'
const MINUTES_30 = 30 * 60 * 1000

/** @param {any} [store] */
export function expressSessionServer(store) {
  const app = express()
  app.use(
    expressSession({
      secret: SECRET,
      resave: false,
      saveUninitialized: false,
      cookie: { maxAge: MINUTES_30 },
      ...(store && { store }),
    }),
  )
  app.post('/login', (request, response, next) => {
    request.session.regenerate(error => {
      if (error) return next(error)
      Object.assign(request.session, { user: userOf(request.url) })
      response.json('ok')
    })
  })
  app.get('/profile', (request, response) => {
    response.json(/** @type {any} */ (request.session).user ?? null)
  })
  return /** @type {any} */ (app)
}

/** @param {any} [store] */
export async function fastifySessionServer(store) {
  let handle = /** @type {any} */ (null)
  const app = Fastify({
    serverFactory: handler => {
      handle = handler
      return /** @type {any} */ (new Server())
    },
  })
  app.register(fastifyCookie)
  app.register(fastifySession, {
    secret: SECRET,
    saveUninitialized: false,
    cookie: { secure: false, maxAge: MINUTES_30 },
    ...(store && { store }),
  })
  app.post('/login', async request => {
    await request.session.regenerate()
    Object.assign(request.session, { user: userOf(request.url) })
    return { ok: true }
  })
  app.get('/profile', async request => /** @type {any} */ (request.session).user ?? null)
  await app.ready()
  return handle
}

/** @param {any} store */
export function koaSessionServer(store) {
  const app = new Koa()
  app.keys = [SECRET]
  app.use(koaSession({ store, maxAge: MINUTES_30 }, app))
  app.use(context => {
    const session = /** @type {any} */ (context.session)
    if (context.method === 'POST') {
      session.user = userOf(context.url)
      context.body = 'ok'
    } else context.body = session.user ?? null
  })
  return app.callback()
}
