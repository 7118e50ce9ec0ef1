import {
  CLOCK_TOLERANCE,
  FORWARD_LIFETIME,
  type ReplaceOptions,
  type SessionRecord,
  SWEEP_MARGIN,
} from 'coatcheck/custom-store'
import type { RedisStore } from 'coatcheck/stores/redis'
import { beforeEach, describe, expect, it } from 'vitest'
import { LEAVE, PUT, UNDO } from '../../stores/redis/scripts.ts'
import { anywhere, call, HOUR, keyIn, memberOf, nameOf, recordOf, T0 } from '../support/records.ts'
import { redisForGroup, tapForGroup } from '../support/redis/group.ts'
import { runs } from '../support/redis/tapped.ts'
import { describeEngine } from '../support/services/engines.ts'

const MINUTE = 60_000
let users = 1000

describeEngine('redis', 'a session that is begun, or replaces another', () => {
  const redis = redisForGroup()
  const tap = tapForGroup(redis)
  let store: RedisStore
  /** The same server, taken for a cluster: a replacement on another shard takes its steps. */
  let cluster: RedisStore
  let user: string
  beforeEach(async () => {
    store = tap.store
    cluster = tap.open({}, true)
    // A store that does not know the server's clock yet sends its first script twice.
    await cluster.delete(anywhere(), call())
    user = String(users++)
  })

  const make = async (more: Partial<SessionRecord> = {}, owner: string | null = user) => {
    const record = recordOf(store, owner, more)
    expect(await store.create(record, call())).toBe('created')
    return record
  }
  const anonymous = (more: Partial<SessionRecord> = {}) => make(more, null)
  const read = ({ key }: SessionRecord) => store.read(key, call())
  const isStored = async ({ key }: SessionRecord) => (await redis.client.exists(nameOf(key))) === 1
  const indexOf = (id: string) => `coatcheck:{${store.shard(id)}}:u:${id}`
  const members = () => redis.client.zrange(indexOf(user), '0', '-1')
  /** What Redis keeps it for, in whole minutes: those that have begun count. */
  const minutesOf = async (name: string) => Math.ceil((await redis.client.pttl(name)) / MINUTE)
  const minutes = (ms: number) => ms / MINUTE
  /** Members whose records are gone, as sessions leave them that ended by themselves. */
  const bury = (count: number) =>
    redis.client.eval(
      `for i = 1, ARGV[1] do redis.call('ZADD', KEYS[1], 1795274465630 + i % 1000, string.format('%043d', i)) end return redis.call('PEXPIRE', KEYS[1], 1000000)`,
      1,
      indexOf(user),
      count,
    )
  /** Lets a script fail with this answer of Redis. */
  const fail = (script: Parameters<typeof runs>[0], message: string) => {
    tap.on = async (command, send) => {
      if (runs(script, command)) throw new Error(message)
      return send()
    }
  }

  describe('is kept by Redis', () => {
    it('five minutes longer than it lives', async () => {
      const { key } = await make()
      expect(await minutesOf(nameOf(key))).toBe(minutes(HOUR / 2 + SWEEP_MARGIN))
    })

    it('five minutes, where it had ended before it was written', async () => {
      const past = { createdAt: T0 - 5 * HOUR, seenAt: T0 - 5 * HOUR }
      const { key } = await make({ ...past, expiresAt: T0 - 3 * HOUR, absoluteExpiresAt: T0 - 2 * HOUR })
      expect(await minutesOf(nameOf(key))).toBe(minutes(SWEEP_MARGIN))
      expect(await minutesOf(indexOf(user))).toBe(minutes(SWEEP_MARGIN + CLOCK_TOLERANCE))
    })

    it('no longer than its absolute expiry, which the index outlives', async () => {
      const { key } = await make()
      expect(await minutesOf(indexOf(user))).toBe(minutes(12 * HOUR + SWEEP_MARGIN + CLOCK_TOLERANCE))
      await store.touch(key, T0, T0 + 24 * HOUR, call())
      expect(await minutesOf(nameOf(key))).toBe(minutes(12 * HOUR + SWEEP_MARGIN))
    })

    it('by no node whose clock is behind for longer than it may live', async () => {
      const [seconds] = await redis.client.time()
      const { key } = await make()
      await store.touch(key, T0, T0 + HOUR, call(T0 - 24 * HOUR))
      const kept = await redis.client.pttl(nameOf(key))
      const reach = 12 * HOUR + SWEEP_MARGIN
      expect(Math.ceil(kept / MINUTE)).toBeLessThanOrEqual(minutes(reach) + 1)
      const [now, micros] = await redis.client.time()
      expect(Number(now) * 1000 + Math.ceil(Number(micros) / 1000) + kept).toBeGreaterThanOrEqual(
        Number(seconds) * 1000 + reach,
      )
    })

    it('in the index of its user as long as any of them, and with a minimum password version as long as that holds', async () => {
      await make()
      await make({ absoluteExpiresAt: T0 + HOUR })
      expect(await minutesOf(indexOf(user))).toBe(minutes(12 * HOUR + SWEEP_MARGIN + CLOCK_TOLERANCE))
      const options = { minPasswordVersion: 2, minPasswordVersionUntil: T0 + HOUR }
      await store.deleteUser(user, options, call())
      expect(await minutesOf(indexOf(user).replace(':u:', ':v:'))).toBe(minutes(HOUR + SWEEP_MARGIN))
    })

    it('as a forward seven minutes longer than the grace, and five of margin', async () => {
      const short = { expiresAt: T0 + 1000, absoluteExpiresAt: T0 + 1000 }
      for (const [until, expected] of [
        [T0 - HOUR, FORWARD_LIFETIME + SWEEP_MARGIN],
        [T0 + HOUR, HOUR + FORWARD_LIFETIME + SWEEP_MARGIN],
      ] as const) {
        const old = await make(short)
        const forward = { salt: 'abc', until }
        expect(await store.replace(old.key, 1, recordOf(store, user), { forward }, call())).toBe('created')
        expect(await minutesOf(nameOf(old.key))).toBe(minutes(expected))
      }
    })
  })

  it('takes from the index what is named there and gone', async () => {
    await bury(3)
    const record = await make()
    expect(await members()).toEqual([memberOf(record)])
  })

  describe('in the place of one on another shard of a cluster', () => {
    const replace = (old: SessionRecord, record: SessionRecord, options: ReplaceOptions = {}, version = 1) =>
      cluster.replace(old.key, version, record, options, call())
    const nobody = () => recordOf(store, null)

    it('is live when that has ended', async () => {
      for (const record of [recordOf(store, user), nobody()]) {
        const old = await anonymous()
        expect(await replace(old, record)).toBe('created')
        expect(await read(old)).toBe(null)
        expect(await read(record)).toEqual(record)
        expect(await minutesOf(nameOf(old.key))).toBe(minutes(FORWARD_LIFETIME + SWEEP_MARGIN))
        // Repeated, as a caller does who got no answer.
        expect(await replace(old, record)).toBe('created')
      }
      expect(await members()).toHaveLength(1)
    })

    it('takes one step where the shard is the same', async () => {
      const old = await make()
      tap.seen = []
      const forward = { salt: '', until: T0 }
      const record = recordOf(store, user)
      expect(await replace(old, record, { forward })).toBe('created')
      expect(tap.seen.map(command => runs(PUT, command))).toEqual([true])
      expect(await read(old)).toMatchObject({ movedTo: record.key })
      expect(await members()).toEqual([memberOf(record)])
    })

    it('is the only one once the call is repeated that broke off before it had ended that one, or after', async () => {
      for (const isEnded of [false, true])
        for (const record of [recordOf(store, user), nobody()]) {
          const old = await anonymous()
          // As a process that dies: it takes nothing back.
          tap.on = async (command, send) => {
            if (runs(UNDO, command)) throw new Error('ECONNRESET')
            if (!runs(LEAVE, command)) return send()
            if (isEnded) await send()
            throw new Error('ECONNRESET')
          }
          await expect(replace(old, record)).rejects.toMatchObject({ outcome: 'unknown' })
          expect(await read(old)).toEqual(isEnded ? null : old)
          tap.on = (_, send) => send()
          expect(await replace(old, record)).toBe('created')
          expect(await read(record)).toEqual(record)
          expect(await read(old)).toBe(null)
          // A late logout by the old ID leaves the mark by which the call knows its own work.
          expect(await store.delete(old.key, call())).toBe(false)
          expect(await replace(old, record)).toBe('created')
        }
    })

    it('is not begun anew by a repeated call once it has ended', async () => {
      const old = await anonymous()
      const record = recordOf(store, user)
      expect(await replace(old, record)).toBe('created')
      await store.delete(record.key, call())
      expect(await replace(old, record)).toBe('gone')
      expect(await read(record)).toBe(null)
    })

    it('is removed where nobody knows whether that has ended', async () => {
      const old = await anonymous()
      const record = recordOf(store, user)
      fail(LEAVE, 'ECONNRESET')
      await expect(replace(old, record)).rejects.toMatchObject({ outcome: 'unknown' })
      expect(await isStored(record)).toBe(false)
      expect(await members()).toEqual([])
      expect(await read(old)).toEqual(old)
    })

    it.each<[string, 'gone' | 'conflict', number, (old: SessionRecord) => unknown]>([
      ['was never there', 'gone', 1, old => redis.client.del(nameOf(old.key))],
      [
        'has expired',
        'gone',
        1,
        old => redis.client.del(nameOf(old.key)).then(() => anonymous({ ...old, writeId: 'another1', expiresAt: T0 })),
      ],
      [
        'was replaced',
        'gone',
        1,
        old => store.replace(old.key, 1, nobody(), { forward: { salt: '', until: T0 } }, call()),
      ],
      ['is damaged', 'gone', 1, old => redis.client.set(nameOf(old.key), 'gibberish')],
      [
        'is of another type',
        'gone',
        1,
        old => redis.client.del(nameOf(old.key)).then(() => redis.client.lpush(nameOf(old.key), 'a')),
      ],
      ['has changed', 'conflict', 2, () => {}],
    ])('is taken back where that %s', async (_, outcome, version, change) => {
      for (const [record, options] of [
        [recordOf(store, user), {}],
        [nobody(), {}],
        // What is to be said of the old one comes before a refusal of the new one.
        [recordOf(store, user, { parent: keyIn(store.shard(user)) }), {}],
      ] as const) {
        const old = await anonymous()
        await change(old)
        expect(await replace(old, record, options, version)).toBe(outcome)
        expect(await isStored(record)).toBe(false)
        expect(await members()).toEqual([])
      }
    })

    it('is refused as it would be on the same shard, and that one lives on', async () => {
      const first = await make()
      const old = await anonymous()
      expect(await replace(old, { ...recordOf(store, user), key: first.key })).toBe('collision')
      const parent = keyIn(store.shard(user))
      expect(await replace(old, recordOf(store, user, { parent }))).toBe('orphan')
      await store.deleteUser(user, { minPasswordVersion: 2, minPasswordVersionUntil: T0 + HOUR }, call())
      expect(await replace(old, recordOf(store, user))).toBe('stale-login')
      expect(await read(old)).toEqual(old)
      expect(await members()).toEqual([])
    })

    it('keeps the series that both come from', async () => {
      const series = await make({ kind: 'remember' })
      const old = await make({ parent: series.key })
      const record = recordOf(store, `${user}x`, { parent: series.key })
      expect(await replace(old, record)).toBe('created')
      expect(await read(record)).toEqual(record)
      expect(await read(old)).toBe(null)
    })

    it('fails where nobody can tell what became of that one', async () => {
      const old = await anonymous()
      const record = recordOf(store, user, { parent: anywhere() })
      tap.fail('GET', 'NOPERM no right to get')
      await expect(replace(old, record)).rejects.toMatchObject({ outcome: 'not-applied' })
    })

    it('is taken back where the end of that one is refused, and the error says that something was written', async () => {
      const old = await anonymous()
      fail(PUT, 'OOM command not allowed')
      await expect(replace(old, recordOf(store, user))).rejects.toMatchObject({ outcome: 'not-applied' })
      fail(LEAVE, 'OOM command not allowed')
      const record = recordOf(store, user)
      await expect(replace(old, record)).rejects.toMatchObject({ outcome: 'unknown' })
      expect([await read(old), await read(record)]).toEqual([old, null])
    })
  })
})
