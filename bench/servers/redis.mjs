// @ts-check
import { nodeRedis, storeOver } from '../clients.mjs'
import { betterAuthServer, memoryTables } from './better-auth.mjs'
import { koaSessionServer, serversOn } from './frameworks.mjs'
import { byHand } from './handlers.mjs'
import { serve } from './serve.mjs'

const url = process.env.REDIS_URL ?? ''
const IN_30_MINUTES = /** @type {const} */ ({ expiration: { type: 'EX', value: 1800 } })

async function connectRedis() {
  const { RedisStore } = await import('connect-redis')
  return new RedisStore({ client: await nodeRedis(url), prefix: `${process.argv[2]}:` })
}

/**
 * One GET by hand. For logout-everywhere a set has the session IDs of each user.
 */
async function floor() {
  const client = await nodeRedis(url)
  const userOf = async (/** @type {string} */ id) => {
    const stored = await client.get(`floor:${id}`)
    return stored === null ? null : JSON.parse(stored).user
  }
  return byHand({
    get: userOf,
    create: (id, user) =>
      Promise.all([
        client.set(`floor:${id}`, JSON.stringify({ user }), IN_30_MINUTES),
        client.sAdd(`floor-user:${user.id}`, id),
      ]),
    async write(id, value) {
      const user = await userOf(id)
      if (user)
        await client.set(`floor:${id}`, JSON.stringify({ user, value }), { condition: 'XX', expiration: 'KEEPTTL' })
    },
    async end(id) {
      const user = await userOf(id)
      if (user) await Promise.all([client.del(`floor:${id}`), client.sRem(`floor-user:${user.id}`, id)])
    },
    async invalidateAll(id) {
      const user = await userOf(id)
      if (!user) return
      const ids = await client.sMembers(`floor-user:${user.id}`)
      await client.del([`floor-user:${user.id}`, ...ids.map(each => `floor:${each}`)])
    },
  })
}

await serve({
  ...serversOn({
    byHand: floor,
    store: async () => storeOver('Redis', await nodeRedis(url)),
    peerStore: connectRedis,
  }),
  /** koa-session leaves the store to the application: the least that it has to be. */
  async 'koa-session'() {
    const client = await nodeRedis(url)
    return koaSessionServer({
      get: async key => JSON.parse((await client.get(`koa:${key}`)) ?? 'null'),
      set: (key, value) => client.set(`koa:${key}`, JSON.stringify(value), IN_30_MINUTES),
      destroy: key => client.del(`koa:${key}`),
    })
  },
  async 'better-auth'() {
    const { memoryAdapter } = await import('better-auth/adapters/memory')
    const client = await nodeRedis(url)
    const secondaryStorage = {
      get: (/** @type {string} */ key) => client.get(`auth:${key}`),
      set: (/** @type {string} */ key, /** @type {string} */ value, /** @type {number | undefined} */ ttl) =>
        client.set(`auth:${key}`, value, ttl ? { expiration: { type: 'EX', value: ttl } } : {}),
      delete: (/** @type {string} */ key) => client.del(`auth:${key}`),
    }
    return betterAuthServer({ database: memoryAdapter(memoryTables()), secondaryStorage })
  },
})
