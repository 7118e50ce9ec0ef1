import fc from 'fast-check'
import { expect, it } from 'vitest'
import { draw } from './lot.mjs'

const rooms = fc.dictionary(fc.string({ minLength: 1 }), fc.integer({ min: 1, max: 300 }), { minKeys: 1 })

it('draws files until they have enough lines, and none beyond', () => {
  fc.assert(
    fc.property(rooms, fc.integer({ min: 1, max: 500 }), fc.nat(), (room, enough, seed) => {
      const files = Object.keys(room)
      const sum = (some: readonly string[]) => some.reduce((lines, file) => lines + room[file]!, 0)
      const drawn = draw(files, file => room[file]!, enough, seed)
      expect(files.filter(file => drawn.includes(file))).toEqual(drawn)
      if (drawn.length < files.length) expect(sum(drawn)).toBeGreaterThanOrEqual(enough)
      if (drawn.length > 1) expect(drawn.some(file => sum(drawn) - room[file]! < enough)).toBe(true)
      expect(draw(files, file => room[file]!, enough, seed)).toEqual(drawn)
    }),
  )
})

it('draws each file of a room sooner or later', () => {
  const files = ['a.ts', 'b.ts', 'c.ts', 'd.ts']
  const drawn = new Set(Array.from({ length: 50 }, (_, seed) => draw(files, () => 100, 100, seed)).flat())
  expect([...drawn].sort()).toEqual(files)
})
