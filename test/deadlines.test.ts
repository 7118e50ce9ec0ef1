import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Deadlines } from '../src/deadlines.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

it('rings for each call that is still open when its time has come, and for no other', () => {
  const deadlines = new Deadlines()
  const late: string[] = []
  const start = performance.now()
  const open = (name: string, after: number) => deadlines.open(start + after, () => late.push(name))
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

it('holds on to nothing of a call that is over, nor a call that is over to its neighbours', () => {
  const deadlines = new Deadlines()
  const calls = [1, 2, 3].map(() => deadlines.open(performance.now() + 1000, () => {}))
  const onLate = calls[1]!.onLate
  for (const call of calls) deadlines.close(call)
  for (const call of calls) expect([call.previous, call.next]).toEqual([null, null])
  expect(calls[1]!.onLate).not.toBe(onLate)
})
