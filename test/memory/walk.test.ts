import { SWEEP_MARGIN } from 'coatcheck/custom-store'
import { MemoryStore } from 'coatcheck/stores/memory'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fill, NOW, put } from './records.ts'

const MAX_RECORDS = 200_000
const end = (store: MemoryStore, keys: readonly string[]) =>
  Promise.all(keys.map(key => store.delete(key, { now: NOW })))

/** The keys that a walk meets, and how large its largest page is. */
async function walk(store: MemoryStore, limit: number, between?: (page: number) => Promise<unknown>) {
  const met: string[] = []
  let [cursor, pages, largest]: [string | null, number, number] = [null, 0, 0]
  do {
    const page = await store.scan(cursor, limit, { now: NOW })
    met.push(...page.records.map(({ key }) => key))
    largest = Math.max(largest, page.records.length)
    await between?.(pages++)
    cursor = page.next
  } while (cursor !== null)
  return { met, largest }
}

describe('a walk over a memory store', () => {
  it('meets each session once, in pages that are small even where the store is large', async () => {
    const store = new MemoryStore({ maxRecords: MAX_RECORDS })
    const stored = await fill(store, 5000)
    const { met, largest } = await walk(store, 16)
    expect(met.sort()).toEqual(stored.sort())
    expect(largest).toBeLessThan(5000 / 50)
  })

  it('meets each session that stays exactly once, while the store grows and shrinks to many times its size', async () => {
    const sizes = fc.array(fc.integer({ min: -1500, max: 1500 }), { minLength: 1, maxLength: 12 })
    await fc.assert(
      fc.asyncProperty(sizes, fc.integer({ min: 20, max: 250 }), async (changes, limit) => {
        const store = new MemoryStore({ maxRecords: MAX_RECORDS })
        const staying = await fill(store, 500)
        const others = await fill(store, 1000)
        const { met } = await walk(store, limit, async page => {
          const change = changes[page] ?? 0
          if (change > 0) others.push(...(await fill(store, change)))
          else await end(store, others.splice(0, -change))
        })
        const wanted = new Set(staying)
        expect(met.filter(key => wanted.has(key)).sort()).toEqual(staying.sort())
      }),
      { numRuns: 10 },
    )
  })

  it('meets each session that stays exactly once, while others are swept', async () => {
    const store = new MemoryStore({ maxRecords: 5000 })
    const staying: string[] = []
    for (let number = 0; number < 4000; number++) {
      const { key } = await put(store, null, number % 20 === 0 ? {} : { expiresAt: NOW + 1 })
      if (number % 20 === 0) staying.push(key)
    }
    const { met } = await walk(store, 100, () => store.sweep(300, { now: NOW + SWEEP_MARGIN + 2 }))
    const wanted = new Set(staying)
    expect(met.filter(key => wanted.has(key)).sort()).toEqual(staying.sort())
  })

  it('refuses a cursor that no page answered', async () => {
    const store = new MemoryStore()
    for (const cursor of ['', '-1', '1.5', 'x', '01', '1e1', '256', '99999999999'])
      await expect(store.scan(cursor, 10, { now: NOW })).rejects.toThrow(
        'cursor: expected null, or the next of the page before',
      )
  })
})
