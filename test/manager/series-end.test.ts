// The end of a remember-me series where the store fails on the way, while another process began a session with its token:
// what ends it rejects, and the same call, repeated anywhere, finishes it.
import { CLOCK_TOLERANCE, openVisit, SessionManager, type Store } from 'coatcheck'
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
  const node = (over: Store = store, more: object = {}): Node =>
    new SessionManager({
      store: over,
      now: clock,
      sweepInterval: false,
      remember: '30d',
      idleTimeout: '20d',
      absoluteTimeout: '30d',
      onEvent: event => events.push(event),
      ...options,
      ...more,
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

it('two requests that finish the end of one series find that it is over, and so does one that finds less', async () => {
  const at = await setUp()
  await expect(at.failing(2, faults.rejects).forget(at.begun.token!)).rejects.toMatchObject({ operation: 'listUser' })
  const damaged = at.failing(1, proceed => proceed().then(record => ({ ...record, data: '{' })))
  expect(await damaged.recall(at.token)).toBeNull()
  // The one has read where the series stands now, when the other finishes its end.
  const late = at.failing(1, async proceed => {
    expect(await at.node().recall(at.token)).toBeNull()
    return proceed()
  })
  expect(await late.recall(at.token)).toBeNull()
  expect(await at.left()).toEqual([])
})

it('the other devices of the user go on, also where a theft would end them', async () => {
  for (const [name, { end }] of Object.entries(WAYS)) {
    if (name.includes('theft') || name.includes('stolen')) continue
    const at = await setUp({ onTheft: 'end-user' })
    at.clock.advance(1)
    const other = await at.node().create({ user })
    const token = await at.node().remember(other)
    await end(at.node(), at)
    expect((await at.node().get(other.secret))?.key, name).toBe(other.key)
    expect(await at.node().recall(token), name).not.toBeNull()
  }
})

it('a series that no manager of ours wrote ends too, and hinders the end of no other', async () => {
  for (const [name, { end }] of Object.entries(WAYS)) {
    if (name.includes('stolen')) continue
    const at = await setUp()
    const [mine] = await at.store.listUser('1', 'remember', { now: at.clock() })
    const foreign = { ...mine!, key: mine!.key.replace(/.{4}$/, 'AAAA') as never, data: 'null', writeId: 'AAAA' }
    await at.store.create(foreign, {}, { now: at.clock() })
    await end(at.node(), at)
    expect(
      (await at.left()).map(({ key }) => key),
      name,
    ).toEqual([foreign.key])
  }
  // The session that asked for the token leads to its series no more: what says so cannot be read.
  for (const [name, { end }] of Object.entries(WAYS)) {
    if (name.includes('stolen') || name.includes('asked')) continue
    for (const place of times(8)) {
      const at = await setUp()
      const [mine] = await at.store.listUser('1', 'remember', { now: at.clock() })
      const { key, version, seenAt, expiresAt } = mine!
      const change = { data: 'null', seenAt, expiresAt, writeId: 'AAAA' }
      expect(await at.store.update(key, version, change, { now: at.clock() })).toBe('updated')
      await end(at.failing(place, faults.rejects), at).catch(() => {})
      await end(at.node(), at)
      expect(await at.left(), `${name}, failing at call ${place}`).toEqual([])
    }
  }
})

it('a series without a user, which no manager of ours wrote, is removed, and the sessions of no user are asked for', async () => {
  const at = await setUp()
  const barrier = BarrierStore.over(at.store)
  barrier.next('read', proceed => proceed().then(record => ({ ...record, userId: null })))
  await at.node(barrier).forget(at.begun.token!)
  expect(barrier.counts().listUser).toBeUndefined()
  expect(await at.node().recall(at.begun.token!)).toBeNull()
})

it('revoking costs two calls where no tokens are given, and one more where they are', async () => {
  for (const remember of [undefined, '30d']) {
    const at = await setUp()
    const barrier = BarrierStore.over(at.store)
    const sessions = at.node(barrier, { remember })
    const session = await sessions.create({ user })
    barrier.reset()
    await sessions.revoke(1, session.key)
    expect(barrier.counts()).toEqual({ read: 1, delete: 1, ...(remember && { listUser: 1 }) })
  }
})

describe('a request of that browser that comes later, with the token alone', () => {
  const late = (sessions: Node, { begun }: At) =>
    openVisit(sessions, {
      method: 'POST',
      secure: true,
      header: () => null,
      cookie: `remember_token=${begun.token}`,
    })
  const logOuts = Object.entries(WAYS).filter(([name]) => name === 'log-out' || name.startsWith('forget'))
  it.each(logOuts)('begins nothing after a %s', async (_, { end }) => {
    const at = await setUp()
    const sessions = at.node()
    await end(sessions, at)
    await expect(late(sessions, at).create()).rejects.toMatchObject({ code: 'ERR_SESSION_CONFLICT' })
    expect(await late(sessions, at).update({ n: 1 })).toBeNull()
    for await (const session of sessions.all()) expect(session.key).toBe(at.asked.key)
  })

  it('begins as a visitor after it was revoked from another device', async () => {
    const at = await setUp()
    const sessions = at.node()
    await sessions.revoke(1, at.begun.session.key)
    const session = await late(sessions, at).create()
    expect((await sessions.get(session.secret))?.user).toBeNull()
  })

  it('is a visitor where the user is at a limit, and is over once another one logs out', async () => {
    const ends: ((sessions: Node, at: At) => Promise<unknown>)[] = [
      (sessions, at) => late(sessions, at).logOut(),
      (sessions, at) => sessions.forget(at.begun.token!),
      (sessions, at) => sessions.revoke(1, at.begun.session.key),
    ]
    for (const end of ends) {
      const at = await setUp()
      const sessions = at.node(at.store, { limit: { max: 1, onLimit: 'refuse' } })
      const visitor = await late(sessions, at).create()
      expect((await sessions.get(visitor.secret))?.user).toBeNull()
      await end(sessions, at)
      expect(await sessions.get(visitor.secret)).toBeNull()
      expect(at.events).toContainEqual(expect.objectContaining({ type: 'destroyed', key: visitor.key }))
    }
  })
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

describe('a series that another process writes to while it ends', () => {
  /** The process that ends it finds a newer version; from there on the test says what its calls come to. */
  const meeting = async () => {
    const at = await setUp()
    const barrier = BarrierStore.over(at.store)
    const other: { answer: Awaited<ReturnType<Node['recall']>> } = { answer: null }
    barrier.next('replace', async proceed => {
      other.answer = await at.node().recall(at.begun.token!)
      return proceed()
    })
    return { ...at, barrier, other }
  }

  it('begins no session any more once the sessions that began with it are listed', async () => {
    const at = await meeting()
    at.barrier.next('listUser', async proceed => {
      const listed = await proceed()
      expect(await at.node().recall(at.other.answer!.token!)).toBeNull()
      return listed
    })
    await at.node(at.barrier).forget(at.begun.token!)
    expect(at.other.answer).not.toBeNull()
    expect(await at.left()).toEqual([])
  })

  it('is found by a repeated call where the store failed after that', async () => {
    const at = await meeting()
    at.barrier.next('listUser', faults.rejects)
    await expect(at.node(at.barrier).forget(at.begun.token!)).rejects.toMatchObject({ operation: 'listUser' })
    await at.node().forget(at.begun.token!)
    expect(await at.left()).toEqual([])
  })

  it('is one theft where it has ended before it is read again', async () => {
    const at = await setUp()
    await visit(at)
    const barrier = BarrierStore.over(at.store)
    const steal = (sessions: Node) => sessions.recall(at.first.token!)
    barrier.next('replace', async proceed => {
      await at.node().recall(at.begun.token!)
      const outcome = await proceed()
      await steal(at.node())
      return outcome
    })
    expect(await steal(at.node(barrier))).toBeNull()
    expect(thefts(at.events)).toHaveLength(1)
    expect(await at.left()).toEqual([])
  })
})

it('where two processes end a series at once and fail, a third finds what is left of it', async () => {
  const at = await setUp()
  const barrier = BarrierStore.over(at.store)
  barrier.next('replace', async proceed => {
    await expect(at.failing(2, faults.rejects).forget(at.begun.token!)).rejects.toMatchObject({ operation: 'listUser' })
    return proceed()
  })
  barrier.next('listUser', faults.rejects)
  await expect(at.node(barrier).forget(at.begun.token!)).rejects.toMatchObject({ operation: 'listUser' })
  expect(await at.left()).not.toEqual([])
  await at.node().forget(at.begun.token!)
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
