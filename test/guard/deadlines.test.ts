import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Deadlines } from '../../src/guard/deadlines.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

function setUp() {
  const deadlines = new Deadlines()
  const late: string[] = []
  const start = performance.now()
  const open = (name: string, after: number) => deadlines.open(start + after, () => late.push(name))
  return { deadlines, late, open }
}

it('rings for each call that is still open when its time has come, and for no other', () => {
  const { deadlines, late, open } = setUp()
  open('slow', 2000)
  const answered = open('answered', 1000)
  open('hurried', 500)
  expect(deadlines.close(answered)).toBe(true)
  vi.advanceTimersByTime(600)
  expect(late).toEqual(['hurried'])
  vi.advanceTimersByTime(3000)
  expect(late).toEqual(['hurried', 'slow'])
  expect(deadlines.close(answered)).toBe(false)
})

it('gives nothing up before the sockets had a turn', () => {
  const { deadlines, late, open } = setUp()
  const [answered, silent] = [open('answered', 1000), open('silent', 1000)]
  vi.advanceTimersToNextTimer()
  expect(late).toEqual([])
  open('later', 1500)
  // The turn of the sockets, in which an answer is read that had been there in time.
  expect([answered.isOpen, deadlines.close(answered)]).toEqual([true, true])
  vi.advanceTimersToNextTimer()
  expect(late).toEqual(['silent'])
  expect(deadlines.close(silent)).toBe(false)
  vi.advanceTimersByTime(1000)
  expect(late).toEqual(['silent', 'later'])
})

it('holds on to nothing of a call that is over, nor a call that is over to its neighbours', () => {
  const { deadlines, open } = setUp()
  const calls = ['a', 'b', 'c'].map(name => open(name, 1000))
  for (const call of calls) deadlines.close(call)
  for (const call of calls) expect([call.previous, call.next]).toEqual([null, null])
})
