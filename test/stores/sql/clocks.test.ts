// What is known of the clock of each database, by connection.
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Clocks } from '../../../stores/sql/clocks.ts'

const MINUTE = 60_000
const DATABASE = 1_700_000_000_000

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] })
  vi.advanceTimersByTime(5 * MINUTE)
})
afterEach(() => {
  vi.useRealTimers()
})

/** A connection whose database says so now. */
function asked(clock = DATABASE) {
  const clocks = new Clocks()
  const connection = {}
  clocks.learn(connection, clock)
  return { clocks, connection }
}

it('says when a call is over by the clock of the database', () => {
  const { clocks, connection } = asked()
  const end = performance.now() + 5000
  expect(clocks.until(connection, end)).toBe(DATABASE + 5000)
  vi.advanceTimersByTime(3000)
  expect(clocks.until(connection, end)).toBe(DATABASE + 5000)
  expect(clocks.until(connection, end + 0.75)).toBe(DATABASE + 5000)
})

it('knows nothing of a connection that was not asked, nor of one whose clock was set', () => {
  const { clocks, connection } = asked()
  expect(clocks.until({}, performance.now())).toBe(null)
  expect(clocks.isOld({})).toBe(false)
  clocks.forget(connection)
  expect(clocks.until(connection, performance.now())).toBe(null)
  expect(clocks.isOld(connection)).toBe(false)
})

it('asks a clock again that it has known for more than a minute, and relies on it meanwhile', () => {
  const { clocks, connection } = asked()
  vi.advanceTimersByTime(MINUTE)
  expect(clocks.isOld(connection)).toBe(false)
  vi.advanceTimersByTime(1)
  expect(clocks.isOld(connection)).toBe(true)
  expect(clocks.until(connection, performance.now())).toBe(DATABASE + MINUTE + 1)
  clocks.learn(connection, DATABASE - MINUTE)
  expect(clocks.isOld(connection)).toBe(false)
  expect(clocks.until(connection, performance.now() + 7)).toBe(DATABASE - MINUTE + 7)
})

it('relies on no clock that it has not asked for more than ten minutes', () => {
  const { clocks, connection } = asked()
  vi.advanceTimersByTime(10 * MINUTE)
  expect(clocks.until(connection, performance.now())).toBe(DATABASE + 10 * MINUTE)
  vi.advanceTimersByTime(1)
  expect(clocks.until(connection, performance.now())).toBe(null)
})

it('tells the database no time that is further away than its settings can be', () => {
  const { clocks, connection } = asked()
  vi.advanceTimersByTime(1000)
  const now = performance.now()
  expect(clocks.until(connection, now + 1e9 - 1)).toBe(DATABASE + 1000 + 1e9 - 1)
  expect(clocks.until(connection, Number.POSITIVE_INFINITY)).toBe(DATABASE + 1000 + 1e9)
})
