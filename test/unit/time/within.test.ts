import { expect, it, vi } from 'vitest'
import { within } from '../../../src/time/within.ts'

it('waits for longer than a timer of Node.js can count', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const outcomes = {
    accept: (answer: number) => answer,
    failed: (cause: unknown) => cause,
    late: () => new Error('late'),
  }
  const in1s = new Promise<number>(resolve => setTimeout(resolve, 1000, 2))
  const answer = within(performance.now() + 2 ** 40, in1s, outcomes)
  await vi.advanceTimersByTimeAsync(1000)
  expect(await answer).toBe(2)
})
