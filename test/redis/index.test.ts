import { type NodeRedisClient, RedisStore } from 'coatcheck/stores/redis'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type OpenClient, STANDALONE } from '../support/redis/clients.ts'
import { HOUR, recordOf, soon, T0, writeId } from '../support/redis/records.ts'
import { describeEngine } from '../support/services/engines.ts'
import { type RedisServer, startRedis } from '../support/services/redis.ts'

const LONG = process.env.COATCHECK_LONG === '1'
const MINUTE = 60_000
let users = 100

describeEngine('redis', 'the index of a user', () => {
  let server: RedisServer
  let open: OpenClient
  let store: RedisStore
  let user: string
  beforeAll(async () => {
    server = await startRedis()
    open = await STANDALONE['node-redis 6']!(server.url)
    store = new RedisStore(open.client)
  })
  afterAll(async () => {
    await open.close()
    await server.stop()
  })
  const indexOf = (userId: string) => `coatcheck:{${store.shard(userId)}}:u:${userId}`
  const nameOf = (key: string) => `coatcheck:{${key.slice(0, 3)}}:${key.slice(3)}`
  const size = async () => Number(await server.cli('ZCARD', indexOf(user)))
  const create = async () => {
    const record = recordOf(store, user)
    expect(await store.create(record, { now: T0, deadline: soon() })).toBe('created')
    return record
  }
  const list = async () =>
    (await store.listUser(user, 'session', { now: T0, deadline: soon() })).map(({ key }) => key).sort()
  const del = (name: string) => (open.client as NodeRedisClient).sendCommand(['DEL', name])
  const next = () => {
    user = String(users++)
  }
  /** Members whose records are gone, as sessions leave them that ended by themselves. */
  const bury = (count: number) =>
    server.cli(
      'EVAL',
      `for i = 1, ARGV[1] do redis.call('ZADD', KEYS[1], 1795274465630 + i % 1000, string.format('%043d', i)) end return redis.call('PEXPIRE', KEYS[1], 1000000)`,
      '1',
      indexOf(user),
      `${count}`,
    )

  it('stays as small as the living sessions, however often the user logs in and out', {
    timeout: 900_000,
  }, async () => {
    next()
    const living = [(await create()).key, (await create()).key, (await create()).key].sort()
    for (let cycle = 0; cycle < (LONG ? 100_000 : 1000); cycle++) {
      const record = await create()
      await store.delete(record.key, { now: T0, deadline: soon() })
    }
    expect(await list()).toEqual(living)
    expect(await size()).toBeLessThan(20)
  })

  it('stays as small where sessions end by themselves, and forgets none that lives', async () => {
    next()
    const living: string[] = []
    for (let i = 0; i < 1000; i++) {
      const record = await create()
      if (i % 50 === 0) living.push(record.key)
      // What Redis does when the time of a key is over.
      else await del(nameOf(record.key))
      if (i % 100 === 99) expect(await list()).toEqual([...living].sort())
    }
    expect(living).toHaveLength(20)
    expect(await size()).toBeLessThan(60)
  }, 120_000)

  describe.each(LONG ? Object.keys(STANDALONE) : ['ioredis 6'])('with %s', name => {
    let other: OpenClient
    let theirs: RedisStore
    beforeAll(async () => {
      other = await STANDALONE[name]!(server.url)
      theirs = new RedisStore(other.client)
    })
    afterAll(() => other.close())

    it('with 130,000 dead members does no harm: list, a login and logout everywhere work', {
      timeout: 120_000,
    }, async () => {
      next()
      const keys = [(await create()).key, (await create()).key].sort()
      await bury(130_000)
      expect(
        (await theirs.listUser(user, 'session', { now: T0, deadline: soon() })).map(({ key }) => key).sort(),
      ).toEqual(keys)
      expect(await theirs.create(recordOf(store, user), { now: T0, deadline: soon() })).toBe('created')
      expect(await theirs.deleteUser(user, { minPasswordVersionUntil: T0 }, { now: T0, deadline: soon() })).toBe(3)
      expect(await size()).toBe(0)
    })
  })

  it('is read page by page where scores are the same, and no session is left out', { timeout: 120_000 }, async () => {
    next()
    await bury(40_000)
    await server.cli(
      'EVAL',
      `for i = 1, 40000 do redis.call('ZADD', KEYS[1], 1795274465630, string.format('%043d', i)) end`,
      '1',
      indexOf(user),
    )
    const record = await create()
    await server.cli('ZADD', indexOf(user), '1795274465630', record.key.slice(3))
    expect(await list()).toEqual([record.key])
  })

  it('lets the renewed one live that was excepted, and ends 800 others meanwhile', { timeout: 60_000 }, async () => {
    for (let round = 0; round < 3; round++) {
      next()
      let record = await create()
      const excepted = record.key
      await Promise.all(Array.from({ length: 800 }, () => create()))
      const ending = store.deleteUser(
        user,
        { exceptKey: excepted, minPasswordVersionUntil: T0 },
        { now: T0, deadline: soon() },
      )
      for (let i = 0; i < 20; i++) {
        const successor = recordOf(store, user)
        const forward = { salt: '', until: T0 + MINUTE }
        const outcome = await store.replace(record.key, 1, successor, { forward }, { now: T0, deadline: soon() })
        expect(outcome).toBe('created')
        record = successor
      }
      expect(await ending).toBe(800)
      expect(await list()).toEqual([record.key])
    }
  })

  const life = async (name: string) => Number(await server.cli('PTTL', name))

  it('outlives each record, whatever the clocks of those who write it', { timeout: 120_000 }, async () => {
    const skew = fc.integer({ min: -2 * 24 * 60, max: 2 * 24 * 60 }).map(minutes => minutes * MINUTE)
    const step = fc.record({ what: fc.constantFrom('touch', 'update', 'renew', 'login'), skew })
    await fc.assert(
      fc.asyncProperty(skew, fc.array(step, { minLength: 1, maxLength: 5 }), async (first, steps) => {
        next()
        const at = T0 + first
        let record = recordOf(store, user, {
          createdAt: at,
          seenAt: at,
          expiresAt: at + HOUR / 2,
          absoluteExpiresAt: at + 12 * HOUR,
        })
        await store.create(record, { now: at })
        for (const { what, skew } of steps) {
          const now = T0 + skew
          const found = await store.read(record.key, { now })
          if (found === null || !('key' in found)) continue
          const expiresAt = now + 12 * HOUR
          if (what === 'touch') await store.touch(found.key, now, expiresAt, { now })
          if (what === 'update')
            await store.update(
              found.key,
              found.version,
              { data: '{}', seenAt: now, expiresAt, writeId: writeId() },
              { now },
            )
          if (what === 'login') await store.create(recordOf(store, user, { absoluteExpiresAt: at + HOUR }), { now })
          if (what !== 'renew') continue
          const successor = { ...found, key: recordOf(store, user).key, version: 1, writeId: writeId() }
          const outcome = await store.replace(
            found.key,
            found.version,
            successor,
            {
              forward: { salt: '', until: now },
            },
            { now },
          )
          if (outcome === 'created') record = successor
        }
        // The record's first: time goes on between the two questions.
        const kept = await life(nameOf(record.key))
        expect(await life(indexOf(user))).toBeGreaterThan(kept + 4 * MINUTE)
      }),
      { numRuns: LONG ? 500 : 60 },
    )
  })

  it.each([-1000, 1000])(
    'leads logout everywhere to a session that a node 10 minutes ahead began, %i ms from its end',
    async moment => {
      next()
      const ahead = T0 + 10 * MINUTE
      const record = recordOf(store, user, {
        createdAt: ahead,
        seenAt: ahead,
        expiresAt: ahead + HOUR / 2,
        absoluteExpiresAt: ahead + 12 * HOUR,
      })
      await store.create(record, { now: ahead })
      // By a node whose clock is right.
      await store.touch(record.key, T0, record.absoluteExpiresAt, { now: T0 })
      // What Redis does as time passes.
      const passed = (await life(indexOf(user))) + moment
      for (const name of [nameOf(record.key), indexOf(user)])
        await server.cli('PEXPIRE', name, `${(await life(name)) - passed}`)
      const now = T0 + passed
      const lives = (await store.read(record.key, { now })) !== null
      expect(await store.deleteUser(user, { minPasswordVersionUntil: now }, { now })).toBe(lives ? 1 : 0)
      expect(await store.read(record.key, { now })).toBe(null)
      expect(await server.cli('EXISTS', nameOf(record.key))).toBe('0')
    },
  )
})
