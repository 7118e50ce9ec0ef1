// Reads of one turn of the event loop share an MGET: what happens to each of them.
import { type SessionId, SessionManager } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { type RedisClient, RedisStore } from 'coatcheck/stores/redis'
import { beforeEach, describe, expect, it } from 'vitest'
import { call, nameOf, recordOf } from '../support/records.ts'
import { CLUSTER, STANDALONE } from '../support/redis/clients.ts'
import { redisForGroup, tapForGroup } from '../support/redis/group.ts'
import { describeEngine } from '../support/services/engines.ts'
import { until } from '../support/services/process.ts'
import { startProxy } from '../support/services/proxy.ts'
import { startRedisCluster } from '../support/services/redis.ts'
import { started } from '../support/started.ts'

/** Reads all keys in one turn. */
const together = (store: RedisStore, keys: readonly string[]) => Promise.all(keys.map(key => store.read(key, call())))

async function make(store: RedisStore, count: number): Promise<SessionRecord[]> {
  const records = Array.from({ length: count }, (_, i) => recordOf(store, '0', { data: `{"n":${i}}` }))
  for (const record of records) await store.create(record, call())
  return records
}

describeEngine('redis', 'reads of one turn', () => {
  const redis = redisForGroup()
  const tap = tapForGroup(redis)
  let store: RedisStore
  let records: SessionRecord[]
  let keys: string[]
  beforeEach(async () => {
    store = tap.store
    records = await make(store, 6)
    keys = records.map(({ key }) => key)
    tap.seen = []
  })

  it('are no command for a client that is not ready, and an error at once', async () => {
    const asked: string[][] = []
    const client = { isOpen: true, isReady: true, sendCommand: async (args: string[]) => void asked.push(args) }
    // It loses its connection after the reads were asked for, before they are sent.
    const other = new RedisStore(client as unknown as RedisClient, { allowEviction: true })
    const reads = Promise.allSettled(keys.map(key => other.read(key, call())))
    client.isReady = false
    for (const outcome of await reads)
      expect(outcome).toMatchObject({ status: 'rejected', reason: { outcome: 'not-applied' } })
    expect(asked).toEqual([])
  })

  it('are read one by one by a user who has no right to MGET', async () => {
    await redis.server.cli('ACL', 'SETUSER', 'default', '-mget')
    expect(await together(store, keys)).toEqual(records)
    await redis.server.cli('ACL', 'SETUSER', 'default', '+@all')
  })

  it.each([
    "ERR unknown command 'MGET', with args beginning with: 'coatcheck:{abc}:…'",
    'TRYAGAIN Multiple keys request during rehashing of slot',
  ])('are read one by one where Redis refuses the shared command, and together the next time: %s', async message => {
    tap.fail('MGET', message)
    expect(await together(store, keys)).toEqual(records)
    tap.on = (_, send) => send()
    expect(await together(store, keys)).toEqual(records)
    expect(tap.names()).toEqual(['MGET', ...keys.map(() => 'GET'), 'MGET'])
  })

  it.each<[string, unknown]>([
    ['too few', ['a']],
    ['no list', 'OK'],
    ['nothing', null],
  ])('are never taken for ended where the answer is %s', async (_, answer) => {
    tap.on = async ([name], send) => (name === 'MGET' ? answer : send())
    const reads = await Promise.allSettled(keys.map(key => store.read(key, call())))
    for (const [i, outcome] of reads.entries())
      if (outcome.status === 'fulfilled') expect(outcome.value).toEqual(records[i])
      else expect(outcome.reason).toMatchObject({ code: 'ERR_SESSION_STORE' })
  })

  it.concurrent.each(['node-redis 6', 'ioredis 6', 'node-redis 6 pool'])(
    'end within storeTimeout as errors where the connection is lost under them, with %s',
    async name => {
      const proxy = await startProxy(redis.server.port)
      const other = await STANDALONE[name]!(`redis://127.0.0.1:${proxy.port}`)
      const sessions = new SessionManager({ store: new RedisStore(other.client), storeTimeout: '3s' })
      const secrets: SessionId[] = []
      for (let id = 0; id < 10; id++) secrets.push((await sessions.create({ user: { id, name: 'ada' } })).secret)
      const lost = proxy.loseRequest('MGET')
      const outcomes = await Promise.allSettled(secrets.map(secret => sessions.get(secret)))
      await lost
      // Some clients send a read again by themselves; none may say that there is no session.
      for (const outcome of outcomes)
        if (outcome.status === 'rejected')
          expect(outcome.reason).toMatchObject({ code: 'ERR_SESSION_STORE', outcome: 'not-applied' })
        else expect(outcome.value).not.toBe(null)
      await proxy.heal()
      const found = await until('all being found again', () => Promise.all(secrets.map(each => sessions.get(each))))
      expect(found.map(session => Number(session?.user?.id))).toEqual(secrets.map((_, id) => id))
      await sessions.close()
      await other.close()
      await proxy.stop()
    },
  )
})

describeEngine('redis', 'reads of one turn in a cluster', () => {
  const cluster = started(startRedisCluster)
  const reading = async () => {
    const sums = { get: 0, mget: 0 }
    for (const master of cluster().masters) {
      const { get = 0, mget = 0 } = await master.commandStats()
      sums.get += get
      sums.mget += mget
    }
    return sums
  }
  const reset = () => Promise.all(cluster().masters.map(master => master.cli('CONFIG', 'RESETSTAT')))

  describe.each(Object.entries(CLUSTER).filter(([name]) => name.includes('6')))('with %s', (name, connect) => {
    const prefix = `${name.replaceAll(' ', '-')}:`
    const own = started(async () => {
      const { client, close } = await connect(cluster().addresses)
      return { store: new RedisStore(client, { prefix }), close }
    })

    it('share a command where they share a shard, and are on their own otherwise', async () => {
      const { store } = own()
      const records = await make(store, 6)
      const others = ['x1', 'x2', 'x3'].map(user => recordOf(store, user))
      for (const record of others) await store.create(record, call())
      const keys = [...records, ...others, ...others].map(({ key }) => key)
      await reset()
      expect(await together(store, keys)).toEqual([...records, ...others, ...others])
      expect(await reading()).toEqual({ get: 3, mget: 1 })
    })

    it('are found while their slot moves, half of it here and half of it there, without waiting for that', async () => {
      const { store } = own()
      const user = `m-${name}`
      const sessions = new SessionManager({ store, userIds: 'string', storeTimeout: '20s' })
      // A client that repeats a command until its slot has moved takes longer than this.
      const hasty = new SessionManager({ store, userIds: 'string', storeTimeout: '5s' })
      const made = await Promise.all(
        Array.from({ length: 6 }, () => sessions.create({ user: { id: user, name: 'ada' } })),
      )
      const keys = made.map(({ key }) => key)
      const found = async (manager: typeof sessions) => {
        const answers = await Promise.all(made.map(({ secret }) => manager.get(secret)))
        expect(answers.map(answer => answer?.key)).toEqual(keys)
      }
      const slot = Number(await cluster().nodes[0]!.cli('CLUSTER', 'KEYSLOT', nameOf(keys[0]!, prefix)))
      const from = await cluster().masterOf(slot)
      const to = cluster().masters.find(master => master !== from)!
      const [fromId, toId] = [await from.cli('CLUSTER', 'MYID'), await to.cli('CLUSTER', 'MYID')]
      await to.cli('CLUSTER', 'SETSLOT', `${slot}`, 'IMPORTING', fromId)
      await from.cli('CLUSTER', 'SETSLOT', `${slot}`, 'MIGRATING', toId)
      const move = (key: string) => from.cli('MIGRATE', '127.0.0.1', `${to.port}`, nameOf(key, prefix), '0', '5000')
      for (const key of keys.slice(0, 3)) await move(key)
      // A migration may be interrupted and stay like this for hours.
      for (let times = 0; times < 3; times++) await found(hasty)
      for (const key of keys.slice(3)) await move(key)
      const index = `${prefix}{${store.shard(user)}}:u:${user}`
      // All of it is there, and the source says ASK.
      await found(sessions)
      await from.cli('MIGRATE', '127.0.0.1', `${to.port}`, index, '0', '5000')
      await to.cli('CLUSTER', 'SETSLOT', `${slot}`, 'NODE', toId)
      await from.cli('CLUSTER', 'SETSLOT', `${slot}`, 'NODE', toId)
      // The client does not know yet: the source says MOVED.
      await found(sessions)
      await until('one command again', async () => {
        await reset()
        await found(sessions)
        expect(await reading()).toEqual({ get: 0, mget: 1 })
      })
      await Promise.all([sessions.close(), hasty.close()])
    })
  })
})
