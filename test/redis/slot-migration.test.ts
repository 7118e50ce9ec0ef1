import { testStore } from 'coatcheck/custom-store/testing'
import { RedisStore } from 'coatcheck/stores/redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { call, HOUR, recordOf, T0, writeId } from '../support/records.ts'
import { CLUSTER, type OpenClient, STANDALONE } from '../support/redis/clients.ts'
import { describeEngine } from '../support/services/engines.ts'
import { until } from '../support/services/process.ts'
import { churn, startRedis, startRedisCluster } from '../support/services/redis.ts'
import { started } from '../support/started.ts'

const LONG = process.env.COATCHECK_LONG === '1'
const CLIENTS = Object.keys(CLUSTER).filter(name => LONG || /6/.test(name))

describeEngine('redis', 'a Redis Cluster', () => {
  const cluster = started(startRedisCluster)

  it('spreads users over all masters and keeps the keys of one user in one slot', async () => {
    const { client, close } = await CLUSTER['node-redis 6 cluster']!(cluster().addresses)
    const store = new RedisStore(client, { prefix: 'spread:' })
    for (let user = 0; user < 120; user++) {
      await store.create(recordOf(store, String(user)), call())
      await store.create(recordOf(store, null), call())
    }
    for (const master of cluster().masters) expect(Number(await master.cli('DBSIZE'))).toBeGreaterThan(40)
    for (const user of ['3', '4', '5'])
      await store.deleteUser(user, { minPasswordVersion: 1, minPasswordVersionUntil: T0 + HOUR }, call())
    const slots = new Map<string, Set<string>>()
    for (const user of ['3', '4', '5', '6', '7', '8']) {
      const shard = store.shard(user)
      const names = await Promise.all(cluster().masters.map(master => master.cli('KEYS', `spread:{${shard}}*`)))
      for (const name of names.join('\n').split('\n').filter(Boolean))
        slots.set(shard, (slots.get(shard) ?? new Set()).add(await cluster().nodes[0]!.cli('CLUSTER', 'KEYSLOT', name)))
    }
    expect(slots.size).toBe(6)
    expect([...slots.values()].every(({ size }) => size === 1)).toBe(true)
    await close()
  })

  describe('whose slots migrate under load', () => {
    const open = new Map<string, OpenClient>()
    let moving: Awaited<ReturnType<typeof churn>>
    beforeAll(async () => {
      for (const name of CLIENTS) open.set(name, await CLUSTER[name]!(cluster().addresses))
      moving = await churn(cluster())
    })
    afterAll(async () => {
      await moving.stop()
      for (const { close } of open.values()) await close()
    })

    if (LONG)
      describe.each(CLIENTS)('with %s', name =>
        testStore(it, () => new RedisStore(open.get(name)!.client), undefined, { runs: 10, rounds: 6 }),
      )

    const ENDS = 'ends all sessions of a user or none, and never makes a second index, with %s'
    it.concurrent.each(CLIENTS)(ENDS, { timeout: 120_000 }, async name => {
      const store = new RedisStore(open.get(name)!.client, { prefix: `${name.replaceAll(' ', '-')}:` })
      const hammer = async (worker: number) => {
        for (let round = 0; round < 3 || moving.moved() < (LONG ? 12_000 : 800); round++) {
          const user = `u${worker}x${round}`
          const records = Array.from({ length: 6 }, () => recordOf(store, user))
          for (const record of records) expect(await store.create(record, call())).toBe('created')
          const next = recordOf(store, user)
          const forward = { salt: '', until: T0 }
          expect(await store.replace(records[0]!.key, 1, next, { forward }, call())).toBe('created')
          const change = { data: 'x', seenAt: T0, expiresAt: T0, writeId: writeId() }
          expect(await store.update(next.key, 1, change, call())).toBe('updated')
          expect((await store.listUser(user, 'session', call())).length).toBe(6)
          const options = { minPasswordVersion: 1, minPasswordVersionUntil: T0 + HOUR, exceptKey: records[1]!.key }
          expect(await store.deleteUser(user, options, call())).toBe(5)
          expect((await store.listUser(user, 'session', call())).map(({ key }) => key)).toEqual([records[1]!.key])
          expect(await store.create(recordOf(store, user), call())).toBe('stale-login')
          expect(await store.delete(records[1]!.key, call())).toBe(true)
        }
      }
      await Promise.all(Array.from({ length: 8 }, (_, worker) => hammer(worker)))
    })
  })

  it('takes over the data of a standalone Redis and keeps every session', async () => {
    const alone = await startRedis()
    const before = await STANDALONE['node-redis 6']!(alone.url)
    const old = new RedisStore(before.client)
    const users = Array.from({ length: 10 }, (_, i) => `t${i}`)
    const records = users.map(user => recordOf(old, user, { data: '{"cart":1}' }))
    for (const record of records) await old.create(record, call())
    await old.deleteUser('floor', { minPasswordVersion: 3, minPasswordVersionUntil: T0 + HOUR }, call())
    await before.close()
    for (const key of (await alone.cli('KEYS', '*')).split('\n')) {
      const target = await cluster().masterOf(Number(await cluster().nodes[0]!.cli('CLUSTER', 'KEYSLOT', key)))
      expect(await alone.cli('MIGRATE', '127.0.0.1', `${target.port}`, key, '0', '5000')).toBe('OK')
    }
    const { client, close } = await CLUSTER['ioredis 6 cluster']!(cluster().addresses)
    const store = new RedisStore(client)
    for (const record of records) expect(await until('found', () => store.read(record.key, call()))).toEqual(record)
    expect(await store.listUser('t7', 'session', call())).toEqual([records[7]])
    expect(await store.deleteUser('t7', { minPasswordVersionUntil: T0 }, call())).toBe(1)
    expect(await store.create(recordOf(store, 'floor'), call())).toBe('stale-login')
    await close()
    await alone.stop()
  })
})
