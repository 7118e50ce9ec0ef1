import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { WideMap } from '../../../stores/memory/wide-map.ts'

describe('the map of the memory store', () => {
  it('has what a Map would have, whatever the text of a user ID', () => {
    const key = fc.oneof(
      fc.string({ maxLength: 6 }),
      fc.constantFrom('', 'a', 'aaaa', 'aaaaa', '0', '\u0000', '\ud83d'),
    )
    fc.assert(
      fc.property(fc.array(fc.tuple(key, fc.boolean()), { maxLength: 60 }), steps => {
        const map = new WideMap<number>()
        const model = new Map<string, number>()
        for (const [number, [name, isSet]] of steps.entries()) {
          if (isSet) map.set(name, number)
          else map.delete(name)
          if (isSet) model.set(name, number)
          else model.delete(name)
        }
        expect(steps.map(([name]) => map.get(name))).toEqual(steps.map(([name]) => model.get(name)))
        expect(map.sizes.reduce((sum, size) => sum + size, 0)).toBe(model.size)
      }),
    )
  })

  const named: [string, (number: number) => string][] = [
    ['user IDs in a row', String],
    ['user IDs in tens', number => String(number * 10)],
    ['UUIDs', () => crypto.randomUUID()],
  ]
  for (const [what, name] of named)
    it(`keeps ${what} in parts of which no two halves move at once`, () => {
      const map = new WideMap<number>()
      const count = 50_000
      for (let number = 0; number < count; number++) map.set(name(number), number)
      const sizes = map.sizes
      expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(count)
      expect(Math.max(...sizes)).toBeLessThan(count / 20)
      // A Map moves at a power of two: how far each part is on its way to the next.
      const phases = Array.from({ length: 8 }, () => 0)
      for (const size of sizes) phases[Math.floor((Math.log2(size) % 1) * 8)]!++
      expect(Math.max(...phases)).toBeLessThan(32)
    })
})
