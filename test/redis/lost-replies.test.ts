import { SessionManager } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { RedisStore } from 'coatcheck/stores/redis'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { within } from '../support/deadlines.ts'
import { call, HOUR, recordOf, T0, writeId } from '../support/records.ts'
import { STANDALONE } from '../support/redis/clients.ts'
import { redisForGroup } from '../support/redis/group.ts'
import { describeEngine } from '../support/services/engines.ts'
import { until } from '../support/services/process.ts'
import { type FaultProxy, startProxy } from '../support/services/proxy.ts'

let users = 100
/** Until a deadline has passed, also at a server that tells whole milliseconds. */
const passed = (deadline: number) => new Promise(resolve => setTimeout(resolve, deadline + 50 - performance.now()))
/** A release with a successor, and a pool of its clients, send again as little or as much. */
const CLIENTS = process.env.COATCHECK_LONG === '1' ? Object.keys(STANDALONE) : ['node-redis 6', 'ioredis 6']

describeEngine('redis', 'a connection that breaks', () => {
  const redis = redisForGroup()
  let witness: RedisStore
  beforeAll(async () => {
    witness = redis.store
    // Redis gets to know the scripts: an answer that is lost is that of a write.
    const record = recordOf(witness, '1')
    await witness.create(record, call())
    await witness.touch(record.key, T0 + 1, T0 + HOUR, call())
  })

  describe.each(CLIENTS)('under %s with its default settings', name => {
    let proxy: FaultProxy
    let store: RedisStore
    let close: () => Promise<void>
    const connect = async () => {
      const proxy = await startProxy(redis.server.port)
      const open = await STANDALONE[name]!(`redis://127.0.0.1:${proxy.port}`)
      const store = new RedisStore(open.client)
      // The server's clock and the scripts are known from here on.
      await store.delete(recordOf(store, '1').key, call())
      const close = async () => {
        await open.close()
        await proxy.stop()
      }
      return { proxy, store, close }
    }
    beforeEach(async () => {
      ;({ proxy, store, close } = await connect())
    })
    afterEach(() => close())
    const again = (through = store) =>
      until('the client being back', () => through.read(recordOf(through, '1').key, call()))

    let user = ''
    beforeEach(() => {
      user = String(users++)
    })
    const change = (data: string) => ({ data, seenAt: T0, expiresAt: T0 + HOUR, writeId: writeId() })
    const moved = { forward: { salt: '', until: T0 } }
    const raised = { minPasswordVersion: 1, minPasswordVersionUntil: T0 + 1 }
    type Case = readonly [run: () => Promise<unknown>, answer: unknown, repeated?: unknown]
    /** A call that may be repeated, what it answers at first, and what once more if that differs. */
    const verbs: Record<string, (record: SessionRecord, made: SessionRecord) => Case> = {
      create: (_, made) => [() => store.create(made, call()), 'created'],
      update({ key }) {
        const once = change('1')
        return [() => store.update(key, 1, once, call()), 'updated']
      },
      touch: ({ key }) => [() => store.touch(key, T0 + 1, T0 + HOUR, call()), 'touched'],
      'replace with a forward': ({ key }, made) => [() => store.replace(key, 1, made, moved, call()), 'created'],
      'replace without one'({ key }) {
        const theirs = recordOf(store, `${user}8`)
        return [() => store.replace(key, 1, theirs, {}, call()), 'created']
      },
      delete: ({ key }) => [() => store.delete(key, call()), true, false],
      deleteUser: () => [() => store.deleteUser(user, raised, call()), 1, 0],
    }
    it.each(Object.entries(verbs))(
      'after %s was executed and before the answer: the same call repeated agrees',
      async (verb, prepare) => {
        const record = recordOf(store, user, { passwordVersion: 1 })
        await witness.create(record, call())
        const made = recordOf(store, user, { passwordVersion: 1 })
        const [first, answer, repeated = answer] = prepare(record, made)
        const lost = proxy.loseAnswerTo('EVALSHA')
        const outcome = await first().catch(error => error)
        await lost
        // node-redis gives up, ioredis sends the command again by itself.
        if (outcome instanceof Error) expect(outcome).toMatchObject({ code: 'ERR_SESSION_STORE', outcome: 'unknown' })
        else expect([answer, repeated]).toContainEqual(outcome)
        await again()
        expect([answer, repeated]).toContainEqual(await first())
        const stored = await witness.read(record.key, call())
        if (verb === 'update') expect(stored).toMatchObject({ version: 2, data: '1' })
        else if (verb === 'touch') expect(stored).toMatchObject({ version: 1, expiresAt: T0 + HOUR })
        else if (verb === 'create') expect(await witness.listUser(user, 'session', call())).toHaveLength(2)
        else if (/^delete/.test(verb)) expect(stored).toBe(null)
        else if (verb === 'replace with a forward') {
          expect(stored).toHaveProperty('movedTo')
          expect(await witness.listUser(user, 'session', call())).toHaveLength(1)
        } else {
          expect(stored).toBe(null)
          expect(await witness.listUser(`${user}8`, 'session', call())).not.toEqual([])
        }
      },
    )

    it('runs nothing whose caller has given up, although the client sends it again', async () => {
      const record = recordOf(store, user)
      await witness.create(record, call())
      const verbs: ((store: RedisStore, soonOver: ReturnType<typeof call>) => Promise<unknown>)[] = [
        (store, soonOver) => store.update(record.key, 1, change('late'), soonOver),
        (store, soonOver) => store.touch(record.key, T0 + 1, T0 + HOUR, soonOver),
        (store, soonOver) => store.delete(record.key, soonOver),
        (store, soonOver) => store.deleteUser(user, { minPasswordVersionUntil: T0 }, soonOver),
        (store, soonOver) => store.create(recordOf(store, user), soonOver),
        (store, soonOver) => store.replace(record.key, 1, recordOf(store, user), {}, soonOver),
      ]
      await Promise.all(
        verbs.map(async verb => {
          const { proxy, store, close } = await connect()
          const lost = proxy.loseRequest('EVALSHA')
          const soonOver = { now: T0, deadline: within(150) }
          const given = verb(store, soonOver).catch(error => error)
          // On a busy machine it may be over before the request.
          await Promise.race([lost, given])
          await passed(soonOver.deadline)
          await proxy.heal()
          expect(await given).toMatchObject({ code: 'ERR_SESSION_STORE' })
          await again(store)
          await close()
        }),
      )
      expect(await witness.listUser(user, 'session', call())).toEqual([record])
    })

    it('does not know whether a write came through that another node overtook, and runs no change twice', async () => {
      const options = { initial: () => ({ credit: 100, theme: 'light' }), storeTimeout: '30s' } as const
      const sessions = new SessionManager({ ...options, store })
      const others = new SessionManager({ ...options, store: witness })
      const overtaken = async (work: () => Promise<unknown>, meanwhile: () => Promise<unknown>) => {
        const lost = proxy.loseAnswerTo('EVALSHA')
        const given = work().catch(error => error)
        await lost
        proxy.sever()
        await meanwhile()
        await proxy.heal()
        expect(await given).toMatchObject({ code: 'ERR_SESSION_STORE', outcome: 'unknown' })
        await again()
      }
      const session = await sessions.create({ user: { id: Number(user), name: 'ada' } })
      const pay = () =>
        sessions.update(session, draft => {
          draft.credit -= 10
        })
      await overtaken(pay, () => others.update(session, { theme: 'dark' }))
      expect(await others.get(session.secret)).toMatchObject({ data: { credit: 90, theme: 'dark' } })
      await overtaken(pay, () => others.destroy(session.secret))
      const made = recordOf(store, user)
      await overtaken(
        () => store.create(made, call()),
        () => witness.update(made.key, 1, change('2'), call()),
      )
      const next = recordOf(store, user)
      await overtaken(
        () => store.replace(made.key, 2, next, {}, call()),
        () => witness.update(next.key, 1, change('2'), call()),
      )
      await Promise.all([sessions.close(), others.close()])
    })

    it('does not say that nothing was written where the client sent a write again, and too late', async () => {
      const record = recordOf(store, user)
      const lost = proxy.loseAnswerTo('EVALSHA')
      // So long that a busy machine comes to it in time.
      const deadline = within(2500)
      const made = store.create(record, { now: T0, deadline }).catch(error => error)
      await lost
      proxy.sever()
      await passed(deadline)
      await proxy.heal()
      expect(await made).toMatchObject({ code: 'ERR_SESSION_STORE', outcome: 'unknown' })
      expect(await witness.read(record.key, call())).toEqual(record)
    })
  })
})
