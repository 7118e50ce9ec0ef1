import { RedisStore } from 'coatcheck/stores/redis'
import { expect, it } from 'vitest'
import { call, HOUR, recordOf, T0 } from '../support/records.ts'
import { CLUSTER, SENTINEL, STANDALONE } from '../support/redis/clients.ts'
import { startPair } from '../support/redis/failures.ts'
import { describeEngine } from '../support/services/engines.ts'
import { until } from '../support/services/process.ts'
import { startRedisCluster, startRedisSentinels } from '../support/services/redis.ts'

const LONG = process.env.COATCHECK_LONG === '1'

describeEngine('redis', 'a master that dies', () => {
  it('with min-replicas-to-write, and its replica is away: nothing is acknowledged that it alone would have', async () => {
    const { old: master, next: replica, stop } = await startPair()
    await master.cli('CONFIG', 'SET', 'min-replicas-max-lag', '1')
    await master.cli('CONFIG', 'SET', 'min-replicas-to-write', '1')
    const { client, close } = await STANDALONE['node-redis 6']!(master.url)
    const store = new RedisStore(client)
    const record = recordOf(store, '1')
    expect(await until('a write', () => store.create(record, call()))).toBe('created')
    replica.pause()
    await until('the master missing it', async () => expect(await master.cli('SET', 'x', '1')).toMatch(/NOREPLICAS/))
    await expect(store.delete(record.key, call())).rejects.toMatchObject({
      outcome: 'not-applied',
      cause: { message: expect.stringMatching(/NOREPLICAS/) },
    })
    expect(await store.read(record.key, call())).toEqual(record)
    replica.resume()
    expect(await until('a write', () => store.delete(record.key, call()))).toBe(true)
    await close()
    await stop()
  })

  const clusterClients = Object.keys(CLUSTER).filter(name => LONG || /6/.test(name))
  it.concurrent.each(clusterClients)(
    'in a cluster: what the replicas have holds, and %s finds the new master by itself',
    { timeout: 90_000 },
    async name => {
      const cluster = await startRedisCluster(['--cluster-node-timeout', '1500'])
      const { client, close } = await CLUSTER[name]!(cluster.addresses)
      const store = new RedisStore(client)
      const users = Array.from({ length: 30 }, (_, i) => String(i))
      const records = users.map(user => recordOf(store, user))
      for (const record of records) await store.create(record, call())
      await Promise.all(records.slice(0, 10).map(({ key }) => store.delete(key, call())))
      await Promise.all(
        users.slice(10, 20).map(user => store.deleteUser(user, { minPasswordVersionUntil: T0 }, call())),
      )
      for (const master of cluster.masters) expect(await master.cli('WAIT', '1', '5000')).toBe('1')
      await cluster.masters[0]!.kill()
      const found = await until(
        'all shards answering again',
        () => Promise.all(records.map(({ key }) => store.read(key, { now: T0, deadline: performance.now() + 1000 }))),
        { timeout: 45_000 },
      )
      expect(found.map(record => record !== null)).toEqual(users.map((_, i) => i >= 20))
      // All verbs go on.
      for (const [i, user] of users.entries()) {
        const next = recordOf(store, user)
        expect(await store.create(next, call())).toBe('created')
        expect(await store.listUser(user, 'session', call())).toHaveLength(i >= 20 ? 2 : 1)
      }
      await close()
      await cluster.stop()
    },
  )

  const sentinelClients = Object.keys(SENTINEL).filter(name => LONG || name.includes('6'))
  it.concurrent.each(sentinelClients)(
    'behind Sentinel: what the replicas have holds, and %s finds the new master by itself',
    { timeout: 90_000 },
    async name => {
      const watched = await startRedisSentinels()
      const { client, close } = await SENTINEL[name]!(watched.name, watched.sentinels)
      const store = new RedisStore(client)
      const [kept, ended] = [recordOf(store, '1'), recordOf(store, '2')]
      for (const record of [kept, ended]) await store.create(record, call())
      expect(await store.delete(ended.key, call())).toBe(true)
      await until('the replica having it', async () => expect(await watched.replica.cli('DBSIZE')).toBe('3'))
      await watched.master.kill()
      const found = await until(
        'an answer of the new master',
        () => store.read(kept.key, { now: T0, deadline: performance.now() + 500 }),
        { timeout: 45_000 },
      )
      expect(found).toEqual(kept)
      expect(await store.read(ended.key, call())).toBe(null)
      const touch = () => store.touch(kept.key, T0 + 1, T0 + HOUR, call())
      expect(await until('a write', touch, { timeout: 20_000 })).toBe('touched')
      await close()
      await watched.stop()
    },
  )
})
