import { modelTest, testStore } from 'coatcheck/custom-store/testing'
import { RedisStore } from 'coatcheck/stores/redis'
import fc from 'fast-check'
import { it } from 'vitest'
import { onRedis } from '../support/redis/suite.ts'
import { describeEngine } from '../support/services/engines.ts'

describeEngine('redis', 'the Redis store behind Sentinel', () => {
  onRedis('sentinel', 'node-redis 6 sentinel', (open, options) => {
    const openStores = () => open(client => new RedisStore(client))
    testStore(it, openStores, undefined, { ...options, runs: 10, rounds: 4 })
    it('behaves like the reference model', () => modelTest(fc, openStores, undefined, { runs: 10 }))
  })
})
