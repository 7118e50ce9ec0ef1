import { once } from 'node:events'
import { connect } from 'node:net'
import { Worker } from 'node:worker_threads'
import { type SessionId, SessionManager, SessionStoreError, type Store } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { BarrierStore, faults, type Handler, type Verb } from '../support/barrier-store.ts'
import { managerCalls } from '../support/manager-calls.ts'
import { grace, setUp as memory, user } from '../support/manager-kit.ts'
import { recordOf } from '../support/records.ts'

// The timers and the clock that the guard looks at are the test's: nothing here waits.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
})
const unhandled: unknown[] = []
const onUnhandled = (error: unknown) => unhandled.push(error)
process.on('unhandledRejection', onUnhandled)
afterEach(async () => {
  vi.useRealTimers()
  await new Promise(resolve => setImmediate(resolve))
  expect(unhandled.splice(0)).toEqual([])
})

const setUp = (options: object = {}) => memory({ rememberFor: '30d', now: undefined, ...options })

/** Each method of a manager, and the call of the store that fails. A series that is not there cannot be forgotten. */
const METHODS = [
  ...managerCalls(/^(?!forget)/),
  ...([
    ['sweep', 'sweep', sessions => sessions.sweep()],
    ['all', 'scan', sessions => sessions.all().next()],
  ] satisfies ReturnType<typeof managerCalls>),
]
type Run = (typeof METHODS)[0][2]
const reading = new Set<Verb>(['read', 'listUser', 'scan'])

const tooLate = (verb: Verb) => ({ message: `${verb}: the store did not answer within storeTimeout` })
const FAULTS: [string, Handler, (verb: Verb) => object][] = [
  ['throws', faults.throws, () => ({ cause: new Error('client is closed') })],
  ['rejects', faults.rejects, () => ({ cause: new Error('ECONNRESET') })],
  ['rejects with undefined', () => Promise.reject(undefined), verb => ({ message: `${verb}: the store failed` })],
  ['rejects with null', () => Promise.reject(null), () => ({ cause: null })],
  ['rejects with text', () => Promise.reject('text'), () => ({ cause: 'text' })],
  ['hangs', faults.hang, tooLate],
  ['does it, and the answer is lost', faults.lostReply, tooLate],
]
const later = (ms: number, then: () => unknown) => new Promise(resolve => setTimeout(() => resolve(then()), ms))
const LATE: Handler[] = [
  proceed => later(5000, proceed),
  () => later(5000, () => Promise.reject(new Error('late'))),
  () => later(5000, () => 'late nonsense'),
]

const nonsense: unknown[] = [undefined, 7, 'ok', {}, [], () => 1, Symbol('x'), Number.NaN, -1, 1.5, 'yes']
const answersTwice: Handler = () => ({
  // biome-ignore lint/suspicious/noThenProperty: a bad thenable is what is tested
  then(resolve: (answer: unknown) => void, reject: (error: Error) => void) {
    resolve(undefined)
    resolve('created')
    reject(new Error('third'))
    throw new Error('fourth')
  },
})
const trap = () => {
  throw new Error('a trap that throws')
}
const explodes: Handler = () =>
  Promise.resolve(new Proxy({}, { get: (_, name) => name !== 'then' && trap(), has: trap }))

async function failing(verb: Verb, run: Run, handler: Handler) {
  const at = setUp()
  const session = await at.sessions.create({ user, data: { flash: 'x' } })
  at.events.length = 0
  at.store.next(verb, handler)
  let isSettled = false
  const failure = run(at.sessions, { session })
    .catch((error: unknown) => error)
    .finally(() => {
      isSettled = true
    })
  await vi.advanceTimersByTimeAsync(0)
  if (!isSettled) {
    await vi.advanceTimersByTimeAsync(1990)
    expect(isSettled).toBe(false)
    await vi.advanceTimersByTimeAsync(20)
  }
  const error = (await failure) as SessionStoreError
  expect(error).toBeInstanceOf(SessionStoreError)
  expect(error).toMatchObject({ code: 'ERR_SESSION_STORE', status: 503, operation: verb })
  expect(at.events).toEqual([{ type: 'store-error', error }])
  return { at, error }
}

describe.each(METHODS)('%s, when its %s of the store', (_, verb, run) => {
  it.each(FAULTS)('%s, is an error that says whether something may have been written', async (_, handler, expected) => {
    const { error } = await failing(verb, run, handler)
    expect(error).toMatchObject({ ...expected(verb), outcome: reading.has(verb) ? 'not-applied' : 'unknown' })
    expect(vi.getTimerCount()).toBe(0)
  })

  it('is answered after the time is up: the answer is dropped', async () => {
    for (const late of LATE) {
      const { at } = await failing(verb, run, late)
      await vi.advanceTimersByTimeAsync(10_000)
      expect(at.events).toHaveLength(1)
    }
  })

  it('knows better what happened: its own error comes through', async () => {
    for (const outcome of ['not-applied', 'unknown'] as const) {
      const own = new SessionStoreError(verb, outcome, 'READONLY')
      expect((await failing(verb, run, () => Promise.reject(own))).error).toBe(own)
    }
  })
})

// What the other calls answer is the business of the suite.
describe.each(METHODS.filter(([, verb]) => verb === 'read'))('%s, when its read of the store', (_, verb, run) => {
  it.each(nonsense)('answers %o, is an outage', async answer => {
    for (const handler of [() => Promise.resolve(answer), () => answer]) {
      const { error } = await failing(verb, run, handler)
      expect(error.message).toMatch(/^the store returned an invalid result for `read` \(/)
    }
  })

  it.each([
    ['answers twice', answersTwice],
    ['answers with something that throws when it is looked at', explodes],
    ['answers at once with something that throws when it is looked at', () => new Proxy({}, { get: trap })],
  ])('%s, is an outage', async (_, handler) => {
    await failing(verb, run, handler)
  })
})

it.each([
  { expiresAt: undefined },
  { expiresAt: 'soon' },
  { expiresAt: Number.POSITIVE_INFINITY },
  { absoluteExpiresAt: '4000000000000' },
  { kind: 'other' },
  { version: '1' },
  { data: {} },
  { seenAt: null },
  { createdAt: Number.NaN },
  { userId: 42, userName: 'ada' },
  { userId: undefined },
  { key: 'another key' },
])('a record with %o is an outage, never "not logged in"', async wrong => {
  const { store, sessions } = setUp()
  const { secret, key } = await sessions.create()
  const now = Date.now()
  const sound = recordOf(store, null, { key, createdAt: now, seenAt: now, expiresAt: 4e12, absoluteExpiresAt: 4e12 })
  store.next('read', faults.answers({ ...sound }))
  expect(await sessions.get(secret)).toMatchObject({ key })
  store.next('read', faults.answers({ ...sound, ...wrong }))
  await expect(sessions.get(secret)).rejects.toMatchObject({
    operation: 'read',
    outcome: 'not-applied',
    message: 'the store returned an invalid result for `read` (object)',
  })
})

it.each([
  { movedTo: undefined },
  { movedTo: 7 },
  { salt: 1 },
  { until: undefined },
  { until: '7' },
  { until: Number.NaN },
  { movedTo: undefined, corrupt: 7 },
])('a forward with %o is an outage, never "not logged in"', async wrong => {
  const { store, sessions } = setUp()
  const { secret } = await sessions.create()
  const forward = { movedTo: 'k'.repeat(43), salt: 's', until: 7 }
  store.next('read', faults.answers(forward))
  expect(await sessions.get(secret)).toBeNull()
  store.next('read', faults.answers({ ...forward, ...wrong }))
  await expect(sessions.get(secret)).rejects.toMatchObject({ operation: 'read', outcome: 'not-applied' })
})

it('a record that the store says was corrupt is absent, and an event', async () => {
  const { store, sessions, events } = setUp()
  const { secret, key } = await sessions.create()
  store.next('read', () => Promise.resolve({ corrupt: 'version is not a number' }))
  events.length = 0
  expect(await sessions.get(secret)).toBeNull()
  expect(events).toEqual([{ type: 'corrupt-record', key, cause: 'version is not a number' }])
})

it.each(['throws', 'rejects', 'hang'] as const)(
  'a touch that fails (%s) is an event, and no failed get',
  async fault => {
    const { store, sessions, events } = setUp()
    const session = await sessions.create({ user })
    vi.setSystemTime(Date.now() + 180_000)
    store.next('touch', faults[fault])
    const call = sessions.get(session.secret)
    await vi.advanceTimersByTimeAsync(2000)
    expect((await call)?.key).toBe(session.key)
    expect(events.at(-1)).toMatchObject({ type: 'store-error', error: { operation: 'touch' } })
  },
)

it('all calls of one method share its time: a slow store cannot make it longer', async () => {
  const { store, sessions } = setUp()
  const session = await sessions.create({ user })
  const slow: Handler = proceed => new Promise(resolve => setTimeout(() => resolve(proceed()), 1500))
  store.every('read', slow)
  store.every('replace', slow)
  const call = expect(sessions.regenerate(session.secret)).rejects.toMatchObject({
    operation: 'replace',
    outcome: 'unknown',
  })
  await vi.advanceTimersByTimeAsync(2000)
  await call
})

it('no command begins once the time is up, at the very instant already', async () => {
  const { store, sessions } = setUp()
  const session = await sessions.create({ user })
  // As if the process had been busy for longer than storeTimeout.
  store.next('read', async proceed => {
    const answer = await proceed()
    vi.setSystemTime(Date.now() + 2000)
    vi.advanceTimersByTime(0)
    const now = performance.now()
    vi.spyOn(performance, 'now').mockReturnValue(now + 2000)
    return answer
  })
  store.reset()
  await expect(sessions.regenerate(session.secret)).rejects.toMatchObject({
    operation: 'replace',
    outcome: 'not-applied',
  })
  expect(store.counts()).toEqual({ read: 1 })
})

it('close waits for the store no longer than storeTimeout, and tells its failure', async () => {
  const store: Store = Object.assign(new MemoryStore(), { close: () => new Promise<void>(() => {}) })
  const sessions = new SessionManager({ store, sweepInterval: false })
  const call = expect(sessions.close()).rejects.toMatchObject({ code: 'ERR_SESSION_STORE', operation: 'close' })
  await vi.advanceTimersByTimeAsync(2000)
  await call
  const failing = Object.assign(new MemoryStore(), { close: () => Promise.reject(new Error('already closed')) })
  await expect(new SessionManager({ store: failing, sweepInterval: false }).close()).rejects.toMatchObject({
    operation: 'close',
  })
})

describe('calls under way', () => {
  it('beyond maxPendingCalls are refused at once, given up or not, until the store has settled some', async () => {
    const { store, sessions, events } = setUp({ maxPendingCalls: 3 })
    const { secret } = await sessions.create({ user })
    const settle: (() => void)[] = []
    store.every('read', proceed => new Promise(resolve => settle.push(() => resolve(proceed()))))
    const tooMany = {
      operation: 'read',
      outcome: 'not-applied',
      status: 503,
      message: 'read: 3 calls are under way (maxPendingCalls)',
    }
    const first = [1, 2, 3].map(() => sessions.get(secret))
    store.reset()
    events.length = 0
    await expect(sessions.get(secret)).rejects.toMatchObject(tooMany)
    expect(events).toMatchObject([{ type: 'store-error', error: tooMany }])
    await expect(sessions.destroy(secret)).rejects.toMatchObject({ outcome: 'not-applied' })
    expect(store.calls).toEqual([])
    const outcomes = Promise.allSettled(first)
    await vi.advanceTimersByTimeAsync(2001)
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    await expect(sessions.get(secret)).rejects.toMatchObject(tooMany)
    settle.shift()!()
    await vi.advanceTimersByTimeAsync(0)
    const fourth = sessions.get(secret)
    await expect(sessions.get(secret)).rejects.toMatchObject(tooMany)
    settle.pop()!()
    expect((await fourth)?.user?.name).toBe('ada')
  })

  it('are counted for all managers and tenants of a store, and for each store on its own', async () => {
    const { store, sessions } = setUp({ maxPendingCalls: 2 })
    const { secret } = await sessions.create()
    store.every('read', faults.hang)
    const another = new SessionManager({ store, sweepInterval: false, maxPendingCalls: 2 })
    const hanging = Promise.allSettled([sessions.get(secret), sessions.namespace('blue').get(secret)])
    for (const each of [sessions, sessions.namespace('green'), another])
      await expect(each.get(secret)).rejects.toMatchObject({ outcome: 'not-applied' })
    expect(await setUp({ maxPendingCalls: 2 }).sessions.get(secret)).toBeNull()
    await vi.advanceTimersByTimeAsync(2001)
    await hanging
  })

  it('end however they end: thousands that fail leave room', async () => {
    const { store, sessions } = setUp({ maxPendingCalls: 2 })
    const { secret } = await sessions.create({ user })
    for (const fault of [faults.rejects, faults.throws, faults.answers(undefined), answersTwice, explodes])
      for (let tries = 0; tries < 10; tries += 1) {
        store.next('read', fault)
        await expect(sessions.get(secret)).rejects.toMatchObject({
          status: 503,
          message: expect.stringMatching(/store (failed|returned an invalid)/),
        })
      }
    expect(await sessions.get(secret)).not.toBeNull()
  })

  it('do not keep the store from being closed', async () => {
    let closed = false
    const store: Store = Object.assign(new MemoryStore(), {
      read: () => new Promise<never>(() => {}),
      close: async () => {
        closed = true
      },
    })
    const sessions = new SessionManager({ store, sweepInterval: false, maxPendingCalls: 1 })
    const hanging = expect(sessions.get('A'.repeat(43) as SessionId)).rejects.toThrow()
    await sessions.close()
    expect(closed).toBe(true)
    await vi.advanceTimersByTimeAsync(2001)
    await hanging
  })
})

describe('a process that was busy for longer than storeTimeout', () => {
  it('hears the answers that arrived meanwhile before it gives anything up', async () => {
    vi.useRealTimers()
    // A database on another thread that answers each line after a moment, and counts the answers that it has sent.
    const answered = new Int32Array(new SharedArrayBuffer(4))
    let asked = 0
    const server = new Worker(
      `const { createServer } = require('node:net')
      const { workerData } = require('node:worker_threads')
      const answer = (socket, data) => socket.write(data, () => Atomics.add(workerData, 0, data.length / 2))
      const server = createServer(socket => socket.on('data', data => setTimeout(answer, 30, socket, data)))
      server.listen(0, '127.0.0.1', () => require('node:worker_threads').parentPort.postMessage(server.address().port))`,
      { eval: true, workerData: answered },
    )
    const [port] = await once(server, 'message')
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    await once(socket, 'connect')
    const inner = new MemoryStore()
    const waiting: (() => void)[] = []
    socket.on('data', data => {
      for (const _ of `${data}`.trim().split('\n')) waiting.shift()!()
    })
    const overTheWire: Handler = proceed => {
      asked += 1
      socket.write('x\n')
      return new Promise<void>(resolve => waiting.push(resolve)).then(proceed)
    }
    const store = BarrierStore.over(inner)
    const sessions = new SessionManager({ store, sweepInterval: false })
    const session = await sessions.create({ user })
    try {
      for (const verb of ['read', 'update'] as const) store.every(verb, overTheWire)
      const calls = [
        ...Array.from({ length: 20 }, () => sessions.get(session.secret)),
        sessions.update(session, { n: 1 }),
      ]
      // So long that the command is on its way, and nothing has come back.
      await new Promise(resolve => setImmediate(resolve))
      // As long as the other thread needs to answer, which is not up to this one.
      const end = performance.now() + 20_000
      do Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2100)
      while (Atomics.load(answered, 0) < asked && performance.now() < end)
      const outcomes = await Promise.allSettled(calls)
      expect(outcomes.filter(({ status }) => status === 'rejected')).toEqual([])
    } finally {
      socket.destroy()
      await server.terminate()
    }
  })
})

it('a read that the store answers at once sets no timer, and gives what a promise gives', async () => {
  const ways: (Handler | null)[] = [
    null,
    proceed => proceed(),
    // biome-ignore lint/suspicious/noThenProperty: a promise of another library
    proceed => ({ then: (resolve: (answer: unknown) => void) => void proceed().then(resolve) }),
  ]
  for (const way of ways) {
    const { sessions, store } = setUp()
    store.every('read', way)
    const session = await sessions.create({ user })
    expect((await sessions.get(session.secret))?.user).toEqual({ id: 1n, name: 'ada' })
    expect(await sessions.get('A'.repeat(43) as SessionId)).toBeNull()
    const renewed = (await sessions.regenerate(session, grace))!
    expect((await sessions.get(session.secret))?.secret).toBe(renewed.secret)
    await sessions.destroy(renewed)
    expect(await sessions.get(session.secret)).toBeNull()
  }
  const { sessions } = setUp()
  const { secret } = await sessions.create()
  const before = vi.getTimerCount()
  const getting = sessions.get(secret)
  expect(vi.getTimerCount()).toBe(before)
  expect(await getting).not.toBeNull()
})
