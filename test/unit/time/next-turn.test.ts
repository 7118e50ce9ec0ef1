import { afterEach, expect, it, vi } from 'vitest'
import { nextTurn } from '../../../src/time/next-turn.ts'

afterEach(() => {
  vi.useRealTimers()
})

it('calls back once the sockets were read, without a timer, and not before the call returns', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  const callback = vi.fn()
  nextTurn(callback)
  expect([callback.mock.calls.length, vi.getTimerCount()]).toEqual([0, 0])
  await new Promise(resolve => setImmediate(resolve))
  expect(callback).toHaveBeenCalledTimes(1)
})
