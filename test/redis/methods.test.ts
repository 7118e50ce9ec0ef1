import { SessionManager, type SessionStoreError } from 'coatcheck'
import { type SessionRecord, SWEEP_MARGIN } from 'coatcheck/custom-store'
import type { RedisStore } from 'coatcheck/stores/redis'
import { beforeEach, describe, expect, it } from 'vitest'
import { DISCARD, WRITE } from '../../stores/redis/scripts.ts'
import { anywhere, call, HOUR, keyIn, nameOf, recordOf, T0, writeId } from '../support/records.ts'
import { redisForGroup, tapForGroup } from '../support/redis/group.ts'
import { runs } from '../support/redis/tapped.ts'
import { describeEngine } from '../support/services/engines.ts'

const MINUTE = 60_000
const failure = (work: Promise<unknown>) => work.then(String, (error: SessionStoreError) => error)

describeEngine('redis', 'the Redis store', () => {
  const redis = redisForGroup()
  const tap = tapForGroup(redis)
  let store: RedisStore
  beforeEach(() => {
    store = tap.store
  })
  const make = async (more: Partial<SessionRecord> = {}) => {
    const record = recordOf(store, null, more)
    expect(await store.create(record, call())).toBe('created')
    return record
  }
  const exists = async (key: string) => (await redis.client.exists(nameOf(key))) === 1
  const change = (more = {}) => ({ data: 'new', seenAt: T0 + 1, expiresAt: T0 + HOUR, writeId: writeId(), ...more })

  describe('as it is opened', () => {
    it('asks whether Redis evicts until it is told, and never again', async () => {
      const fresh = tap.open()
      tap.fail('INFO', 'read ECONNRESET')
      const errors = await Promise.all([
        failure(fresh.read(anywhere(), call())),
        failure(fresh.delete(anywhere(), call())),
      ])
      expect(errors).toMatchObject([
        { operation: 'read', outcome: 'not-applied', cause: { message: 'read ECONNRESET' } },
        { operation: 'delete', outcome: 'not-applied' },
      ])
      expect(new Set(tap.names())).toEqual(new Set(['INFO']))
      tap.on = (_, send) => send()
      await fresh.read(anywhere(), call())
      tap.seen = []
      await Promise.all([fresh.read(anywhere(), call()), fresh.touch(anywhere(), T0, T0, call())])
      expect(tap.names()).not.toContain('INFO')
    })

    it('is not locked by a question that never got an answer', async () => {
      const fresh = tap.open()
      tap.on = ([command], send) => (command === 'INFO' ? new Promise(() => {}) : send())
      void fresh.read(anywhere(), call())
      tap.on = (_, send) => send()
      expect(await fresh.read(anywhere(), call())).toBe(null)
    })

    it('lets each call try for as long as it has time, whichever asked first', async () => {
      const fresh = tap.open()
      tap.fail('INFO', 'LOADING Redis is loading the dataset in memory')
      const first = failure(fresh.read(anywhere(), { now: T0, deadline: performance.now() + 200 }))
      const patient = fresh.read(anywhere(), call())
      expect(await first).toMatchObject({ cause: { message: expect.stringMatching(/LOADING/) } })
      tap.on = (_, send) => send()
      expect(await patient).toBe(null)
    })

    it('does not ask that where it may evict', async () => {
      await tap.open({ allowEviction: true }).read(anywhere(), call())
      expect(tap.names()).toEqual(['GET'])
    })
  })

  describe('stores only what can be found again', () => {
    it('on the shard of its user', async () => {
      const strange = { ...recordOf(store, '7'), key: keyIn(store.shard('8')) }
      const error = new TypeError("the key of a user's session must begin with shard(userId)")
      await expect(store.create(strange, call())).rejects.toEqual(error)
      const old = await make()
      await expect(store.replace(old.key, 1, strange, {}, call())).rejects.toEqual(error)
      expect(await store.read(old.key, call())).toEqual(old)
    })
  })

  describe('reads', () => {
    it('no session where a client answers nothing at all', async () => {
      tap.on = ([command], send) => (command === 'GET' ? Promise.resolve(undefined) : send())
      expect(await store.read(anywhere(), call())).toBe(null)
      expect(tap.names()).toEqual(['GET'])
    })

    it('nothing of what has ended for another, and removes what is damaged', async () => {
      const { key } = await make()
      await redis.client.set(nameOf(key), 'x writeid123')
      expect(await store.read(key, call())).toBe(null)
      expect(await exists(key)).toBe(true)
      await redis.client.set(nameOf(key), 'gibberish')
      expect(await store.read(key, call())).toEqual({ corrupt: 'the header line is missing or malformed' })
      expect(await exists(key)).toBe(false)
    })

    it('what is damaged as that, also where it cannot be removed now', async () => {
      const { key } = await make()
      await redis.client.set(nameOf(key), 'gibberish')
      await redis.client.config('SET', 'min-replicas-to-write', '1')
      expect(await store.read(key, call())).toEqual({ corrupt: 'the header line is missing or malformed' })
      await redis.client.config('SET', 'min-replicas-to-write', '0')
      expect(await exists(key)).toBe(true)
    })

    it('nothing as damaged that Redis does not find there: an error, or what is there by now', async () => {
      const record = await make()
      tap.on = async ([name], send) => (name === 'GET' ? 'QUEUED' : send())
      await expect(store.read(record.key, call())).rejects.toMatchObject({
        cause: { message: 'the value that was read is not the one that the server has' },
      })
      tap.on = async ([name], send) => (name === 'GET' || name === 'EVALSHA' ? 'QUEUED' : send())
      await expect(store.read(record.key, call())).rejects.toMatchObject({
        cause: { message: 'the answer of a script was not understood' },
      })
      let times = 0
      tap.on = async ([name], send) => (name === 'GET' && times++ === 0 ? 'QUEUED' : send())
      expect(await store.read(record.key, call())).toEqual(record)
      times = 0
      expect(await store.read(record.key, call(record.expiresAt))).toBe(null)
      await store.delete(record.key, call())
      times = 0
      expect(await store.read(record.key, call())).toBe(null)
    })

    it('what is damaged and no UTF-8 as damaged, however long it is', async () => {
      const { key } = await make()
      for (const garbage of [
        Buffer.from([0x73, 0xff, 0xfe]),
        Buffer.alloc(100_000, 'gib\xff\xe4\xa0berish', 'latin1'),
      ]) {
        await redis.client.set(nameOf(key), garbage)
        expect(await store.read(key, call())).toEqual({ corrupt: 'the header line is missing or malformed' })
        expect(await exists(key)).toBe(false)
      }
    })

    it('removes nothing that has taken the place of what was damaged', async () => {
      const record = await make()
      const sound = (await redis.client.get(nameOf(record.key)))!
      await redis.client.set(nameOf(record.key), 'gibberish')
      tap.on = async (command, send) => {
        if (runs(DISCARD, command)) await redis.client.set(nameOf(record.key), sound)
        return send()
      }
      expect(await store.read(record.key, call())).toEqual(record)
    })

    it('an error where a proxy answers one in the place of one key', async () => {
      const [sound, away] = [await make(), await make()]
      tap.on = async ([name], send) => {
        const answer = await send()
        if (name !== 'MGET') return answer
        return (answer as unknown[]).map((value, i) => (i === 1 ? new Error('upstream failure') : value))
      }
      const both = await Promise.allSettled([sound, away].map(({ key }) => store.read(key, call())))
      expect(both).toMatchObject([{ value: sound }, { reason: { code: 'ERR_SESSION_STORE' } }])
    })

    it('no list that misses what a proxy could not ask for', async () => {
      const all = [recordOf(store, 'listed'), recordOf(store, 'listed')]
      for (const record of all) await store.create(record, call())
      const listed = () => store.listUser('listed', 'session', call())
      tap.on = async ([name], send) => {
        const answer = await send()
        return name === 'MGET' ? [new Error('upstream failure'), ...(answer as unknown[]).slice(1)] : answer
      }
      await expect(listed()).rejects.toMatchObject({ cause: { message: 'upstream failure' } })
      tap.on = (_, send) => send()
      expect(new Set((await listed()).map(({ key }) => key))).toEqual(new Set(all.map(({ key }) => key)))
      for (const odd of ['ZRANGE', 'MGET']) {
        tap.on = async ([name], send) => (name === odd ? 'QUEUED' : send())
        await expect(listed()).rejects.toMatchObject({ cause: { message: `the answer of ${odd} was not understood` } })
      }
    })

    it('again what Redis cannot give in this moment, and no other', async () => {
      const record = await make()
      for (const [message, expected] of [
        ['LOADING the data', ['GET', 'GET']],
        ['OOM command not allowed', ['GET']],
      ] as const) {
        let refusals = 1
        tap.on = async ([command], send) => {
          if (command === 'GET' && refusals-- > 0) throw new Error(message)
          return send()
        }
        tap.seen = []
        const answer = await store.read(record.key, call()).catch(error => error)
        expect(tap.names()).toEqual(expected)
        if (expected.length === 2) expect(answer).toEqual(record)
        else expect(answer).toMatchObject({ operation: 'read', outcome: 'not-applied', cause: { message } })
      }
    })
  })

  describe('writes', () => {
    it('and takes nothing back of how long Redis keeps it', async () => {
      const record = await make()
      expect(await store.touch(record.key, T0 + 10, T0 + 2 * HOUR, call())).toBe('touched')
      // A node whose clock is ahead asks for less.
      expect(await store.touch(record.key, T0 + 5, T0 + HOUR, call(T0 + HOUR))).toBe('touched')
      const earlier = change({ seenAt: T0 + 5, expiresAt: T0 + HOUR })
      expect(await store.update(record.key, 1, earlier, call(T0 + HOUR))).toBe('updated')
      expect(Math.ceil((await redis.client.pttl(nameOf(record.key))) / MINUTE)).toBe((2 * HOUR + SWEEP_MARGIN) / MINUTE)
    })

    it('says whether anything was written where it fails', async () => {
      const { key } = await make()
      const failing = async (message: string) => {
        tap.on = async (command, send) => {
          if (command[0] === 'GET' || command[0] === 'ZRANGE' || runs(WRITE, command)) throw new Error(message)
          return send()
        }
        return (await Promise.all([
          failure(store.update(key, 1, change(), call())),
          failure(store.listUser('1', 'session', call())),
        ])) as SessionStoreError[]
      }
      expect((await failing('OOM command not allowed')).map(({ outcome }) => outcome)).toEqual([
        'not-applied',
        'not-applied',
      ])
      expect((await failing('read ECONNRESET')).map(({ outcome }) => outcome)).toEqual(['unknown', 'not-applied'])
    })
  })

  describe('walks', () => {
    it('over 10 entries at least with one command, and over 500 at most', async () => {
      for (const limit of [1, 70, 100_000]) await store.scan(null, limit, call())
      expect(tap.seen.filter(([command]) => command === 'SCAN').map(args => args.at(-1))).toEqual(['10', '70', '500'])
    })

    it('over no server that has become a replica meanwhile', async () => {
      tap.on = async ([command], send) => (command === 'INFO' ? 'run_id:abc\r\nrole:slave\r\n' : send())
      await expect(store.scan(null, 10, { now: T0, deadline: performance.now() + 300 })).rejects.toMatchObject({
        operation: 'scan',
        cause: { message: 'a master is no longer one' },
      })
    })
  })

  it('tells Redis to run nothing after the time of its caller, however slow the way there is', async () => {
    tap.on = async (_, send) => {
      await new Promise(resolve => setTimeout(resolve, 100))
      return send()
    }
    const fresh = tap.open({ allowEviction: true })
    for (let times = 0; times < 3; times++) {
      const at = call()
      await fresh.delete(anywhere(), at)
      const [, , count, ...rest] = tap.seen.at(-1)!
      // In this order: a machine that stands still between the two clocks only allows more.
      const left = at.deadline - performance.now()
      expect(Number(rest[Number(count)])).toBeLessThanOrEqual(Date.now() + left + 1)
    }
  })

  describe('costs', () => {
    it.each<[string, (record: SessionRecord) => Promise<unknown>]>([
      ['create', () => store.create(recordOf(store, '3'), call())],
      ['create anonymously', () => store.create(recordOf(store, null), call())],
      ['update', ({ key }) => store.update(key, 1, change(), call())],
      ['touch', ({ key }) => store.touch(key, T0 + 1, T0 + HOUR, call())],
      ['regenerate of the same user', ({ key }) => store.replace(key, 1, recordOf(store, '3'), {}, call())],
      ['login', ({ key }) => store.replace(key, 1, recordOf(store, '4'), {}, call())],
      ['destroy', ({ key }) => store.delete(key, call())],
    ])('one command for %s', async (_, verb) => {
      // Redis gets to know its script.
      await verb(await make({ ...recordOf(store, '3') }))
      const record = await make({ ...recordOf(store, '3') })
      tap.seen = []
      await verb(record)
      expect(tap.names()).toEqual(['EVALSHA'])
    })

    it('two commands for the end of an ID that was renewed, and for a visit with one', async () => {
      const [login, renewed] = [await make({ ...recordOf(store, '3') }), recordOf(store, '3')]
      await store.replace(login.key, 1, renewed, { forward: { salt: 's', until: T0 + 10 } }, call())
      tap.seen = []
      expect(await store.delete(login.key, call())).toBe(true)
      expect(tap.names()).toEqual(['EVALSHA', 'EVALSHA'])
      const sessions = new SessionManager({ store, storeTimeout: '20s' })
      const session = await sessions.create({ user: { id: 3, name: 'ada' } })
      await sessions.regenerate(session, { grace: '1m' })
      tap.seen = []
      expect(await sessions.get(session.secret, { touch: false })).not.toBe(null)
      expect(tap.names()).toEqual(['GET', 'GET'])
    })

    it('one MGET for 128 reads of one turn, and a GET for those of one session', async () => {
      const records = await Promise.all(Array.from({ length: 64 }, () => make()))
      const absent = Array.from({ length: 5000 }, () => ({ key: keyIn('abc') }))
      for (const [asked, sent] of [
        [[...records, ...records], ['MGET']],
        [records.slice(0, 1), ['GET']],
        [Array.from({ length: 64 }, () => records[0]!), ['GET']],
        [absent, Array.from({ length: 40 }, () => 'MGET')],
      ] as const) {
        tap.seen = []
        const found = await Promise.all(asked.map(({ key }) => store.read(key, call())))
        expect(found).toEqual(asked === absent ? absent.map(() => null) : asked)
        expect(tap.names()).toEqual(sent)
      }
    })
  })

  it('names in each error the verb that failed', async () => {
    const record = recordOf(store, '1')
    tap.on = async () => {
      throw new Error('read ECONNRESET')
    }
    const verbs: Record<string, () => Promise<unknown>> = {
      create: () => store.create(record, call()),
      replace: () => store.replace(anywhere(), 1, record, {}, call()),
      read: () => store.read(record.key, call()),
      update: () => store.update(record.key, 1, change(), call()),
      touch: () => store.touch(record.key, T0, T0, call()),
      delete: () => store.delete(record.key, call()),
      deleteUser: () => store.deleteUser('1', { minPasswordVersionUntil: T0 }, call()),
      listUser: () => store.listUser('1', 'session', call()),
      scan: () => store.scan(null, 10, call()),
    }
    for (const [operation, verb] of Object.entries(verbs))
      expect(await failure(verb())).toMatchObject({
        operation,
        outcome: ['read', 'listUser', 'scan'].includes(operation) ? 'not-applied' : 'unknown',
      })
  })
})
