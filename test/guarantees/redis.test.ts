import { RedisStore } from 'coatcheck/stores/redis'
import { redisBackend } from '../support/redis/backend.ts'
import { STANDALONE } from '../support/redis/clients.ts'
import { startRedis } from '../support/services/redis.ts'
import { onEngine } from './on-engine.ts'

onEngine('redis', 'Redis', async () => {
  const server = await startRedis()
  const { client, close } = await STANDALONE['node-redis 6']!(server.url)
  const store = new RedisStore(client)
  return { store, ...redisBackend([server]), close: async () => [await close(), await server.stop()] }
})
