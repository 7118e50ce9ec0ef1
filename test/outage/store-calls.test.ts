import { once } from 'node:events'
import { connect } from 'node:net'
import { inspect } from 'node:util'
import { Worker } from 'node:worker_threads'
import { type SessionId, SessionManager, SessionStoreError, type Store } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { MemoryStore } from 'coatcheck/stores/memory'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { BarrierStore, faults, type Handler, type Verb } from '../support/barrier-store.ts'
import { collectGarbage } from '../support/collect-garbage.ts'

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

function setUp(options: object = {}) {
  const store = BarrierStore.over(new MemoryStore())
  const events: any[] = []
  const sessions = new SessionManager({
    store,
    sweepInterval: false,
    rememberFor: '30d',
    ...options,
    onEvent: event => events.push(event),
  })
  return { store, sessions, events }
}
type SetUp = ReturnType<typeof setUp>
const user = { id: 1, name: 'ada' }

interface Case {
  verb: Verb
  run: (at: SetUp, session: any) => Promise<unknown>
}
const cases: Record<string, Case> = {
  create: { verb: 'create', run: ({ sessions }) => sessions.create({ user }) },
  get: { verb: 'read', run: ({ sessions }, session) => sessions.get(session.secret) },
  update: { verb: 'update', run: ({ sessions }, session) => sessions.update(session, { a: 1 }) },
  take: { verb: 'update', run: ({ sessions }, session) => sessions.take(session, 'flash') },
  regenerate: { verb: 'replace', run: ({ sessions }, session) => sessions.regenerate(session) },
  'a login': { verb: 'replace', run: ({ sessions }, session) => sessions.logIn(session, { user }) },
  rotate: { verb: 'replace', run: ({ sessions }, session) => sessions.regenerate(session, { grace: '1m' }) },
  destroy: { verb: 'delete', run: ({ sessions }, session) => sessions.destroy(session) },
  invalidateUser: { verb: 'deleteUser', run: ({ sessions }) => sessions.invalidateUser(1) },
  list: { verb: 'listUser', run: ({ sessions }) => sessions.list(1) },
  revoke: { verb: 'read', run: ({ sessions }, session) => sessions.revoke(1, session.key) },
  remember: { verb: 'create', run: ({ sessions }, session) => sessions.issueRememberToken(session) },
  recall: { verb: 'read', run: ({ sessions }) => sessions.redeemRememberToken(`${'s'.repeat(43)}.${'v'.repeat(43)}`) },
  sweep: { verb: 'sweep', run: ({ sessions }) => sessions.sweep() },
}
const reading = new Set<Verb>(['read', 'listUser'])

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
const explodes: Handler = () =>
  Promise.resolve(
    new Proxy(
      {},
      {
        get: (_, name) => {
          if (name !== 'then') throw new Error('a getter that throws')
        },
        has: () => {
          throw new Error('a trap that throws')
        },
      },
    ),
  )

for (const [name, { verb, run }] of Object.entries(cases)) {
  describe(`${name}, when the store's ${verb}`, () => {
    async function failing(handler: Handler, wait?: number) {
      const at = setUp()
      const session = await at.sessions.create({ user, data: { flash: 'x' } })
      at.events.length = 0
      at.store.next(verb, handler)
      const call = run(at, session)
      let settled = false
      const result = call.then(
        value => ({ value }),
        (error: unknown) => ({ error }),
      )
      result.then(() => {
        settled = true
      })
      if (wait !== undefined) {
        await vi.advanceTimersByTimeAsync(1990)
        expect(settled).toBe(false)
        await vi.advanceTimersByTimeAsync(wait)
      }
      const { error } = (await result) as { error: SessionStoreError }
      expect(error).toBeInstanceOf(SessionStoreError)
      expect(error).toMatchObject({ code: 'ERR_SESSION_STORE', status: 503, operation: verb })
      expect(error.outcome).toBe(reading.has(verb) ? 'not-applied' : 'unknown')
      expect(at.events).toEqual([{ type: 'store-error', error }])
      expect(vi.getTimerCount()).toBe(0)
      return { at, error, session }
    }

    it('throws', async () => {
      const { error } = await failing(faults.throws)
      expect((error.cause as Error).message).toBe('client is closed')
    })
    it('rejects', async () => {
      const { error } = await failing(faults.rejects)
      expect((error.cause as Error).message).toBe('ECONNRESET')
    })
    it('rejects with no error at all', async () => {
      await failing(() => Promise.reject(undefined))
      await failing(() => Promise.reject(null))
      await failing(() => Promise.reject('text'))
    })
    it('hangs', async () => {
      const { error } = await failing(faults.hang, 20)
      expect(error.message).toBe(`${verb}: the store did not answer within storeTimeout`)
    })
    it('runs, and its answer is lost', async () => {
      await failing(faults.lostReply, 20)
    })
    it('answers after the time is up: the answer is dropped', async () => {
      for (const late of [
        (proceed: () => Promise<unknown>) => new Promise(resolve => setTimeout(() => resolve(proceed()), 5000)),
        () => new Promise((_, reject) => setTimeout(() => reject(new Error('late')), 5000)),
        () => new Promise(resolve => setTimeout(() => resolve('late nonsense'), 5000)),
      ]) {
        const at = setUp()
        const session = await at.sessions.create({ user, data: { flash: 'x' } })
        at.events.length = 0
        at.store.next(verb, late)
        const call = expect(run(at, session)).rejects.toBeInstanceOf(SessionStoreError)
        await vi.advanceTimersByTimeAsync(2000)
        await call
        await vi.advanceTimersByTimeAsync(10_000)
        expect(at.events.map(({ type }) => type)).toEqual(['store-error'])
      }
    })
    // What the other methods answer is the business of the suite.
    if (verb === 'read') {
      it.each(nonsense.map(answer => [answer]))('answers %o', async answer => {
        const { error } = await failing(() => Promise.resolve(answer))
        expect(error.message).toMatch(/^the store returned an invalid result for `read` \(/)
        await failing(() => answer)
      })
      it('answers twice', async () => {
        await failing(answersTwice)
      })
      it('answers with something that throws when it is looked at', async () => {
        await failing(explodes)
      })
    }
    it('knows better what happened: its own error comes through', async () => {
      for (const outcome of ['not-applied', 'unknown'] as const) {
        const at = setUp()
        const session = await at.sessions.create({ user, data: { flash: 'x' } })
        const own = new SessionStoreError(verb, outcome, 'READONLY')
        at.store.next(verb, () => Promise.reject(own))
        await expect(run(at, session)).rejects.toBe(own)
        expect(at.events.at(-1)).toEqual({ type: 'store-error', error: own })
      }
    })
  })
}

/** What a store may answer under this key: an anonymous session that lives for long. */
const soundRecord = (key: string): SessionRecord => ({
  key,
  kind: 'session',
  parent: null,
  userId: null,
  userName: null,
  passwordVersion: null,
  data: '{}',
  version: 1,
  writeId: 'w'.repeat(9),
  createdAt: Date.now(),
  seenAt: Date.now(),
  expiresAt: 4e12,
  absoluteExpiresAt: 4e12,
})

it.each(
  [
    {},
    { expiresAt: undefined },
    { expiresAt: 'soon' },
    { expiresAt: Number.POSITIVE_INFINITY },
    { absoluteExpiresAt: undefined },
    { absoluteExpiresAt: '4000000000000' },
    { kind: undefined },
    { kind: 'other' },
    { version: undefined },
    { version: '1' },
    { data: undefined },
    { data: {} },
    { seenAt: null },
    { createdAt: Number.NaN },
    { userId: 42, userName: 'ada' },
    { userId: undefined },
    { key: 'another key' },
    { key: 7 },
  ].map((wrong, index) => [inspect(wrong), wrong, index] as const),
)('a record with %s is an outage, never "not logged in"', async (_, wrong, index) => {
  const { store, sessions } = setUp()
  const { secret, key } = await sessions.create()
  store.every('read', () => Promise.resolve({ ...soundRecord(key), ...wrong }))
  if (index === 0) await expect(sessions.get(secret)).resolves.toMatchObject({ key })
  else await expect(sessions.get(secret)).rejects.toMatchObject({ code: 'ERR_SESSION_STORE', operation: 'read' })
})

it.each(
  [
    { movedTo: undefined },
    { movedTo: 7 },
    { salt: undefined },
    { salt: 1 },
    { until: undefined },
    { until: '7' },
    { until: Number.NaN },
    { movedTo: undefined, corrupt: 7 },
  ].map(wrong => [inspect(wrong), wrong] as const),
)('a forward with %s is an outage, never "not logged in"', async (_, wrong) => {
  const { store, sessions, events } = setUp()
  const { secret } = await sessions.create()
  const forward = { movedTo: 'k'.repeat(43), salt: 's', until: 7 }
  for (const answer of [forward, { ...forward, ...wrong }]) {
    store.next('read', () => Promise.resolve(answer as never))
    events.length = 0
    const found = sessions.get(secret)
    if (answer === forward) expect(await found).toBeNull()
    else
      await expect(found).rejects.toMatchObject({
        operation: 'read',
        outcome: 'not-applied',
        message: 'the store returned an invalid result for `read` (object)',
      })
    expect(events.map(({ type }) => type)).toEqual(answer === forward ? [] : ['store-error'])
  }
})

it('a record that the store says was corrupt is absent, and an event', async () => {
  const { store, sessions, events } = setUp()
  const { secret, key } = await sessions.create()
  store.next('read', () => Promise.resolve({ corrupt: 'version is not a number' }))
  events.length = 0
  expect(await sessions.get(secret)).toBeNull()
  expect(events).toEqual([{ type: 'corrupt-record', key, cause: 'version is not a number' }])
})

describe('a touch that fails', () => {
  it.each(
    Object.entries({
      throws: faults.throws,
      rejects: faults.rejects,
      hangs: faults.hang,
    }),
  )('(%s) is an event, not a failed get', async (_, handler) => {
    const { store, sessions, events } = setUp()
    const session = await sessions.create({ user })
    vi.setSystemTime(Date.now() + 180_000)
    store.next('touch', handler)
    const call = sessions.get(session.secret)
    await vi.advanceTimersByTimeAsync(2000)
    expect((await call)?.key).toBe(session.key)
    expect(events.at(-1)).toMatchObject({ type: 'store-error', error: { operation: 'touch' } })
  })

  it('once does not log out a session in use, even with the longest touch interval', async () => {
    const { store, sessions } = setUp({ touchInterval: '15m' })
    const { secret } = await sessions.create()
    store.next('touch', faults.rejects)
    for (let minute = 1; minute <= 120; minute += 1) {
      vi.setSystemTime(Date.now() + 60_000)
      expect(await sessions.get(secret)).not.toBeNull()
    }
  })

  it('again and again is not tried at each request', async () => {
    const { store, sessions } = setUp()
    const { secret } = await sessions.create()
    store.every('touch', faults.rejects)
    vi.setSystemTime(Date.now() + 180_000)
    store.reset()
    for (let second = 0; second < 60; second += 1) {
      vi.setSystemTime(Date.now() + 1000)
      await sessions.get(secret)
    }
    expect(store.counts().touch).toBeLessThan(10)
  })
})

it('all calls of one verb share its time: a slow store cannot make it longer', async () => {
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
  vi.restoreAllMocks()
})

it('each call carries the deadline on', async () => {
  const { store, sessions } = setUp()
  const session = await sessions.create({ user })
  const now = performance.now()
  store.reset()
  for (const { run } of Object.values(cases)) await run({ store, sessions, events: [] }, session).catch(() => {})
  expect(store.calls.length).toBeGreaterThan(10)
  for (const { args } of store.calls) expect(args.at(-1)).toEqual({ now: expect.any(Number), deadline: now + 2000 })
})

it('a writer that waits behind hanging ones is told in time, and never runs', async () => {
  const { store, sessions } = setUp()
  const session = await sessions.create()
  store.every('update', faults.hang)
  const ran: number[] = []
  const write = (writer: number) => sessions.update(session, () => void ran.push(writer))
  const first = expect(write(1)).rejects.toMatchObject({ operation: 'update', outcome: 'unknown' })
  await vi.advanceTimersByTimeAsync(500)
  const second = expect(write(2)).rejects.toMatchObject({ operation: 'update', outcome: 'unknown' })
  const third = expect(write(3)).rejects.toMatchObject({ operation: 'update', outcome: 'not-applied' })
  await vi.advanceTimersByTimeAsync(1500)
  await first
  await vi.advanceTimersByTimeAsync(500)
  await Promise.all([second, third])
  await vi.advanceTimersByTimeAsync(10_000)
  expect(ran).toEqual([1, 2])
})

it('an update whose outcome is unknown is not run again by itself', async () => {
  const { store, sessions } = setUp()
  const session = await sessions.create()
  let ran = 0
  store.next('update', faults.lostReply)
  const call = expect(
    sessions.update(session, () => {
      ran += 1
    }),
  ).rejects.toMatchObject({ outcome: 'unknown' })
  await vi.advanceTimersByTimeAsync(2000)
  await call
  expect(ran).toBe(1)
})

it('a store whose update says gone and whose read says live is left in peace between the tries', async () => {
  const { store, sessions } = setUp()
  const session = await sessions.create()
  store.every('update', () => Promise.resolve('gone'))
  store.reset()
  const call = expect(sessions.update(session, { a: 1 })).rejects.toMatchObject({ status: 503 })
  await vi.advanceTimersByTimeAsync(2500)
  await call
  expect(store.calls.length).toBeLessThan(500)
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

  it('30,000 given up while a store hangs keep less than 20 MB', async () => {
    vi.useRealTimers()
    const used = () => {
      collectGarbage()
      const { heapUsed, external } = process.memoryUsage()
      return heapUsed + external
    }
    const kept: unknown[] = []
    const store: Store = Object.assign(new MemoryStore(), {
      // As much as a client keeps of a command that has no answer: its text, its promise.
      read: (key: string) =>
        new Promise<never>(resolve => {
          kept.push({ resolve, command: Array.from({ length: 200 }, () => key) })
        }),
    })
    const sessions = new SessionManager({ store, sweepInterval: false, storeTimeout: '50ms' })
    const before = used()
    const told: Record<string, number> = {}
    for (let round = 0; round < 30; round += 1)
      await Promise.all(
        Array.from({ length: 1000 }, () =>
          sessions.get('A'.repeat(43) as SessionId).catch(({ outcome }) => {
            told[outcome] = (told[outcome] ?? 0) + 1
          }),
        ),
      )
    expect(told).toEqual({ 'not-applied': 30_000 })
    expect(kept.length).toBeGreaterThan(1000)
    expect(used() - before).toBeLessThan(20_000_000)
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
    const sessions = new SessionManager({ store, sweepInterval: false, storeTimeout: '200ms' })
    let session: any = await sessions.create({ user })
    try {
      for (const verb of ['read', 'update'] as const) store.every(verb, overTheWire)
      for (let round = 0; round < 3; round += 1) {
        const calls = [
          ...Array.from({ length: 20 }, () => sessions.get(session.secret)),
          sessions.update(session, { round }),
        ]
        // So long that the command is on its way, and nothing has come back.
        await new Promise(resolve => setImmediate(resolve))
        // As long as the other thread needs to answer, which is not up to this one.
        const end = performance.now() + 400
        while (performance.now() < end || (Atomics.load(answered, 0) < asked && performance.now() < end + 20_000));
        const outcomes = await Promise.allSettled(calls)
        expect(outcomes.filter(({ status }) => status === 'rejected')).toEqual([])
        session = (outcomes.at(-1) as PromiseFulfilledResult<unknown>).value
      }
      // Silence is still told.
      store.every('read', faults.hang)
      await expect(sessions.get(session.secret)).rejects.toMatchObject({ operation: 'read' })
    } finally {
      socket.destroy()
      await server.terminate()
    }
  })
})

describe('a store that answers a read at once', () => {
  async function answering(read: (inner: MemoryStore) => Store['read'], options: object = {}) {
    const inner = new MemoryStore()
    const store: Store = Object.assign(Object.create(inner), { read: read(inner) })
    for (const verb of ['create', 'update', 'touch', 'replace', 'delete'] as const)
      Object.assign(store, { [verb]: inner[verb].bind(inner) })
    const events: any[] = []
    const sessions = new SessionManager({
      store,
      sweepInterval: false,
      ...options,
      onEvent: event => events.push(event),
    })
    const session = await sessions.create({ user: { ...user, passwordVersion: null } })
    events.length = 0
    return { sessions, session, events }
  }
  const timers = () => vi.getTimerCount()

  it('is asked without a timer, and gives what one with a promise gives', async () => {
    const thenable = (answer: unknown): any => {
      // biome-ignore lint/suspicious/noThenProperty: a promise of another library
      return { then: (resolve: (answer: unknown) => void) => resolve(answer) }
    }
    const ways: ((inner: MemoryStore) => Store['read'])[] = [
      inner => inner.read.bind(inner),
      inner => async (key, call) => inner.read(key, call),
      inner => (key, call) => thenable(inner.read(key, call)),
    ]
    for (const read of ways) {
      const { sessions, session } = await answering(read)
      expect((await sessions.get(session.secret))?.user).toEqual({ id: 1n, name: 'ada' })
      expect(await sessions.get('A'.repeat(43) as SessionId)).toBeNull()
      const renewed = (await sessions.regenerate(session, { grace: '1m' }))!
      expect((await sessions.get(session.secret))?.secret).toBe(renewed.secret)
      await sessions.destroy(renewed)
      expect(await sessions.get(session.secret)).toBeNull()
    }
    await vi.advanceTimersByTimeAsync(5000)
    const { sessions, session } = await answering(inner => inner.read.bind(inner))
    await vi.advanceTimersByTimeAsync(5000)
    const before = timers()
    await sessions.get(session.secret)
    expect(timers()).toBe(before)
  })

  it('and throws, or answers nonsense, has failed: the call rejects, and one event tells it', async () => {
    const broken: (() => unknown)[] = [
      () => {
        throw new Error('down')
      },
      () => undefined,
      () => ({ key: 'k' }),
      () =>
        new Proxy(
          {},
          {
            get: () => {
              throw new Error('a getter that throws')
            },
          },
        ),
    ]
    for (const read of broken) {
      const { sessions, session, events } = await answering(() => read as never)
      const error = await sessions.get(session.secret).catch(reason => reason)
      expect(error).toBeInstanceOf(SessionStoreError)
      expect(error).toMatchObject({ operation: 'read', outcome: 'not-applied', status: 503 })
      expect(events).toEqual([{ type: 'store-error', error }])
    }
  })

  it("and answers another session's record has failed", async () => {
    const { sessions, session, events } = await answering(inner => (_key, call) => inner.read(other, call))
    const other = (await sessions.create({ user })).key
    await expect(sessions.get(session.secret)).rejects.toThrow(
      'the store returned an invalid result for `read` (object)',
    )
    expect(events.at(-1)?.type).toBe('store-error')
  })

  it('leads over rotations, and not beyond eight', async () => {
    const { sessions, session } = await answering(inner => inner.read.bind(inner))
    let latest = session as any
    for (let hop = 0; hop < 8; hop += 1) latest = await sessions.regenerate(latest, { grace: '1m' })
    expect((await sessions.get(session.secret))?.secret).toBe(latest.secret)
    await sessions.regenerate(latest, { grace: '1m' })
    expect(await sessions.get(session.secret)).toBeNull()
  })

  it('asks the application for the password version as ever', async () => {
    let version = 0
    const { sessions, session } = await answering(inner => inner.read.bind(inner), {
      getPasswordVersion: async () => version,
    })
    expect(await sessions.get(session.secret)).not.toBeNull()
    version = 1
    expect(await sessions.get(session.secret)).toBeNull()
  })
})
