import { modelTest, testStore } from 'coatcheck/custom-store/testing'
import { RedisStore } from 'coatcheck/stores/redis'
import fc from 'fast-check'
import { it } from 'vitest'
import { describeEngine } from '../support/services/engines.ts'
import { onRedis } from './on-redis.ts'

describeEngine('redis', 'the Redis store on a Redis Cluster', () => {
  onRedis('cluster', 'ioredis 6 cluster', (open, options) => {
    const openStores = () => open(client => new RedisStore(client))
    it('behaves like the reference model', () => modelTest(fc, openStores, undefined, { runs: 10 }))
    testStore(it, openStores, undefined, { ...options, runs: 15 })
  })
})
