import { RedisStore } from 'coatcheck/stores/redis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { describeEngine } from '../../services/engines.ts'
import { until } from '../../services/process.ts'
import { type FaultProxy, startProxy } from '../../services/proxy.ts'
import { type RedisServer, startRedis } from '../../services/redis.ts'
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
})
