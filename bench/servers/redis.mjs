// @ts-check
import { betterAuthServer, memoryTables } from './better-auth.mjs'
import { expressSessionServer, fastifySessionServer, koaSessionServer } from './frameworks.mjs'
import { byHand, coatcheckHandler } from './handlers.mjs'
import { coatcheck, serve } from './serve.mjs'

const url = process.env.REDIS_URL ?? ''
const SECONDS_30_MINUTES = 1800

async function nodeRedis() {
  const { createClient } = await import('redis')
  const client = createClient({ url })
  await client.connect()
  return client
}

async function ioredis() {
  const { Redis } = await import('ioredis')
  return new Redis(url)
}

async function connectRedis(/** @type {string} */ prefix) {
  const { RedisStore } = await import('connect-redis')
  return new RedisStore({ client: await nodeRedis(), prefix })
}

/**
 * What both clients do, under one name each.
 * @typedef {object} Commands
 * @property {(key: string) => Promise<string | null>} get
 * @property {(key: string, value: string) => Promise<unknown>} set for 30 minutes
 * @property {(key: string, value: string) => Promise<unknown>} keep set, if it is there, and its time stays
 * @property {(keys: string[]) => Promise<unknown>} del
 * @property {(key: string, member: string) => Promise<unknown>} add
 * @property {(key: string, member: string) => Promise<unknown>} remove
 * @property {(key: string) => Promise<string[]>} members
 */

/** @returns {Promise<Commands>} */
async function nodeRedisCommands() {
  const client = await nodeRedis()
  return {
    get: key => client.get(key),
    set: (key, value) => client.set(key, value, { expiration: { type: 'EX', value: SECONDS_30_MINUTES } }),
    keep: (key, value) => client.set(key, value, { condition: 'XX', expiration: 'KEEPTTL' }),
    del: keys => client.del(keys),
    add: (key, member) => client.sAdd(key, member),
    remove: (key, member) => client.sRem(key, member),
    members: key => client.sMembers(key),
  }
}

/** @returns {Promise<Commands>} */
async function ioredisCommands() {
  const client = await ioredis()
  return {
    get: key => client.get(key),
    set: (key, value) => client.set(key, value, 'EX', SECONDS_30_MINUTES),
    keep: (key, value) => client.call('SET', key, value, 'XX', 'KEEPTTL'),
    del: keys => client.del(keys),
    add: (key, member) => client.sadd(key, member),
    remove: (key, member) => client.srem(key, member),
    members: key => client.smembers(key),
  }
}

/**
 * One GET by hand. For logout-everywhere a set has the session IDs of each user.
 * @param {Commands} commands
 */
const floor = ({ get, set, keep, del, add, remove, members }) =>
  byHand({
    async get(id) {
      const stored = await get(`floor:${id}`)
      return stored === null ? null : JSON.parse(stored).user
    },
    create: (id, user) => Promise.all([set(`floor:${id}`, JSON.stringify({ user })), add(`floor-user:${user.id}`, id)]),
    async write(id, value) {
      const stored = await get(`floor:${id}`)
      if (stored !== null) await keep(`floor:${id}`, JSON.stringify({ ...JSON.parse(stored), value }))
    },
    async end(id) {
      const stored = await get(`floor:${id}`)
      if (stored !== null)
        await Promise.all([del([`floor:${id}`]), remove(`floor-user:${JSON.parse(stored).user.id}`, id)])
    },
    async invalidateAll(id) {
      const stored = await get(`floor:${id}`)
      if (stored === null) return
      const user = `floor-user:${JSON.parse(stored).user.id}`
      const ids = await members(user)
      await del([user, ...ids.map(each => `floor:${each}`)])
    },
  })

/** koa-session leaves the store to the application: the least that it has to be. @param {Commands} commands @param {string} prefix */
const jsonStore = ({ get, set, del }, prefix) => ({
  get: async (/** @type {string} */ key) => JSON.parse((await get(prefix + key)) ?? 'null'),
  set: (/** @type {string} */ key, /** @type {unknown} */ value) => set(prefix + key, JSON.stringify(value)),
  destroy: (/** @type {string} */ key) => del([prefix + key]),
})

await serve({
  'raw GET': async () => floor(await nodeRedisCommands()),
  'raw GET, ioredis': async () => floor(await ioredisCommands()),
  async coatcheck() {
    const { RedisStore } = await coatcheck('stores/redis.js')
    return coatcheckHandler(new RedisStore(await nodeRedis()))
  },
  async 'coatcheck, ioredis'() {
    const { RedisStore } = await coatcheck('stores/redis.js')
    return coatcheckHandler(new RedisStore(await ioredis()))
  },
  'express-session, connect-redis': async () => expressSessionServer(await connectRedis('express:')),
  '@fastify/session, connect-redis': async () => fastifySessionServer(await connectRedis('fastify:')),
  'koa-session': async () => koaSessionServer(jsonStore(await nodeRedisCommands(), 'koa:')),
  'koa-session, ioredis': async () => koaSessionServer(jsonStore(await ioredisCommands(), 'koa-io:')),
  async 'better-auth'() {
    const { memoryAdapter } = await import('better-auth/adapters/memory')
    const client = await nodeRedis()
    const secondaryStorage = {
      get: (/** @type {string} */ key) => client.get(`auth:${key}`),
      set: (/** @type {string} */ key, /** @type {string} */ value, /** @type {number | undefined} */ ttl) =>
        client.set(`auth:${key}`, value, ttl ? { expiration: { type: 'EX', value: ttl } } : {}),
      delete: (/** @type {string} */ key) => client.del(`auth:${key}`),
    }
    return betterAuthServer({ database: memoryAdapter(memoryTables()), secondaryStorage })
  },
})
