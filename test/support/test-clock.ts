export const SECOND = 1000
export const MINUTE = 60_000
export const HOUR = 3_600_000

/** A clock that stands still until it is told to go on; starts at the real time, so that real servers agree with it. */
export interface TestClock {
  (): number
  advance(ms: number): void
  /** The same clock, wrong by so many ms. */
  skewed(ms: number): () => number
}

export function testClock(start = Date.now()): TestClock {
  let now = start
  const clock = (() => now) as TestClock
  clock.advance = ms => {
    now += ms
  }
  clock.skewed = ms => () => now + ms
  return clock
}
