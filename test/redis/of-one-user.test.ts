import { type SessionRecord, SWEEP_MARGIN } from 'coatcheck/custom-store'
import { RedisStore } from 'coatcheck/stores/redis'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { DELETE_USER } from '../../stores/redis/scripts.ts'
import { HOUR, recordOf, soon, T0 } from '../support/redis/records.ts'
import { keysGiven, runs, type Tap, tapped } from '../support/redis/tapped.ts'
import { describeEngine } from '../support/services/engines.ts'
import { type RedisServer, startRedis } from '../support/services/redis.ts'

const nameOf = (key: string) => `coatcheck:{${key.slice(0, 3)}}:${key.slice(3)}`
const memberOf = ({ key }: SessionRecord) => key.slice(3)
const call = () => ({ now: T0, deadline: soon() })
const SCORE = 1_795_274_465_630
let users = 1000

describeEngine('redis', 'the sessions of one user', () => {
  let server: RedisServer
  let client: Redis
  let seen: string[][]
  let tap: Tap
  let store: RedisStore
  let user: string
  beforeAll(async () => {
    server = await startRedis()
    client = new Redis(server.url)
    const tapping: Tap = (command, send) => {
      seen.push(command)
      return tap(command, send)
    }
    store = new RedisStore(tapped(client, tapping))
    tap = (_, send) => send()
    seen = []
    // The server's clock and the scripts are known from here on.
    await store.deleteUser('1', { minPasswordVersionUntil: T0 }, call())
  })
  afterAll(async () => {
    client.disconnect()
    await server.stop()
  })
  beforeEach(() => {
    seen = []
    tap = (_, send) => send()
    user = String(users++)
  })

  const make = async (more: Partial<SessionRecord> = {}) => {
    const record = recordOf(store, user, more)
    expect(await store.create(record, call())).toBe('created')
    return record
  }
  const several = (count: number) => Promise.all(Array.from({ length: count }, () => make()))
  const indexOf = () => `coatcheck:{${store.shard(user)}}:u:${user}`
  const list = (other = store) => other.listUser(user, 'session', call())
  const sorted = (records: readonly SessionRecord[]) => records.map(({ key }) => key).sort()
  const isStored = async ({ key }: SessionRecord) => (await client.exists(nameOf(key))) === 1
  /** Members without a record, the first of this many scores with the first of the members. */
  const bury = (count: number, scores = count) =>
    client.eval(
      `for i = 1, ARGV[1] do redis.call('ZADD', KEYS[1], ARGV[3] + i % ARGV[2], string.format('%043d', i)) end`,
      1,
      indexOf(),
      count,
      scores,
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
      await client.set(nameOf((await make()).key), 'gibberish')
      await client.set(nameOf((await make()).key), 'x writeid123')
      const pieces = async () => {
        seen = []
        expect(sorted(await list())).toEqual(sorted(records))
        return seen.filter(([command]) => command === 'MGET').map(({ length }) => length - 1)
      }
      expect(await pieces()).toEqual([500])
      records.push(...(await several(4)))
      expect(await pieces()).toEqual([500, 4])
      expect(await store.listUser(user, 'remember', call())).toHaveLength(1)
    })

    it('where the index names 50,000 that are gone, each of them once', async () => {
      await bury(50_000, 2)
      const first = await make()
      await client.zadd(indexOf(), SCORE, memberOf(first))
      const last = await make()
      await client.zadd(indexOf(), SCORE + 1, memberOf(last))
      seen = []
      expect(sorted(await list())).toEqual(sorted([first, last]))
      const asked = seen.flatMap(([command, ...names]) => (command === 'MGET' ? names : []))
      expect(new Set(asked).size).toBe(asked.length)
    })

    it.each([
      ['over', T0],
      ['not over', T0 + HOUR],
    ])('under one of their keys where they get new IDs meanwhile, whose grace is %s', async (_, until) => {
      const first = await make()
      const others = await several(2)
      let third: SessionRecord | undefined
      tap = async ([command], send) => {
        const answer = await send()
        if (command === 'ZRANGE' && third === undefined) {
          third = first
          third = await renew(await renew(first, until), until)
        }
        return answer
      }
      expect(sorted(await list())).toEqual(sorted([third!, ...others]))
      // A forward to a session that the index named as well does not name it twice.
      await client.zadd(indexOf(), SCORE, memberOf(first))
      expect(sorted(await list())).toEqual(sorted([third!, ...others]))
    })

    it('as none where another type stands in the place of the index', async () => {
      await client.set(indexOf(), 'x')
      expect(await list()).toEqual([])
    })

    it('not at all where that is refused: it is no empty list', async () => {
      await make()
      for (const refused of ['ZRANGE', 'MGET']) {
        tap = async ([command], send) => {
          if (command === refused) throw new Error('NOPERM no right to it')
          return send()
        }
        await expect(list()).rejects.toMatchObject({
          outcome: 'not-applied',
          cause: { message: 'NOPERM no right to it' },
        })
      }
    })
  })

  describe('end', () => {
    const end = (options: { exceptKey?: string; minPasswordVersion?: number; minPasswordVersionUntil?: number } = {}) =>
      store.deleteUser(user, { minPasswordVersionUntil: T0 + HOUR, ...options }, call())
    const pieces = () =>
      seen.filter(command => runs(DELETE_USER, command)).map(command => keysGiven(command).length - 2)

    it('in one step up to 500, and in pieces of 500 beyond that', async () => {
      await several(500)
      seen = []
      expect(await end()).toBe(500)
      expect(pieces()).toEqual([0, 500])
      await several(501)
      seen = []
      expect(await end()).toBe(501)
      expect(pieces()).toEqual([0, 500, 1])
      await several(1101)
      seen = []
      expect(await end({ exceptKey: (await make()).key })).toBe(1101)
      expect(pieces()).toEqual([1, 501, 501, 102])
      expect(await end()).toBe(1)
      expect(await list()).toEqual([])
    })

    it('but for the excepted one, wherever that has gone', async () => {
      const first = await make()
      const others = await several(2)
      expect(await end({ exceptKey: first.key })).toBe(2)
      expect(await list()).toEqual([first])
      const third = await renew(await renew(first))
      others.push(...(await several(260)))
      expect(await end({ exceptKey: first.key })).toBe(260)
      expect(await list()).toEqual([third])
      expect(await Promise.all(others.slice(0, 2).map(isStored))).toEqual([false, false])
      expect(await end()).toBe(1)
    })

    it('although one of another user is excepted whose key differs by its shard alone', async () => {
      const record = await make()
      let other = 0
      while (store.shard(String(other)) === store.shard(user)) other++
      expect(await end({ exceptKey: store.shard(String(other)) + memberOf(record) })).toBe(1)
      expect(await list()).toEqual([])
    })

    it('with those that nobody counts: a series, what has expired, and what is damaged', async () => {
      const records = [await make(), await make({ kind: 'remember' }), await make({ expiresAt: T0 }), await make()]
      await client.set(nameOf(records[3]!.key), 'gibberish')
      expect(await end()).toBe(1)
      expect(await Promise.all(records.map(isStored))).toEqual([false, false, false, false])
    })

    it('but not what is left of those before, nor what is of another user, where the index names them', async () => {
      const [moved, marked, theirs] = [await make(), await make(), await make()]
      await client.set(nameOf(theirs!.key), (await client.get(nameOf(theirs!.key)))!.replace(` ${user} `, ' 7 '))
      await client.set(nameOf(marked!.key), 'x writeid123')
      const next = await renew(moved!)
      await client.zadd(indexOf(), SCORE, memberOf(moved!))
      expect(await end()).toBe(1)
      expect(await Promise.all([next, moved!, marked!, theirs!].map(isStored))).toEqual([false, true, true, true])
    })

    it('and a login with an older password is refused, as long as the minimum holds', async () => {
      const login = (passwordVersion: number, now = T0) =>
        store.create(recordOf(store, user, { passwordVersion }), { now, deadline: soon() })
      await end()
      expect(await login(0)).toBe('created')
      await end({ minPasswordVersion: 2 })
      expect(await login(1)).toBe('stale-login')
      expect(await login(2)).toBe('created')
      // Nobody lowers it while it holds, or lets it end earlier.
      await end({ minPasswordVersion: 1, minPasswordVersionUntil: T0 + HOUR / 2 })
      expect(await login(1, T0 + HOUR - 1)).toBe('stale-login')
      expect(await login(1, T0 + HOUR)).toBe('created')
      const minutes = (await client.pttl(`coatcheck:{${store.shard(user)}}:v:${user}`)) / 60_000
      expect(Math.ceil(minutes)).toBe((HOUR + SWEEP_MARGIN) / 60_000)
    })

    it('and a lower minimum counts anew once a higher one holds no more', async () => {
      const login = (passwordVersion: number, now: number) =>
        store.create(recordOf(store, user, { passwordVersion }), { now, deadline: soon() })
      await end({ minPasswordVersion: 2 })
      const later = T0 + 2 * HOUR
      const options = { minPasswordVersion: 1, minPasswordVersionUntil: later + HOUR }
      await store.deleteUser(user, options, { now: later, deadline: soon() })
      expect(await login(0, later)).toBe('stale-login')
      expect(await login(1, later)).toBe('created')
    })

    it('of a user whose ID has blanks', async () => {
      user = `ada lovelace ${user} %`
      await make()
      expect(await end()).toBe(1)
      expect(await list()).toEqual([])
    })

    it('in part, and the error says so, where the rest is refused', async () => {
      await several(501)
      let ran = 0
      tap = async (command, send) => {
        if (runs(DELETE_USER, command) && ++ran === 3) throw new Error('NOPERM no right to it')
        return send()
      }
      await expect(end()).rejects.toMatchObject({ outcome: 'unknown' })
      expect(await list()).toHaveLength(1)
      ran = 2
      await expect(end()).rejects.toMatchObject({ outcome: 'not-applied' })
    })
  })
})
