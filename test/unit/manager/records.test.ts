import { expect, it } from 'vitest'
import { expiryOf, isTouchDue, isUntouched, lifetimeOf } from '../../../src/manager/records.ts'

const limits = { idle: 60_000, absolute: 600_000, touchInterval: 10_000 }

it('a session expires when it was idle too long or is too old, whichever comes first', () => {
  expect(expiryOf(1_000, 9_000, 5_000)).toBe(6_000)
  expect(expiryOf(8_000, 9_000, 5_000)).toBe(9_000)
})

it('a login may ask for less than the manager allows, down to two touches, and for all of it', () => {
  expect(lifetimeOf({}, limits)).toEqual({ idle: 60_000, absolute: 600_000 })
  expect(lifetimeOf({ idleTimeout: '20s', absoluteTimeout: '1s' }, limits)).toEqual({ idle: 20_000, absolute: 1_000 })
  expect(lifetimeOf({ idleTimeout: '60s', absoluteTimeout: '10m' }, limits)).toEqual({
    idle: 60_000,
    absolute: 600_000,
  })
})

it('a login that asks for more, or for so little that a session in use would expire, is told the limit', () => {
  expect(() => lifetimeOf({ idleTimeout: '60001ms' }, limits)).toThrow(
    'idleTimeout: expected at most the manager\'s idleTimeout (60000 ms), got "60001ms"',
  )
  expect(() => lifetimeOf({ idleTimeout: '19999ms' }, limits)).toThrow(
    'idleTimeout: expected at least twice the touchInterval (10000 ms), else a session in use would expire, got "19999ms"',
  )
  expect(() => lifetimeOf({ absoluteTimeout: '600001ms' }, limits)).toThrow(
    'absoluteTimeout: expected at most the manager\'s absoluteTimeout (600000 ms), got "600001ms"',
  )
})

it('a touch is due once per interval, and never where the clock was set back', () => {
  expect(isTouchDue(1_000, 10_999, limits)).toBe(false)
  expect(isTouchDue(1_000, 11_000, limits)).toBe(true)
  expect(isTouchDue(1_000, 0, limits)).toBe(false)
})

it('a session that a remember token began is not visited until it was seen after its begin', () => {
  expect(isUntouched({ seenAt: 999, createdAt: 1_000 })).toBe(true)
  expect(isUntouched({ seenAt: 1_000, createdAt: 1_000 })).toBe(false)
  expect(isUntouched({ seenAt: 1_001, createdAt: 1_000 })).toBe(false)
})
