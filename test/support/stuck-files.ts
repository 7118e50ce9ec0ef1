// Loaded before each test file. Where a server has stopped answering, each test that asks it waits for the whole of its
// time limit: the file takes hours, and the run is killed before it can say which one it was.
import { afterEach, beforeEach } from 'vitest'

/** So many tests of one file may run into their time limits, one after the other. */
const MOST = 3
/** A call that gives up by itself does so a little before its test would. */
const NEARLY = 0.7

// Tests may put a fake clock in its place.
const now = performance.now.bind(performance)
let inARow = 0
let begun = 0

beforeEach(() => {
  if (inARow === MOST)
    throw new Error(`not run: ${MOST} tests before it ran into their time limits; what this file asks does not answer`)
  begun = now()
})

afterEach(({ task: { result, timeout } }) => {
  if (inARow === MOST) return
  const isStuck = result?.state === 'fail' && now() - begun >= NEARLY * timeout
  inARow = isStuck ? inARow + 1 : 0
})
