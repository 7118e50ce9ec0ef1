import { SessionManager } from 'coatcheck'
import { RedisStore } from 'coatcheck/stores/redis'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { type OpenClient, STANDALONE } from '../support/redis/clients.ts'
import { HOUR, keyIn, recordOf, soon, T0, writeId } from '../support/redis/records.ts'
import { describeEngine } from '../support/services/engines.ts'
import { type RedisServer, startRedis } from '../support/services/redis.ts'

describeEngine('redis', 'what a request costs Redis', () => {
  let server: RedisServer
  let open: OpenClient
  let store: RedisStore
  beforeAll(async () => {
    server = await startRedis()
    open = await STANDALONE['node-redis 6']!(server.url)
    store = new RedisStore(open.client)
    // The very first calls ask for the eviction policy, load the scripts and learn the server's clock.
    const first = recordOf(store, '1')
    await store.create(first, { now: T0 })
    await store.update(first.key, 1, { data: '1', seenAt: T0, expiresAt: T0 + HOUR, writeId: writeId() }, { now: T0 })
    await store.touch(first.key, T0, T0 + HOUR, { now: T0 })
    await store.delete(first.key, { now: T0 })
    await store.deleteUser('1', { minPasswordVersionUntil: T0 }, { now: T0 })
  })
  afterAll(async () => {
    await open.close()
    await server.stop()
  })
  beforeEach(() => server.cli('CONFIG', 'RESETSTAT'))

  /** Commands that came over the wire; those that scripts call are counted by Redis too, and left out here. */
  const wire = async () => {
    const {
      get = 0,
      evalsha = 0,
      mget = 0,
      eval: eval_ = 0,
      info: _,
      config: __,
      ...stats
    } = await server.commandStats()
    return { get, evalsha, mget, eval: eval_, other: Object.keys(stats).filter(name => !/^client|^hello/.test(name)) }
  }

  it('takes two commands for the end of an ID that was renewed, and a visit with one', async () => {
    const [login, renewed] = [recordOf(store, '3'), recordOf(store, '3')]
    await store.create(login, { now: T0 })
    await store.replace(login.key, 1, renewed, { forward: { salt: 's', until: T0 + 10 } }, { now: T0 })
    await server.cli('CONFIG', 'RESETSTAT')
    expect(await store.delete(login.key, { now: T0 })).toBe(true)
    expect((await wire()).evalsha).toBe(2)
    const sessions = new SessionManager({ store, storeTimeout: '20s' })
    const session = await sessions.create({ user: { id: 3, name: 'ada' } })
    await sessions.regenerate(session, { grace: '1m' })
    await server.cli('CONFIG', 'RESETSTAT')
    expect(await sessions.get(session.secret, { touch: false })).not.toBe(null)
    expect(await wire()).toMatchObject({ get: 2, evalsha: 0, mget: 0 })
  })

  it('reads those that are asked for in one turn with one MGET for 128 of them, and a lone one with a GET', async () => {
    const records = Array.from({ length: 64 }, (_, i) => recordOf(store, `m${i}`))
    await Promise.all(records.map(record => store.create(record, { now: T0 })))
    const absent = Array.from({ length: 5000 }, () => ({ key: keyIn('abc') }))
    for (const [asked, sent] of [
      [[...records, ...records], { get: 0, mget: 1 }],
      [records.slice(0, 1), { get: 1, mget: 0 }],
      [Array.from({ length: 64 }, () => records[0]!), { get: 1, mget: 0 }],
      [absent, { get: 0, mget: 40 }],
    ] as const) {
      await server.cli('CONFIG', 'RESETSTAT')
      const found = await Promise.all(asked.map(({ key }) => store.read(key, { now: T0, deadline: soon() })))
      expect(found).toEqual(asked === absent ? absent.map(() => null) : asked)
      expect(await wire()).toEqual({ ...sent, evalsha: 0, eval: 0, other: ['config|resetstat'] })
    }
  })

  it.each<[string, (key: string) => Promise<unknown>]>([
    ['create', () => store.create(recordOf(store, '3'), { now: T0 })],
    ['create anonymously', () => store.create(recordOf(store, null), { now: T0 })],
    ['update', key => store.update(key, 1, { data: '1', seenAt: T0, expiresAt: T0, writeId: writeId() }, { now: T0 })],
    ['touch', key => store.touch(key, T0 + 1, T0 + HOUR, { now: T0 })],
    ['regenerate of the same user', key => store.replace(key, 1, recordOf(store, '3'), {}, { now: T0 })],
    ['login', key => store.replace(key, 1, recordOf(store, '4'), {}, { now: T0 })],
    ['destroy', key => store.delete(key, { now: T0 })],
  ])('%s is one EVALSHA', async (_, verb) => {
    const record = recordOf(store, '3')
    await store.create(record, { now: T0 })
    await server.cli('CONFIG', 'RESETSTAT')
    await verb(record.key)
    const { evalsha, eval: eval_, mget } = await wire()
    expect({ evalsha, eval: eval_, mget }).toEqual({ evalsha: 1, eval: 0, mget: 0 })
  })
})
