import { expect, it } from 'vitest'
import { Recent } from '../src/recent.ts'

it('an entry is remembered for its lifetime, and forgotten after twice that', () => {
  const recent = new Recent<number>(100)
  recent.set('a', 1, 1000)
  recent.set('b', 2, 1099)
  expect([recent.get('a'), recent.get('b')]).toEqual([1, 2])
  recent.set('c', 3, 1110)
  expect(recent.get('b')).toBe(2)
  recent.set('d', 4, 1310)
  expect([recent.get('a'), recent.get('b')]).toEqual([undefined, undefined])
})

it('each entry lives at least its lifetime, wherever in a generation it came', () => {
  for (let offset = 0; offset < 300; offset += 7) {
    const recent = new Recent<boolean>(100)
    recent.set('first', true, 5000)
    recent.set('entry', true, 5000 + offset)
    for (let age = 0; age < 100; age += 9) {
      recent.set(`other${age}`, true, 5000 + offset + age)
      expect(recent.get('entry')).toBe(true)
    }
  }
})

it('memory is bounded by two generations', () => {
  const recent = new Recent<number>(1_000_000, 100)
  for (let index = 0; index < 10_000; index += 1) recent.set(`k${index}`, index, 0)
  let kept = 0
  for (let index = 0; index < 10_000; index += 1) if (recent.get(`k${index}`) !== undefined) kept += 1
  expect(kept).toBeGreaterThanOrEqual(100)
  expect(kept).toBeLessThanOrEqual(200)
  expect(recent.get('k9999')).toBe(9999)
})

it('setting again renews an entry, deleting forgets it in both generations', () => {
  const recent = new Recent<number>(100)
  recent.set('a', 1, 1000)
  recent.set('b', 1, 1150)
  recent.set('a', 2, 1160)
  expect(recent.get('a')).toBe(2)
  recent.delete('a')
  expect(recent.get('a')).toBeUndefined()
})

it('a clock that runs backwards only keeps entries longer', () => {
  const recent = new Recent<number>(100)
  recent.set('a', 1, 1000)
  recent.set('b', 2, 10)
  recent.set('c', 3, 500)
  expect([recent.get('a'), recent.get('b'), recent.get('c')]).toEqual([1, 2, 3])
})

it('__proto__ is a key like any other', () => {
  const recent = new Recent<number>(100)
  expect(recent.get('__proto__')).toBeUndefined()
  recent.set('__proto__', 1, 0)
  expect(recent.get('__proto__')).toBe(1)
})
