import { type SessionRecord, SWEEP_MARGIN } from 'coatcheck/custom-store'
import { keyFor, newWriteId, ReferenceStore } from 'coatcheck/custom-store/testing'
import { MemoryStore } from 'coatcheck/stores/memory'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { HOUR, NOW, put, record } from '../../support/memory/records.ts'
import { slotsOf } from '../../support/memory/slots.ts'

const call = { now: NOW }
/** What the sweep removes first. */
const soon = { expiresAt: NOW + 1 }
const afterwards = { now: NOW + SWEEP_MARGIN + 2 }

/** Whole numbers below a bound, the same ones for the same seed. */
function drawsOf(seed: number): (below: number) => number {
  let state = seed | 0
  return below => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0
    return (state >>> 8) % below
  }
}

describe('what has moved in the memory store', () => {
  // Blocks have 2,048 slots: with fewer records, none would move.
  const CROWD = 5000
  const forward = { salt: 'salt', until: NOW + 60_000 }

  it(
    'is as the reference keeps it: sessions, series, forwards, floors, the order of users and of what is due',
    () =>
      fc.assert(
        fc.asyncProperty(fc.nat(), fc.integer({ min: 5, max: 60 }), async (seed, share) => {
          const draw = drawsOf(seed)
          const store = new MemoryStore({ maxRecords: 2 * CROWD })
          const reference = new ReferenceStore()
          const both = async <R>(verb: (to: MemoryStore | ReferenceStore) => Promise<R> | R) => {
            const [ours, theirs] = [await verb(store), await verb(reference)]
            expect(ours).toEqual(theirs)
            return ours
          }
          const users = Array.from({ length: 40 }, (_, number) => `user ${number}`)
          const kept: SessionRecord[] = []
          const ids: string[] = []
          let moves = 0
          const slots = await slotsOf(async () => {
            for (let number = 0; number < CROWD; number++) {
              const isKept = draw(100) < share
              const userId = draw(3) === 0 ? users[draw(users.length)]! : null
              const each = record(store, userId, {
                kind: userId !== null && draw(5) === 0 ? 'remember' : 'session',
                createdAt: NOW + number,
                userName: userId === null ? null : ['Ada', 'Ida Łódź', ''][draw(3)]!,
                passwordVersion: userId === null || draw(2) === 0 ? null : draw(9) + 5,
                data: JSON.stringify({ number }),
                parent: null,
                ...(isKept ? { expiresAt: NOW + HOUR + draw(100_000) } : { expiresAt: NOW + 1 + draw(20_000) }),
              })
              await store.create(each, {}, call)
              reference.records.set(each.key, each)
              if (isKept) kept.push(each)
              ids.push(each.key)
            }
          })
          for (let times = 0; times < 30; times++) {
            const old = kept[draw(kept.length)]!
            const next = { ...old, key: keyFor(store, old.userId), writeId: newWriteId() }
            await both(to => to.replace(old.key, 1, next, { forward }, call))
            ids.push(next.key)
            const user = `floor ${times}`
            await both(to =>
              to.deleteUser(user, { minPasswordVersion: times, minPasswordVersionUntil: NOW + 9 * HOUR }, call),
            )
          }
          const copy = slots.copy
          slots.copy = (from, to) => {
            moves++
            copy.call(slots, from, to)
          }
          // The reference removes all at once; ours in steps, in the order of spans.
          for (let removed = 1; removed > 0; ) removed = await store.sweep(200, { now: NOW + 20_001 + SWEEP_MARGIN })
          await reference.sweep(Number.POSITIVE_INFINITY, { now: NOW + 20_001 + SWEEP_MARGIN })
          if (share < 40) expect(moves).toBeGreaterThan(0)
          for (const key of ids) await both(to => to.read(key, call))
          for (const user of users)
            for (const kind of ['session', 'remember'] as const) await both(to => to.listUser(user, kind, call))
          for (let times = 0; times < 30; times++) {
            const login = record(store, `floor ${times}`, { passwordVersion: draw(40) })
            await both(to => to.create(login, {}, call))
            const key = ids[draw(ids.length)]!
            await both(to =>
              to.update(key, 1, { data: '{"a":1}', writeId: 'w', seenAt: NOW, expiresAt: NOW + HOUR }, call),
            )
            await both(to => to.touch(key, NOW + 1, NOW + 2 * HOUR, call))
            const limited = record(store, users[draw(users.length)]!, {
              createdAt: NOW + 2 * CROWD,
              passwordVersion: 99,
            })
            await both(to => to.create(limited, { limit: { max: 3, onLimit: 'end-oldest' } }, call))
            const [ended, user] = [ids[draw(ids.length)]!, users[draw(users.length)]!]
            await both(to => to.delete(ended, call))
            await both(to => to.deleteUser(user, { minPasswordVersionUntil: NOW }, call))
          }
          for (const key of ids) await both(to => to.read(key, call))
          for (let removed = 1; removed > 0; ) removed = await store.sweep(500, { now: NOW + 99 * HOUR })
          await reference.sweep(Number.POSITIVE_INFINITY, { now: NOW + 99 * HOUR })
          for (const key of ids) await both(to => to.read(key, call))
          expect(slots.blocks).toBeLessThanOrEqual(1)
        }),
        { numRuns: 4 },
      ),
    60_000,
  )

  it('moves by a sweep: a quarter of what it may remove while more is due, as many once nothing is', async () => {
    const store = new MemoryStore()
    const slots = await slotsOf(async () => {
      for (let number = 0; number < 6000; number++) await put(store, null, number % 4 === 0 ? {} : soon)
    })
    const looks = vi.spyOn(slots, 'straggler')
    let [most, last] = [0, 0]
    for (let removed = 100; removed === 100; ) {
      most = Math.max(most, last)
      looks.mockClear()
      removed = await store.sweep(100, afterwards)
      last = looks.mock.calls.length
    }
    expect([most, last]).toEqual([25, 100])
  })

  it('is met once by a walk under way', async () => {
    const store = new MemoryStore({ maxRecords: 20_000 })
    const staying: string[] = []
    for (let number = 0; number < 10_000; number++) {
      const { key } = await put(store, null, number % 20 === 0 ? {} : soon)
      if (number % 20 === 0) staying.push(key)
    }
    const met: string[] = []
    let cursor: string | null = null
    do {
      const page = await store.scan(cursor, 100, call)
      met.push(...page.records.map(({ key }) => key))
      await store.sweep(300, afterwards)
      cursor = page.next
    } while (cursor !== null)
    const wanted = new Set(staying)
    expect(met.filter(key => wanted.has(key)).sort()).toEqual(staying.sort())
  })

  it('gives way for a new record in the same order: the oldest anonymous one first', async () => {
    const MAX = 10_000
    const store = new MemoryStore({ maxRecords: MAX })
    const staying: string[] = []
    for (let number = 0; number < MAX; number++) {
      const { key } = await put(store, null, number % 20 === 0 ? {} : soon)
      if (number % 20 === 0) staying.push(key)
    }
    for (let removed = 1; removed > 0; ) removed = await store.sweep(1000, afterwards)
    for (let number = 0; number < MAX - staying.length; number++) await put(store, String(number))
    for (const key of staying) {
      expect(await store.read(key, call)).not.toBeNull()
      await put(store, 'one more')
      expect(await store.read(key, call)).toBeNull()
    }
  })
})
