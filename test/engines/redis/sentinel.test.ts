import { modelTest, testStore } from 'coatcheck/custom-store/testing'
import { RedisStore } from 'coatcheck/stores/redis'
import fc from 'fast-check'
import { it } from 'vitest'
import { onRedis } from '../../support/redis/suite.ts'
import { describeEngine } from '../../support/services/engines.ts'

describeEngine('redis', 'the Redis store behind Sentinel', () => {
  onRedis('sentinel', 'node-redis 6 sentinel', (open, options) => {
    testStore(it, async () => new RedisStore((await open()).client), undefined, { ...options, runs: 10, rounds: 4 })
    it('behaves like the reference model', () =>
      modelTest(fc, async () => new RedisStore((await open()).client), undefined, { runs: 10 }))
  })
})
