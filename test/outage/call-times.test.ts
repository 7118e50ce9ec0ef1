// What each store call of a method is told: the manager's time, by which a store decides what is live, and when the method
// gives up. A method of several calls has one storeTimeout for all of them.

import { CLOCK_TOLERANCE } from 'coatcheck/custom-store'
import { expect, it } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import { grace, setUp as memory, openWith, user } from '../support/manager-kit.ts'
import { MINUTE } from '../support/test-clock.ts'

const DAY = 86_400_000
const WINDOW = MINUTE + CLOCK_TOLERANCE
const TIMEOUT = 20_000

async function setUp(options: object = {}) {
  const times = { storeTimeout: `${TIMEOUT}ms`, rememberFor: '30d', idleTimeout: '20d', absoluteTimeout: '30d' }
  const at = memory({ ...times, ...options })
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

const METHODS: Record<
  string,
  { options?: object; before?: (at: At) => Promise<unknown>; run: (at: At) => Promise<unknown>; share?: number }
> = {
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
}

it.each(Object.entries(METHODS))(
  '%s: each call is told the time, and when the method gives up',
  async (name, method) => {
    const at = await setUp(method.options)
    await method.before?.(at)
    at.clock.advance(1)
    at.store.reset()
    const before = performance.now()
    await method.run(at)
    const after = performance.now()
    const told = at.store.calls.map(({ args }) => args.at(-1))
    expect(told).not.toEqual([])
    // What began with a token is looked for by the slowest clock: it has to end where another node holds it for live.
    const now = at.store.calls.map(({ verb, args }) => {
      const isBySlowest = name !== 'list' && verb === 'listUser' && args[1] === 'session'
      return isBySlowest ? at.clock() - CLOCK_TOLERANCE : at.clock()
    })
    const [{ deadline }] = told
    const time = TIMEOUT * (method.share ?? 1)
    expect(deadline).toBeGreaterThanOrEqual(before + time)
    expect(deadline).toBeLessThanOrEqual(after + time)
    expect(told).toEqual(now.map(now => ({ now, deadline })))
  },
)

it.each(['invalidateAll', 'updateUserSessions'] as const)(
  '%s, of any number of sessions: each call has a storeTimeout',
  async method => {
    const at = await setUp()
    await at.sessions.regenerate(at.asked.secret, grace)
    // Nothing is found behind the forward.
    if (method === 'invalidateAll') at.store.next('read', () => null)
    at.store.reset()
    const before = performance.now()
    await (method === 'invalidateAll'
      ? at.sessions.invalidateAll({ except: at.visitor })
      : at.sessions.updateUserSessions(1, { n: 1 }))
    const after = performance.now()
    // What is stored is looked for by a clock at 0, at which all of it is live.
    for (const { now, deadline } of at.store.calls.map(({ args }) => args.at(-1))) {
      expect([at.clock(), 0]).toContain(now)
      expect(deadline).toBeGreaterThanOrEqual(before + TIMEOUT)
      expect(deadline).toBeLessThanOrEqual(after + TIMEOUT)
    }
  },
)
