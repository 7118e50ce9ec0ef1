import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { within } from '../../../src/time/within.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const outcomes = {
  accept: (answer: number) => {
    if (answer < 0) throw new RangeError('negative')
    return answer * 2
  },
  failed: (cause: unknown) => new Error('failed', { cause }),
  late: () => new Error('late'),
}
const after = (ms: number, answer: () => number) =>
  new Promise<number>((resolve, reject) => {
    setTimeout(() => {
      try {
        resolve(answer())
      } catch (error) {
        reject(error)
      }
    }, ms)
  })

it('gives what is made of an answer in time, and leaves no timer', async () => {
  const answer = within(
    performance.now() + 100,
    after(99, () => 21),
    outcomes,
  )
  await vi.advanceTimersByTimeAsync(99)
  expect(await answer).toBe(42)
  expect(vi.getTimerCount()).toBe(0)
})

it('rejects with what is made of a failure, also of one that is found in the answer', async () => {
  const broken = new Error('down')
  await expect(within(performance.now() + 100, Promise.reject(broken), outcomes)).rejects.toMatchObject({
    message: 'failed',
    cause: broken,
  })
  await expect(within(performance.now() + 100, Promise.resolve(-1), outcomes)).rejects.toMatchObject({
    message: 'failed',
    cause: new RangeError('negative'),
  })
  expect(vi.getTimerCount()).toBe(0)
})

it('rejects when the time is up, hears later answers for what they end, and drops them', async () => {
  const settled = vi.fn()
  for (const late of [() => 1, () => -1, (): number => Number(BigInt('x'))]) {
    const answer = within(performance.now() + 100, after(200, late), { ...outcomes, settled })
    const rejected = expect(answer).rejects.toThrow('late')
    await vi.advanceTimersByTimeAsync(101)
    await rejected
    expect(settled).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(100)
    expect(settled).toHaveBeenCalledOnce()
    settled.mockClear()
  }
})

it('waits for longer than a timer of Node.js can count', async () => {
  const answer = within(
    performance.now() + 2 ** 40,
    after(1000, () => 1),
    outcomes,
  )
  await vi.advanceTimersByTimeAsync(1000)
  expect(await answer).toBe(2)
})
