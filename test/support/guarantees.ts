// The guarantees as a user of the manager sees them, for any store: one line in a store's test file runs them all.
import assert from 'node:assert/strict'
import {
  CLOCK_TOLERANCE,
  type Current,
  openVisit,
  type Session,
  SessionError,
  SessionManager,
  type SessionOptions,
  SessionStoreError,
  type Store,
  type UserSession,
  type Visit,
} from 'coatcheck'
import { describe, it } from 'vitest'
import { BarrierStore, faults, type Handler, type Verb } from './barrier-store.ts'
import { holdsPartOf, leaked, shown } from './scan.ts'
import { HOUR, MINUTE, SECOND, testClock } from './test-clock.ts'

type Data = Record<string, unknown>
type Options = Partial<SessionOptions<Data, 'u64', Data>>

// A store may outlive a test file: no two tests share a user.
let lastUser = BigInt(Date.now()) * 1_000_000n + BigInt(Math.floor(Math.random() * 1000)) * 1000n
const newUser = () => {
  lastUser += 1n
  return lastUser
}

export const BOUNDARY_IDS = [
  0n,
  1n,
  2n ** 53n - 1n,
  2n ** 53n + 1n,
  2n ** 63n - 1n,
  2n ** 63n,
  2n ** 64n - 2n,
  2n ** 64n - 1n,
] as const

const times = (count: number) => Array.from({ length: count }, (_, index) => index)
const isCode = (code: string) => (error: unknown) => error instanceof SessionError && error.code === code

const isKey = (value: unknown): value is string => typeof value === 'string' && /^[A-Za-z0-9_-]{46}$/.test(value)

const VISITS: Record<string, (visit: Visit<Data, 'u64', Data>) => Promise<unknown>> = {
  get: visit => visit.get(),
  requireUser: visit => visit.requireUser(),
  take: visit => visit.take('flash'),
  regenerate: visit => visit.regenerate(),
  rotate: visit => visit.rotate({ grace: '1m' }),
  csrfToken: visit => visit.csrfToken(),
  checkCsrf: visit => visit.checkCsrf('x'),
  logOut: visit => visit.logOut(),
}

/** One visit for each thing that a request may do, all with this Cookie header. */
const visitsOf = (cookie: string | undefined, but: readonly string[] = []) =>
  Object.entries(VISITS)
    .filter(([name]) => !but.includes(name))
    .map(([, run]) => async (sessions: SessionManager<Data>) => {
      const visit = openVisit(sessions, { method: 'GET', cookie, secure: true, header: () => null })
      const result = await run(visit).catch((error: unknown) => error)
      return { result, headers: visit.headers }
    })

/**
 * Runs all guarantees against a store; `open` is called once for each test and may answer the same store. `dump` answers
 * all that the backend holds, as text.
 */
export function testGuarantees(open: () => Store | Promise<Store>, dump?: () => Promise<string>): void {
  async function setUp(options: Options = {}) {
    const store = BarrierStore.over(await open())
    const clock = testClock()
    const events: any[] = []
    const manager = (more: Options = {}) =>
      new SessionManager<Data>({
        store,
        now: clock,
        sweepInterval: false,
        onEvent: event => events.push(event),
        ...options,
        ...more,
      })
    return { store, clock, events, manager, sessions: manager(), user: { id: newUser(), name: 'ada' } }
  }
  type SetUp = Awaited<ReturnType<typeof setUp>>

  /**
   * Stops `begin` before and after each of its store calls in turn, runs `between` to its end, lets `begin` go on, and
   * hands its outcome to `check`: every interleaving of one call with all of another.
   */
  async function atEveryPoint<C, R>(
    options: Options,
    prepare: (at: SetUp) => Promise<C>,
    begin: (at: SetUp, context: C) => Promise<R>,
    between: (at: SetUp, context: C) => Promise<unknown>,
    check: (at: SetUp, context: C, outcome: PromiseSettledResult<R>, where: string) => Promise<void>,
  ): Promise<void> {
    const probe = await setUp(options)
    const probed = await prepare(probe)
    probe.store.reset()
    await begin(probe, probed)
    const verbs = probe.store.calls.map(({ verb }) => verb)
    assert.notEqual(verbs.length, 0)
    for (const [index, verb] of verbs.entries()) {
      for (const when of ['before', 'after'] as const) {
        const at = await setUp(options)
        const context = await prepare(at)
        for (const _ of verbs.slice(0, index)) at.store.next('any', proceed => proceed())
        const pause = at.store.pause('any', when)
        const running = begin(at, context)
        running.catch(() => {})
        await pause.reached
        await between(at, context)
        pause.resume()
        const [outcome] = await Promise.allSettled([running])
        await check(at, context, outcome!, `${when} ${verb} (call ${index + 1} of ${verbs.length})`)
      }
    }
  }

  describe('G1: destroyed stays destroyed', () => {
    const lateWriters: Record<string, (at: SetUp, session: UserSession<Data, 'u64'>) => Promise<unknown>> = {
      'a touch': async ({ sessions }, session) => sessions.get(session.secret),
      'an update': async ({ sessions }, session) => sessions.update(session, { late: true }),
      'a take': async ({ sessions }, session) => sessions.take(session, 'flash'),
      'a regenerate': async ({ sessions }, session) => sessions.regenerate(session),
      'a regenerate by ID': async ({ sessions }, session) => sessions.regenerate(session.secret),
      'a rotation': async ({ sessions }, session) => sessions.rotate(session, { grace: '1m' }),
    }
    for (const [name, write] of Object.entries(lateWriters)) {
      it(`${name} that arrives around a log-out does not revive the session`, () =>
        atEveryPoint(
          {},
          async at => {
            const session = await at.sessions.create({ user: at.user, data: { flash: 'hello' } })
            at.clock.advance(10 * MINUTE)
            return session
          },
          write,
          ({ sessions }, session) => sessions.destroy(session.secret),
          async ({ sessions, user }, session, outcome, where) => {
            assert.equal(await sessions.get(session.secret), null, where)
            assert.deepEqual(await sessions.list(user.id), [], where)
            const result = outcome.status === 'fulfilled' ? (outcome.value as { secret?: string } | null) : null
            if (result?.secret) assert.equal(await sessions.get(result.secret), null, where)
          },
        ))

      it(`${name} after the log-out says that the session is gone`, async () => {
        const at = await setUp()
        const session = await at.sessions.create({ user: at.user, data: { flash: 'hello' } })
        at.clock.advance(10 * MINUTE)
        await at.sessions.destroy(session)
        assert.equal((await write(at, session)) ?? null, null)
        assert.deepEqual(await at.sessions.list(at.user.id), [])
      })
    }

    it('destroying an ID that was regenerated a moment ago ends its successor', async () => {
      const { sessions, user } = await setUp()
      const session = await sessions.create({ user })
      const next = await sessions.regenerate(session)
      await sessions.destroy(session.secret)
      assert.equal(await sessions.get(next), null)
    })

    it('destroying an ID ends the last of a chain of renewals', async () => {
      const { sessions, clock, user } = await setUp()
      const first = await sessions.create({ user })
      const chain = [first]
      for (const _ of times(4)) {
        clock.advance(5 * SECOND)
        chain.push((await sessions.rotate(chain.at(-1), { grace: '1m' }))! as typeof first)
      }
      assert.equal(new Set(chain.map(({ secret }) => secret)).size, 5)
      await sessions.destroy(first.secret)
      for (const { secret } of chain) assert.equal(await sessions.get(secret), null)
      assert.deepEqual(await sessions.list(user.id), [])
    })

    it('destroying twice, an unknown ID, or nothing is no error', async () => {
      const { sessions, user } = await setUp()
      const session = await sessions.create({ user })
      await sessions.destroy(session)
      await sessions.destroy(session)
      await sessions.destroy(session.secret)
      await sessions.destroy('x'.repeat(43))
      await sessions.destroy(null)
      await sessions.destroy(undefined)
    })

    it('20 parallel log-outs, touches, updates and renewals of one session leave nothing', async () => {
      const { sessions, clock, user } = await setUp({ storeTimeout: '20s' })
      for (const _ of times(3)) {
        const session = await sessions.create({ user })
        clock.advance(5 * MINUTE)
        await Promise.all(
          times(20).map(async index => {
            if (index === 7) return sessions.destroy(session.secret)
            if (index % 4 === 0) return sessions.get(session.secret)
            if (index % 4 === 1) return sessions.update(session, { [`k${index}`]: index })
            if (index % 4 === 2) return sessions.rotate(session, { grace: '1m' })
            return sessions.regenerate(session.secret)
          }),
        )
        assert.equal(await sessions.get(session.secret), null)
        assert.deepEqual(await sessions.list(user.id), [])
      }
    })
  })

  describe('G2: no lost update', () => {
    it('100 concurrent increments in one process give 100', async () => {
      const { sessions } = await setUp({ storeTimeout: '20s' })
      const session = await sessions.create({ data: { count: 0 } })
      await Promise.all(
        times(100).map(() =>
          sessions.update(session, draft => {
            draft.count = (draft.count as number) + 1
          }),
        ),
      )
      assert.equal((await sessions.get(session))?.data.count, 100)
    })

    it('100 concurrent increments in four processes give 100', async () => {
      const { sessions, manager } = await setUp({ storeTimeout: '20s' })
      const nodes = [sessions, manager(), manager(), manager()]
      const session = await sessions.create({ data: { count: 0 } })
      await Promise.all(
        times(100).map(index =>
          nodes[index % 4]!.update(session, draft => {
            draft.count = (draft.count as number) + 1
          }),
        ),
      )
      assert.equal((await sessions.get(session))?.data.count, 100)
    })

    it('patches of different keys from two processes both win', async () => {
      const { sessions, manager } = await setUp()
      const other = manager()
      const session = await sessions.create({ data: { kept: 1 } })
      await Promise.all([sessions.update(session, { a: 1 }), other.update(session, { b: 2 })])
      assert.deepEqual({ ...(await sessions.get(session))?.data }, { kept: 1, a: 1, b: 2 })
    })

    it('of 20 takers in two processes one gets the value', async () => {
      const { sessions, manager } = await setUp({ storeTimeout: '20s' })
      const other = manager()
      const session = await sessions.create({ data: { flash: 'saved', kept: 1 } })
      const taken = await Promise.all(times(20).map(index => (index % 2 ? sessions : other).take(session, 'flash')))
      assert.deepEqual(
        taken.filter(value => value !== undefined),
        ['saved'],
      )
      assert.deepEqual({ ...(await sessions.get(session))?.data }, { kept: 1 })
    })

    const moves = {
      regenerate: ({ sessions }: SetUp, current: Current<Data, 'u64'>) => sessions.regenerate(current),
      rotate: ({ sessions }: SetUp, current: Current<Data, 'u64'>) => sessions.rotate(current, { grace: '1m' }),
      'a login that carries the data': ({ sessions, user }: SetUp, current: Current<Data, 'u64'>) =>
        sessions.regenerate(current, { user, data: before => before }),
    }
    const owners = {
      'an anonymous session': (_: SetUp) => undefined,
      'a session of the same user': ({ user }: SetUp) => user,
    }
    for (const [name, move] of Object.entries(moves))
      for (const [whose, ownerOf] of Object.entries(owners))
        for (const [how, current] of [
          ['by session', (session: Session<Data, 'u64'>) => session],
          ['by ID', (session: Session<Data, 'u64'>) => session.secret],
        ] as const) {
          const prepare = async (at: SetUp): Promise<Session<Data, 'u64'>> => {
            const user = ownerOf(at)
            const data = { cart: 'book' }
            return user ? at.sessions.create({ user, data }) : at.sessions.create({ data })
          }
          const save = (at: SetUp, session: Session<Data, 'u64'>) => at.manager().update(session, { saved: 1 })
          type Moved = Session<Data, 'u64'> | null

          it(`a save in ${whose} that was acknowledged during ${name} ${how} is not lost`, async () => {
            const answers: string[] = []
            await atEveryPoint(
              {},
              async at => ({ session: await prepare(at), saved: null as Moved }),
              (at, { session }): Promise<Moved> => move(at, current(session)),
              async (at, context) => {
                context.saved = await save(at, context.session)
              },
              async ({ sessions }, { saved }, outcome, where) => {
                assert.equal(outcome.status, 'fulfilled', where)
                const moved = (outcome as PromiseFulfilledResult<Moved>).value
                const now = await sessions.get(moved)
                assert.equal(now?.secret, moved?.secret, where)
                assert.deepEqual({ ...now?.data }, { cart: 'book', ...(saved && { saved: 1 }) }, where)
                answers.push(saved ? 'acknowledged' : 'gone')
              },
            )
            // Before the new ID the save has to be possible; after it only where the old one still leads there.
            assert.equal(answers[0], 'acknowledged')
            assert.equal(answers.at(-1), name === 'rotate' ? 'acknowledged' : 'gone')
          })

          it(`${name} ${how} during a save in ${whose} loses nothing that was acknowledged`, () =>
            atEveryPoint(
              {},
              async at => ({ session: await prepare(at), moved: null as Moved }),
              (at, { session }) => save(at, session),
              async (at, context) => {
                context.moved = await move(at, current(context.session))
              },
              async ({ sessions }, { moved }, outcome, where) => {
                assert.equal(outcome.status, 'fulfilled', where)
                const acknowledged = (outcome as PromiseFulfilledResult<Moved>).value !== null
                const now = await sessions.get(moved)
                assert.deepEqual({ ...now?.data }, { cart: 'book', ...(acknowledged && { saved: 1 }) }, where)
                if (where.startsWith('after update')) assert.ok(acknowledged, where)
              },
            ))
        }

    it('a new ID that waits behind a save of its own process has what was saved', async () => {
      for (const move of Object.values(moves)) {
        const at = await setUp()
        const session = await at.sessions.create({ data: { cart: 'book' } })
        const [saved, moved] = await Promise.all([at.sessions.update(session, { saved: 1 }), move(at, session)])
        assert.notEqual(saved, null)
        assert.deepEqual({ ...(await at.sessions.get(moved))?.data }, { cart: 'book', saved: 1 })
      }
    })

    it('a login beside a renewal carries the data over all the same', () =>
      atEveryPoint(
        {},
        ({ sessions }) => sessions.create({ data: { cart: 'book' } }),
        ({ sessions, user }, session) => sessions.regenerate(session, { user, data: before => before }),
        (at, session) => at.manager().rotate(session.secret, { grace: '1m' }),
        async ({ sessions }, _session, outcome, where) => {
          assert.equal(outcome.status, 'fulfilled', where)
          const login = (outcome as PromiseFulfilledResult<any>).value
          if (!where.startsWith('after')) assert.equal(login.data.cart, 'book', where)
          assert.equal((await sessions.get(login))?.user?.name, 'ada', where)
        },
      ))

    it('an increment whose answer was lost is reported as unknown, and never counted twice', async () => {
      const { sessions, store, manager } = await setUp()
      const session = await sessions.create({ data: { count: 0 } })
      store.next('update', faults.rejectsAfter)
      const increment = sessions.update(session, draft => {
        draft.count = (draft.count as number) + 1
      })
      await assert.rejects(increment, (error: SessionStoreError) => error.outcome === 'unknown')
      assert.equal((await manager().get(session))?.data.count, 1)
    })
  })

  describe('G3: log-out-everywhere is complete', () => {
    type Session = UserSession<Data, 'u64'>
    const remembering = { remember: '30d' } as const
    const derivations: Record<string, { options?: Options; run: (at: SetUp, context: any) => Promise<unknown> }> = {
      regenerate: { run: ({ sessions }, { session }) => sessions.regenerate(session) },
      'regenerate by ID': { run: ({ sessions }, { session }) => sessions.regenerate(session.secret) },
      rotate: { run: ({ sessions }, { session }) => sessions.rotate(session.secret, { grace: '1m' }) },
      update: { run: ({ sessions }, { session }) => sessions.update(session, { a: 1 }) },
      'get with a touch': { run: ({ sessions }, { session }) => sessions.get(session.secret) },
      remember: { options: remembering, run: ({ sessions }, { session }) => sessions.remember(session) },
      recall: { options: remembering, run: ({ sessions }, { token }) => sessions.recall(token) },
    }
    for (const [name, { options = {}, run }] of Object.entries(derivations)) {
      for (const passwordVersion of [undefined, 2]) {
        const how = passwordVersion === undefined ? '' : ' with a password version'
        it(`nothing that follows from a session by ${name} outlives invalidateUser${how}, at any point`, () =>
          atEveryPoint(
            options,
            async at => {
              const session: Session = await at.sessions.create({ user: { ...at.user, passwordVersion: 1 } })
              const token = options.remember ? await at.sessions.remember(session) : ''
              at.clock.advance(10 * MINUTE)
              return { session, token }
            },
            run,
            ({ sessions, user }) =>
              sessions.invalidateUser(user.id, passwordVersion === undefined ? {} : { passwordVersion }),
            async (at, { session, token }, outcome, where) => {
              const result: any = outcome.status === 'fulfilled' ? outcome.value : null
              assert.deepEqual(await at.sessions.list(at.user.id), [], where)
              assert.equal(await at.sessions.get(session.secret), null, where)
              if (typeof result === 'string') assert.equal(await at.sessions.recall(result), null, where)
              if (result?.session) assert.equal(await at.sessions.get(result.session.secret), null, where)
              if (result?.token) assert.equal(await at.sessions.recall(result.token), null, where)
              if (result?.secret) assert.equal(await at.sessions.get(result.secret), null, where)
              if (token) assert.equal(await at.sessions.recall(token), null, where)
              assert.deepEqual(await at.sessions.list(at.user.id), [], where)
            },
          ))
      }
    }

    for (const [name, run] of Object.entries<(at: SetUp, before: string) => Promise<Session>>({
      create: ({ sessions, user }) => sessions.create({ user: { ...user, passwordVersion: 1 } }),
      'regenerate of an anonymous session': ({ sessions, user }, before) =>
        sessions.regenerate(before, { user: { ...user, passwordVersion: 1 } }),
    })) {
      it(`a login by ${name} that verified the old password gets no session, at any point`, () =>
        atEveryPoint(
          {},
          async ({ sessions }) => (await sessions.create()).secret,
          run,
          ({ sessions, user }) => sessions.invalidateUser(user.id, { passwordVersion: 2 }),
          async ({ sessions, user }, _before, outcome, where) => {
            assert.deepEqual(await sessions.list(user.id), [], where)
            if (outcome.status === 'rejected') assert.equal(outcome.reason.code, 'ERR_SESSION_STALE_LOGIN', where)
            else assert.equal(await sessions.get(outcome.value), null, where)
          },
        ))
    }

    it('a login with the new password version, and one with a newer, gets its session', async () => {
      const { sessions, user } = await setUp()
      await sessions.invalidateUser(user.id, { passwordVersion: 2 })
      for (const passwordVersion of [2, 3]) {
        const session = await sessions.create({ user: { ...user, passwordVersion } })
        assert.equal((await sessions.get(session))?.user?.passwordVersion, passwordVersion)
      }
    })

    it('a login without a password version counts as version 0, and the floor never falls', async () => {
      const { sessions, user } = await setUp()
      await sessions.invalidateUser(user.id, { passwordVersion: 5 })
      await sessions.invalidateUser(user.id, { passwordVersion: 3 })
      await sessions.invalidateUser(user.id)
      for (const passwordVersion of [undefined, null, 0, 3, 4])
        await assert.rejects(sessions.create({ user: { ...user, passwordVersion } }), isCode('ERR_SESSION_STALE_LOGIN'))
      await sessions.create({ user: { ...user, passwordVersion: 5 } })
    })

    it('a refused login leaves the anonymous session as it was', async () => {
      const { sessions, user } = await setUp()
      const before = await sessions.create({ data: { cart: 1 } })
      await sessions.invalidateUser(user.id, { passwordVersion: 1 })
      await assert.rejects(sessions.regenerate(before, { user }), isCode('ERR_SESSION_STALE_LOGIN'))
      assert.equal((await sessions.get(before))?.data.cart, 1)
    })

    it('the order of a password change leaves the caller alone, under a new ID', async () => {
      const { sessions, user } = await setUp({ remember: '30d' })
      const [caller, second, third] = [
        await sessions.create({ user: { ...user, passwordVersion: 1 } }),
        await sessions.create({ user: { ...user, passwordVersion: 1 } }),
        await sessions.create({ user: { ...user, passwordVersion: 1 } }),
      ]
      const token = await sessions.remember(second)
      const next = await sessions.regenerate(caller, { user: { ...user, passwordVersion: 2 } })
      assert.equal(await sessions.invalidateUser(user.id, { except: next, passwordVersion: 2 }), 2)
      for (const dead of [caller, second, third]) assert.equal(await sessions.get(dead.secret), null)
      assert.equal(await sessions.recall(token), null)
      assert.equal((await sessions.get(next))?.key, next.key)
      assert.deepEqual(
        (await sessions.list(user.id)).map(({ key }) => key),
        [next.key],
      )
    })

    it('`except` takes a session or a key, and counts only what was ended', async () => {
      const { sessions, user } = await setUp()
      const [a, b] = [await sessions.create({ user }), await sessions.create({ user })]
      assert.equal(await sessions.invalidateUser(user.id, { except: a.key }), 1)
      assert.equal(await sessions.get(b), null)
      assert.equal(await sessions.invalidateUser(user.id, { except: a }), 0)
      assert.equal(await sessions.invalidateUser(user.id, { except: null }), 1)
      assert.equal(await sessions.invalidateUser(user.id), 0)
    })

    it('user IDs at the boundaries of 64 bits never match each other', async () => {
      const { manager } = await setUp()
      // The IDs are the same in each test: a tenant of its own keeps them apart from others in this store.
      const sessions = manager().namespace(`edge${newUser()}`.slice(0, 32))
      const held = new Map<bigint, Session>()
      for (const id of BOUNDARY_IDS) held.set(id, await sessions.create({ user: { id, name: '' } }))
      for (const id of BOUNDARY_IDS) {
        const list = await sessions.list(id)
        assert.deepEqual(
          list.map(({ key, user }) => [key, user?.id, user?.name]),
          [[held.get(id)!.key, id, '']],
        )
      }
      for (const [index, id] of BOUNDARY_IDS.entries()) {
        assert.equal(await sessions.invalidateUser(id), 1)
        for (const [at, other] of BOUNDARY_IDS.entries())
          assert.equal((await sessions.get(held.get(other)!)) === null, at <= index, `${other} after ${id}`)
      }
    })

    it('invalidateUser beside 20 parallel regenerates, renewals and saves leaves nothing', async () => {
      const { sessions, manager, user } = await setUp({ storeTimeout: '20s' })
      const other = manager()
      for (const _ of times(3)) {
        const held = await Promise.all(times(5).map(() => sessions.create({ user })))
        const results = await Promise.all([
          ...times(20).map(index => {
            const session = held[index % 5]!
            const node = index % 2 ? sessions : other
            if (index % 3 === 0) return node.regenerate(session.secret)
            return index % 3 === 1 ? node.rotate(session, { grace: '1m' }) : node.update(session, { index })
          }),
          other.invalidateUser(user.id),
        ])
        assert.deepEqual(await sessions.list(user.id), [])
        for (const result of results)
          if (typeof result === 'object' && result !== null) assert.equal(await sessions.get(result.secret), null)
      }
    })
  })

  describe('G4: a new login gets a new ID', () => {
    it('the old ID is dead after a login, whoever had it', async () => {
      const { sessions, user } = await setUp()
      const other = { id: newUser(), name: 'max' }
      for (const before of [
        await sessions.create({ data: { cart: 1 } }),
        await sessions.create({ user }),
        await sessions.create({ user: other }),
      ]) {
        const next = await sessions.regenerate(before.secret, { user })
        assert.notEqual(next.secret, before.secret)
        assert.equal(await sessions.get(before.secret), null)
      }
    })

    for (const [how, current] of [
      ['by session', (session: any) => session],
      ['by ID', (session: any) => session.secret],
    ] as const)
      it(`a login ${how} may carry over the data of an anonymous session or the user's own, never another's`, async () => {
        const { sessions, manager, user } = await setUp({ initial: () => ({ cart: 'empty' }) })
        const other = { id: newUser(), name: 'max' }
        for (const [owner, expected] of [
          [undefined, 'book'],
          [user, 'book'],
          [other, 'empty'],
        ] as const) {
          const data = { cart: 'book', secret: 'of the one before' }
          const before = owner ? await sessions.create({ user: owner, data }) : await sessions.create({ data })
          // Met twice: what a conflict makes it read again is no different.
          await manager().update(before, { seen: 1 })
          const offered: Data[] = []
          const login = await sessions.regenerate(current(before), {
            user,
            data: held => {
              offered.push({ ...held })
              return held
            },
          })
          assert.equal(login.data.cart, expected)
          assert.equal(login.data.secret, expected === 'book' ? data.secret : undefined)
          assert.equal((await sessions.get(login))?.data.cart, expected)
          if (owner === other) for (const held of offered) assert.deepEqual(held, { cart: 'empty' })
        }
      })

    it('an ID that the client made up is not adopted', async () => {
      const { sessions, user } = await setUp()
      const chosen = 'chosen-by-the-client-0123456789-0123456789A'
      assert.equal(chosen.length, 43)
      assert.equal(await sessions.get(chosen), null)
      assert.equal(await sessions.regenerate(chosen), null)
      const login = await sessions.regenerate(chosen, { user })
      assert.notEqual(login.secret, chosen)
      assert.equal(await sessions.get(chosen), null)
    })

    for (const [how, current] of [
      ['by session', (session: any) => session],
      ['by ID', (session: any) => session.secret],
    ] as const) {
      it(`20 parallel regenerates ${how} in two processes end in one successor or in none`, async () => {
        const { sessions, manager, user } = await setUp({ storeTimeout: '20s' })
        const other = manager()
        const session = await sessions.create({ user })
        const results = await Promise.all(
          times(20).map(index => (index % 2 ? sessions : other).regenerate(current(session))),
        )
        const next = new Set(results.flatMap(result => (result === null ? [] : [result.secret])))
        assert.equal(next.size, 1)
        assert.equal(await sessions.get(session.secret), null)
        assert.equal((await sessions.list(user.id)).length, 1)
      })

      it(`20 parallel renewals ${how} in two processes all end in one successor`, async () => {
        const { sessions, manager, user } = await setUp({ storeTimeout: '20s' })
        const other = manager()
        const session = await sessions.create({ user, data: { cart: 1 } })
        const results = await Promise.all(
          times(20).map(index => (index % 2 ? sessions : other).rotate(current(session), { grace: '1m' })),
        )
        assert.equal(new Set(results.map(result => result?.secret)).size, 1)
        assert.equal((await sessions.get(results[0]!))?.data.cart, 1)
        assert.equal((await sessions.list(user.id)).length, 1)
      })

      it(`20 parallel logins ${how} leave the old ID dead, and every one of them a session of its own`, async () => {
        const { sessions, manager, user } = await setUp({ storeTimeout: '20s' })
        const other = manager()
        const before = await sessions.create()
        const logins = await Promise.all(
          times(20).map(index => (index % 2 ? sessions : other).regenerate(current(before), { user })),
        )
        assert.equal(new Set(logins.map(({ secret }) => secret)).size, 20)
        assert.equal(await sessions.get(before.secret), null)
      })
    }

    it('a login whose old session cannot be ended is refused, and nothing is left of it', async () => {
      const { sessions, store, user } = await setUp()
      const before = await sessions.create({ data: { cart: 1 } })
      store.next('replace', faults.rejects)
      await assert.rejects(sessions.regenerate(before, { user }), isCode('ERR_SESSION_STORE'))
      assert.deepEqual(await sessions.list(user.id), [])
      assert.equal((await sessions.get(before))?.data.cart, 1)
    })

    it('the old ID of a renewal leads to the new session on nodes whose clocks are 5 minutes apart', async () => {
      const { sessions, manager, clock, user } = await setUp()
      for (const skew of [-5 * MINUTE, 5 * MINUTE]) {
        const other = manager({ now: () => clock() + skew })
        const before = await sessions.create({ user })
        const next = await sessions.rotate(before, { grace: '30s' })
        clock.advance(29 * SECOND)
        const followed = await other.get(before.secret)
        assert.equal(followed?.secret, next?.secret)
        assert.equal((await other.rotate(before.secret, { grace: '30s' }))?.secret, next?.secret)
      }
    })

    it('the old ID of a renewal leads to the new session until grace and clock tolerance are over', async () => {
      const { sessions, clock, user } = await setUp()
      const before = await sessions.create({ user })
      const next = await sessions.rotate(before, { grace: '30s' })
      clock.advance(30 * SECOND + CLOCK_TOLERANCE - 1)
      const followed = await sessions.get(before.secret)
      assert.equal(followed?.secret, next?.secret)
      assert.equal(followed?.cookieDue, true)
      clock.advance(1)
      assert.equal(await sessions.get(before.secret), null)
      assert.equal((await sessions.get(next))?.key, next?.key)
      await sessions.destroy(before.secret)
      assert.equal(await sessions.get(next), null)
    })
  })

  describe('G5: only hashes at rest', () => {
    it('neither what a store is given nor what it keeps holds a secret, and what it keeps logs nobody in', async () => {
      const { sessions, store, user } = await setUp({ remember: '30d' })
      const held: Session<Data, 'u64'>[] = []
      const tokens: string[] = []
      const keep = <S extends Session<Data, 'u64'> | null>(session: S): NonNullable<S> => {
        assert.ok(session)
        held.push(session)
        return session
      }
      const anonymous = keep(await sessions.create({ data: { cart: 1 } }))
      const login = keep(await sessions.regenerate(anonymous.secret, { user, data: before => before }))
      const token = await sessions.remember(login)
      const saved = keep(await sessions.update(login, { a: 1 }))
      const renewed = keep(await sessions.rotate(saved, { grace: '1m' }))
      keep(await sessions.get(login.secret))
      keep(await sessions.regenerate(renewed))
      for (const _ of times(2)) {
        const recalled = (await sessions.recall(token))!
        keep(recalled.session)
        tokens.push(token, recalled.token!)
      }
      const secrets = new Set([
        ...held.flatMap(({ secret, csrfToken }) => [secret, csrfToken]),
        ...tokens.flatMap(each => each.split('.')),
      ])
      const keys = new Set(store.calls.flatMap(({ args }) => args.map(arg => arg?.key ?? arg)).filter(isKey))
      const kept = [
        ...(await Promise.all([...keys].map(key => store.inner.read(key, { now: 0 })))),
        await store.inner.listUser(`${user.id}`, 'session', { now: 0 }),
        await store.inner.listUser(`${user.id}`, 'remember', { now: 0 }),
      ]
      const rows = (await dump?.()) ?? ''
      for (const key of [held.at(-1)!.key, login.key]) {
        assert.ok(shown(kept).includes(key))
        // Some stores keep the first three characters apart from the rest.
        if (dump) assert.ok(rows.includes(key.slice(3)), 'the dump shows what is kept')
      }
      assert.equal(leaked([store.calls, kept], secrets), null)
      for (const secret of secrets) assert.ok(!holdsPartOf(secret, rows))

      const found = new Set(`${shown(kept)} ${rows}`.match(/[A-Za-z0-9_-]{16,}/g))
      for (const text of found)
        for (const id of [text, text.slice(0, 43), text.slice(-43), `${login.key.slice(0, 3)}${text}`.slice(0, 43)]) {
          assert.equal(await sessions.get(id), null)
          assert.equal(await sessions.recall(`${id}.${id}`), null)
          assert.equal(await sessions.recall(`${id}.${text.slice(0, 43)}`), null)
        }
      assert.ok(found.size > 10)
    })
  })

  describe('G6: both clocks hold', () => {
    it('a session ends after the idle time, and not a moment before', async () => {
      const { sessions, clock, user } = await setUp()
      const session = await sessions.create({ user })
      clock.advance(30 * MINUTE - 1)
      assert.equal((await sessions.get(session, { touch: false }))?.key, session.key)
      clock.advance(1)
      assert.equal(await sessions.get(session, { touch: false }), null)
      assert.equal(await sessions.update(session, { a: 1 }), null)
      assert.equal(await sessions.regenerate(session), null)
      assert.deepEqual(await sessions.list(user.id), [])
    })

    it('a session in use lives on, until the absolute time ends it', async () => {
      const { sessions, clock } = await setUp()
      const session = await sessions.create()
      for (const _ of times(71)) {
        clock.advance(10 * MINUTE)
        assert.equal((await sessions.get(session.secret))?.absoluteExpiresAt, session.absoluteExpiresAt)
      }
      clock.advance(10 * MINUTE - 1)
      assert.equal((await sessions.get(session.secret))?.expiresAt, session.absoluteExpiresAt)
      clock.advance(1)
      assert.equal(await sessions.get(session.secret), null)
    })

    it('neither a new ID nor a save makes the absolute time longer; a login begins anew', async () => {
      const { sessions, clock, user } = await setUp()
      let session: any = await sessions.create({ user })
      const end = session.absoluteExpiresAt
      for (const next of ['regenerate', 'rotate', 'update'] as const) {
        clock.advance(20 * MINUTE)
        if (next === 'rotate') session = await sessions.rotate(session, { grace: '1m' })
        else session = next === 'update' ? await sessions.update(session, { a: 1 }) : await sessions.regenerate(session)
        assert.equal(session.absoluteExpiresAt, end)
        assert.equal(session.expiresAt, clock() + 30 * MINUTE)
      }
      const login = await sessions.regenerate(session, { user })
      assert.equal(login.absoluteExpiresAt, clock() + 12 * HOUR)
    })

    it('a clock that runs backwards neither extends a session nor ends it', async () => {
      const { sessions, clock } = await setUp()
      const session = await sessions.create()
      clock.advance(-2 * HOUR)
      const seen = await sessions.get(session.secret)
      assert.equal(seen?.expiresAt, session.expiresAt)
      assert.equal((await sessions.update(session, { a: 1 }))?.expiresAt, session.expiresAt)
      clock.advance(2 * HOUR + 29 * MINUTE)
      assert.equal((await sessions.get(session.secret, { touch: false }))?.expiresAt, session.expiresAt)
      clock.advance(MINUTE)
      assert.equal(await sessions.get(session.secret), null)
    })

    for (const skew of [-HOUR, -5 * MINUTE, 5 * MINUTE, HOUR]) {
      it(`a node whose clock is ${skew / MINUTE} minutes off does not end the sessions of the others`, async () => {
        const { sessions, clock, manager, user } = await setUp()
        const wrong = manager({ now: clock.skewed(skew) })
        const session = await sessions.create({ user })
        for (const _ of times(10)) {
          clock.advance(3 * MINUTE)
          await wrong.get(session.secret)
          await wrong.list(user.id)
          // A sweep allows for minutes, see SWEEP_MARGIN.
          if (skew < HOUR) await wrong.sweep()
          assert.notEqual(await sessions.get(session.secret), null)
        }
        const end = session.absoluteExpiresAt
        assert.ok(
          (await sessions.get(session.secret))!.expiresAt <= Math.min(end, clock() + Math.max(0, skew) + 30 * MINUTE),
        )
        clock.advance(12 * HOUR)
        assert.equal(await sessions.get(session.secret), null)
      })
    }
  })

  describe('sessions of one user', () => {
    it('50 simultaneous logins with a limit of 1 leave exactly 1', async () => {
      const { manager, user } = await setUp({ storeTimeout: '20s' })
      const nodes = [manager({ limit: { max: 1 } }), manager({ limit: { max: 1 } })]
      await Promise.all(times(50).map(index => nodes[index % 2]!.create({ user })))
      assert.equal((await nodes[0]!.list(user.id)).length, 1)
    })

    it('50 simultaneous logins with a limit of 3 that refuses leave exactly 3', async () => {
      const { manager, user } = await setUp({ storeTimeout: '20s' })
      const limit = { max: 3, onLimit: 'refuse' } as const
      const nodes = [manager({ limit }), manager({ limit })]
      const logins = await Promise.allSettled(times(50).map(index => nodes[index % 2]!.create({ user })))
      assert.equal(logins.filter(({ status }) => status === 'fulfilled').length, 3)
      for (const login of logins) if (login.status === 'rejected') assert.equal(login.reason.code, 'ERR_SESSION_LIMIT')
      assert.equal((await nodes[0]!.list(user.id)).length, 3)
    })

    it('a remember token at a limit that refuses begins nothing and is not spent: it works when one is free', async () => {
      const { sessions, clock, events, user } = await setUp({
        remember: '30d',
        limit: { max: 1, onLimit: 'refuse' },
        absoluteTimeout: '48h',
        idleTimeout: '24h',
      })
      const first = await sessions.create({ user })
      const token = await sessions.remember(first)
      await sessions.destroy(await sessions.regenerate(first))
      const login = await sessions.create({ user })
      const visitWith = async () => {
        const visit = openVisit(sessions, {
          method: 'GET',
          cookie: `session_id=${first.secret}; remember_token=${token}`,
          secure: true,
          header: () => null,
        })
        return { session: await visit.get(), cookies: visit.headers.getSetCookie() }
      }
      for (const wait of [0, MINUTE, 10 * MINUTE, HOUR]) {
        clock.advance(wait)
        const refused = await Promise.all(times(3).map(visitWith))
        for (const { session, cookies } of refused) assert.deepEqual([session, cookies], [null, []])
      }
      assert.deepEqual(
        (await sessions.list(user.id)).map(({ key }) => key),
        [login.key],
      )
      await sessions.destroy(login)
      const { session, cookies } = await visitWith()
      assert.equal(session?.user?.name, 'ada')
      assert.equal(cookies.length, 2)
      assert.equal((await sessions.get(session))?.key, session?.key)
      assert.deepEqual(
        events.filter(({ type }) => type === 'remember-theft'),
        [],
      )
    })

    it('a limit counts neither other users, nor anonymous sessions, nor the session that the login ends', async () => {
      const { clock, manager, user } = await setUp()
      const sessions = manager({ limit: { max: 2, onLimit: 'refuse' } })
      await sessions.create({ user: { id: newUser(), name: 'max' } })
      await sessions.create()
      const first = await sessions.create({ user })
      clock.advance(SECOND)
      await sessions.create({ user })
      await assert.rejects(sessions.create({ user }), isCode('ERR_SESSION_LIMIT'))
      await assert.rejects(sessions.regenerate(await sessions.create(), { user }), isCode('ERR_SESSION_LIMIT'))
      await sessions.regenerate(first, { user })
      assert.equal((await sessions.list(user.id)).length, 2)
    })

    it('a limit that ends the oldest tells which, and spares the new one', async () => {
      const { clock, events, manager, user } = await setUp()
      const sessions = manager({ limit: { max: 2, onLimit: 'end-oldest' } })
      const held = []
      for (const _ of times(4)) {
        held.push(await sessions.create({ user }))
        clock.advance(SECOND)
      }
      const keys = held.map(({ key }) => key)
      assert.deepEqual(
        (await sessions.list(user.id)).map(({ key }) => key),
        [keys[3], keys[2]],
      )
      const ended = events.filter(event => event.type === 'destroyed')
      assert.deepEqual(
        ended.map(({ key, reason, userId }) => [key, reason, userId]),
        [
          [keys[0], 'limit', user.id],
          [keys[1], 'limit', user.id],
        ],
      )
    })

    it("revoke ends one of the user's sessions by its key, and nobody else's", async () => {
      const { sessions, user } = await setUp()
      const [a, b] = [await sessions.create({ user }), await sessions.create({ user })]
      const stranger = { id: newUser(), name: 'max' }
      assert.equal(await sessions.revoke(stranger.id, a.key), false)
      assert.notEqual(await sessions.get(a), null)
      assert.equal(await sessions.revoke(user.id, a.key), true)
      assert.equal(await sessions.revoke(user.id, a.key), false)
      assert.equal(await sessions.get(a), null)
      assert.notEqual(await sessions.get(b), null)
      const anonymous = await sessions.create()
      assert.equal(await sessions.revoke(user.id, anonymous.key), false)
      assert.notEqual(await sessions.get(anonymous), null)
    })

    it('revoke by a key from before a renewal ends the session under its new key', async () => {
      const { sessions, user } = await setUp()
      const before = await sessions.create({ user })
      const next = await sessions.regenerate(before)
      assert.equal(await sessions.revoke(newUser(), before.key), false)
      assert.notEqual(await sessions.get(next), null)
      assert.equal(await sessions.revoke(user.id, before.key), true)
      assert.equal(await sessions.get(next), null)
    })

    it('tenants of one store never meet', async () => {
      const { sessions, user } = await setUp()
      const [blue, green] = [sessions.namespace('blue'), sessions.namespace('green')]
      const held = [
        await sessions.create({ user }),
        await blue.create({ user, data: { of: 'blue' } }),
        await green.create({ user }),
      ]
      const managers = [sessions, blue, green]
      for (const [index, session] of held.entries()) {
        for (const [at, manager] of managers.entries()) {
          assert.equal((await manager.get(session.secret))?.user?.id, at === index ? user.id : undefined)
          if (at !== index) assert.equal(await manager.revoke(user.id, session.key), false)
        }
        assert.equal((await managers[index]!.list(user.id)).length, 1)
      }
      assert.equal(await blue.invalidateUser(user.id), 1)
      assert.equal(await blue.get(held[1]!.secret), null)
      assert.notEqual(await sessions.get(held[0]!.secret), null)
      assert.notEqual(await green.get(held[2]!.secret), null)
    })
  })

  describe('G7: an outage is not a log-out', () => {
    type Held = { session: UserSession<Data, 'u64'>; token: string }
    const calls: Record<string, { verb: Verb; run: (at: SetUp['sessions'], held: Held) => Promise<unknown> }> = {
      create: {
        verb: 'create',
        run: (at, { session }) => at.create({ user: { id: session.user.id, name: 'ada' } }),
      },
      get: { verb: 'read', run: (at, { session }) => at.get(session.secret) },
      update: { verb: 'update', run: (at, { session }) => at.update(session, { n: 1 }) },
      take: { verb: 'update', run: (at, { session }) => at.take(session, 'flash') },
      regenerate: { verb: 'replace', run: (at, { session }) => at.regenerate(session) },
      rotate: { verb: 'replace', run: (at, { session }) => at.rotate(session, { grace: '1m' }) },
      'a login': {
        verb: 'replace',
        run: (at, { session }) => at.regenerate(session, { user: { id: session.user.id, name: 'ada' } }),
      },
      destroy: { verb: 'delete', run: (at, { session }) => at.destroy(session) },
      invalidateUser: { verb: 'deleteUser', run: (at, { session }) => at.invalidateUser(session.user.id) },
      list: { verb: 'listUser', run: (at, { session }) => at.list(session.user.id) },
      revoke: { verb: 'read', run: (at, { session }) => at.revoke(session.user.id, session.key) },
      remember: { verb: 'create', run: (at, { session }) => at.remember(session) },
      recall: { verb: 'read', run: (at, { token }) => at.recall(token) },
      forget: { verb: 'delete', run: (at, { token }) => at.forget(token) },
    }
    it('each call tells a store that fails, hangs, or whose answer is lost; repeated afterwards it works', async () => {
      const isFault = (fault: unknown): fault is Handler => typeof fault === 'function' && fault !== faults.answers
      const tries = Object.entries(calls).flatMap(([name, call]) =>
        Object.entries(faults).flatMap(([how, fault]) => (isFault(fault) ? { name, how, fault, ...call } : [])),
      )
      assert.equal(tries.length, 14 * 5)
      // Together: those that hang take a second each.
      await Promise.all(
        tries.map(async ({ name, how, fault, verb, run }) => {
          const where = `${name}: ${how}`
          const at = await setUp({ remember: '30d', storeTimeout: '20s' })
          const login = await at.sessions.create({ user: at.user, data: { flash: 'hello' } })
          const held = { session: login, token: await at.sessions.remember(login) }
          at.store.next(verb, fault)
          const isSilent = fault === faults.hang || fault === faults.lostReply
          const sessions = isSilent ? at.manager({ storeTimeout: '1s' }) : at.sessions
          await assert.rejects(run(sessions, held), (error: SessionStoreError) => {
            assert.ok(error instanceof SessionStoreError, where)
            assert.deepEqual([error.operation, error.status], [verb, 503], where)
            assert.equal(error.outcome, verb === 'read' || verb === 'listUser' ? 'not-applied' : 'unknown', where)
            return true
          })
          const current = await at.sessions.get(login.secret)
          const isApplied = fault === faults.lostReply || fault === faults.rejectsAfter
          const isEnd = ['destroy', 'invalidateUser', 'a login', 'regenerate'].includes(name)
          if (isApplied && isEnd) assert.equal(current, null, where)
          else if (isApplied && name === 'update')
            assert.deepEqual({ ...current?.data }, { flash: 'hello', n: 1 }, where)
          else if (isApplied && name === 'take') assert.deepEqual({ ...current?.data }, {}, where)
          else assert.deepEqual({ ...current?.data }, { flash: 'hello' }, where)
          // Once more, and nothing is left that could not be ended.
          const again: any = await run(at.sessions, held)
          if (name === 'create' || name === 'a login') assert.ok(await at.sessions.get(again.secret), where)
          await at.sessions.invalidateUser(at.user.id)
          assert.deepEqual(await at.sessions.list(at.user.id), [], where)
          assert.equal(await at.sessions.get(login.secret), null, where)
          assert.equal(await at.sessions.recall(held.token), null, where)
        }),
      )
    })

    it('a visit during an outage is an error with status 503, and no cookie is touched', async () => {
      const { sessions, store, user } = await setUp({ remember: '30d' })
      const session = await sessions.create({ user })
      const cookie = `session_id=${session.secret}; remember_token=${await sessions.remember(session)}`
      for (const fault of [faults.rejects, faults.throws, faults.answers(undefined)])
        for (const run of visitsOf(cookie)) {
          for (const verb of ['read', 'delete'] as const) store.every(verb, fault)
          const { result, headers } = await run(sessions)
          assert.equal((result as SessionStoreError).status, 503)
          assert.deepEqual(headers.getSetCookie(), [])
          for (const verb of ['read', 'delete'] as const) store.every(verb, null)
        }
      assert.equal((await sessions.get(session.secret))?.user?.name, 'ada')
    })

    it('absent, expired and malformed are null, not an outage', async () => {
      const { sessions, clock, user } = await setUp()
      const expired = await sessions.create({ user })
      clock.advance(31 * MINUTE)
      for (const id of [expired.secret, 'A'.repeat(43), 'short', '', 'x'.repeat(100_000), expired.key as string, '\0'])
        assert.equal(await sessions.get(id), null)
    })

    it('a touch that fails is an event, not a failed get', async () => {
      const { sessions, store, clock, events, user } = await setUp()
      const session = await sessions.create({ user })
      clock.advance(10 * MINUTE)
      store.next('touch', faults.rejects)
      assert.equal((await sessions.get(session.secret))?.key, session.key)
      assert.equal(events.at(-1).type, 'store-error')
      clock.advance(10 * MINUTE)
      assert.equal((await sessions.get(session.secret))?.seenAt, clock())
    })
  })

  describe('G8: anonymous traffic writes nothing', () => {
    const malformed = [
      '',
      'x',
      'a'.repeat(42),
      'a'.repeat(44),
      `${'a'.repeat(42)}=`,
      `${'a'.repeat(42)}é`,
      'a'.repeat(4096),
    ]
    it('a visitor without a cookie, or with a malformed one, does not reach the store', async () => {
      const { sessions, store } = await setUp({ remember: '30d' })
      const before = await dump?.()
      store.reset()
      for (const cookie of [
        undefined,
        'other=1',
        ...malformed.map(id => `session_id=${id}`),
        ...malformed.map(id => `remember_token=${id}`),
      ])
        for (const run of visitsOf(cookie)) {
          const { headers } = await run(sessions)
          assert.deepEqual(
            headers.getSetCookie().filter(line => !line.includes('Max-Age=0')),
            [],
          )
        }
      for (const id of malformed) {
        assert.equal(await sessions.get(id), null)
        assert.equal(await sessions.regenerate(id), null)
        assert.equal(await sessions.rotate(id, { grace: '1m' }), null)
        await sessions.destroy(id)
      }
      assert.deepEqual(store.counts(), {})
      assert.equal(await dump?.(), before)
    })

    it('an ID and a token that nobody has cost at most a read each, and leave no row and no cookie', async () => {
      const { sessions, store } = await setUp({ remember: '30d' })
      const before = await dump?.()
      const unknown = `session_id=${'A'.repeat(43)}; remember_token=${'B'.repeat(43)}.${'C'.repeat(43)}`
      for (const run of visitsOf(unknown, ['logOut'])) {
        store.reset()
        const { headers } = await run(sessions)
        assert.deepEqual(headers.getSetCookie(), [])
        const { read, ...others } = store.counts()
        assert.deepEqual(others, {})
        assert.ok(read === 1 || read === 2, `${read} reads`)
      }
      assert.equal(await dump?.(), before)
    })
  })

  describe('G9: one store command per request', () => {
    it('each verb makes as few calls as promised', async () => {
      const { sessions, store, clock, user } = await setUp()
      const cost = async (what: () => Promise<unknown>): Promise<Partial<Record<Verb, number>>> => {
        store.reset()
        await what()
        return store.counts()
      }
      let session: any
      assert.deepEqual(await cost(async () => (session = await sessions.create({ user }))), { create: 1 })
      assert.deepEqual(await cost(() => sessions.get(session.secret)), { read: 1 })
      clock.advance(3 * MINUTE)
      assert.deepEqual(await cost(() => sessions.get(session.secret)), { read: 1, touch: 1 })
      assert.deepEqual(await cost(() => sessions.get(session.secret)), { read: 1 })
      session = await sessions.get(session.secret)
      assert.deepEqual(await cost(async () => (session = await sessions.update(session, { a: 1 }))), { update: 1 })
      assert.deepEqual(await cost(() => sessions.take(session, 'nothing')), { read: 1 })
      assert.deepEqual(await cost(() => sessions.take(session, 'a')), { update: 1 })
      session = await sessions.get(session.secret)
      assert.deepEqual(await cost(async () => (session = await sessions.regenerate(session))), { replace: 1 })
      assert.deepEqual(await cost(async () => (session = await sessions.regenerate(session, { user }))), { replace: 1 })
      assert.deepEqual(await cost(async () => (session = await sessions.regenerate(session.secret))), {
        read: 1,
        replace: 1,
      })
      assert.deepEqual(await cost(async () => (session = await sessions.rotate(session, { grace: '1m' }))), {
        replace: 1,
      })
      assert.deepEqual(await cost(() => sessions.list(user.id)), { listUser: 1 })
      assert.deepEqual(await cost(() => sessions.destroy(session)), { delete: 1 })
      assert.deepEqual(await cost(() => sessions.destroy(session.secret)), { delete: 1 })
      assert.deepEqual(await cost(() => sessions.invalidateUser(user.id)), { deleteUser: 1 })
    })

    it('1,000 parallel requests of one session write its visit down once', async () => {
      const { sessions, store, clock } = await setUp({ storeTimeout: '20s' })
      const { secret } = await sessions.create()
      clock.advance(3 * MINUTE)
      store.reset()
      const seen = await Promise.all(times(1000).map(() => sessions.get(secret)))
      assert.ok(seen.every(session => session !== null))
      assert.deepEqual(store.counts(), { read: 1000, touch: 1 })
    })
  })
}
