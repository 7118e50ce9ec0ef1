import { describe, expect, it, vi } from 'vitest'
import { WriteQueue } from '../../../src/guard/write-queue.ts'

type Job<T> = Parameters<typeof WriteQueue.prototype.inTurn<T>>[3]

const later = () => performance.now() + 60_000
const turn = () => new Promise<void>(resolve => setImmediate(resolve))
const run = <T>(queue: WriteQueue, job: Job<T>, { key = 'key', deadline = later() } = {}): Promise<T> =>
  queue.inTurn(key, deadline, () => new Error('late'), job)

/** A writer that stays until it is told to leave. */
function staying(queue: WriteQueue, begin = () => {}) {
  let leave!: () => void
  const done = run(queue, ({ latest }) => {
    begin()
    return new Promise<unknown>(resolve => {
      leave = () => resolve(latest)
    })
  })
  return { done, leave: () => leave() }
}

it('of a store that is per request, no writer waits for another', async () => {
  const queue = new WriteQueue(true)
  const begin = vi.fn()
  const writers = [1, 2].map(() => staying(queue, begin))
  expect(begin).toHaveBeenCalledTimes(2)
  for (const { leave } of writers) leave()
  expect(await Promise.all(writers.map(({ done }) => done))).toEqual([null, null])
  expect(await run(queue, async () => 'at once')).toBe('at once')
})

it('writers of one session take turns, in the order in which they came', async () => {
  const queue = new WriteQueue()
  const log: string[] = []
  const job = (name: string) => async () => {
    log.push(`${name} begins`)
    await turn()
    log.push(`${name} ends`)
    return name
  }
  const results = await Promise.all(['a', 'b', 'c'].map(name => run(queue, job(name))))
  expect(results).toEqual(['a', 'b', 'c'])
  expect(log).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
})

it('the first writer begins at once, and other sessions do not wait', async () => {
  const queue = new WriteQueue()
  const log: string[] = []
  const first = staying(queue, () => log.push('first'))
  expect(log).toEqual(['first'])
  const second = run(queue, async () => log.push('second'))
  await run(queue, async () => log.push('another session'), { key: 'other' })
  expect(log).toEqual(['first', 'another session'])
  first.leave()
  await Promise.all([first.done, second])
  expect(log).toEqual(['first', 'another session', 'second'])
})

it('each writer finds what the one before it left', async () => {
  const queue = new WriteQueue()
  const seen: unknown[] = []
  const write = (version: number) =>
    run(queue, async ({ latest }) => {
      seen.push(latest)
      queue.note({ key: 'key', version } as never)
    })
  await Promise.all([1, 2, 3].map(write))
  expect(seen).toEqual([null, { key: 'key', version: 1 }, { key: 'key', version: 2 }])
  await write(4)
  expect(seen.at(-1)).toBeNull()
})

it('a writer that fails does not hold up the others', async () => {
  const queue = new WriteQueue()
  const write = (number: number) =>
    run(queue, async () => {
      if (number % 2 === 0) throw new Error(`no ${number}`)
      return number
    })
  const results = await Promise.allSettled([0, 1, 2, 3].map(write))
  expect(results.map(result => (result.status === 'fulfilled' ? result.value : result.reason.message))).toEqual([
    'no 0',
    1,
    'no 2',
    3,
  ])
})

it('who comes while the second of two writes waits for it too', async () => {
  const queue = new WriteQueue()
  const log: string[] = []
  const [first, second] = ['first', 'second'].map(name => staying(queue, () => log.push(name)))
  first!.leave()
  await first!.done
  await turn()
  const third = run(queue, async () => log.push('third'))
  await turn()
  expect(log).toEqual(['first', 'second'])
  second!.leave()
  await third
  expect(log).toEqual(['first', 'second', 'third'])
})

describe('a deadline', () => {
  it('gives no one up before it has come', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    try {
      const queue = new WriteQueue()
      const first = staying(queue)
      const [hurried, patient] = [1000, 2000].map(after =>
        run(queue, async () => after, { deadline: performance.now() + after }).catch(error => error.message),
      )
      vi.advanceTimersByTime(999)
      expect(await Promise.race([hurried, 'waits'])).toBe('waits')
      vi.advanceTimersByTime(1)
      expect(await hurried).toBe('late')
      vi.advanceTimersByTime(999)
      first.leave()
      await first.done
      expect(await patient).toBe(2000)
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  it('ends the wait, also where it is past already, and the job that was given up never runs', async () => {
    for (const left of [5, -1000]) {
      const queue = new WriteQueue()
      const first = staying(queue)
      const job = vi.fn(async () => {})
      const second = run(queue, job, { deadline: performance.now() + left })
      const third = run(queue, async () => 'third')
      await expect(second).rejects.toThrow('late')
      first.leave()
      await first.done
      expect(await third).toBe('third')
      expect(job).not.toHaveBeenCalled()
    }
  })
})

it('a queue that is empty is forgotten', async () => {
  const queue = new WriteQueue()
  await run(queue, async () => {})
  await turn()
  // A job begins at once only where no other is in the queue.
  const begin = vi.fn()
  staying(queue, begin)
  expect(begin).toHaveBeenCalledOnce()
})
