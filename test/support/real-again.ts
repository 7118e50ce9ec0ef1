// Loaded before each test file: a clock, a spy or a global that a test put in place of a real one ends with the test.
import { afterEach, vi } from 'vitest'

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
})
