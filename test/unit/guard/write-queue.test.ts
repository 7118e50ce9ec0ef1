import { describe, expect, it, vi } from 'vitest'
import { WriteQueue } from '../../../src/guard/write-queue.ts'

const later = () => performance.now() + 60_000
const late = () => new Error('late')
type Job<T> = Parameters<typeof WriteQueue.prototype.inTurn<T>>[3]

const run = <T>(queue: WriteQueue, key: string, deadline: number, job: Job<T>, late: () => Error): Promise<T> =>
  queue.inTurn(key, deadline, late, job)
const turn = () => new Promise<void>(resolve => setImmediate(resolve))

it('of a store that is per request, no writer waits for another', async () => {
  const queue = new WriteQueue(true)
  const free: (() => void)[] = []
  const stay = ({ latest }: { latest: unknown }) => new Promise(resolve => free.push(() => resolve(latest)))
  const writers = [1, 2].map(() => run(queue, 'a', later(), stay, late))
  expect(free).toHaveLength(2)
  for (const leave of free) leave()
  expect(await Promise.all(writers)).toEqual([null, null])
  expect(await run(queue, 'a', later(), async () => 'at once', late)).toBe('at once')
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
  const results = await Promise.all(['a', 'b', 'c'].map(name => run(queue, 'key', later(), job(name), late)))
  expect(results).toEqual(['a', 'b', 'c'])
  expect(log).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
})

it('the first writer begins at once, and other sessions do not wait', async () => {
  const queue = new WriteQueue()
  const log: string[] = []
  let free!: () => void
  const slow = () => {
    log.push('a begins')
    return new Promise<void>(resolve => (free = resolve))
  }
  const first = run(queue, 'a', later(), slow, late).then(() => log.push('a is done'))
  expect(log).toEqual(['a begins'])
  const second = run(queue, 'a', later(), async () => log.push('a again'), late)
  await run(queue, 'b', later(), async () => log.push('b'), late)
  expect(log).toEqual(['a begins', 'b'])
  free()
  await Promise.all([first, second])
  expect(log.slice(2).sort()).toEqual(['a again', 'a is done'])
})

it('each writer finds what the one before it left', async () => {
  const queue = new WriteQueue()
  const seen: unknown[] = []
  await Promise.all(
    [1, 2, 3].map(number =>
      run(
        queue,
        'key',
        later(),
        async turn => {
          seen.push(turn.latest)
          queue.note({ key: 'key', version: number } as never)
        },
        late,
      ),
    ),
  )
  expect(seen).toEqual([null, { key: 'key', version: 1 }, { key: 'key', version: 2 }])
  await run(queue, 'key', later(), async turn => seen.push(turn.latest), late)
  expect(seen.at(-1)).toBeNull()
})

it('a writer that fails does not hold up the others', async () => {
  const queue = new WriteQueue()
  const results = await Promise.allSettled(
    [0, 1, 2, 3].map(number =>
      run(
        queue,
        'key',
        later(),
        async () => {
          if (number % 2 === 0) throw new Error(`no ${number}`)
          return number
        },
        late,
      ),
    ),
  )
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
  const free: (() => void)[] = []
  const write = (name: string) =>
    run(
      queue,
      'key',
      later(),
      () => {
        log.push(name)
        return new Promise<void>(resolve => free.push(resolve))
      },
      late,
    )
  const [first, second] = [write('first'), write('second')]
  free.shift()!()
  await first
  await turn()
  const third = write('third')
  await turn()
  expect(log).toEqual(['first', 'second'])
  free.shift()!()
  await second
  await turn()
  expect(log).toEqual(['first', 'second', 'third'])
  free.shift()!()
  await third
})

describe('a deadline', () => {
  it('gives no one up before it has come', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    try {
      const queue = new WriteQueue()
      let free!: () => void
      const first = run(queue, 'key', later(), () => new Promise<void>(resolve => (free = resolve)), late)
      const [hurried, patient] = [1000, 2000].map(after =>
        run(queue, 'key', performance.now() + after, async () => after, late).catch(error => error.message),
      )
      vi.advanceTimersByTime(999)
      expect(await Promise.race([hurried, 'waits'])).toBe('waits')
      vi.advanceTimersByTime(1)
      expect(await hurried).toBe('late')
      vi.advanceTimersByTime(999)
      free()
      await first
      expect(await patient).toBe(2000)
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  it('ends the wait, and the job that was given up never runs', async () => {
    const queue = new WriteQueue()
    let free!: () => void
    const first = run(queue, 'key', later(), () => new Promise<void>(resolve => (free = resolve)), late)
    let ran = false
    const second = run(
      queue,
      'key',
      performance.now() + 5,
      async () => {
        ran = true
      },
      late,
    )
    const third = run(queue, 'key', later(), async () => 'third', late)
    await expect(second).rejects.toThrow('late')
    free()
    await first
    expect(await third).toBe('third')
    expect(ran).toBe(false)
  })

  it('that is past already gives up as soon as there is a queue', async () => {
    const queue = new WriteQueue()
    let free!: () => void
    const first = run(queue, 'key', later(), () => new Promise<void>(resolve => (free = resolve)), late)
    await expect(run(queue, 'key', performance.now() - 1000, async () => {}, late)).rejects.toThrow('late')
    free()
    await first
  })
})

it('a queue that is empty is forgotten', async () => {
  const queue = new WriteQueue()
  const begunAtOnce = () => {
    let begins = 0
    // A job begins at once only where no other is in the queue.
    run(queue, 'key', later(), async () => begins++, late)
    return begins
  }
  await run(queue, 'key', later(), async () => {}, late)
  await turn()
  expect(begunAtOnce()).toBe(1)
})
