// The index of a user: what is listed and ended by it, how small it stays, and how long it lives. And what is left in Redis when
// all is over.
import { SessionManager } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import type { RedisStore } from 'coatcheck/stores/redis'
import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { DELETE_USER } from '../../stores/redis/scripts.ts'
import { call, HOUR, memberOf, nameOf, recordOf, T0, writeId } from '../support/records.ts'
import { redisForGroup, tapForGroup } from '../support/redis/group.ts'
import { keysGiven, runs } from '../support/redis/tapped.ts'
import { describeEngine } from '../support/services/engines.ts'

const LONG = process.env.COATCHECK_LONG === '1'
const MINUTE = 60_000
const SCORE = 1_795_274_465_630
let users = 1000

describeEngine('redis', 'the sessions of one user', () => {
  const redis = redisForGroup()
  const tap = tapForGroup(redis)
  let store: RedisStore
  let user: string
  beforeEach(() => {
    store = tap.store
    user = String(users++)
  })

  const make = async (more: Partial<SessionRecord> = {}, at = call()) => {
    const record = recordOf(store, user, more)
    expect(await store.create(record, at)).toBe('created')
    return record
  }
  const several = (count: number) => Promise.all(Array.from({ length: count }, () => make()))
  const indexOf = () => `coatcheck:{${store.shard(user)}}:u:${user}`
  const size = () => redis.client.zcard(indexOf())
  const list = () => store.listUser(user, 'session', call())
  const sorted = (records: readonly SessionRecord[]) => records.map(({ key }) => key).sort()
  const isStored = async ({ key }: SessionRecord) => (await redis.client.exists(nameOf(key))) === 1
  /** Members without a record, of two scores. */
  const bury = (count: number) =>
    redis.client.eval(
      `for i = 1, ARGV[1] do redis.call('ZADD', KEYS[1], ARGV[2] + i % 2, string.format('%043d', i)) end`,
      1,
      indexOf(),
      count,
      SCORE,
    )
  const renew = async (old: SessionRecord, until = T0 + HOUR) => {
    const record = recordOf(store, user)
    const forward = { salt: '', until }
    expect(await store.replace(old.key, 1, record, { forward }, call())).toBe('created')
    return record
  }

  describe('are listed', () => {
    it('with one that a login made again after its end, as when a client sends it twice', async () => {
      const record = recordOf(store, user)
      await store.create(record, call())
      await store.delete(record.key, call())
      expect(await store.create(record, call())).toBe('created')
      expect(sorted(await list())).toEqual([record.key])
      expect(await store.deleteUser(user, { minPasswordVersionUntil: T0 }, call())).toBe(1)
    })

    it('in pieces of 500, with nothing that has expired, has ended for another, a series or damaged', async () => {
      const records = await several(496)
      await make({ kind: 'remember' })
      await make({ expiresAt: T0 })
      await redis.client.set(nameOf((await make()).key), 'gibberish')
      await redis.client.set(nameOf((await make()).key), 'x writeid123')
      const pieces = async () => {
        tap.seen = []
        expect(sorted(await list())).toEqual(sorted(records))
        return tap.seen.filter(([command]) => command === 'MGET').map(({ length }) => length - 1)
      }
      expect(await pieces()).toEqual([500])
      records.push(...(await several(4)))
      expect(await pieces()).toEqual([500, 4])
      expect(await store.listUser(user, 'remember', call())).toHaveLength(1)
    })

    it('and ended where the index names 50,000 that are gone, each of which is asked for once', async () => {
      await bury(50_000)
      const first = await make()
      await redis.client.zadd(indexOf(), SCORE, memberOf(first))
      const last = await make()
      await redis.client.zadd(indexOf(), SCORE + 1, memberOf(last))
      tap.seen = []
      expect(sorted(await list())).toEqual(sorted([first, last]))
      const asked = tap.seen.flatMap(([command, ...names]) => (command === 'MGET' ? names : []))
      expect(new Set(asked).size).toBe(asked.length)
      expect(await store.deleteUser(user, { minPasswordVersionUntil: T0 }, call())).toBe(2)
      expect(await size()).toBe(0)
    })

    it.each([
      ['over', T0],
      ['not over', T0 + HOUR],
    ])('under one of their keys where they get new IDs meanwhile, whose grace is %s', async (_, until) => {
      const first = await make()
      const others = await several(2)
      let third: SessionRecord | undefined
      tap.on = async ([command], send) => {
        const answer = await send()
        if (command === 'ZRANGE' && third === undefined) {
          third = first
          third = await renew(await renew(first, until), until)
        }
        return answer
      }
      expect(sorted(await list())).toEqual(sorted([third!, ...others]))
      // A forward to a session that the index named as well does not name it twice.
      await redis.client.zadd(indexOf(), SCORE, memberOf(first))
      expect(sorted(await list())).toEqual(sorted([third!, ...others]))
    })

    it('not at all where that is refused: it is no empty list', async () => {
      await make()
      for (const refused of ['ZRANGE', 'MGET']) {
        tap.fail(refused, 'NOPERM no right to it')
        const cause = { message: 'NOPERM no right to it' }
        await expect(list()).rejects.toMatchObject({ outcome: 'not-applied', cause })
      }
    })
  })

  describe('end', () => {
    const end = (options: { exceptKey?: string } = {}) =>
      store.deleteUser(user, { minPasswordVersionUntil: T0 + HOUR, ...options }, call())
    const pieces = () =>
      tap.seen.filter(command => runs(DELETE_USER, command)).map(command => keysGiven(command).length - 2)

    it('in one step up to 500, and in pieces of 500 beyond that', async () => {
      await several(500)
      tap.seen = []
      expect(await end()).toBe(500)
      expect(pieces()).toEqual([0, 500])
      await several(1101)
      tap.seen = []
      expect(await end({ exceptKey: (await make()).key })).toBe(1101)
      expect(pieces()).toEqual([1, 501, 501, 102])
      expect(await end()).toBe(1)
      expect(await list()).toEqual([])
    })

    it('but for the excepted one that gets new IDs while 800 others end', async () => {
      let record = await make()
      await several(800)
      const ending = end({ exceptKey: record.key })
      for (let times = 0; times < 20; times++) record = await renew(record, T0 + MINUTE)
      expect(await ending).toBe(800)
      expect(await list()).toEqual([record])
    })

    it('although one of another user is excepted whose key differs by its shard alone', async () => {
      const record = await make()
      let other = 0
      while (store.shard(String(other)) === store.shard(user)) other++
      expect(await end({ exceptKey: store.shard(String(other)) + memberOf(record) })).toBe(1)
      expect(await list()).toEqual([])
    })

    it('but not what is left of those before, nor what is of another user, where the index names them', async () => {
      const [moved, marked, theirs] = [await make(), await make(), await make()]
      const { client } = redis
      await client.set(nameOf(theirs.key), (await client.get(nameOf(theirs.key)))!.replace(` ${user} `, ' 7 '))
      await client.set(nameOf(marked.key), 'x writeid123')
      const next = await renew(moved)
      await client.zadd(indexOf(), SCORE, memberOf(moved))
      expect(await list()).toEqual([next])
      expect(await end()).toBe(1)
      expect(await Promise.all([next, moved, marked, theirs].map(isStored))).toEqual([false, true, true, true])
    })

    it('in part, and the error says so, where the rest is refused', async () => {
      await several(501)
      let ran = 0
      tap.on = async (command, send) => {
        if (runs(DELETE_USER, command) && ++ran === 3) throw new Error('NOPERM no right to it')
        return send()
      }
      await expect(end()).rejects.toMatchObject({ outcome: 'unknown' })
      expect(await list()).toHaveLength(1)
      ran = 2
      await expect(end()).rejects.toMatchObject({ outcome: 'not-applied' })
    })
  })

  describe('have an index', () => {
    const life = (name: string) => redis.client.pttl(name)

    it('as small as they are, however often the user logs in and out, and none when all have ended', async () => {
      const living = await several(3)
      for (let cycle = 0; cycle < 300; cycle++) await store.delete((await make()).key, call())
      expect(await size()).toBeLessThan(20)
      for (let cycle = 0; cycle < 500; cycle++) {
        const record = await make()
        if (cycle % 50 === 0) living.push(record)
        // What Redis does when the time of a key is over.
        else await redis.client.del(nameOf(record.key))
      }
      expect(sorted(await list())).toEqual(sorted(living))
      expect(await size()).toBeLessThan(60)
      for (const { key } of living) await store.delete(key, call())
      await store.deleteUser(user, { minPasswordVersionUntil: T0 }, call())
      expect(await redis.client.exists(indexOf())).toBe(0)
    })

    it('that outlives each record, whatever the clocks of those who write it', async () => {
      const skew = fc.integer({ min: -2 * 24 * 60, max: 2 * 24 * 60 }).map(minutes => minutes * MINUTE)
      const step = fc.record({ what: fc.constantFrom('touch', 'update', 'renew', 'login'), skew })
      const steps = fc.array(step, { minLength: 1, maxLength: 5 })
      const property = fc.asyncProperty(skew, steps, async (first, steps) => {
        user = String(users++)
        const at = T0 + first
        const [expiresAt, absoluteExpiresAt] = [at + HOUR / 2, at + 12 * HOUR]
        let record = await make({ createdAt: at, seenAt: at, expiresAt, absoluteExpiresAt }, call(at))
        for (const { what, skew } of steps) {
          const now = T0 + skew
          const found = await store.read(record.key, call(now))
          if (found === null || !('key' in found)) continue
          const { key, version } = found
          const times = { seenAt: now, expiresAt: now + 12 * HOUR }
          if (what === 'touch') await store.touch(key, times.seenAt, times.expiresAt, call(now))
          if (what === 'update')
            await store.update(key, version, { data: '{}', writeId: writeId(), ...times }, call(now))
          if (what === 'login') await store.create(recordOf(store, user, { absoluteExpiresAt: at + HOUR }), call(now))
          if (what !== 'renew') continue
          const next = { ...found, key: recordOf(store, user).key, version: 1, writeId: writeId() }
          const forward = { salt: '', until: now }
          if ((await store.replace(key, version, next, { forward }, call(now))) === 'created') record = next
        }
        // The record's first: time goes on between the two questions.
        const kept = await life(nameOf(record.key))
        expect(await life(indexOf())).toBeGreaterThan(kept + 4 * MINUTE)
      })
      await fc.assert(property, { numRuns: LONG ? 500 : 40 })
    })

    it.each([-1000, 1000])(
      'that leads logout everywhere to one that a node 10 minutes ahead began, %i ms from its end',
      async moment => {
        const ahead = T0 + 10 * MINUTE
        const [expiresAt, absoluteExpiresAt] = [ahead + HOUR / 2, ahead + 12 * HOUR]
        const record = await make({ createdAt: ahead, seenAt: ahead, expiresAt, absoluteExpiresAt }, call(ahead))
        // By a node whose clock is right.
        await store.touch(record.key, T0, record.absoluteExpiresAt, call())
        // What Redis does as time passes.
        const passed = (await life(indexOf())) + moment
        for (const name of [nameOf(record.key), indexOf()])
          await redis.client.pexpire(name, (await life(name)) - passed)
        const now = T0 + passed
        const lives = (await store.read(record.key, call(now))) !== null
        expect(await store.deleteUser(user, { minPasswordVersionUntil: now }, call(now))).toBe(lives ? 1 : 0)
        expect(await store.read(record.key, call(now))).toBe(null)
        expect(await isStored(record)).toBe(false)
      },
    )
  })
})

describeEngine('redis', 'what is left in Redis', () => {
  const redis = redisForGroup()

  it('is nothing, once the sessions have expired, and never a key without an end', async () => {
    const sessions = new SessionManager({
      store: redis.store,
      idleTimeout: '1s',
      absoluteTimeout: '2s',
      rememberFor: '2s',
      limit: { max: 3 },
      storeTimeout: '30s',
    })
    await Promise.all(
      Array.from({ length: 1000 }, async (_, i) => {
        const user = { id: i % 97, name: 'ada', passwordVersion: 4_000_000_000 }
        if (i % 5 === 0) return sessions.create()
        const session = await sessions.create({ user })
        if (i % 5 === 1) await sessions.regenerate(session)
        if (i % 5 === 2) await sessions.update(session, { seen: i })
        if (i % 50 === 3) await sessions.issueRememberToken(session).catch(() => null)
        if (i % 50 === 4) await sessions.invalidateUser(user.id, { minPasswordVersion: 1 })
        return session
      }),
    )
    await sessions.close()
    const names = await redis.client.keys('*')
    expect(names.length).toBeGreaterThan(100)
    const lives = await Promise.all(names.map(async name => ({ name, life: await redis.client.pttl(name) })))
    // Records are kept 5 minutes longer than they are valid, an index 10, forwards 12, and a minimum password version for a day.
    const [minima, others] = [
      lives.filter(({ name }) => name.includes(':v:')),
      lives.filter(({ name }) => !name.includes(':v:')),
    ]
    for (const { life } of others) expect(life > 0 && life <= 723_000).toBe(true)
    for (const { life } of minima) expect(life > 0 && life <= 25 * HOUR).toBe(true)
  })
})
