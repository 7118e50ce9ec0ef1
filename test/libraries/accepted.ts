// What `npm run types` has to accept: the store where these libraries take one.
import fastifySession from '@fastify/session'
import { SessionManager } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import fastify from 'fastify'
import Koa from 'koa'
import koaSession from 'koa-session'

export function storesForMiddleware() {
  const store = connectStore(new SessionManager({ store: new MemoryStore() }))
  fastify().register(fastifySession, { store, secret: 'a secret of 32 characters or more' })
  koaSession({ store }, new Koa())
}
