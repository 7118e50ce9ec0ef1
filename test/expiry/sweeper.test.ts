// How records that have expired are removed: by the one timer of a manager, in batches.
import { type SessionId, SessionManager } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { beforeEach, expect, it, vi } from 'vitest'
import { type BarrierStore, faults } from '../support/barrier-store.ts'
import { setUp, times } from '../support/manager-kit.ts'
import { MINUTE } from '../support/test-clock.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
})
async function withSessions(count: number) {
  const at = setUp()
  for (const _ of times(count)) await at.sessions.create()
  return at
}
const swept = (store: BarrierStore) => store.counts().sweep ?? 0
const use = (sessions: SessionManager) => sessions.get('x'.repeat(43) as SessionId)

it('goes on after a failure, which is told as an event', async () => {
  const { sessions, store, events } = setUp({ sweepInterval: '1m' })
  await use(sessions)
  store.next('sweep', faults.rejects)
  store.next('sweep', faults.throws)
  await vi.advanceTimersByTimeAsync(10 * MINUTE)
  expect(swept(store)).toBeGreaterThan(5)
  expect(events.map(({ type }) => type)).toEqual(['store-error', 'store-error'])
  await sessions.close()
})

it('begins at the first use, by itself or by a tenant, and once', async () => {
  for (const begin of [use, (sessions: SessionManager) => use(sessions.namespace('blue'))]) {
    const { sessions, store } = setUp({ sweepInterval: '1m' })
    sessions.namespace('blue')
    await vi.advanceTimersByTimeAsync(10 * MINUTE)
    expect([swept(store), vi.getTimerCount()]).toEqual([0, 0])
    for (let times = 0; times < 5; times += 1) await begin(sessions)
    await vi.advanceTimersByTimeAsync(10 * MINUTE)
    expect(swept(store)).toBeGreaterThanOrEqual(7)
    expect(swept(store)).toBeLessThanOrEqual(14)
    await sessions.close()
  }
})

it('waits for three to five quarters of the interval', async () => {
  for (const [random, least] of [
    [0, 45_000],
    [0.5, 60_000],
    [0.999_999_999, 74_999],
  ] as const) {
    const draw = vi.spyOn(Math, 'random').mockReturnValue(random)
    const { sessions, store } = setUp({ sweepInterval: '1m' })
    await use(sessions)
    await vi.advanceTimersByTimeAsync(least - 1)
    expect(swept(store)).toBe(0)
    await vi.advanceTimersByTimeAsync(2)
    expect(swept(store)).toBe(1)
    await sessions.close()
    draw.mockRestore()
  }
})

it('sweeps no more after close, be it before the first use or while a sweep is under way', async () => {
  const { sessions, store: unused } = setUp({ sweepInterval: '1m' })
  await sessions.close()
  await use(sessions).catch(() => {})
  await vi.advanceTimersByTimeAsync(10 * MINUTE)
  expect([swept(unused), vi.getTimerCount()]).toEqual([0, 0])

  const { sessions: sweeping, store } = setUp({ sweepInterval: '1m', storeTimeout: '20m' })
  await use(sweeping)
  const pause = store.pause('sweep', 'after')
  await vi.advanceTimersByTimeAsync(2 * MINUTE)
  await pause.reached
  const closing = sweeping.close()
  pause.resume()
  await closing
  store.reset()
  await vi.advanceTimersByTimeAsync(10 * MINUTE)
  expect(swept(store)).toBe(0)
})

it('neither sweepInterval: false, nor a store with a TTL of its own, nor a tenant has a timer', async () => {
  const ownTtl = Object.defineProperty(new MemoryStore(), 'sweep', { value: undefined })
  const never = new SessionManager({ store: new MemoryStore(), sweepInterval: false })
  const sessions = new SessionManager({ store: ownTtl })
  for (const each of [never, sessions, sessions.namespace('blue')]) await use(each)
  // What is left is the deadline of the calls.
  await vi.advanceTimersByTimeAsync(2000)
  expect(vi.getTimerCount()).toBe(0)
  expect(await sessions.sweep()).toBe(0)
})

it('a sweep works in batches, and answers how many went', async () => {
  const { sessions, store, clock } = await withSessions(2500)
  clock.advance(30 * MINUTE + 5 * MINUTE - 1)
  expect(await sessions.sweep()).toBe(0)
  clock.advance(2)
  store.reset()
  expect(await sessions.sweep()).toBe(2500)
  // The last one is not full, and quick.
  expect(swept(store)).toBe(3)
})

it('a sweep goes on after a batch that is not full and was slow, since it may have run out of time', async () => {
  const { sessions, store, clock } = await withSessions(5)
  clock.advance(60 * MINUTE)
  store.next('sweep', async proceed => {
    await new Promise(resolve => setTimeout(resolve, 10))
    return proceed()
  })
  store.reset()
  const removed = sessions.sweep()
  await vi.advanceTimersByTimeAsync(100)
  expect(await removed).toBe(5)
  expect(swept(store)).toBe(2)
})

it('a sweep ends by itself in a test that sets all timers', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'performance', 'Date'] })
  const sessions = new SessionManager({ store: new MemoryStore() })
  await sessions.create()
  vi.setSystemTime(Date.now() + 60 * MINUTE)
  expect(await sessions.sweep()).toBe(1)
  await sessions.close()
})

it('a sweep begins no further batch after close', async () => {
  const { sessions, store, clock } = await withSessions(2500)
  clock.advance(60 * MINUTE)
  const pause = store.pause('sweep', 'after')
  const removed = sessions.sweep()
  await pause.reached
  const closing = sessions.close()
  pause.resume()
  await closing
  expect(await removed).toBe(1000)
})

it('a sweep comes to its end where sessions go on expiring', async () => {
  const { sessions, store, clock } = setUp()
  for (const _ of times(100)) {
    await sessions.create()
    clock.advance(1000)
  }
  clock.advance(35 * MINUTE - 90_000)
  store.every('sweep', proceed => {
    clock.advance(1000)
    return proceed()
  })
  const removed = await sessions.sweep()
  expect(removed).toBeGreaterThan(0)
  expect(removed).toBeLessThan(20)
  expect(await sessions.sweep()).toBeGreaterThan(0)
})

it('asyncDispose closes, and closing a tenant leaves the store open', async () => {
  let closed = 0
  const store = Object.assign(new MemoryStore(), {
    close: async () => {
      closed += 1
    },
  })
  const sessions = new SessionManager({ store })
  await use(sessions)
  await vi.advanceTimersByTimeAsync(2000)
  await sessions.namespace('blue').close()
  expect([closed, vi.getTimerCount()]).toEqual([0, 1])
  await sessions[Symbol.asyncDispose]()
  expect(closed).toBe(1)
})

it('neither the sweeper nor a call that was answered keeps the process; a call under way does', async () => {
  vi.useRealTimers()
  const timers = vi.spyOn(globalThis, 'setTimeout')
  const cleared = vi.spyOn(globalThis, 'clearTimeout')
  const last = () => timers.mock.results.at(-1)!.value as NodeJS.Timeout
  const { sessions, store } = setUp({ sweepInterval: undefined })
  const { secret } = await sessions.create()
  const sweeper = timers.mock.results[0]!.value as NodeJS.Timeout
  expect(sweeper.hasRef()).toBe(false)
  const guard = last()
  expect(guard).not.toBe(sweeper)
  expect(cleared).toHaveBeenCalledWith(guard)
  const pause = store.pause('read', 'before')
  const call = sessions.get(secret)
  await pause.reached
  const underWay = last()
  expect(underWay.hasRef()).toBe(true)
  expect(cleared).not.toHaveBeenCalledWith(underWay)
  pause.resume()
  await call
  expect(cleared).toHaveBeenCalledWith(underWay)
  await sessions.close()
})

it('leaves a database at least half of the time to others while it sweeps', async () => {
  const store = new MemoryStore()
  const begun: number[] = []
  store.sweep = async limit => {
    begun.push(performance.now())
    await new Promise(resolve => setTimeout(resolve, 40))
    return begun.length < 4 ? limit : 0
  }
  const sessions = new SessionManager({ store, sweepInterval: false })
  const swept = sessions.sweep()
  await vi.advanceTimersByTimeAsync(1000)
  expect(await swept).toBe(3000)
  for (const [index, start] of begun.slice(1).entries()) expect(start - begun[index]!).toBeGreaterThanOrEqual(80)
})

it('works where timers are numbers, as in Cloudflare Workers', async () => {
  vi.useRealTimers()
  const setTimer = globalThis.setTimeout
  const set: number[] = []
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(((callback: () => void, ms: number) => {
    const id = setTimer(callback, ms).unref()[Symbol.toPrimitive]()
    set.push(id)
    return id
  }) as never)
  const { sessions, store } = setUp({ sweepInterval: undefined })
  const { secret } = await sessions.create()
  expect(await sessions.get(secret)).not.toBeNull()
  const pause = store.pause('read', 'before')
  const call = sessions.get(secret)
  await pause.reached
  pause.resume()
  expect(await call).not.toBeNull()
  expect(set.length).toBeGreaterThan(1)
  await sessions.close()
})
