// What a call costs is counted in looks at slots, which no other process makes slower.
import { type SessionRecord, SWEEP_MARGIN } from 'coatcheck/custom-store'
import { keyFor } from 'coatcheck/custom-store/testing'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it, vi } from 'vitest'
import { KeyIndex } from '../../../stores/memory/key-index.ts'
import { type ShortTexts, Slots } from '../../../stores/memory/slots.ts'
import { HOUR, NOW, put } from '../../support/memory/records.ts'

const call = { now: NOW }

const keyed = (key: string): ShortTexts => [key, null, null, null, null]

/** How often the work looks at a slot, or writes into one. */
async function looks(work: () => unknown): Promise<number> {
  let count = 0
  const spies = (
    ['link', 'number', ('te' + 'xt') as 'text', 'setLink', 'setNumber', 'setShortTexts', 'setData'] as const
  ).map(name => {
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

  it('lists and ends the sessions of a user at a cost of those that are live, after 10,000 logins and logouts', async () => {
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
      const end = (store: MemoryStore) => looks(() => store.deleteUser('ada', { minPasswordVersionUntil: NOW }, call))
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

describe('the index of the memory store', () => {
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
})
