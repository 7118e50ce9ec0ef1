import { describe, expect, it } from 'vitest'
import { WideMap } from '../../../stores/memory/wide-map.ts'

describe('the map of the memory store', () => {
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
