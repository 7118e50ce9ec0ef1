import { RedisStore } from 'coatcheck/stores/redis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { describeEngine } from '../../services/engines.ts'
import { until } from '../../services/process.ts'
import { startProxy } from '../../services/proxy.ts'
import {
  type RedisCluster,
  type RedisServer,
  startRedis,
  startRedisCluster,
  startRedisSentinels,
} from '../../services/redis.ts'
import { CLUSTER, SENTINEL, STANDALONE } from '../../support/redis/clients.ts'
import { HOUR, recordOf, soon, T0 } from '../../support/redis/records.ts'

const LONG = process.env.COATCHECK_LONG === '1'
const ROUNDS = LONG ? 20 : 2

const ALL = ['node-redis 6', 'ioredis 6', 'node-redis 6 pool', 'valkey-glide 2', 'node-redis 5', 'ioredis 5']

describeEngine('redis', 'a master that dies', () => {
  describe('with one replica', () => {
    let master: RedisServer
    let replica: RedisServer
    beforeEach(async () => {
      master = await startRedis(['--repl-diskless-sync-delay', '0'])
      replica = await startRedis(['--replicaof', `127.0.0.1 ${master.port}`])
      await linked()
    })
    afterEach(() => Promise.all([master.stop(), replica.stop()]))
    const linked = () =>
      until('the replica following', async () => {
        expect(await replica.cli('INFO', 'replication')).toMatch(/master_link_status:up/)
      })

    it.each(ALL.filter(name => LONG || !name.includes('5')))(
      'right after an acknowledged revocation: nothing comes back with waitReplicas and %s',
      async name => {
        for (let round = 0; round < ROUNDS; round++) {
          const { client, close } = await STANDALONE[name]!(master.url)
          const store = new RedisStore(client, { waitReplicas: 1 })
          const [ada, max, eve] = ['1', '2', '3'].map(user => recordOf(store, user)) as [any, any, any]
          const anonymous = recordOf(store, null)
          for (const record of [ada, max, eve, anonymous]) await store.create(record, {}, { now: T0, deadline: soon() })
          const login = recordOf(store, '3')
          await Promise.all([
            store.delete(ada.key, { now: T0, deadline: soon() }),
            store.deleteUser(
              '2',
              { minPasswordVersion: 1, minPasswordVersionUntil: T0 + HOUR },
              { now: T0, deadline: soon() },
            ),
            store.replace(anonymous.key, 1, login, {}, { now: T0, deadline: soon() }),
          ])
          await master.kill()
          await replica.cli('REPLICAOF', 'NO', 'ONE')
          await close()
          await store.close()
          const promoted = await STANDALONE['node-redis 6']!(replica.url)
          const heir = new RedisStore(promoted.client)
          for (const { key } of [ada, max, anonymous]) expect(await heir.read(key, { now: T0 })).toBe(null)
          expect(await heir.read(eve.key, { now: T0 })).not.toBe(null)
          expect(await heir.create(recordOf(heir, '2'), {}, { now: T0 })).toMatchObject({ outcome: 'stale-login' })
          await promoted.close()
          ;[master, replica] = [replica, master]
          if (round === ROUNDS - 1) break
          await replica.restart(['--replicaof', `127.0.0.1 ${master.port}`])
          await linked()
          await master.cli('FLUSHALL')
        }
      },
    )

    it('with a replica that lags: without waitReplicas an acknowledged logout can come back', async () => {
      const line = await startProxy(master.port)
      await replica.cli('REPLICAOF', '127.0.0.1', `${line.port}`)
      await linked()
      const { client, close } = await STANDALONE['ioredis 6']!(master.url)
      const store = new RedisStore(client)
      const record = recordOf(store, '1')
      await store.create(record, {}, { now: T0 })
      await until('the replica having it', async () => expect(await replica.cli('DBSIZE')).toBe('2'))
      line.sever()
      expect(await store.delete(record.key, { now: T0 })).toBe(true)
      await master.kill()
      await replica.cli('REPLICAOF', 'NO', 'ONE')
      const promoted = await STANDALONE['ioredis 6']!(replica.url)
      // What the option is for. Were this null, the tests with it would prove nothing.
      expect(await new RedisStore(promoted.client).read(record.key, { now: T0 })).not.toBe(null)
      await promoted.close()
      await close()
      await line.stop()
    })

    it.each(['node-redis 6', 'ioredis 6', 'node-redis 6 pool'])(
      'or is silent: the call rejects in time, delays no other, and may be repeated, with %s',
      async name => {
        const { client, close } = await STANDALONE[name]!(master.url)
        const store = new RedisStore(client, { waitReplicas: 1 })
        const [first, second, third] = [recordOf(store, '1'), recordOf(store, '2'), recordOf(store, '3')]
        for (const record of [first, second, third]) await store.create(record, {}, { now: T0 })
        await store.delete(third.key, { now: T0 })
        replica.pause()
        const ended: string[] = []
        const waiting = store
          .delete(first.key, { now: T0, deadline: performance.now() + 1500 })
          .catch(error => error)
          .finally(() => ended.push('the delete'))
        for (let i = 0; i < 5; i++) await store.read(second.key, { now: T0 })
        await store.touch(second.key, T0 + 1, T0 + HOUR, { now: T0 })
        ended.push('the others')
        const error = await waiting
        expect(ended).toEqual(['the others', 'the delete'])
        expect(error).toMatchObject({
          code: 'ERR_SESSION_STORE',
          outcome: 'unknown',
          cause: { message: expect.stringMatching(/0 of 1 replicas acknowledged/) },
        })
        replica.resume()
        // The same call again is about what the first one did: it waits for that too.
        expect(await store.delete(first.key, { now: T0, deadline: soon() })).toBe(false)
        expect(await store.read(first.key, { now: T0 })).toBe(null)
        await store.close()
        await close()
      },
    )

    it('answers many revocations at once with a few waits', async () => {
      const { client, close } = await STANDALONE['node-redis 6']!(master.url)
      const store = new RedisStore(client, { waitReplicas: 1 })
      const records = Array.from({ length: 200 }, () => recordOf(store, null))
      await Promise.all(records.map(record => store.create(record, {}, { now: T0 })))
      await master.cli('CONFIG', 'RESETSTAT')
      expect(await Promise.all(records.map(({ key }) => store.delete(key, { now: T0, deadline: soon() })))).toEqual(
        records.map(() => true),
      )
      expect((await master.commandStats()).wait).toBeLessThan(20)
      await store.close()
      await close()
    })
  })

  const clusterClients = Object.keys(CLUSTER).filter(name => LONG || /6|glide/.test(name))
  it.each(clusterClients)(
    'in a cluster: acknowledged revocations hold, and %s finds the new master by itself',
    { timeout: 90_000 },
    async name => {
      const cluster: RedisCluster = await startRedisCluster(['--cluster-node-timeout', '1500'])
      const { client, close } = await CLUSTER[name]!(cluster.addresses)
      // That one cannot wait in a cluster: what it acknowledged is given time to arrive.
      const canWait = !name.includes('glide')
      const store = new RedisStore(client, { waitReplicas: canWait ? 1 : 0 })
      const users = Array.from({ length: 30 }, (_, i) => String(i))
      const records = users.map(user => recordOf(store, user))
      for (const record of records) await store.create(record, {}, { now: T0, deadline: soon() })
      await Promise.all(records.slice(0, 10).map(({ key }) => store.delete(key, { now: T0, deadline: soon() })))
      await Promise.all(
        users
          .slice(10, 20)
          .map(user => store.deleteUser(user, { minPasswordVersionUntil: T0 }, { now: T0, deadline: soon() })),
      )
      if (!canWait)
        await until('the replicas having all', async () => {
          for (const [i, master] of cluster.masters.entries())
            expect(await cluster.replicas[i]!.cli('DBSIZE')).toBe(await master.cli('DBSIZE'))
        })
      await cluster.masters[0]!.kill()
      const found = await until(
        'all shards answering again',
        () => Promise.all(records.map(({ key }) => store.read(key, { now: T0, deadline: performance.now() + 1000 }))),
        { timeout: 45_000 },
      )
      expect(found.map(record => record !== null)).toEqual(users.map((_, i) => i >= 20))
      // All verbs go on, the waiting ones too, on the shards that have kept their replica.
      for (const [i, user] of users.entries()) {
        const next = recordOf(store, user)
        expect(await store.create(next, {}, { now: T0, deadline: soon() })).toMatchObject({ outcome: 'created' })
        expect(await store.listUser(user, 'session', { now: T0, deadline: soon() })).toHaveLength(i >= 20 ? 2 : 1)
      }
      await store.close()
      await close()
      await cluster.stop()
    },
  )

  const sentinelClients = Object.keys(SENTINEL).filter(name => LONG || name.includes('6'))
  it.each(sentinelClients)(
    'behind Sentinel: acknowledged revocations hold, and %s finds the new master by itself',
    { timeout: 90_000 },
    async name => {
      const watched = await startRedisSentinels()
      const { client, close } = await SENTINEL[name]!(watched.name, watched.sentinels)
      const store = new RedisStore(client, { waitReplicas: 1 })
      const [kept, ended] = [recordOf(store, '1'), recordOf(store, '2')]
      for (const record of [kept, ended]) await store.create(record, {}, { now: T0, deadline: soon() })
      expect(await store.delete(ended.key, { now: T0, deadline: soon() })).toBe(true)
      await watched.master.kill()
      const found = await until(
        'an answer of the new master',
        () => store.read(kept.key, { now: T0, deadline: performance.now() + 500 }),
        { timeout: 45_000 },
      )
      expect(found).toEqual(kept)
      expect(await store.read(ended.key, { now: T0 })).toBe(null)
      const touch = () => store.touch(kept.key, T0 + 1, T0 + HOUR, { now: T0, deadline: soon() })
      expect(await until('a write', touch, { timeout: 20_000 })).toBe('touched')
      await store.close()
      await close()
      await watched.stop()
    },
  )
})
