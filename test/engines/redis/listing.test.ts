import { RedisStore } from 'coatcheck/stores/redis'
import type { Redis } from 'ioredis'
import { expect, it } from 'vitest'
import { redisForGroup } from '../../support/redis/group.ts'
import { recordOf, soon, T0, writeId } from '../../support/redis/records.ts'
import { describeEngine } from '../../support/services/engines.ts'

describeEngine('redis', 'a session that gets a new ID while its user is listed', () => {
  const redis = redisForGroup()

  it('is in the list, under one of its keys, however often it gets one', async () => {
    const store = new RedisStore(redis.client)
    const [first, second, third] = [1, 2, 3].map(() => recordOf(store, '7', { writeId: writeId() }))
    await store.create(first!, {}, { now: T0, deadline: soon() })
    // The index has been read, and the records have not.
    let between = async () => {
      between = async () => {}
      for (const [from, to] of [
        [first!, second!],
        [second!, third!],
      ] as const) {
        const forward = { salt: '', until: T0 }
        const { outcome } = await store.replace(from.key, 1, to, { forward }, { now: T0, deadline: soon() })
        expect(outcome).toBe('created')
      }
    }
    const call = async (command: string, args: string[]) => {
      const answer = await redis.client.call(command, args)
      if (command === 'ZRANGE') await between()
      return answer
    }
    const interrupted = {
      call,
      get status() {
        return redis.client.status
      },
    }
    const listing = new RedisStore(interrupted as unknown as Redis)
    const listed = await listing.listUser('7', 'session', { now: T0, deadline: soon() })
    expect(listed.map(({ key }) => key)).toEqual([third!.key])
  })
})
