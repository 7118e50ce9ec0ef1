import assert from 'node:assert/strict'
import type { ScanPage, SessionRecord } from '../contract/store.ts'
import { type Case, HOUR, type Kit, MINUTE, rules, rulesWith, same, spoil } from './kit.ts'
import { pick } from './random.ts'

/** More pages than any database has that is fit for a test. */
const MAX_PAGES = 100_000
/** A walk over a database that others have filled is long: steps between pages come between the first ones. */
const BUSY_PAGES = 40

/** The keys and records that a walk met. */
interface Walk {
  readonly records: Map<string, SessionRecord>
  readonly forwards: Set<string>
}

interface WalkOptions {
  readonly limit: number
  readonly now?: number
  /** Run with each page, before the next one is asked for. */
  readonly between?: (page: ScanPage, number: number) => Promise<unknown>
  /** Ends the walk early. */
  readonly enough?: (walk: Walk) => boolean
}

async function walk(kit: Kit, { limit, now = kit.now, between, enough }: WalkOptions): Promise<Walk> {
  const met: Walk = { records: new Map(), forwards: new Set() }
  let cursor: string | null = null
  for (let number = 0; ; number++) {
    assert.ok(number < MAX_PAGES, 'the walk never comes to an end')
    const page: ScanPage = await kit.store.scan!(cursor, between && number >= BUSY_PAGES ? 1000 : limit, { now })
    for (const record of page.records) met.records.set(record.key, record)
    for (const key of page.forwards) met.forwards.add(key)
    await between?.(page, number)
    cursor = page.next
    if (cursor === null || enough?.(met)) return met
    assert.equal(typeof cursor, 'string', 'next is text, or null on the last page')
  }
}

const hasMet = ({ records, forwards }: Walk, key: string) => records.has(key) || forwards.has(key)

/** A case about `scan`, or about `count`, that passes if the store has no such method. */
const about = (method: 'scan' | 'count', { name, needs, run }: Case): Case => ({
  name,
  ...(needs !== undefined && { needs }),
  run: async kit => (kit.store[method] === undefined ? undefined : run(kit)),
})

const CASES: readonly Case[] = [
  ...rules({
    async 'meets each live record and each forward in a walk, whatever the size of its pages'(kit) {
      const userId = kit.user()
      const series = await kit.put({ userId, kind: 'remember', data: '{"s":1}' })
      const first = await kit.put({ userId })
      const second = await kit.forward(first, kit.now + MINUTE, 'c2FsdA')
      const third = await kit.forward(second)
      const visitor = await kit.put({ data: '{"cart":["ü"]}' })
      const next = await kit.forward(visitor)
      const live = [
        series,
        third,
        next,
        await kit.put({ userId, userName: '', passwordVersion: 0xffff_ffff, parent: series.key }),
        await kit.put({ userId: kit.user(), seenAt: kit.now - HOUR }),
        await kit.put(),
      ]
      const ended = await kit.put({ userId })
      await kit.store.delete(ended.key, kit.call)
      const forwards = [first, second, visitor]
      for (const limit of [1, 2, 1000]) {
        const all = [...live, ...forwards]
        // To the end with the largest alone: with a page for each record of a large database it takes long.
        const enough = (met: Walk) => limit < 1000 && all.every(({ key }) => hasMet(met, key))
        const met = await walk(kit, { limit, enough })
        for (const record of live) {
          same(met.records.get(record.key), record)
          assert.equal(met.forwards.has(record.key), false, 'a record is met as a forward')
        }
        for (const { key } of forwards) {
          assert.equal(met.forwards.has(key), true, 'a forward is not met')
          assert.equal(met.records.has(key), false, 'a forward is met as a record')
        }
        assert.equal(hasMet(met, ended.key), false, 'what was ended is met')
      }
    },
    async "leaves out of a walk what has expired by the caller's clock, and removes nothing"(kit) {
      const records = [
        await kit.put({ userId: kit.user(), expiresAt: kit.now + MINUTE }),
        await kit.put({ userId: kit.user(), kind: 'remember', expiresAt: kit.now + MINUTE }),
        await kit.put({ expiresAt: kit.now + MINUTE }),
      ]
      const walkAt = (now: number) => walk(kit, { limit: 1000, now })
      const [late, early] = [await walkAt(kit.now + MINUTE), await walkAt(kit.now + MINUTE - 1)]
      for (const record of records) {
        assert.equal(hasMet(late, record.key), false, 'what has expired is met')
        same(early.records.get(record.key), record)
        await kit.isExactly(record)
      }
      // By a clock at 0 all is live: so `invalidateAll` walks, and reads.
      const expired = await kit.put({ userId: kit.user(), expiresAt: kit.now - MINUTE })
      same((await walkAt(0)).records.get(expired.key), expired)
      await kit.isExactly(expired, 0)
    },
    async 'prolongs nothing by a walk, and hands out objects that the caller may change'(kit) {
      const record = await kit.put({ userId: kit.user(), seenAt: kit.now - 20 * MINUTE })
      const spoilt = await walk(kit, {
        limit: 1000,
        now: kit.now + 20 * MINUTE,
        between: async page => {
          for (const each of page.records) if (each.key === record.key) spoil(each)
          spoil(page.records)
        },
      })
      assert.equal(spoilt.records.has(record.key), true)
      await kit.isExactly(record)
      same((await walk(kit, { limit: 1000 })).records.get(record.key), record)
    },
    async 'goes on from a cursor as often as it is asked to, and beside other walks'(kit) {
      const keys: string[] = []
      for (let made = 0; made < 40; made++) keys.push((await kit.put({ userId: made % 2 ? kit.user() : null })).key)
      const walks = [3, 10].map(limit => ({ limit, cursor: null as string | null, met: new Set<string>() }))
      for (let pages = 0; walks.some(({ met }) => met.size < keys.length); pages++) {
        assert.ok(pages < MAX_PAGES / 20, 'the walk never comes to an end')
        for (const each of walks.filter(({ met }) => met.size < keys.length)) {
          // Less than our own records: no page has all of them. Enough for a database with many others.
          const limit = pages < BUSY_PAGES ? each.limit : Math.max(each.limit, 30)
          const ask = () => kit.store.scan!(each.cursor, limit, kit.call)
          // An answer that was lost is asked for again.
          const [lost, page] = [await ask(), await ask()]
          for (const { key } of page.records) if (keys.includes(key)) each.met.add(key)
          each.cursor = lost.next
          assert.ok(each.cursor !== null || each.met.size === keys.length, 'a walk that is asked twice misses records')
        }
      }
    },
    'meets in a walk whatever stands all the while, as others come, go, change and get new IDs': kit =>
      kit.random(Math.min(kit.rounds, 4), async next => {
        const userId = kit.user()
        // The record of each key at each moment of the walk.
        const states = new Map<string, SessionRecord[]>()
        const standing = new Set<string>()
        const live: SessionRecord[] = []
        const add = async (record: SessionRecord) => {
          states.set(record.key, [record])
          live.push(record)
          return record
        }
        const make = async () => add(await kit.put({ userId: pick([null, userId], next()) }))
        for (let made = 0; made < 30; made++) standing.add((await make()).key)
        const act = async () => {
          const [record] = live.splice(next() % live.length, 1)
          if (record === undefined || next() % 5 === 0) return void (await make())
          if (next() % 3 === 0) {
            standing.delete(record.key)
            return kit.store.delete(record.key, kit.call)
          }
          if (next() % 2 === 0) return add(await kit.forward(record))
          const change = kit.change()
          await kit.store.update(record.key, record.version, change, kit.call)
          const updated = { ...record, ...change, version: record.version + 1 }
          states.get(record.key)!.push(updated)
          return live.push(updated)
        }
        const between = async (_: ScanPage, page: number) => {
          if (page < BUSY_PAGES) for (let acts = next() % 3; acts > 0; acts--) await act()
        }
        const met = await walk(kit, { limit: pick([1, 4, 20], next()), between })
        for (const key of standing) assert.ok(hasMet(met, key), 'a key that stood all the while is not met')
        for (const [key, possible] of states) {
          const found = met.records.get(key)
          if (found === undefined) continue
          const isKnown = possible.some(
            ({ version, writeId }) => version === found.version && writeId === found.writeId,
          )
          assert.ok(isKnown, 'a record is met as it never was')
        }
      }),
    'lets a walk that ends what it meets end all that existed when it began, though sessions get new IDs meanwhile':
      kit =>
        kit.random(Math.min(kit.rounds, 4), async next => {
          // Most users have one session: nothing ends it but the meeting of it.
          const shared = kit.user()
          const users = new Set([shared])
          const keys = new Set<string>()
          const latest: SessionRecord[] = []
          for (let made = 0; made < 24; made++) {
            const userId = pick([null, kit.user(), shared, kit.user()], made)
            const kind = userId !== null && made % 3 === 0 ? 'remember' : 'session'
            const record = await kit.put({ userId, kind })
            if (userId !== null) users.add(userId)
            keys.add(record.key)
            latest.push(record)
          }
          const renew = async () => {
            // The others stay as they are: the forward of a later renewal must not end a session that the walk has not met.
            const at = next() % (latest.length / 2)
            const old = latest[at]!
            const renewed = kit.successor(old)
            const options = { forward: { salt: '', until: kit.now } }
            const outcome = await kit.store.replace(old.key, 1, renewed, options, kit.call)
            if (outcome !== 'created') return
            latest[at] = renewed
            keys.add(renewed.key)
          }
          const between = async ({ records, forwards }: ScanPage, page: number) => {
            if (page < BUSY_PAGES) for (let times = next() % 8; times > 0; times--) await renew()
            for (const { key, userId } of records) {
              if (userId === null && keys.has(key)) await kit.store.delete(key, kit.call)
              if (userId !== null && users.has(userId)) await kit.deleteUser(userId)
            }
            for (const key of forwards) if (keys.has(key)) await kit.store.delete(key, kit.call)
          }
          await walk(kit, { limit: pick([1, 3, 10], next()), between })
          await kit.isGone(...latest)
        }),
  }),
  ...rulesWith('corrupt', {
    async 'leaves corrupted records out of a walk, and goes on behind them'(kit) {
      const sound: SessionRecord[] = []
      const damaged: SessionRecord[] = []
      for (let made = 0; made < 6; made++) {
        const record = await kit.put({ userId: made % 2 ? kit.user() : null })
        if (made % 3 === 0) await kit.options.corrupt!(kit.store, record.key)
        const list = made % 3 === 0 ? damaged : sound
        list.push(record)
      }
      for (const limit of [2, 1000]) {
        const met = await walk(kit, { limit })
        for (const record of sound) same(met.records.get(record.key), record)
        for (const { key } of damaged) assert.equal(met.records.has(key), false, 'a corrupted record is met')
      }
    },
  }),
  ...rulesWith('outage', {
    async 'rejects a page where reads fail: a walk in an outage is not at its end'(kit) {
      const record = await kit.put()
      const { next } = await kit.store.scan!(null, 1, kit.call)
      const undo = await kit.options.outage!(kit.store)
      try {
        for (const cursor of next === null ? [null] : [null, next]) {
          const call = { now: kit.now, deadline: performance.now() + 2000 }
          await assert.rejects(async () => kit.store.scan!(cursor, 10, call))
        }
      } finally {
        await undo()
      }
      const enough = (met: Walk) => hasMet(met, record.key)
      assert.ok(hasMet(await walk(kit, { limit: 100, enough }), record.key))
    },
  }),
]

const COUNTING: readonly Case[] = [
  ...rules({
    async 'counts the live sessions of users and visitors, and neither series nor forwards nor what has expired or ended'(
      kit,
    ) {
      const userId = kit.user()
      const later = kit.now + 10 * MINUTE
      const count = (now: number) => kit.store.count!({ now })
      const rise = async () => {
        const before = [await count(kit.now), await count(later)] as const
        await kit.put({ userId })
        await kit.put({ userId, expiresAt: later })
        await kit.put()
        await kit.forward(await kit.forward(await kit.put({ userId })))
        await kit.forward(await kit.put())
        await kit.put({ userId, kind: 'remember' })
        await kit.put({ userId, expiresAt: kit.now })
        await kit.store.delete((await kit.put({ userId })).key, kit.call)
        return [(await count(kit.now)) - before[0], (await count(later)) - before[1]]
      }
      // The database may have other users: then a try beside which they do nothing.
      for (let attempt = 1; attempt < 5; attempt++) if (`${await rise()}` === '5,4') return
      assert.deepEqual(await rise(), [5, 4])
    },
  }),
  ...rulesWith('outage', {
    async 'rejects a count where reads fail: an outage is no count of 0'(kit) {
      const undo = await kit.options.outage!(kit.store)
      try {
        await assert.rejects(async () => kit.store.count!({ now: kit.now, deadline: performance.now() + 2000 }))
      } finally {
        await undo()
      }
    },
  }),
]

export const walking: readonly Case[] = [
  ...CASES.map(each => about('scan', each)),
  ...COUNTING.map(each => about('count', each)),
]
