// What a store may answer: of `read`, anything else is an outage, and never an absent session.
import { SessionStoreError, type Store } from 'coatcheck'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { StoreCalls } from '../../../src/guard/store-calls.ts'
import { collectGarbage } from '../../support/collect-garbage.ts'
import { soundRecord } from '../../support/sound-record.ts'

const RECORD = soundRecord('k'.repeat(43))
const OF_USER = { ...RECORD, userId: '1', username: 'ada', passwordVersion: 0 }
const NO_RECORDS = [
  ...(['key', 'kind', 'data', 'version', 'userId', 'createdAt', 'seenAt', 'expiresAt', 'absoluteExpiresAt'] as const)
    // What a column that is missing, or a number that came as text, leaves.
    .flatMap(name => [undefined, `${RECORD[name]}` === RECORD[name] ? 7 : { no: 'value' }].map(wrong => [name, wrong]))
    .map(([name, wrong]) => ({ ...RECORD, [name as string]: wrong })),
  { ...RECORD, kind: 'other' },
  { ...RECORD, version: '1' },
  { ...RECORD, createdAt: Number.NaN },
  { ...RECORD, expiresAt: Number.POSITIVE_INFINITY },
  { ...RECORD, absoluteExpiresAt: '4000000000000' },
]

const FORWARD = { movedTo: 'another key', salt: 's', until: 7 }
const NO_FORWARDS = [
  { movedTo: 'another key' },
  { ...FORWARD, movedTo: 7 },
  { ...FORWARD, movedTo: undefined },
  { ...FORWARD, salt: undefined },
  { ...FORWARD, salt: 1 },
  { ...FORWARD, until: undefined },
  { ...FORWARD, until: '7' },
  { ...FORWARD, until: Number.NaN },
]

type Asked = Exclude<keyof Store, 'shard'>
interface Answers {
  readonly ask: (calls: StoreCalls) => unknown
  readonly sound: readonly unknown[]
  readonly nonsense?: readonly unknown[]
}
// Ten minutes are left, by a clock that stands still: performance.now() and the deadline's timers.
const call = { now: 1, deadline: 0 }
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] })
  call.deadline = performance.now() + 600_000
})
afterEach(() => {
  vi.useRealTimers()
})

const began = ['created', 'collision', 'stale-login', 'limit', 'orphan'].map(outcome => ({ outcome, ended: [] }))
const counts = { sound: [0, 1, 2 ** 53 - 1] }
const page = { records: [RECORD], forwards: ['f'], next: null }

const VERBS: Readonly<Record<Asked, Answers>> = {
  create: {
    ask: calls => calls.create(RECORD, {}, call),
    sound: [...began, { outcome: 'created', ended: ['a key'] }],
  },
  replace: {
    ask: calls => calls.replace('old', 1, RECORD, {}, call),
    sound: [...began, { outcome: 'conflict', ended: [] }, { outcome: 'gone', ended: [] }],
  },
  read: {
    ask: calls => calls.read('a key', call),
    sound: [],
    nonsense: [
      undefined,
      'corrupt',
      'movedTo',
      7,
      [],
      {},
      ...NO_RECORDS,
      ...NO_FORWARDS,
      { corrupt: undefined },
      { corrupt: 7 },
    ],
  },
  update: {
    ask: calls => calls.update('a key', 1, {} as never, call),
    sound: ['updated', 'conflict', 'gone'],
  },
  touch: {
    ask: calls => calls.touch('a key', 1, 2, call),
    sound: ['touched', 'gone'],
  },
  delete: {
    ask: calls => calls.delete('a key', call),
    sound: [true, false],
  },
  deleteUser: { ask: calls => calls.deleteUser('1', {} as never, call), ...counts },
  sweep: { ask: calls => calls.sweep(100, call), ...counts },
  count: { ask: calls => calls.count(call), ...counts },
  listUser: {
    ask: calls => calls.listUser('1', 'session', call),
    sound: [[], [OF_USER], [OF_USER, { ...OF_USER, kind: 'remember' }]],
  },
  scan: {
    ask: calls => calls.scan(null, 10, call),
    sound: [page, { records: [], forwards: [], next: '' }, { ...page, next: 'on' }],
  },
  close: { ask: calls => calls.close(call.deadline), sound: [] },
}

function answering(verb: Asked, answer: unknown) {
  const told: SessionStoreError[] = []
  const store = { [verb]: () => answer } as unknown as Store
  const calls = new StoreCalls(store, { storeTimeout: 2000, maxPendingCalls: 10 }, error => told.push(error))
  return { calls, told }
}

describe.each(Object.entries(VERBS))('%s', (name, { ask, sound, nonsense = [] }) => {
  const verb = name as Asked

  it('hands on what a store may answer', async () => {
    for (const answer of sound) {
      const { calls, told } = answering(verb, Promise.resolve(answer))
      expect(await ask(calls)).toBe(answer)
      expect([told, calls.underWay.count]).toEqual([[], 0])
    }
  })

  if (verb !== 'read') return
  it('has failed where the store answers anything else, and one report tells it', async () => {
    for (const wrong of nonsense)
      for (const answer of [wrong, Promise.resolve(wrong)]) {
        const { calls, told } = answering(verb, answer)
        const error = await (ask(calls) as Promise<unknown>).then(
          value => expect.fail(`${JSON.stringify(wrong)} passed as ${JSON.stringify(value)}`),
          (reason: unknown) => reason,
        )
        expect(error).toBeInstanceOf(SessionStoreError)
        expect(error).toMatchObject({ operation: verb, outcome: 'not-applied' })
        expect((error as Error).message).toBe(`the store returned an invalid result for \`read\` (${typeof wrong})`)
        expect([told, calls.underWay.count]).toEqual([[error], 0])
      }
  })
})

describe('read', () => {
  it.each([
    [null, { record: null, forward: null, corrupt: null }],
    [RECORD, { record: RECORD, forward: null, corrupt: null }],
    [OF_USER, { record: OF_USER, forward: null, corrupt: null }],
    [
      { ...OF_USER, kind: 'remember' },
      { record: { ...OF_USER, kind: 'remember' }, forward: null, corrupt: null },
    ],
    [FORWARD, { record: null, forward: FORWARD, corrupt: null }],
    [{ corrupt: 'no version' }, { record: null, forward: null, corrupt: 'no version' }],
  ])('tells apart what was found: %j', async (answer, reading) => {
    for (const given of [answer, Promise.resolve(answer)])
      expect(await answering('read', given).calls.read(RECORD.key, call)).toEqual(reading)
  })
})

describe('a call whose time is up', () => {
  it('does not begin, at the very instant already', async () => {
    vi.advanceTimersByTime(call.deadline - performance.now())
    for (const [name, { ask }] of Object.entries(VERBS)) {
      let asked = 0
      const { calls, told } = answering(name as Asked, 'unused')
      const store = { [name]: () => (asked += 1) } as unknown as Store
      const late = new StoreCalls(store, { storeTimeout: 0, maxPendingCalls: 10 }, calls.report)
      const error = await Promise.resolve(ask(late)).catch(reason => reason)
      expect(error).toBeInstanceOf(SessionStoreError)
      const message = `${name}: no time was left before storeTimeout`
      expect(error).toMatchObject({ operation: name, outcome: 'not-applied', message })
      expect([asked, told]).toEqual([0, [error]])
    }
  })
})

it('a call that was given up holds on to nothing, though the store holds on to it', async () => {
  const kept: unknown[] = []
  const store = { delete: () => new Promise(resolve => kept.push(resolve)) } as unknown as Store
  const calls = new StoreCalls(store, { storeTimeout: 2000, maxPendingCalls: 10 }, () => {})
  const waited = (() => {
    const answer = calls.delete('a key', { now: 1, deadline: performance.now() + 1 })
    return { answer: new WeakRef(answer), end: answer.catch(error => error.message) }
  })()
  await vi.advanceTimersByTimeAsync(1)
  expect(await waited.end).toBe('delete: the store did not answer within storeTimeout')
  // A WeakRef keeps what it was made of until the turn of the event loop is over.
  await new Promise(resolve => setImmediate(resolve))
  collectGarbage()
  expect([kept.length, calls.underWay.count, waited.answer.deref()]).toEqual([1, 1, undefined])
})

describe('close', () => {
  it('hands the store nothing', async () => {
    const close = vi.fn()
    const store = { close } as unknown as Store
    await new StoreCalls(store, { storeTimeout: 2000, maxPendingCalls: 10 }, () => {}).close(call.deadline)
    expect(close.mock.calls).toEqual([[]])
  })

  it('asks nothing of a store that has nothing to close, and takes whatever one answers', async () => {
    const { calls, told } = answering('read', null)
    await calls.close(0)
    for (const answer of [undefined, 'OK', Promise.resolve(7)])
      expect(await answering('close', answer).calls.close(call.deadline)).toBeUndefined()
    expect(told).toEqual([])
  })
})
