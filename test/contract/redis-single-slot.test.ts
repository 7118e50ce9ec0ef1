import { modelTest } from 'coatcheck/custom-store/testing'
import { RedisStore } from 'coatcheck/stores/redis'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { keyIn, recordOf, T0 } from '../support/records.ts'
import { describeEngine } from '../support/services/engines.ts'
import { onRedis } from './on-redis.ts'

const KINDS = [
  ['standalone', 'node-redis 6'],
  ['cluster', 'ioredis 6 cluster'],
] as const

describeEngine('redis', 'the Redis store with all users in one slot', () => {
  for (const [kind, client] of KINDS)
    onRedis(kind, client, open => {
      const openStores = () => open(client => new RedisStore(client, { singleSlot: true }))
      it('behaves like the reference model', () => modelTest(fc, openStores, undefined, { runs: 10 }))

      it('keeps a session under a key that was drawn before its user was known', async () => {
        const [store] = await openStores()
        const [shard, ...others] = ['', '0', '18446744073709551615', 'ada'].map(user => store.shard(user))
        expect(new Set(others)).toEqual(new Set([shard]))
        const at = { now: T0 }
        const records = ['18', '43'].map(user => ({ ...recordOf(store, user), key: keyIn(shard!) }))
        for (const record of records) expect(await store.create(record, at)).toBe('created')
        expect(await store.deleteUser('18', { minPasswordVersionUntil: T0 }, at)).toBe(1)
        expect(await store.listUser('18', 'session', at)).toEqual([])
        expect(await store.listUser('43', 'session', at)).toEqual([records[1]])
      })
    })
})
