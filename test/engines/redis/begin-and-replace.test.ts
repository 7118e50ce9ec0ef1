import {
  CLOCK_TOLERANCE,
  type CreateOptions,
  FORWARD_LIFETIME,
  type SessionRecord,
  SWEEP_MARGIN,
} from 'coatcheck/custom-store'
import { RedisStore } from 'coatcheck/stores/redis'
import { beforeEach, describe, expect, it } from 'vitest'
import { LEAVE, PUT, UNDO } from '../../../stores/redis/scripts.ts'
import { redisForGroup } from '../../support/redis/group.ts'
import { anywhere, HOUR, keyIn, recordOf, soon, T0 } from '../../support/redis/records.ts'
import { keysGiven, runs, type Tap, tapped } from '../../support/redis/tapped.ts'
import { describeEngine } from '../../support/services/engines.ts'

const MINUTE = 60_000
const nameOf = (key: string) => `coatcheck:{${key.slice(0, 3)}}:${key.slice(3)}`
const call = (now = T0) => ({ now, deadline: soon() })
const answers = (outcome: string, ended: string[] = []) => ({ outcome, ended })
const through: Tap = (_, send) => send()
let users = 1000

describeEngine('redis', 'a session that is begun, or replaces another', () => {
  const redis = redisForGroup()
  let tap: Tap
  let store: RedisStore
  /** The same server, taken for a cluster: a replacement on another shard takes its steps. */
  let cluster: RedisStore
  let user: string
  beforeEach(async () => {
    tap = through
    const tapping: Tap = (command, send) => tap(command, send)
    store = new RedisStore(tapped(redis.client, tapping))
    cluster = new RedisStore(tapped(redis.client, tapping, true))
    user = String(users++)
    // A store that does not know the server's clock yet sends its first script twice.
    for (const each of [store, cluster]) await each.delete(anywhere(), call())
  })

  const make = async (more: Partial<SessionRecord> = {}, options: CreateOptions = {}) => {
    const record = recordOf(store, user, more)
    expect(await store.create(record, options, call())).toMatchObject({ outcome: 'created' })
    return record
  }
  const anonymous = async (more: Partial<SessionRecord> = {}) => {
    const record = recordOf(store, null, more)
    expect(await store.create(record, {}, call())).toEqual(answers('created'))
    return record
  }
  const read = ({ key }: SessionRecord) => store.read(key, call())
  const isStored = async ({ key }: SessionRecord) => (await redis.client.exists(nameOf(key))) === 1
  const indexOf = (id: string) => `coatcheck:{${store.shard(id)}}:u:${id}`
  const members = () => redis.client.zrange(indexOf(user), '0', '-1')
  const memberOf = ({ key }: SessionRecord) => key.slice(3)
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
  /** Counts the runs of a script, and how many keys each was given. */
  const watch = (script: Parameters<typeof runs>[0]) => {
    const seen: number[] = []
    tap = (command, send) => {
      if (runs(script, command)) seen.push(keysGiven(command).length)
      return send()
    }
    return seen
  }
  /** Lets the nth run of a script fail with this answer of Redis. */
  const fail = (script: Parameters<typeof runs>[0], message: string, nth = 1) => {
    let seen = 0
    tap = async (command, send) => {
      if (runs(script, command) && ++seen === nth) throw new Error(message)
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

    it('in the index of its user as long as any of them', async () => {
      await make()
      await make({ absoluteExpiresAt: T0 + HOUR })
      expect(await minutesOf(indexOf(user))).toBe(minutes(12 * HOUR + SWEEP_MARGIN + CLOCK_TOLERANCE))
    })

    it('as a forward seven minutes longer than the grace, and five of margin', async () => {
      const short = { expiresAt: T0 + 1000, absoluteExpiresAt: T0 + 1000 }
      for (const [until, expected] of [
        [T0 - HOUR, FORWARD_LIFETIME + SWEEP_MARGIN],
        [T0 + HOUR, HOUR + FORWARD_LIFETIME + SWEEP_MARGIN],
      ] as const) {
        const old = await make(short)
        const forward = { salt: 'abc', until }
        expect(await store.replace(old.key, 1, recordOf(store, user), { forward }, call())).toEqual(answers('created'))
        expect(await minutesOf(nameOf(old.key))).toBe(minutes(expected))
      }
    })
  })

  it('takes from the index what is named there and gone', async () => {
    await bury(3)
    const record = await make()
    expect(await members()).toEqual([memberOf(record)])
    await store.delete(record.key, call())
    await bury(30)
    const limited = await make({}, { limit: { max: 1, onLimit: 'refuse' } })
    expect(await members()).toEqual([memberOf(limited)])
  })

  it('begins only while the series that it comes from is live, beside it on the shard of the user', async () => {
    const series = await make({ kind: 'remember' })
    await make({ parent: series.key })
    await store.delete(series.key, call())
    expect(await store.create(recordOf(store, user, { parent: series.key }), {}, call())).toEqual(answers('orphan'))
    const elsewhere = recordOf(store, `${user}x`, { kind: 'remember' })
    await store.create(elsewhere, {}, call())
    expect(await store.create(recordOf(store, user, { parent: elsewhere.key }), {}, call())).toEqual(answers('orphan'))
    const ending = await make({ kind: 'remember' })
    const late = recordOf(store, user, { parent: ending.key })
    expect(await store.create(late, {}, call(ending.expiresAt))).toEqual(answers('orphan'))
  })

  describe('of a user of whom the index names more than a script looks at', () => {
    const end = (max: number) => ({ limit: { max, onLimit: 'end-oldest' as const } })
    const refuse = (max: number) => ({ limit: { max, onLimit: 'refuse' as const } })

    it('is refused at the limit, and not below it', async () => {
      const living = [await make(), await make()]
      await bury(1001)
      expect(await store.create(recordOf(store, user), refuse(2), call())).toEqual(answers('limit'))
      await bury(1001)
      expect(await store.create(recordOf(store, user), refuse(1), call())).toEqual(answers('limit'))
      expect((await members()).sort()).toEqual(living.map(memberOf).sort())
      await bury(1001)
      const record = recordOf(store, user)
      expect(await store.create(record, refuse(3), call())).toEqual(answers('created'))
      expect((await members()).sort()).toEqual([...living, record].map(memberOf).sort())
    })

    it('is all that is looked at piece by piece: of a thousand others the script itself decides', async () => {
      await bury(1000)
      const commands: string[] = []
      tap = (command, send) => {
        commands.push(command[0]!)
        return send()
      }
      expect(await store.create(recordOf(store, user), refuse(1), call())).toEqual(answers('created'))
      expect(new Set(commands)).toEqual(new Set(['EVALSHA']))
    })

    it('is one of 1,200 where a limit allows so many', async () => {
      for (let i = 0; i < 1200; i += 300) await Promise.all(Array.from({ length: 300 }, () => make()))
      expect(await store.create(recordOf(store, user), refuse(1200), call())).toEqual(answers('limit'))
      expect((await store.create(recordOf(store, user), end(1199), call())).ended).toHaveLength(2)
      expect(await members()).toHaveLength(1199)
    })

    it('does not count what it replaces', async () => {
      const old = await make()
      await bury(1001)
      const record = recordOf(store, user)
      expect(await store.replace(old.key, 1, record, refuse(1), call())).toEqual(answers('created'))
      expect(await members()).toEqual([memberOf(record)])
    })

    it('counts neither series, nor what has expired, nor what belongs to another user', async () => {
      const series = await make({ kind: 'remember', createdAt: T0 - 3 })
      const expired = await make({ createdAt: T0 - 2, seenAt: T0 - 2, expiresAt: T0 })
      const damaged = await make()
      await redis.client.set(nameOf(damaged.key), 'gibberish')
      const theirs = recordOf(store, `${user}x`, { createdAt: T0 - 4 })
      await store.create(theirs, {}, call())
      const named = store.shard(user) + memberOf(theirs)
      await redis.client.set(nameOf(named), (await redis.client.get(nameOf(theirs.key)))!)
      await redis.client.zadd(indexOf(user), 1, memberOf(theirs))
      for (const options of [refuse(1), end(1)]) {
        await bury(1001)
        const record = recordOf(store, user)
        expect(await store.create(record, options, call())).toEqual(answers('created'))
        await store.delete(record.key, call())
      }
      expect(await Promise.all([series, expired].map(isStored))).toEqual([true, true])
      expect(await redis.client.exists(nameOf(named))).toBe(1)
      const living = await make({ createdAt: T0 - 1 })
      await bury(1001)
      expect(await store.create(recordOf(store, user), refuse(1), call())).toEqual(answers('limit'))
      await bury(1001)
      expect(await store.create(recordOf(store, user), end(1), call())).toEqual(answers('created', [living.key]))
    })

    it('ends the oldest of them, in pieces', async () => {
      const living: SessionRecord[] = []
      // The index names the latest that will expire last.
      for (const [age, reach] of [
        [1, 1],
        [4, 2],
        [3, 4],
        [2, 3],
      ] as const)
        living.push(await make({ createdAt: T0 - age, absoluteExpiresAt: T0 + reach * HOUR }))
      const [youngest, ...others] = living
      await bury(1001)
      const record = recordOf(store, user)
      const made = await store.create(record, end(2), call())
      expect(made.outcome).toBe('created')
      expect([...made.ended].sort()).toEqual(others.map(({ key }) => key).sort())
      expect((await members()).sort()).toEqual([youngest!, record].map(memberOf).sort())
    })

    it('ends of those that began together the ones whose keys come first', async () => {
      const shard = store.shard(user)
      const keys = ['a', 'b', 'c', 'd'].map(letter => shard + letter.repeat(43))
      for (const i of [2, 0, 3, 1]) await make({ key: keys[i]!, absoluteExpiresAt: T0 + (i % 2) * HOUR + HOUR })
      await bury(1001)
      const { ended } = await store.create(recordOf(store, user), end(3), call())
      expect(ended).toEqual(keys.slice(0, 2))
    })

    it('tells that something may have been written where some have ended and the rest is refused', async () => {
      for (let i = 0; i < 2; i++) await make()
      await bury(1001)
      fail(PUT, 'OOM command not allowed', 2)
      await expect(store.create(recordOf(store, user), end(2), call())).rejects.toMatchObject({
        outcome: 'not-applied',
      })
      await make()
      await bury(1001)
      for (const member of await members())
        if (!member.startsWith('0'.repeat(39))) await redis.client.zadd(indexOf(user), 1, member)
      fail(PUT, 'OOM command not allowed', 3)
      await expect(store.create(recordOf(store, user), end(2), call())).rejects.toMatchObject({ outcome: 'unknown' })
    })
  })

  describe('in the place of one on another shard of a cluster', () => {
    const replace = (old: SessionRecord, record: SessionRecord, options: CreateOptions = {}, version = 1) =>
      cluster.replace(old.key, version, record, options, call())
    const nobody = () => recordOf(store, null)

    it('is live when that has ended', async () => {
      for (const record of [recordOf(store, user), nobody()]) {
        const old = await anonymous()
        expect(await replace(old, record)).toEqual(answers('created'))
        expect(await read(old)).toBe(null)
        expect(await read(record)).toEqual(record)
        expect(await minutesOf(nameOf(old.key))).toBe(minutes(FORWARD_LIFETIME + SWEEP_MARGIN))
        // Repeated, as a caller does who got no answer.
        expect(await replace(old, record)).toEqual(answers('created'))
      }
      expect(await members()).toHaveLength(1)
    })

    it('takes one step where the shard is the same', async () => {
      const old = await make()
      const scripts = watch(PUT)
      const forward = { salt: '', until: T0 }
      const record = recordOf(store, user)
      expect(await replace(old, record, { forward })).toEqual(answers('created'))
      expect(scripts).toHaveLength(1)
      expect(await read(old)).toMatchObject({ movedTo: record.key })
      expect(await members()).toEqual([memberOf(record)])
    })

    it('is the only one once the call is repeated that broke off before it had ended that one, or after', async () => {
      for (const isEnded of [false, true])
        for (const record of [recordOf(store, user), nobody()]) {
          const old = await anonymous()
          // As a process that dies: it takes nothing back.
          tap = async (command, send) => {
            if (runs(UNDO, command)) throw new Error('ECONNRESET')
            if (!runs(LEAVE, command)) return send()
            if (isEnded) await send()
            throw new Error('ECONNRESET')
          }
          await expect(replace(old, record)).rejects.toMatchObject({ outcome: 'unknown' })
          expect(await read(old)).toEqual(isEnded ? null : old)
          tap = through
          expect(await replace(old, record)).toEqual(answers('created'))
          expect(await read(record)).toEqual(record)
          expect(await read(old)).toBe(null)
        }
    })

    it('is not begun anew by a repeated call once it has ended', async () => {
      const old = await anonymous()
      const record = recordOf(store, user)
      expect(await replace(old, record)).toEqual(answers('created'))
      await store.delete(record.key, call())
      expect(await replace(old, record)).toEqual(answers('gone'))
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
        expect(await replace(old, record, options, version)).toEqual(answers(outcome))
        expect(await isStored(record)).toBe(false)
        expect(await members()).toEqual([])
      }
    })

    it('is taken back where that changed or ended meanwhile', async () => {
      const changes: Record<string, (old: SessionRecord) => unknown> = {
        conflict: ({ key, seenAt, expiresAt }) =>
          store.update(key, 1, { data: '1', seenAt, expiresAt, writeId: 'another1' }, call()),
        gone: ({ key }) => store.delete(key, call()),
      }
      for (const [outcome, change] of Object.entries(changes)) {
        const old = await anonymous()
        const record = recordOf(store, user)
        tap = async (command, send) => {
          if (runs(LEAVE, command)) await change(old)
          return send()
        }
        expect(await replace(old, record)).toEqual(answers(outcome))
        expect(await isStored(record)).toBe(false)
        expect(await members()).toEqual([])
      }
    })

    it('is refused as it would be on the same shard, and that one lives on', async () => {
      const first = await make()
      const old = await anonymous()
      const limit = { max: 1, onLimit: 'refuse' } as const
      const scripts = watch(PUT)
      expect(await replace(old, recordOf(store, user), { limit })).toEqual(answers('limit'))
      // Once with no members, once with that of the first.
      expect(scripts).toEqual([5, 6])
      expect(await replace(old, { ...recordOf(store, user), key: first.key })).toEqual(answers('collision'))
      const parent = keyIn(store.shard(user))
      expect(await replace(old, recordOf(store, user, { parent }))).toEqual(answers('orphan'))
      await store.deleteUser(user, { minPasswordVersion: 2, minPasswordVersionUntil: T0 + HOUR }, call())
      expect(await replace(old, recordOf(store, user))).toEqual(answers('stale-login'))
      expect(await read(old)).toEqual(old)
      expect(await members()).toEqual([])
    })

    it('is ended by a logout everywhere that comes before the last step', async () => {
      const old = await anonymous()
      const record = recordOf(store, user)
      tap = async (command, send) => {
        if (runs(LEAVE, command)) await store.deleteUser(user, { minPasswordVersionUntil: T0 + HOUR }, call())
        return send()
      }
      expect(await replace(old, record)).toEqual(answers('created'))
      expect(await Promise.all([old, record].map(read))).toEqual([null, null])
      expect(await members()).toEqual([])
    })

    it('keeps the series that both come from', async () => {
      const series = await make({ kind: 'remember' })
      const old = await make({ parent: series.key })
      const record = recordOf(store, `${user}x`, { parent: series.key })
      expect(await replace(old, record)).toEqual(answers('created'))
      expect(await read(record)).toEqual(record)
      expect(await read(old)).toBe(null)
    })

    it('fails where nobody can tell what became of that one', async () => {
      const old = await anonymous()
      const record = recordOf(store, user, { parent: anywhere() })
      tap = async (command, send) => {
        if (command[0] === 'GET') throw new Error('NOPERM no right to get')
        return send()
      }
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

    it('ends the oldest at the limit', async () => {
      const oldest = await make({ createdAt: T0 - 2 })
      const old = await anonymous()
      const limit = { max: 1, onLimit: 'end-oldest' } as const
      const record = recordOf(store, user)
      expect(await replace(old, record, { limit })).toEqual(answers('created', [oldest.key]))
      expect(await members()).toEqual([memberOf(record)])
    })
  })
})
