// It takes long: quicker, with the index alone, in key-index.test.ts.
import { MemoryStore } from 'coatcheck/stores/memory'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { fill, NOW } from '../../support/memory/records.ts'

const MAX_RECORDS = 200_000
const end = (store: MemoryStore, keys: readonly string[]) =>
  Promise.all(keys.map(key => store.delete(key, { now: NOW })))

it('a walk over a memory store meets each key that stays exactly once, while the index grows and shrinks to many times its size', async () => {
  const sizes = fc.array(fc.integer({ min: -9000, max: 9000 }), { minLength: 1, maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(sizes, fc.integer({ min: 50, max: 700 }), async (changes, limit) => {
      const store = new MemoryStore({ maxRecords: MAX_RECORDS })
      const staying = await fill(store, 1500)
      const others = await fill(store, 3000)
      const met: string[] = []
      let cursor: string | null = null
      let steps = 0
      do {
        const page = await store.scan(cursor, limit, { now: NOW })
        met.push(...page.records.map(({ key }) => key))
        const change = changes[steps++] ?? 0
        if (change > 0) others.push(...(await fill(store, change)))
        else await end(store, others.splice(0, -change))
        cursor = page.next
      } while (cursor !== null)
      const wanted = new Set(staying)
      expect(met.filter(key => wanted.has(key)).sort()).toEqual(staying.sort())
    }),
    { numRuns: 15 },
  )
})
