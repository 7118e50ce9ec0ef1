import type { SessionRecord } from 'coatcheck/custom-store'
import { RedisStore } from 'coatcheck/stores/redis'
import { beforeEach, expect, it } from 'vitest'
import { call, HOUR, keyIn, nameOf, recordOf, T0 } from '../support/records.ts'
import { CLUSTER, SENTINEL, STANDALONE } from '../support/redis/clients.ts'
import { redisForGroup } from '../support/redis/group.ts'
import { describeEngine } from '../support/services/engines.ts'
import { until } from '../support/services/process.ts'
import { sharedRedisCluster, startRedisCluster, startRedisSentinels } from '../support/services/redis.ts'

type Between = (page: number, cursor: string | null) => unknown

/** All keys that a walk meets, with what it says of them, and how many records each page had; `between` is called after each. */
async function walk(open: () => RedisStore, limit: number, between: Between = () => {}) {
  const records = new Map<string, SessionRecord>()
  const forwards = new Set<string>()
  const sizes: number[] = []
  for (let cursor: string | null = null; ; ) {
    const page = await open().scan(cursor, limit, call(T0 + 1))
    for (const record of page.records) records.set(record.key, record)
    for (const key of page.forwards) forwards.add(key)
    cursor = page.next
    await between(sizes.push(page.records.length), cursor)
    if (cursor === null) return { records, forwards, sizes }
  }
}

async function fill(store: RedisStore, count: number): Promise<SessionRecord[]> {
  const records = Array.from({ length: count }, (_, i) =>
    recordOf(store, i % 3 === 0 ? null : `u${i % 40}`, {
      kind: i % 5 === 1 ? 'remember' : 'session',
      data: `{"n":"é${i}"}`,
    }),
  )
  await Promise.all(records.map(record => store.create(record, call())))
  return records
}
const keysOf = (records: Iterable<{ key: string }>) => [...records].map(({ key }) => key).sort()

describeEngine('redis', 'a walk over one server', () => {
  const redis = redisForGroup(['--save', '3600 1'])
  beforeEach(() => redis.client.flushall())

  it.each(['a*', 'b?', '[^d]', 'e\\', 'ü', ''])(
    'keeps to its own prefix, %j, beside others and another application',
    async prefix => {
      const store = new RedisStore(redis.client, { prefix })
      const records = await fill(store, 20)
      for (const other of ['ab', 'bb', 'c', 'e', 'üü']) await fill(new RedisStore(redis.client, { prefix: other }), 3)
      await redis.client.set('session:1', 'x')
      await redis.client.hset(`${prefix}{abc}:${'x'.repeat(43)}`, 'a', 'b')
      await redis.client.set(`${prefix}{abc}:u:${'x'.repeat(41)}`, 'an index with a long user ID')
      await redis.client.set(nameOf(keyIn('abc'), prefix), 'gibberish')
      await redis.client.set(nameOf(keyIn('abc'), prefix), 'x writeid123')
      const found = await walk(() => store, 10)
      // An empty prefix is the end of every other one.
      expect(keysOf(found.records.values())).toEqual(expect.arrayContaining(keysOf(records)))
      if (prefix !== '') expect(found.records.size).toBe(20)
      expect([...found.forwards]).toEqual([])
    },
  )

  it('answers no more than it was asked for, about, and goes on in another process', async () => {
    const records = await fill(new RedisStore(redis.client), 300)
    const other = await STANDALONE['node-redis 6']!(redis.server.url)
    const stores = [new RedisStore(redis.client), new RedisStore(other.client)]
    let turn = 0
    const { records: found, sizes } = await walk(() => stores[turn++ % 2]!, 20)
    expect(keysOf(found.values())).toEqual(keysOf(records))
    expect(Math.max(...sizes)).toBeLessThan(40)
    expect(sizes.length).toBeGreaterThan(10)
    await other.close()
  })

  it('begins again where the server was started again, whose cursors mean something else', async () => {
    const store = new RedisStore(redis.client)
    const records = await fill(store, 400)
    const restarted: string[] = []
    const { records: found } = await walk(
      () => store,
      25,
      async (page, cursor) => {
        if (page !== 8) return
        await redis.client.save()
        await redis.server.kill()
        await redis.server.restart()
        await until('the client being back', () => store.read(keyIn('abc'), call()), { timeout: 15_000 })
        restarted.push(cursor!)
      },
    )
    expect(keysOf(found.values())).toEqual(keysOf(records))
    const after = await store.scan(restarted[0]!, 25, call())
    expect(after).toMatchObject({ records: [], next: expect.stringMatching(/ 0$/) })
  })

  it.each(['', 'x', '0 a', '0 a -1', '0 a 1 ', `0 a ${'9'.repeat(21)}`])(
    'refuses a cursor that no page answered: %j',
    async cursor => {
      const scan = new RedisStore(redis.client).scan(cursor, 10, call())
      await expect(scan).rejects.toThrow(TypeError)
      await expect(scan).rejects.toThrow(/^cursor: expected null, or the next of the page before, got "/)
    },
  )
})

describeEngine('redis', 'a walk while masters change', () => {
  it.concurrent('behind Sentinel: begins again on the new master', async () => {
    const watched = await startRedisSentinels()
    const { client, close } = await SENTINEL['ioredis 6 sentinel']!(watched.name, watched.sentinels)
    const store = new RedisStore(client)
    const records = await fill(store, 200)
    await watched.master.cli('WAIT', '1', '5000')
    const { records: found } = await walk(
      () => store,
      15,
      async page => {
        if (page !== 5) return
        await watched.master.kill()
        await until('the new master', () => store.touch(records[0]!.key, T0 + 1, T0 + HOUR, call()))
      },
    )
    expect(keysOf(found.values())).toEqual(keysOf(records))
    await close()
    await watched.stop()
  })

  it.concurrent('of a cluster: goes on with the replica of a master that died, from the begin of its part', {
    timeout: 120_000,
  }, async () => {
    const cluster = await startRedisCluster()
    const { client, close } = await CLUSTER['ioredis 6 cluster']!(cluster.addresses)
    const store = new RedisStore(client)
    const records = await fill(store, 300)
    const { records: found } = await walk(
      () => store,
      10,
      async (page, cursor) => {
        if (page !== 3) return
        const master = await cluster.masterOf(Number(cursor!.split(' ')[0]))
        const replica = cluster.replicas[cluster.masters.indexOf(master)]!
        await master.cli('WAIT', '1', '5000')
        await until('the take-over', async () => {
          await replica.cli('CLUSTER', 'FAILOVER')
          expect(await replica.cli('ROLE')).toMatch(/^master/)
        })
        await until('all agreeing', async () => {
          for (const node of cluster.nodes) expect(await node.cli('CLUSTER', 'INFO')).toMatch(/cluster_state:ok/)
          // The client learns where the slots are by the requests of users.
          for (const { key } of records) await store.touch(key, T0 + 1, T0 + HOUR, call())
          await store.scan(cursor, 10, call())
        })
      },
    )
    expect(keysOf(found.values())).toEqual(keysOf(records))
    await close()
    await cluster.stop()
  })

  it.concurrent('of a cluster: says so where the slots have moved', async () => {
    const cluster = await sharedRedisCluster()
    const { client, close } = await CLUSTER['node-redis 6 cluster']!(cluster.addresses)
    await expect(new RedisStore(client).scan('5 0 0', 10, call())).rejects.toMatchObject({
      outcome: 'not-applied',
      cause: { message: 'the slots of the cluster have moved: begin the walk again' },
    })
    await close()
    await cluster.stop()
  })
})
