// The service of test/support/connect/apps.ts on what the root does without.
import type { AddressInfo } from 'node:net'
import fastifyCookie from '@fastify/cookie'
import fastifySession from '@fastify/session'
import express4 from 'express-4'
import expressSession118 from 'express-session-1.18'
import fastify from 'fastify'
import Koa from 'koa'
import koaSession from 'koa-session'
import { handle, listening, SECRET, type Start, type Turn, withExpress } from '../support/connect/apps.ts'

const withFastify: Start = async (store, gates, options = {}) => {
  const app = fastify()
  app.register(fastifyCookie)
  app.register(fastifySession, {
    secret: SECRET,
    store,
    cookie: { secure: false },
    saveUninitialized: false,
    ...options,
  })
  app.all('/*', async (request: any) => {
    const url = new URL(request.url, 'http://localhost')
    const turn: Turn = {
      path: url.pathname,
      query: url.searchParams,
      session: () => request.session,
      regenerate: () => request.session.regenerate(),
      save: () => request.session.save(),
      destroy: () => request.session.destroy(),
    }
    return JSON.stringify(await handle(turn, gates))
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { port: (app.server.address() as AddressInfo).port, close: () => app.close() }
}

const withKoa: Start = (store, gates, options = {}) => {
  const app = new Koa()
  app.silent = true
  app.keys = [SECRET]
  app.use(koaSession({ store, ...options } as any, app) as any)
  app.use(async (context: any) => {
    const turn: Turn = {
      path: context.path,
      query: new URLSearchParams(context.querystring),
      session: () => context.session,
      regenerate: () => context.session.regenerate(),
      save: () => context.session.save(),
      destroy: async () => {
        context.session = null
      },
    }
    context.body = JSON.stringify((await handle(turn, gates)) ?? null)
  })
  return listening(app.callback())
}

export const OTHER_APPS: Readonly<Record<string, Start>> = {
  'express-session 1.18, Express 4': withExpress(express4, expressSession118),
  '@fastify/session 11': withFastify,
  'koa-session 7': withKoa,
}
