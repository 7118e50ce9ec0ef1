import { expect, it } from 'vitest'
import { isInSeconds, refuseSeconds } from '../../../src/text/epoch.ts'

it('an instant of today in seconds is told apart from one in milliseconds, since 1973', () => {
  expect(isInSeconds(Date.UTC(2026, 0, 1) / 1000)).toBe(true)
  // What seconds come to in the year 5138, and milliseconds in March 1973.
  expect(isInSeconds(1e11 - 1)).toBe(true)
  expect(isInSeconds(1e11)).toBe(false)
  expect(isInSeconds(Date.UTC(1974, 0, 1))).toBe(false)
})

it('seconds are refused with their name, the value and what would be right', () => {
  const refuse = () => refuseSeconds('verifiedAt', 1_767_225_600)
  expect(refuse).toThrow(TypeError)
  expect(refuse).toThrow(
    'verifiedAt: expected epoch milliseconds, got 1767225600, which looks like seconds: multiply by 1000',
  )
})
