import { afterEach, beforeEach, vi } from 'vitest'

/** Gives each test of the file timers and `performance.now()` that stand still until they are told to go on. */
export function useFakeClock(): void {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'performance'] })
    // Not 0: an instant before the begin of the test is one, too.
    vi.advanceTimersByTime(1000)
  })
  afterEach(() => {
    vi.useRealTimers()
  })
}
