import { Redis } from 'ioredis'
import { afterAll, beforeAll } from 'vitest'
import { type RedisServer, startRedis } from '../services/redis.ts'

/** A Redis of this group of tests, and an ioredis client that has reached it; both end with the group. */
export function redisForGroup(): { readonly server: RedisServer; readonly client: Redis } {
  const own = {} as { server: RedisServer; client: Redis }
  beforeAll(async () => {
    own.server = await startRedis()
    own.client = new Redis(own.server.url)
    await own.client.ping()
  })
  afterAll(async () => {
    own.client.disconnect()
    await own.server.stop()
  })
  return own
}
