// What a call costs is counted in looks at slots, which no other process makes slower.
import { type SessionRecord, SWEEP_MARGIN } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { keyFor } from 'coatcheck/testing'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { KeyIndex } from '../../../stores/memory/key-index.ts'
import { AFTER, BEFORE, KEY, NONE, type ShortTexts, Slots } from '../../../stores/memory/slots.ts'
import { HOUR, NOW, record } from '../../support/memory/records.ts'

const call = { now: NOW }

async function put(store: MemoryStore, userId: string | null): Promise<SessionRecord> {
  const stored = record(store, userId)
  if ((await store.create(stored, {}, call)).outcome !== 'created') throw new Error('not created')
  return stored
}

const keyed = (key: string): ShortTexts => [key, null, null, null, null]

/** How often the work looks at a slot, or writes into one. */
async function looks(work: () => unknown): Promise<number> {
  let count = 0
  const spies = (['link', 'number', 'text', 'setLink', 'setNumber', 'setShortTexts', 'setData'] as const).map(name => {
    const real = Slots.prototype[name] as (...args: unknown[]) => unknown
    Object.assign(Slots.prototype, {
      [name](this: Slots, ...args: unknown[]) {
        count++
        return real.apply(this, args)
      },
    })
    return () => Object.defineProperty(Slots.prototype, name, { value: real, enumerable: false })
  })
  try {
    await work()
  } finally {
    for (const restore of spies) restore()
  }
  return count
}

/** The slots that the work looks at the texts of. */
async function slotsOf(work: () => unknown): Promise<Slots[]> {
  const text = vi.spyOn(Slots.prototype, 'text')
  await work()
  const slots = text.mock.contexts as Slots[]
  text.mockRestore()
  return slots
}

describe('the memory store as it grows', () => {
  it('reads one session among 50,000 with as many looks as one among 1,000', async () => {
    const costs: number[] = []
    for (const count of [1000, 10_000, 50_000]) {
      const store = new MemoryStore()
      const stored: SessionRecord[] = []
      for (let number = 0; number < count; number++) stored.push(await put(store, String(number)))
      const visited = stored.filter((_, number) => number % (count / 1000) === 0)
      costs.push(
        await looks(async () => {
          for (const { key } of visited) await store.read(key, call)
        }),
      )
    }
    // Half full or full, a bucket has one entry more or less.
    for (const cost of costs) expect(cost).toBeLessThan(1.2 * costs[0]!)
  })

  it('lists and ends the sessions of a user at a cost of those that are live, after 10,000 log-ins and log-outs', async () => {
    const fresh = new MemoryStore()
    const used = new MemoryStore()
    for (let number = 0; number < 20_000; number++) await put(used, `other ${number}`)
    for (let number = 0; number < 10_000; number++) await used.delete((await put(used, 'ada')).key, call)
    for (const live of [1, 100, 10_000]) {
      const [before, after] = await Promise.all(
        [fresh, used].map(async store => {
          for (let number = 0; number < live; number++) await put(store, 'ada')
          return store
        }),
      )
      const list = (store: MemoryStore) => looks(() => store.listUser('ada', 'session', call))
      const end = (store: MemoryStore) => looks(() => store.deleteUser('ada', { floorUntil: NOW }, call))
      expect(await list(after!)).toBe(await list(before!))
      // The entries of a bucket that are passed on the way to the one that ends.
      expect(await end(after!)).toBeLessThan((await end(before!)) + 10 * live + 10)
    }
  })

  it('gives its memory back when its sessions are gone, and takes it again', async () => {
    const store = new MemoryStore()
    const { key } = await put(store, 'ada')
    const [slots] = await slotsOf(() => store.read(key, call))
    for (const _round of [1, 2]) {
      for (let number = 0; number < 20_000; number++) await put(store, String(number))
      expect(slots!.blocks).toBeGreaterThanOrEqual(9)
      for (let step = 1; step > 0; ) step = await store.sweep(1000, { now: NOW + HOUR + SWEEP_MARGIN + 1 })
      expect(slots!.blocks).toBeLessThanOrEqual(2)
    }
  })
})

describe('the slots of the memory store', () => {
  it('are never given twice, and keep what was written into them', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -1500, max: 1500 }), { maxLength: 20 }), runs => {
        const slots = new Slots()
        const kept: number[] = []
        for (const run of runs) {
          for (let times = 0; times < run; times++) {
            const slot = slots.take()
            slots.setShortTexts(slot, keyed(`key of ${slot}`))
            slots.setNumber(slot, 0, slot + 0.5)
            kept.push(slot)
          }
          // Taken from both ends, so that blocks become empty in any order.
          for (let times = 0; times < -run && kept.length > 0; times++)
            slots.release(times % 3 === 0 ? kept.shift()! : kept.pop()!)
        }
        expect(new Set(kept).size).toBe(kept.length)
        expect(kept).not.toContain(NONE)
        for (const slot of kept) {
          if (slots.text(slot, KEY) !== `key of ${slot}` || slots.number(slot, 0) !== slot + 0.5)
            throw new Error(`slot ${slot} was overwritten`)
        }
        for (const slot of kept) slots.release(slot)
        expect(slots.blocks).toBeLessThanOrEqual(2)
      }),
      { numRuns: 30 },
    )
  })

  it('take no block again and again where one session comes and goes', () => {
    const slots = new Slots()
    const kept = Array.from({ length: 2047 }, () => slots.take())
    const made = vi.spyOn(globalThis, 'ArrayBuffer')
    for (let times = 0; times < 100; times++) slots.release(slots.take())
    expect(made.mock.calls.length).toBeLessThanOrEqual(1)
    made.mockRestore()
    expect(kept).toHaveLength(2047)
  })

  it('stay in the order of their ring, whoever leaves', () => {
    const slots = new Slots()
    const [a, b, c] = [slots.take(), slots.take(), slots.take()]
    slots.join(a, NONE, BEFORE, AFTER)
    slots.join(b, a, BEFORE, AFTER)
    slots.join(c, a, BEFORE, AFTER)
    expect(slots.leave(a, BEFORE, AFTER)).toBe(b)
    expect([slots.link(b, AFTER), slots.link(c, AFTER), slots.link(b, BEFORE)]).toEqual([c, b, c])
    expect(slots.leave(c, BEFORE, AFTER)).toBe(b)
    expect(slots.leave(b, BEFORE, AFTER)).toBe(NONE)
  })
})

describe('the index of the memory store', () => {
  const index = () => {
    const slots = new Slots()
    const entries = new KeyIndex(slots)
    const add = (key: string) => {
      const slot = slots.take()
      slots.setShortTexts(slot, keyed(key))
      entries.add(slot)
      return slot
    }
    return { slots, entries, add }
  }

  it('finds what a Map would find, through any growth and shrinking', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -3000, max: 3000 }), { maxLength: 8 }), fc.nat(), (runs, seed) => {
        const { slots, entries, add } = index()
        const model = new Map<string, number>()
        let drawn = 0
        for (const run of runs) {
          for (let times = 0; times < run; times++) {
            const key = `${seed}-${drawn++}`
            model.set(key, add(key))
          }
          const gone = [...model].slice(0, Math.max(0, -run))
          for (const [key, slot] of gone) {
            entries.remove(slot)
            slots.release(slot)
            model.delete(key)
          }
          for (const [key] of gone) if (entries.find(key) !== NONE) throw new Error(`${key} was found`)
          for (const [key, slot] of model) if (entries.find(key) !== slot) throw new Error(`${key} was lost`)
          expect(entries.buckets).toBeLessThanOrEqual(Math.max(1024, 2 * model.size + 3000))
        }
        for (const slot of model.values()) entries.remove(slot)
        expect(entries.buckets).toBe(1024)
      }),
      { numRuns: 20 },
    )
  })

  it('finds a key that is shorter than what it hashes, and an empty one', () => {
    const { entries, add } = index()
    for (const key of ['', 'a', 'b', 'ab', '\u0000', '1234567', '12345678', '123456789']) {
      expect(entries.find(key)).toBe(NONE)
      const slot = add(key)
      expect(entries.find(key)).toBe(slot)
    }
  })

  it('grows and shrinks in steps: no call among 50,000 looks at more than 100 links', () => {
    let count = 0
    class Counting extends Slots {
      override link(slot: number, field: number) {
        count++
        return super.link(slot, field)
      }
      override setLink(slot: number, field: number, value: number) {
        count++
        super.setLink(slot, field, value)
      }
    }
    const slots = new Counting()
    const entries = new KeyIndex(slots)
    const store = new MemoryStore()
    let longest = 0
    const step = (work: () => void) => {
      count = 0
      work()
      longest = Math.max(longest, count)
    }
    const kept = Array.from({ length: 50_000 }, () => {
      const slot = slots.take()
      slots.setShortTexts(slot, keyed(keyFor(store, null)))
      step(() => entries.add(slot))
      return slot
    })
    expect(entries.buckets).toBe(50_000)
    for (const slot of kept) step(() => entries.remove(slot))
    expect(longest).toBeGreaterThan(2)
    expect(longest).toBeLessThan(100)
  })

  it('spreads keys that differ in a few characters alone', () => {
    const { entries, add } = index()
    const keys = Array.from({ length: 20_000 }, (_, number) => `AAA${String(number).padStart(43, '0')}`)
    for (const key of keys) add(key)
    const links = vi.spyOn(Slots.prototype, 'link')
    for (const key of keys) entries.find(key)
    const count = links.mock.calls.length
    links.mockRestore()
    // A hash that spreads evenly needs 1.5 looks at each key, one step in two, and a look at where the key found ends.
    expect(count / keys.length).toBeLessThan(4)
  })
})
