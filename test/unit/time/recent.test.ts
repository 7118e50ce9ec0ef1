import { expect, it } from 'vitest'
import { Recent } from '../../../src/time/recent.ts'

it('an entry is forgotten where nothing else happens any more', () => {
  const recent = new Recent<number>(100)
  recent.set('a', 1, 1000)
  expect([recent.get('a', 1099), recent.get('a', 1200)]).toEqual([1, undefined])
  recent.set('b', 2, 1150)
  expect([recent.get('a', 1199), recent.get('b', 1249)]).toEqual([1, 2])
  expect([recent.get('a', 1250), recent.get('b', 1349), recent.get('b', 1350)]).toEqual([undefined, 2, undefined])
  recent.set('c', 3, 1350)
  expect([recent.get('b', 1350), recent.get('c', 1350)]).toEqual([undefined, 3])
})

it('each entry lives at least its lifetime, wherever in a generation it came', () => {
  for (let offset = 0; offset < 300; offset += 7) {
    const recent = new Recent<boolean>(100)
    recent.set('first', true, 5000)
    recent.set('entry', true, 5000 + offset)
    for (let age = 0; age < 100; age += 9) {
      recent.set(`other${age}`, true, 5000 + offset + age)
      expect(recent.get('entry', 5000 + offset + age)).toBe(true)
    }
  }
})

it('memory is bounded by two generations', () => {
  const recent = new Recent<number>(1_000_000, 100)
  for (let index = 0; index < 10_000; index += 1) recent.set(`k${index}`, index, 0)
  let kept = 0
  for (let index = 0; index < 10_000; index += 1) if (recent.get(`k${index}`, 0) !== undefined) kept += 1
  expect(kept).toBeGreaterThanOrEqual(100)
  expect(kept).toBeLessThanOrEqual(200)
  expect(recent.get('k9999', 0)).toBe(9999)
})

it('a clock that runs backwards only keeps entries longer', () => {
  const recent = new Recent<number>(100)
  recent.set('a', 1, 1000)
  recent.set('b', 2, 10)
  recent.set('c', 3, 500)
  expect(['a', 'b', 'c'].map(key => recent.get(key, 500))).toEqual([1, 2, 3])
})
