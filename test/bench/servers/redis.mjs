// @ts-check
import { RedisStore as ConnectRedis } from 'connect-redis'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { expressSessionServer, fastifySessionServer, koaSessionServer } from './frameworks.mjs'
import { coatcheckHandler, newId } from './handlers.mjs'
import { coatcheck, idOf, send, serve, userOf } from './serve.mjs'

const url = process.env.REDIS_URL ?? ''
const SECONDS_30_MINUTES = 1800

async function nodeRedis() {
  const client = createClient({ url })
  await client.connect()
  return client
}

/**
 * One raw GET with the client, by hand.
 * @param {(key: string) => Promise<string | null>} get
 * @param {(key: string, value: string) => Promise<unknown>} set
 * @returns {import('./serve.mjs').Handler}
 */
const floor = (get, set) => async (request, response) => {
  if (request.method === 'POST') {
    const id = newId()
    await set(`floor:${id}`, JSON.stringify({ user: userOf(request.url) }))
    response.setHeader('Set-Cookie', `session_id=${id}; HttpOnly`)
    return send(response, '"ok"')
  }
  const stored = await get(`floor:${idOf(request)}`)
  send(response, JSON.stringify(stored === null ? null : JSON.parse(stored).user))
}

await serve({
  async 'raw GET'() {
    const client = await nodeRedis()
    return floor(
      key => client.get(key),
      (key, value) => client.set(key, value, { expiration: { type: 'EX', value: SECONDS_30_MINUTES } }),
    )
  },
  async 'raw GET, ioredis'() {
    const client = new Redis(url)
    return floor(
      key => client.get(key),
      (key, value) => client.set(key, value, 'EX', SECONDS_30_MINUTES),
    )
  },
  async coatcheck() {
    const { RedisStore } = await coatcheck('stores/redis.js')
    return coatcheckHandler(new RedisStore(await nodeRedis()))
  },
  async 'coatcheck, ioredis'() {
    const { RedisStore } = await coatcheck('stores/redis.js')
    return coatcheckHandler(new RedisStore(new Redis(url)))
  },
  async 'express-session, connect-redis'() {
    return expressSessionServer(new ConnectRedis({ client: await nodeRedis(), prefix: 'express:' }))
  },
  async '@fastify/session, connect-redis'() {
    return fastifySessionServer(new ConnectRedis({ client: await nodeRedis(), prefix: 'fastify:' }))
  },
  async 'koa-session'() {
    const client = await nodeRedis()
    return koaSessionServer({
      get: async (/** @type {string} */ key) => JSON.parse((await client.get(`koa:${key}`)) ?? 'null'),
      set: (/** @type {string} */ key, /** @type {unknown} */ value) =>
        client.set(`koa:${key}`, JSON.stringify(value), { expiration: { type: 'EX', value: SECONDS_30_MINUTES } }),
      destroy: (/** @type {string} */ key) => client.del(`koa:${key}`),
    })
  },
})
