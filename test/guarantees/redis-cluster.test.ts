import { RedisStore } from 'coatcheck/stores/redis'
import { redisBackend } from '../support/redis/backend.ts'
import { CLUSTER } from '../support/redis/clients.ts'
import { sharedRedisCluster } from '../support/services/redis.ts'
import { onEngine } from './on-engine.ts'

onEngine('redis', 'Redis Cluster', async () => {
  const cluster = await sharedRedisCluster()
  const { client, close } = await CLUSTER['ioredis 6 cluster']!(cluster.addresses)
  const store = new RedisStore(client)
  return { store, ...redisBackend(cluster.masters), close: async () => [await close(), await cluster.stop()] }
})
