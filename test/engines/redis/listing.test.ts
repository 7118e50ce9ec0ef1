import { RedisStore } from 'coatcheck/stores/redis'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { recordOf, soon, T0, writeId } from '../../support/redis/records.ts'
import { describeEngine } from '../../support/services/engines.ts'
import { type RedisServer, startRedis } from '../../support/services/redis.ts'

describeEngine('redis', 'a session that gets a new ID while its user is listed', () => {
  let server: RedisServer
  let client: Redis
  beforeAll(async () => {
    server = await startRedis()
    client = new Redis(server.url)
    await client.ping()
  })
  afterAll(async () => {
    client.disconnect()
    await server.stop()
  })

  it('is in the list, under one of its keys, however often it gets one', async () => {
    const store = new RedisStore(client)
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
      const answer = await client.call(command, args)
      if (command === 'ZRANGE') await between()
      return answer
    }
    const interrupted = {
      call,
      get status() {
        return client.status
      },
    }
    const listing = new RedisStore(interrupted as unknown as Redis)
    const listed = await listing.listUser('7', 'session', { now: T0, deadline: soon() })
    expect(listed.map(({ key }) => key)).toEqual([third!.key])
  })
})
