// What is left of a peak moves together, so that the memory of the peak is given back.
import { type SessionRecord, SWEEP_MARGIN } from 'coatcheck/custom-store'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { NOW, put } from '../../support/memory/records.ts'
import { slotsOf } from '../../support/memory/slots.ts'

const call = { now: NOW }
/** What the sweep removes first. */
const soon = { expiresAt: NOW + 1 }
const afterwards = { now: NOW + SWEEP_MARGIN + 2 }

describe('the memory store after a peak', () => {
  const COUNT = 20_000
  const peak = async (over: Partial<SessionRecord>) => {
    const store = new MemoryStore({ maxRecords: 2 * COUNT })
    const stored: SessionRecord[] = []
    const slots = await slotsOf(async () => {
      for (let number = 0; number < COUNT; number++)
        stored.push(await put(store, String(number), number % 100 === 0 ? {} : over))
    })
    expect(slots.blocks).toBeGreaterThanOrEqual(9)
    const survivors = stored.filter((_, number) => number % 100 === 0)
    return { store, slots, stored, survivors }
  }

  it('has two blocks for one session of each hundred, when the others were swept', async () => {
    const { store, slots, survivors } = await peak(soon)
    for (let removed = 1; removed > 0; ) removed = await store.sweep(1000, afterwards)
    expect(slots.blocks).toBeLessThanOrEqual(2)
    for (const survivor of survivors) expect(await store.read(survivor.key, call)).toEqual(survivor)
  })

  it('has two blocks for one session of each hundred, when the others have logged out', async () => {
    const { store, slots, stored, survivors } = await peak({})
    const left = new Set(survivors)
    for (const ended of stored) if (!left.has(ended)) await store.delete(ended.key, call)
    expect(slots.blocks).toBeLessThanOrEqual(2)
    for (const survivor of survivors) expect(await store.read(survivor.key, call)).toEqual(survivor)
  })

  it('moves a bounded number of sessions in one call', async () => {
    const { store, slots } = await peak(soon)
    const real = slots.copy
    let moved = 0
    slots.copy = (from, to) => {
      moved++
      real.call(slots, from, to)
    }
    let most = 0
    for (let removed = 1; removed > 0; most = Math.max(most, moved)) {
      moved = 0
      removed = await store.sweep(1000, afterwards)
    }
    expect(most).toBeGreaterThan(0)
    expect(most).toBeLessThanOrEqual(1000)
  })

  it('moves no session again and again where one comes and goes', async () => {
    const { store, slots } = await peak(soon)
    for (let removed = 1; removed > 0; ) removed = await store.sweep(1000, afterwards)
    for (let times = 0; times < 100; times++) await store.sweep(1000, afterwards)
    const real = slots.copy
    let moved = 0
    slots.copy = (from, to) => {
      moved++
      real.call(slots, from, to)
    }
    for (let times = 0; times < 1000; times++) await store.delete((await put(store, 'ada')).key, call)
    expect(moved).toBe(0)
  })
})
