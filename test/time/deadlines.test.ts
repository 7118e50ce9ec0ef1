import { describe, expect, it, vi } from 'vitest'
import { Deadlines } from '../../src/time/deadlines.ts'
import { collectGarbage } from '../support/collect-garbage.ts'
import { useFakeClock } from '../support/fake-clock.ts'

useFakeClock()

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
  open('patient', 9000)
  expect(deadlines.close(answered)).toBe(true)
  vi.advanceTimersByTime(600)
  expect(late).toEqual(['hurried'])
  vi.advanceTimersByTime(3000)
  expect(late).toEqual(['hurried', 'slow'])
  vi.advanceTimersByTime(6000)
  expect(late).toEqual(['hurried', 'slow', 'patient'])
  expect(deadlines.close(answered)).toBe(false)
})

it('waits for a deadline that is further away than a timer can count', () => {
  const { late, open } = setUp()
  const set = vi.spyOn(globalThis, 'setTimeout')
  open('far', 3_000_000_000)
  vi.advanceTimersByTime(1000)
  // A longer timer would ring at once, and be set again at once.
  expect([set.mock.calls.length, late]).toEqual([1, []])
  vi.advanceTimersByTime(3_000_000_000)
  expect([set.mock.calls.length, late]).toEqual([2, ['far']])
})

it('gives nothing up before the sockets had a turn', () => {
  const { deadlines, late, open } = setUp()
  const [answered, silent] = [open('answered', 1000), open('silent', 1000)]
  vi.advanceTimersToNextTimer()
  expect(late).toEqual([])
  open('later', 1500)
  // The turn of the sockets, in which an answer is read that had been there in time.
  expect([answered.place, deadlines.close(answered)]).toEqual([0, true])
  vi.advanceTimersToNextTimer()
  expect(late).toEqual(['silent'])
  expect(deadlines.close(silent)).toBe(false)
  vi.advanceTimersByTime(1000)
  expect(late).toEqual(['silent', 'later'])
})

it('closes in any order, each once', () => {
  const { deadlines, late, open } = setUp()
  const calls = ['a', 'b', 'c', 'd', 'e'].map(name => open(name, 1000))
  for (const index of [1, 4, 0]) expect(deadlines.close(calls[index]!)).toBe(true)
  for (const index of [0, 1, 4]) expect(deadlines.close(calls[index]!)).toBe(false)
  vi.advanceTimersByTime(2000)
  expect(late.sort()).toEqual(['c', 'd'])
})

it('tells of each delay once, also where the first that hears of it closes another and opens one more', () => {
  const { deadlines, late, open } = setUp()
  const calls: ReturnType<typeof open>[] = []
  const start = performance.now()
  calls.push(
    deadlines.open(start + 1000, () => {
      late.push('first')
      deadlines.close(calls[1]!)
      open('later', 3000)
    }),
    open('closed', 1000),
    open('second', 1000),
  )
  vi.advanceTimersByTime(1500)
  expect(late).toEqual(['first', 'second'])
  vi.advanceTimersByTime(3000)
  expect(late).toEqual(['first', 'second', 'later'])
})

describe('an answer within its time', () => {
  const makes = (name: string) => vi.fn((..._cause: unknown[]) => new Error(name))
  const times = () => ({ late: makes('late'), failed: makes('failed') })

  it('is handed on as it came, also a failure, and nothing is late afterwards', async () => {
    const { deadlines } = setUp()
    const { late } = times()
    const cause = new Error('ECONNRESET')
    expect(await deadlines.within(performance.now() + 1000, Promise.resolve('answer'), late)).toBe('answer')
    await expect(deadlines.within(performance.now() + 1000, Promise.reject(cause), late)).rejects.toBe(cause)
    vi.advanceTimersByTime(2000)
    expect(late).not.toHaveBeenCalled()
  })

  it('that is a failure is told as the caller wants it', async () => {
    const { deadlines } = setUp()
    const { late, failed } = times()
    const call = deadlines.within(performance.now() + 1000, Promise.reject('down'), late, failed)
    await expect(call).rejects.toThrow('failed')
    expect(failed.mock.calls).toEqual([['down']])
  })

  it('did not come: what comes afterwards is dropped, and no failure is told', async () => {
    const { deadlines } = setUp()
    for (const end of ['resolve', 'reject'] as const) {
      const { late, failed } = times()
      let settle!: () => void
      const answer = new Promise((resolve, reject) => {
        settle = () => ({ resolve, reject })[end]('too late')
      })
      const call = deadlines.within(performance.now() + 1000, answer, late, failed)
      vi.advanceTimersByTime(1100)
      await expect(call).rejects.toThrow('late')
      settle()
      await answer.catch(() => {})
      expect(late).toHaveBeenCalledTimes(1)
      expect(failed).not.toHaveBeenCalled()
    }
  })
})

// A test of an application sets fake timers, and takes them away again, around one manager. The timer of the other clock
// never rings, or rings at another time.
describe('where the clock is exchanged while its timer is set', () => {
  const otherClock = (at: number) => {
    vi.useRealTimers()
    vi.useFakeTimers({ now: at, toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'performance'] })
    vi.advanceTimersByTime(at)
  }

  it.each([
    ['behind', 0],
    ['at the same instant', 60_000],
    ['ahead', 3_600_000],
  ])('gives up what is opened by a clock that is %s', (_, at) => {
    otherClock(60_000)
    const { deadlines, late, open } = setUp()
    deadlines.close(open('of the clock before', 2000))
    otherClock(at)
    const opened = deadlines.open(performance.now() + 2000, () => late.push('of this clock'))
    vi.advanceTimersByTime(3000)
    expect(late).toEqual(['of this clock'])
    expect(opened.place).toBe(-1)
  })

  it('sets one timer for what is opened at once', () => {
    const { deadlines, open } = setUp()
    deadlines.close(open('of the clock before', 2000))
    otherClock(3_600_000)
    const set = vi.spyOn(globalThis, 'setTimeout')
    const start = performance.now()
    for (let each = 0; each < 5; each++) deadlines.open(start + 2000, () => {})
    expect(set).toHaveBeenCalledTimes(1)
  })

  it('does not take a timer of the clock before for its own', () => {
    vi.useRealTimers()
    const rings: (() => void)[] = []
    const set = vi.spyOn(globalThis, 'setTimeout').mockImplementation(((ring: () => void) => {
      rings.push(ring)
      return {} as NodeJS.Timeout
    }) as typeof setTimeout)
    try {
      const { deadlines } = setUp()
      const start = performance.now()
      deadlines.open(start + 60_000, () => {})
      deadlines.open(start + 2000, () => {})
      // The first one rings though it was cleared: `clearTimeout` was that of the other clock.
      rings[0]!()
      deadlines.open(start + 2000, () => {})
      expect(set).toHaveBeenCalledTimes(2)
    } finally {
      set.mockRestore()
    }
  })
})

it('keeps the process alive while a call is under way, and no longer', () => {
  vi.useRealTimers()
  const { deadlines, open } = setUp()
  const timers = () => process.getActiveResourcesInfo().filter(name => name === 'Timeout').length
  const before = timers()
  const [first, second] = [open('first', 60_000), open('second', 60_000)]
  expect(timers()).toBe(before + 1)
  deadlines.close(first)
  expect(timers()).toBe(before + 1)
  deadlines.close(second)
  expect(timers()).toBe(before)
  // The timer is still set: the next call finds it, and needs it.
  const third = open('third', 70_000)
  expect(timers()).toBe(before + 1)
  deadlines.close(third)
  expect(timers()).toBe(before)
})

it('works where timers are numbers, as in Cloudflare Workers', () => {
  const set = new Map<number, () => void>()
  vi.stubGlobal('setTimeout', (callback: () => void) => set.set(set.size + 1, callback).size)
  vi.stubGlobal('clearTimeout', (timer: number) => set.delete(timer))
  try {
    const { deadlines, late, open } = setUp()
    expect(deadlines.close(open('answered', 1000))).toBe(true)
    open('silent', 1000)
    vi.advanceTimersByTime(1000)
    for (const ring of set.values()) ring()
    vi.advanceTimersByTime(1)
    expect(late).toEqual(['silent'])
  } finally {
    vi.unstubAllGlobals()
  }
})

it('holds on to nothing of a call that is over, nor a call that is over to its neighbours', async () => {
  vi.useRealTimers()
  const { deadlines, open } = setUp()
  let held: unknown
  const neighbours = (() => {
    const calls = ['a', 'b', 'c'].map(name => open(name, 1000))
    held = calls[1]
    for (const call of calls) deadlines.close(call)
    return [calls[0]!, calls[2]!].map(call => new WeakRef(call))
  })()
  // A WeakRef keeps what it was made of until the turn of the event loop is over.
  await new Promise(resolve => setImmediate(resolve))
  collectGarbage()
  expect(neighbours.map(call => call.deref())).toEqual([undefined, undefined])
  expect(held).toMatchObject({ place: -1 })
})

it.each([
  ['sooner', 1200],
  ['later', 3000],
])('rings in time for those that wait and for one that begins while another is given up, %s than those', (_, after) => {
  const { deadlines, late, open } = setUp()
  const start = performance.now()
  deadlines.open(start + 1000, () => {
    late.push('first')
    deadlines.open(start + after, () => late.push('begun'))
  })
  open('waiting', 2000)
  const at = (time: number) => {
    vi.advanceTimersByTime(start + time - performance.now())
    return [...late]
  }
  expect(at(1100)).toEqual(['first'])
  expect(at(1300)).toEqual(after === 1200 ? ['first', 'begun'] : ['first'])
  expect(at(2100).slice(1).sort()).toEqual(after === 1200 ? ['begun', 'waiting'] : ['waiting'])
  expect(at(3100).slice(1).sort()).toEqual(['begun', 'waiting'])
  expect(vi.getTimerCount()).toBe(0)
})

it('has one timer, however many calls are under way', () => {
  const { open } = setUp()
  for (const after of [2000, 1000, 3000, 500, 500, 700]) open(`${after}`, after)
  expect(vi.getTimerCount()).toBe(1)
  vi.advanceTimersByTime(1100)
  expect(vi.getTimerCount()).toBe(1)
})

it('rings where a test imitates a browser, which has no setImmediate', () => {
  vi.stubGlobal('setImmediate', undefined)
  try {
    const late = vi.fn()
    new Deadlines().open(performance.now() + 50, late)
    vi.advanceTimersByTime(60)
    expect(late).toHaveBeenCalledTimes(1)
  } finally {
    vi.unstubAllGlobals()
  }
})
