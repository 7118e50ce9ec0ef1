// The end of a remember-me series where the store fails on the way, while another process began a session with its token:
// what ends it rejects, and the same call, repeated anywhere, finishes it.
import { CLOCK_TOLERANCE, SessionManager, type Store } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { BarrierStore, faults, type Handler } from '../support/barrier-store.ts'
import { MINUTE, testClock } from '../support/test-clock.ts'

const DAY = 86_400_000
const user = { id: 1, name: 'ada' }
const times = (count: number) => Array.from({ length: count }, (_, index) => index)
const thefts = (events: readonly any[]) => events.filter(({ type }) => type === 'remember-theft')

type Node = SessionManager<Record<string, unknown>>

/** A device that asked for a token in one process, and began sessions with its tokens in others. */
async function setUp(options: object = {}) {
  const store = new MemoryStore()
  const clock = testClock()
  const events: any[] = []
  const node = (over: Store = store): Node =>
    new SessionManager({
      store: over,
      now: clock,
      sweepInterval: false,
      remember: '30d',
      idleTimeout: '20d',
      absoluteTimeout: '30d',
      onEvent: event => events.push(event),
      ...options,
    })
  /** A process in which this call of the store fails, and those after it do not. */
  const failing = (place: number, fault: Handler) => {
    const barrier = BarrierStore.over(store)
    for (const _ of times(place)) barrier.next('any', proceed => proceed())
    barrier.next('any', fault)
    return node(barrier)
  }
  const asked = await node().create({ user })
  const token = await node().remember(asked)
  clock.advance(DAY)
  const first = (await node().recall(token))!
  clock.advance(MINUTE)
  const begun = (await node().recall(first.token!))!
  /** What stands in the store of the series and of what began with it. */
  const left = async () => {
    const call = { now: clock() }
    const all = [await store.listUser('1', 'session', call), await store.listUser('1', 'remember', call)].flat()
    return all.filter(({ kind, parent }) => kind === 'remember' || parent !== null)
  }
  return { store, clock, events, node, failing, asked, token, first, begun, left }
}
type At = Awaited<ReturnType<typeof setUp>>

interface Way {
  readonly options?: object
  readonly before?: (at: At) => Promise<unknown>
  readonly end: (sessions: Node, at: At) => Promise<unknown>
}

/** From now on the spent token is a stolen one. */
async function visit(at: At): Promise<void> {
  await at.node().get(at.begun.session.secret)
  at.clock.advance(MINUTE + CLOCK_TOLERANCE + 1)
}

const WAYS: Record<string, Way> = {
  forget: { end: (sessions, at) => sessions.forget(at.begun.token!) },
  'forget with an old token': { end: (sessions, at) => sessions.forget(at.token) },
  'log-out': { end: (sessions, at) => sessions.destroy(at.begun.session.secret) },
  'a log-in in place of a session that began with it, in a browser that has the token': {
    async end(sessions, at) {
      await sessions.regenerate(at.begun.session.secret, { user })
      await sessions.forget(at.begun.token!)
    },
  },
  'the second use of a stolen token': { before: visit, end: (sessions, at) => sessions.recall(at.first.token!) },
  'the second use of a stolen token, which ends all of the user': {
    options: { onTheft: 'end-user' },
    before: visit,
    end: (sessions, at) => sessions.recall(at.first.token!),
  },
  'revoking the session that asked for the token': { end: (sessions, at) => sessions.revoke(1, at.asked.key) },
  'revoking a session that began with it': { end: (sessions, at) => sessions.revoke(1, at.begun.session.key) },
}

describe.each(Object.entries(WAYS))('%s', (_, { options, before, end }) => {
  it('leaves nothing of the series, wherever the store fails before it is repeated', async () => {
    let failures = 0
    for (const fault of [faults.rejects, faults.rejectsAfter, faults.throws])
      for (const place of times(12)) {
        const at = await setUp(options)
        await before?.(at)
        const failure = await end(at.failing(place, fault), at).catch((error: unknown) => error)
        if (failure instanceof Error) {
          expect(failure).toMatchObject({ code: 'ERR_SESSION_STORE' })
          failures += 1
          await end(at.node(), at)
        }
        expect(await at.left(), `failing at call ${place}`).toEqual([])
        for (const { session, token } of [at.first, at.begun]) {
          expect(await at.node().get(session.secret)).toBeNull()
          expect(await at.node().recall(token!)).toBeNull()
        }
      }
    expect(failures).toBeGreaterThan(9)
  })

  it('nor where it fails twice', async () => {
    for (const first of times(9))
      for (const second of times(9)) {
        const at = await setUp(options)
        await before?.(at)
        for (const place of [first, second]) await end(at.failing(place, faults.rejectsAfter), at).catch(() => {})
        await end(at.node(), at)
        expect(await at.left(), `failing at call ${first}, then ${second}`).toEqual([])
      }
  })
})

it('a token that comes while the end of its series is not finished begins nothing, and finishes it', async () => {
  for (const token of ['token', 'first', 'begun'] as const) {
    const at = await setUp()
    const presented = token === 'token' ? at.token : at[token].token!
    // It reads the series, moves it, and fails to list the sessions.
    await expect(at.failing(2, faults.rejects).forget(at.begun.token!)).rejects.toMatchObject({ operation: 'listUser' })
    expect(await at.left()).not.toEqual([])
    expect(await at.node().recall(presented)).toBeNull()
    expect(await at.left()).toEqual([])
  }
})

it('a series that is written to while it ends has ended afterwards', async () => {
  const at = await setUp()
  const sessions = at.failing(1, async proceed => {
    // Between the look at the series and its move: a visit, and a rotation of the token.
    await at.node().get(at.begun.session.secret)
    await at.node().recall(at.begun.token!)
    return proceed()
  })
  await sessions.forget(at.begun.token!)
  expect(await at.left()).toEqual([])
})

it('a theft is told once, also where the store failed in the middle of it, and by parallel requests', async () => {
  for (const onTheft of ['end-device', 'end-user'])
    for (const place of times(10)) {
      const at = await setUp({ onTheft })
      await visit(at)
      const steal = (sessions: Node) => sessions.recall(at.first.token!)
      const failed = await steal(at.failing(place, faults.rejects)).then(
        () => false,
        () => true,
      )
      if (failed) expect(thefts(at.events), `${onTheft} ${place}`).toHaveLength(0)
      await Promise.all(times(3).map(() => steal(at.node())))
      expect(thefts(at.events), `${onTheft} ${place}`).toHaveLength(1)
    }
})

it('costs four store calls, and one for each session that began with it', async () => {
  const at = await setUp()
  const barrier = BarrierStore.over(at.store)
  await at.node(barrier).forget(at.begun.token!)
  expect(barrier.counts()).toEqual({ read: 1, replace: 1, listUser: 1, delete: 3 })
})

describe('a token whose answer was lost, and that is presented again after the grace', () => {
  /** The session that the lost answer named was never used; by the clock of no node is the grace still on. */
  const lose = async () => {
    const at = await setUp()
    at.clock.advance(MINUTE + 2 * CLOCK_TOLERANCE + 1)
    return at
  }

  it('ends the session that the browser never got, wherever the store fails before it is presented once more', async () => {
    let failures = 0
    for (const fault of [faults.rejects, faults.rejectsAfter, faults.throws])
      for (const place of times(8)) {
        const at = await lose()
        const failed = await at
          .failing(place, fault)
          .recall(at.first.token!)
          .then(
            () => false,
            () => true,
          )
        failures += Number(failed)
        const answer = (await at.node().recall(at.first.token!))!
        expect(await at.node().get(answer.session.secret), `failing at call ${place}`).not.toBeNull()
        expect(await at.node().get(at.begun.session.secret, { touch: false }), `failing at call ${place}`).toBeNull()
        // Nor does a parallel request end what goes on under a new ID.
        const renewed = (await at.node().regenerate(answer.session))!
        await at.node().recall(at.first.token!)
        expect(await at.node().get(renewed.secret)).not.toBeNull()
        expect(thefts(at.events)).toEqual([])
      }
    expect(failures).toBeGreaterThan(9)
  })

  it('ends it also where it is presented again much later', async () => {
    const at = await lose()
    await expect(at.failing(2, faults.rejects).recall(at.first.token!)).rejects.toMatchObject({
      code: 'ERR_SESSION_STORE',
    })
    at.clock.advance(MINUTE + 2 * CLOCK_TOLERANCE + 1)
    await at.node().recall(at.first.token!)
    expect(await at.node().get(at.begun.session.secret, { touch: false })).toBeNull()
  })
})
