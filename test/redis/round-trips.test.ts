import { SessionManager } from 'coatcheck'
import { type NodeRedisClient, RedisStore } from 'coatcheck/stores/redis'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { type OpenClient, STANDALONE } from '../support/redis/clients.ts'
import { HOUR, recordOf, soon, T0, writeId } from '../support/redis/records.ts'
import { describeEngine } from '../support/services/engines.ts'
import { type RedisServer, startRedis } from '../support/services/redis.ts'

/** The same client, counting how often it begins to wait: commands sent together are one round trip. */
function counting(client: NodeRedisClient) {
  let waiting = 0
  const counted = {
    isOpen: true,
    isReady: true,
    roundTrips: 0,
    async sendCommand(args: string[]) {
      if (waiting++ === 0) counted.roundTrips++
      try {
        return await client.sendCommand(args)
      } finally {
        waiting--
      }
    },
  }
  return counted
}

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

  it('reads a session with one GET and nothing else', async () => {
    const record = recordOf(store, '2')
    await store.create(record, { now: T0 })
    await server.cli('CONFIG', 'RESETSTAT')
    for (let i = 0; i < 10; i++) expect(await store.read(record.key, { now: T0 })).toEqual(record)
    expect(await wire()).toEqual({ get: 10, evalsha: 0, mget: 0, eval: 0, other: ['config|resetstat'] })
  })

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

  it('reads 64 sessions that are asked for in one turn with one MGET', async () => {
    const records = Array.from({ length: 64 }, (_, i) => recordOf(store, `m${i}`))
    await Promise.all(records.map(record => store.create(record, { now: T0 })))
    await server.cli('CONFIG', 'RESETSTAT')
    const twice = [...records, ...records]
    expect(await Promise.all(twice.map(({ key }) => store.read(key, { now: T0 })))).toEqual(twice)
    expect(await wire()).toEqual({ get: 0, evalsha: 0, mget: 1, eval: 0, other: ['config|resetstat'] })
  })

  it('reads one session that is asked for 64 times in one turn with one GET', async () => {
    const record = recordOf(store, '2')
    await store.create(record, { now: T0 })
    await server.cli('CONFIG', 'RESETSTAT')
    const found = await Promise.all(Array.from({ length: 64 }, () => store.read(record.key, { now: T0 })))
    expect(found).toEqual(found.map(() => record))
    expect(new Set(found).size).toBe(64)
    expect(await wire()).toEqual({ get: 1, evalsha: 0, mget: 0, eval: 0, other: ['config|resetstat'] })
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

  // 500 sessions a script: a server that runs one serves nobody else.
  it('ends 10,000 sessions of a user in 21 round trips, and lists them in 2', { timeout: 120_000 }, async () => {
    const client = counting(open.client as NodeRedisClient)
    const counted = new RedisStore(client, { allowEviction: true })
    await counted.deleteUser('1', { minPasswordVersionUntil: T0 }, { now: T0, deadline: soon() })
    const records = Array.from({ length: 10_000 }, () => recordOf(store, '5', { passwordVersion: 2 }))
    for (let i = 0; i < records.length; i += 500)
      await Promise.all(records.slice(i, i + 500).map(record => store.create(record, { now: T0, deadline: soon() })))
    client.roundTrips = 0
    expect(await counted.listUser('5', 'session', { now: T0, deadline: soon() })).toHaveLength(10_000)
    expect(client.roundTrips).toBe(2)
    client.roundTrips = 0
    const options = { minPasswordVersion: 2, minPasswordVersionUntil: T0 + HOUR }
    expect(await counted.deleteUser('5', options, { now: T0, deadline: soon() })).toBe(10_000)
    expect(client.roundTrips).toBe(21)
    expect(await store.listUser('5', 'session', { now: T0, deadline: soon() })).toEqual([])
  })

  it('writes at most once for 1,000 reads within one touch interval', async () => {
    let now = T0
    const sessions = new SessionManager({ store, now: () => now, storeTimeout: '20s' })
    const { secret } = await sessions.create({ user: { id: 6, name: 'ada' } })
    now += HOUR / 4
    await server.cli('CONFIG', 'RESETSTAT')
    for (let i = 0; i < 1000; i++) expect(await sessions.get(secret)).not.toBe(null)
    const { get, evalsha } = await wire()
    // The touch's script reads the record once more.
    expect({ get: get - evalsha, evalsha }).toEqual({ get: 1000, evalsha: 1 })
    await sessions.close()
  })
})
