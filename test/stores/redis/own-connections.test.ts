import { RedisStore } from 'coatcheck/stores/redis'
import { Redis as Redis6 } from 'ioredis'
import { Redis as Redis5 } from 'ioredis-5'
import { createClient } from 'redis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { describeEngine } from '../../services/engines.ts'
import { until } from '../../services/process.ts'
import { type FaultProxy, startProxy } from '../../services/proxy.ts'
import { type RedisCluster, type RedisServer, startRedis, startRedisCluster } from '../../services/redis.ts'
import { type OpenClient, STANDALONE } from '../../support/redis/clients.ts'
import { recordOf, soon, T0 } from '../../support/redis/records.ts'

// An 'error' event without a listener ends the process, and so each of these tests.
describeEngine('redis', 'a connection that the store opens by itself, to wait for replicas', () => {
  let master: RedisServer
  let replica: RedisServer
  beforeAll(async () => {
    master = await startRedis(['--repl-diskless-sync-delay', '0'])
    replica = await startRedis(['--replicaof', `127.0.0.1 ${master.port}`])
    await until('the replica following', async () => {
      expect(await replica.cli('INFO', 'replication')).toMatch(/master_link_status:up/)
    })
  })
  afterAll(() => Promise.all([master.stop(), replica.stop()]))

  describe.each(Object.keys(STANDALONE))('with %s', name => {
    let proxy: FaultProxy
    let open: OpenClient
    let store: RedisStore
    beforeEach(async () => {
      proxy = await startProxy(master.port)
      open = await STANDALONE[name]!(`redis://127.0.0.1:${proxy.port}`)
      store = new RedisStore(open.client, { waitReplicas: 1 })
    })
    afterEach(async () => {
      await store.close()
      await open.close()
      await proxy.stop()
    })
    const create = () =>
      until('a session', async () => {
        const record = recordOf(store, '1')
        await store.create(record, {}, { now: T0, deadline: performance.now() + 1000 })
        return record
      })
    /** Ends a session while something happens; an outage is an error that says so, and passes. */
    async function endDuring(event: () => unknown): Promise<void> {
      const { key } = await create()
      const ending = store.delete(key, { now: T0, deadline: soon() }).catch((error: unknown) => error)
      await event()
      const outcome = await ending
      if (outcome !== true) expect(outcome).toMatchObject({ code: 'ERR_SESSION_STORE' })
      proxy.heal()
      await until('the session having ended', () =>
        store.delete(key, { now: T0, deadline: performance.now() + 1000 }).then(() => true),
      )
    }

    it.each(['HELLO', 'CLIENT', 'info', 'EVALSHA', 'WAIT'])(
      'may be ended by Redis at any moment: when %s was answered',
      async command => {
        await create()
        const cut = proxy.loseAnswerTo(command)
        await endDuring(() => {})
        proxy.sever()
        void cut
      },
    )

    it('may be ended by Redis at any moment: as it becomes ready, again and again', { timeout: 60_000 }, async () => {
      for (let round = 0; round < 15; round++) {
        await store.close()
        await endDuring(async () => {
          await new Promise(resolve => setTimeout(resolve, round / 2))
          if (round % 3 === 0) proxy.sever()
          else await master.cli('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
        })
      }
    })

    it('is closed with the store, also where it was still being opened', async () => {
      const count = async () => (await master.cli('CLIENT', 'LIST', 'TYPE', 'normal')).split('\n').length
      const { key } = await create()
      const before = await count()
      for (let round = 0; round < 10; round++) {
        const ending = store.delete(key, { now: T0, deadline: soon() }).catch(() => {})
        for (let turn = 0; turn < round; turn++) await new Promise(resolve => setImmediate(resolve))
        await store.close()
        await ending
      }
      await until('all being closed', async () => expect(await count()).toBe(before))
    })
  })

  it.each(Object.keys(STANDALONE).filter(name => !name.includes('pool')))(
    'follows the client to its database: %s',
    async name => {
      const open = await STANDALONE[name]!(master.url)
      const store = new RedisStore(open.client, { waitReplicas: 1 })
      const { select } = open.client as unknown as { select(database: number): Promise<unknown> }
      for (const database of [2, 3, 0]) {
        await select.call(open.client, database)
        const records = [recordOf(store, name), recordOf(store, name)]
        for (const record of records) await store.create(record, {}, { now: T0, deadline: soon() })
        expect(await store.delete(records[0]!.key, { now: T0, deadline: soon() })).toBe(true)
        expect(await store.read(records[0]!.key, { now: T0, deadline: soon() })).toBe(null)
        expect(await store.deleteUser(name, { minPasswordVersionUntil: T0 }, { now: T0, deadline: soon() })).toBe(1)
        expect(await store.listUser(name, 'session', { now: T0, deadline: soon() })).toEqual([])
      }
      await store.close()
      await open.close()
    },
  )

  it.each([
    ['ioredis 6', Redis6],
    ['ioredis 5', Redis5 as unknown as typeof Redis6],
  ])('does not take the database of the options for that of a client which connects anew: %s', async (_, Redis) => {
    const proxy = await startProxy(master.port)
    const client = new Redis(proxy.port, { retryStrategy: () => 20 })
    client.on('error', () => {})
    await client.select(3)
    const store = new RedisStore(client, { waitReplicas: 1 })
    const record = recordOf(store, 'anew')
    await store.create(record, {}, { now: T0, deadline: soon() })
    const duplicate = client.duplicate.bind(client)
    client.duplicate = options => {
      const own = duplicate({ ...options, port: master.port })
      const connect = own.connect.bind(own)
      // The connection of the client breaks while the store opens its own.
      own.connect = async () => {
        await connect()
        proxy.redirect(1)
        client.disconnect(true)
        await until('the client connecting anew', async () => expect(client.condition?.select).toBe(0))
      }
      return own
    }
    await expect(
      store.deleteUser('anew', { minPasswordVersionUntil: T0 }, { now: T0, deadline: performance.now() + 2000 }),
    ).rejects.toMatchObject({ code: 'ERR_SESSION_STORE' })
    proxy.redirect(master.port)
    await until('the session having ended', async () =>
      expect(await store.deleteUser('anew', { minPasswordVersionUntil: T0 }, { now: T0, deadline: soon() })).toBe(1),
    )
    expect(await store.read(record.key, { now: T0, deadline: soon() })).toBe(null)
    await store.close()
    client.disconnect()
    await proxy.stop()
  })

  it('refuses to guess the database of a client that may not be asked for it', async () => {
    await master.cli('ACL', 'SETUSER', 'mute', 'on', '>secret', '~*', '+@all', '-client|info')
    const client = createClient({ url: master.url.replace('//', '//mute:secret@') }).on('error', () => {})
    await client.connect()
    const store = new RedisStore(client, { waitReplicas: 1 })
    const record = recordOf(store, '1')
    await store.create(record, {}, { now: T0, deadline: soon() })
    await expect(store.delete(record.key, { now: T0, deadline: soon() })).rejects.toMatchObject({
      outcome: 'not-applied',
      cause: { message: expect.stringMatching(/may not ask CLIENT INFO.*grant \+client\|info/) },
    })
    await store.close()
    client.destroy()
  })
})

describeEngine('redis', 'a connection that the store opens by itself to a master of a cluster', () => {
  let cluster: RedisCluster
  beforeAll(async () => {
    cluster = await startRedisCluster()
  })
  afterAll(() => cluster.stop())

  it.each([
    ['its own', Redis6, { keyPrefix: 'mine:' }],
    ['that of its nodes', Redis6, { redisOptions: { keyPrefix: 'nodes:' } }],
    ['its own, and another one for its nodes', Redis6, { keyPrefix: 'a:', redisOptions: { keyPrefix: 'b:' } }],
    ['none', Redis6, {}],
    ['its own', Redis5 as unknown as typeof Redis6, { keyPrefix: 'mine5:' }],
  ])('writes the key prefix of the client: %s', async (_, Redis, options) => {
    const client = new Redis.Cluster([...cluster.addresses], options)
    client.on('error', () => {})
    const store = new RedisStore(client, { waitReplicas: 1 })
    const records = [recordOf(store, '1'), recordOf(store, '1')]
    for (const record of records) await store.create(record, {}, { now: T0, deadline: soon() })
    expect(await store.delete(records[0]!.key, { now: T0, deadline: soon() })).toBe(true)
    expect(await store.read(records[0]!.key, { now: T0, deadline: soon() })).toBe(null)
    expect(await store.deleteUser('1', { minPasswordVersionUntil: T0 }, { now: T0, deadline: soon() })).toBe(1)
    await store.close()
    client.disconnect()
  })
})
