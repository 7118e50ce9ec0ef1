// What each method tells its store: the manager's time, by which that decides what is live, and when the method gives up (one of
// several calls has one storeTimeout for all of them). And what its failure says: "certainly nothing was written" only where
// that holds of all that it writes.
import { SessionStoreError } from 'coatcheck'
import { CLOCK_TOLERANCE } from 'coatcheck/custom-store'
import { ReferenceStore } from 'coatcheck/custom-store/testing'
import { describe, expect, it } from 'vitest'
import { faults, type Verb } from '../support/barrier-store.ts'
import { grace, setUp as memory, openWith, other, user } from '../support/manager-kit.ts'
import { MINUTE } from '../support/test-clock.ts'

const DAY = 86_400_000
const WINDOW = MINUTE + CLOCK_TOLERANCE
const TIMEOUT = 20_000

async function setUp(options: object = {}) {
  const times = { storeTimeout: `${TIMEOUT}ms`, rememberFor: '30d', idleTimeout: '20d', absoluteTimeout: '30d' }
  const at = memory({ ...times, ...options }, new ReferenceStore())
  const { sessions, clock } = at
  const asked = await sessions.create({ user, data: { flash: 'saved' } })
  const token = await sessions.issueRememberToken(asked)
  clock.advance(DAY)
  const first = (await sessions.redeemRememberToken(token))!
  clock.advance(1)
  const begun = (await sessions.redeemRememberToken(first.token))!
  const visitor = await sessions.create()
  return { ...at, node: at.manager, asked, token, first, begun, visitor }
}
type At = Awaited<ReturnType<typeof setUp>>

/** From now on the spent token is a stolen one. */
const visit = async ({ node, begun, clock }: At) => {
  await node().get(begun.session.secret)
  clock.advance(WINDOW + 1)
}
/** The answer to the spent token was lost. */
const lose = async ({ clock }: At) => clock.advance(WINDOW + CLOCK_TOLERANCE + 1)
const failToList = async ({ store, node, begun }: At) => {
  store.next('listUser', faults.rejects)
  await expect(node().revokeRememberToken(begun.token)).rejects.toMatchObject({ operation: 'listUser' })
}

interface Method {
  readonly options?: object
  readonly before?: (at: At) => Promise<unknown>
  readonly run: (at: At) => Promise<unknown>
  /** Of the time, what its calls have. */
  readonly share?: number
  /** Of any number of sessions: each call has the whole time. */
  readonly isWalk?: true
}

const METHODS: Record<string, Method> = {
  'create, a login': { run: at => at.sessions.create({ user }) },
  'create, of a visitor': { run: at => at.sessions.create() },
  get: { run: at => at.sessions.get(at.asked.secret, { touch: false }) },
  'get, a touch': { run: at => at.sessions.get(at.asked.secret) },
  'get, the first use of a remembered session': { run: at => at.node().get(at.begun.session.secret) },
  update: { run: at => at.sessions.update(at.asked, { n: 1 }) },
  take: { run: at => at.sessions.take(at.asked, 'flash') },
  regenerate: { run: at => at.sessions.regenerate(at.asked) },
  'regenerate, of an ID': { run: at => at.node().regenerate(at.asked.secret) },
  'regenerate, with a grace': { run: at => at.sessions.regenerate(at.asked.secret, grace) },
  'a login in place of a session': { run: at => at.sessions.logIn(at.asked, { user }) },
  'a login in place of a remembered session': { run: at => at.sessions.logIn(at.begun.session.secret, { user }) },
  'a login in place of a remembered session without its series': {
    before: at => at.node().revokeRememberToken(at.begun.token),
    run: at => at.sessions.logIn(at.begun.session, { user }),
  },
  destroy: { run: at => at.sessions.destroy(at.asked) },
  'destroy, of an ID': { run: at => at.sessions.destroy(at.asked.secret) },
  'destroy, of a remembered session': { run: at => at.sessions.destroy(at.begun.session.secret) },
  'destroy, of a session in whose place another began': {
    before: async ({ sessions, asked }) => {
      await sessions.revoke(1, asked.key)
      await openWith(sessions, asked).create()
    },
    run: at => at.sessions.destroy(at.asked),
  },
  invalidateUser: { run: at => at.sessions.invalidateUser(1) },
  list: { run: at => at.sessions.list(1) },
  'revoke, of the session that asked for the token': { run: at => at.sessions.revoke(1, at.asked.key) },
  'revoke, of a session that began with it': { run: at => at.sessions.revoke(1, at.begun.session.key) },
  issueRememberToken: { run: at => at.sessions.issueRememberToken(at.asked) },
  redeemRememberToken: { run: at => at.sessions.redeemRememberToken(at.begun.token) },
  'redeemRememberToken, once more': { run: at => at.node().redeemRememberToken(at.first.token) },
  'redeemRememberToken, after a lost answer': {
    before: lose,
    run: at => at.node().redeemRememberToken(at.first.token),
  },
  'redeemRememberToken, after a theft': { before: visit, run: at => at.node().redeemRememberToken(at.first.token) },
  'redeemRememberToken, after a theft that ends all of the user': {
    options: { onTheft: 'invalidate-user' },
    before: visit,
    run: at => at.node().redeemRememberToken(at.first.token),
  },
  'redeemRememberToken, of what is no series': {
    before: async ({ store }) => store.next('read', proceed => proceed().then(record => ({ ...record, data: '{' }))),
    run: at => at.sessions.redeemRememberToken(at.begun.token),
  },
  'redeemRememberToken, where the end of the series had failed': {
    before: failToList,
    run: at => at.node().redeemRememberToken(at.token),
  },
  revokeRememberToken: { run: at => at.sessions.revokeRememberToken(at.begun.token) },
  'revokeRememberToken, once more after a failure': {
    before: failToList,
    run: at => at.sessions.revokeRememberToken(at.token),
  },
  // The other half is for a walk.
  count: { run: at => at.sessions.count(), share: 0.5 },
  sweep: { run: at => at.sessions.sweep() },
  'a login with an ID that finds nothing': {
    before: at => at.node().regenerate(at.asked),
    run: at => at.sessions.logIn(at.asked.secret, { user }),
  },
  'a login in place of a session that a parallel request gave a new ID': {
    before: at => at.node().regenerate(at.asked),
    run: at => at.sessions.logIn(at.asked, { user }),
  },
  'redeemRememberToken, of a session that expired before it was used': {
    options: { idleTimeout: '1h' },
    before: async at => at.clock.advance(2 * 3_600_000),
    run: at => at.sessions.redeemRememberToken(at.begun.token),
  },
  updateUserSessions: { run: at => at.sessions.updateUserSessions(1, { n: 1 }), isWalk: true },
  invalidateAll: {
    async before(at) {
      await at.sessions.create({ user: other })
      await at.sessions.regenerate(at.asked.secret, grace)
      // Nothing is found behind the forward.
      at.store.next('read', () => null)
    },
    run: at => at.sessions.invalidateAll({ except: at.visitor }),
    isWalk: true,
  },
}

const WRITTEN = new Set<unknown>(['created', 'updated', 'touched', true])
const WRITES: readonly Verb[] = ['create', 'update', 'touch', 'replace', 'delete', 'deleteUser']

describe.each(Object.entries(METHODS))('%s', (name, { options, before, run, share = 1, isWalk }) => {
  const prepared = async () => {
    const at = await setUp(options)
    await before?.(at)
    at.clock.advance(1)
    at.store.reset()
    return at
  }

  it('tells each call the time, and when the method gives up', async () => {
    const at = await prepared()
    const began = performance.now()
    await run(at)
    const ended = performance.now()
    const told = at.store.calls.map(({ args }) => args.at(-1))
    expect(told).not.toEqual([])
    for (const { deadline } of told) {
      expect(deadline).toBeGreaterThanOrEqual(began + TIMEOUT * share)
      expect(deadline).toBeLessThanOrEqual(ended + TIMEOUT * share)
    }
    // What is stored is looked for by a clock at 0, at which all of it is live.
    if (isWalk) for (const { now } of told) expect([at.clock(), 0]).toContain(now)
    if (isWalk) return
    // What began with a token is looked for by the slowest clock: it has to end where another node holds it for live.
    const [{ deadline }] = told
    const expected = at.store.calls.map(({ verb, args }) => {
      const isBySlowest = name !== 'list' && verb === 'listUser' && args[1] === 'session'
      return { now: isBySlowest ? at.clock() - CLOCK_TOLERANCE : at.clock(), deadline }
    })
    expect(told).toEqual(expected)
  })

  it('says that nothing was written only where nothing was', async () => {
    const outcomes = new Set<string>()
    let written = 0
    for (let failing = 1; ; failing += 1) {
      const at = await prepared()
      at.events.length = 0
      let calls = 0
      written = 0
      for (const verb of [...WRITES, 'read', 'listUser', 'scan', 'count', 'sweep'] as Verb[])
        at.store.every(verb, async proceed => {
          calls += 1
          if (calls === failing) throw new SessionStoreError(verb as never, 'not-applied', `${verb}: the store is full`)
          const answer = await proceed()
          if (WRITES.includes(verb) && (WRITTEN.has(answer) || answer > 0)) written += 1
          return answer
        })
      const error = await run(at).then(
        () => null,
        failure => failure,
      )
      if (calls < failing) break
      if (error === null) continue
      expect(error).toBeInstanceOf(SessionStoreError)
      expect([error.outcome, `call ${failing}`]).toEqual([written > 0 ? 'unknown' : error.outcome, `call ${failing}`])
      outcomes.add(error.outcome)
      expect(at.events.filter(({ type }) => type === 'store-error')).toHaveLength(1)
    }
    // Where there is more than one write, of each there are failures. A get gives up for none of its own.
    if (written > 1 && !name.startsWith('get')) expect([...outcomes].sort()).toEqual(['not-applied', 'unknown'])
  })
})
