import { expect, it, onTestFinished, vi } from 'vitest'
import { WriteQueue } from '../../../src/guard/write-queue.ts'

type Job<T> = Parameters<typeof WriteQueue.prototype.inTurn<T>>[3]

const later = () => performance.now() + 60_000
const turn = () => new Promise<void>(resolve => setImmediate(resolve))
const run = <T>(queue: WriteQueue, job: Job<T>, { key = 'key', deadline = later() } = {}): Promise<T> =>
  queue.inTurn(key, deadline, () => new Error('late'), job)

/** A writer that stays until it is told to leave. */
function staying(queue: WriteQueue, begin = () => {}) {
  let leave!: () => void
  const done = run(queue, () => {
    begin()
    return new Promise<void>(resolve => {
      leave = resolve
    })
  })
  return { done, leave: () => leave() }
}

it('writers of one session take turns in the order in which they came, also after one that failed', async () => {
  const queue = new WriteQueue()
  const log: string[] = []
  const job = (name: string) => async () => {
    log.push(`${name} begins`)
    await turn()
    log.push(`${name} ends`)
    if (name === 'b') throw new Error('no b')
  }
  const results = Promise.allSettled(['a', 'b', 'c'].map(name => run(queue, job(name))))
  await run(queue, async () => log.push('another session'), { key: 'other' })
  expect((await results).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(log).toEqual(['a begins', 'another session', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
  // A queue that is empty is forgotten: a job begins at once only where no other is in the queue.
  const begin = vi.fn()
  staying(queue, begin)
  expect(begin).toHaveBeenCalledOnce()
})

it('of a store that is per request, no writer waits for another', async () => {
  const queue = new WriteQueue(true)
  const begin = vi.fn()
  const writers = [1, 2].map(() => staying(queue, begin))
  expect(begin).toHaveBeenCalledTimes(2)
  for (const { leave } of writers) leave()
  await Promise.all(writers.map(({ done }) => done))
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

it('a deadline gives no one up before it has come', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
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
})

it('a deadline ends the wait, also where it is past already, and the job that was given up never runs', async () => {
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
