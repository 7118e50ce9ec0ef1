// What a manager tells: the life of each session in order, refusals, and what a listener does that throws.
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { runInNewContext } from 'node:vm'
import { describe, expect, it, vi } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import { grace, setUp, times, user } from '../support/manager-kit.ts'
import { MINUTE } from '../support/test-clock.ts'

const refusals = (events: any[]) => events.filter(({ type }) => type === 'write-refused')

it('the life of a session is told in order, with keys', async () => {
  const { sessions, clock, events } = setUp()
  const a = await sessions.create()
  const b = await sessions.logIn(a, { user })
  const c = (await sessions.regenerate(b, grace))!
  await sessions.destroy(c)
  await sessions.destroy(c)
  const d = await sessions.create({ user })
  await sessions.revoke(1, d.key)
  const e = await sessions.create({ user })
  await sessions.invalidateUser(1)
  const f = await sessions.create()
  clock.advance(30 * MINUTE)
  await sessions.get(f)
  expect(events).toEqual([
    { type: 'created', key: a.key, userId: null, remembered: false },
    { type: 'regenerated', key: b.key, oldKey: a.key, userId: 1n },
    { type: 'regenerated', key: c.key, oldKey: b.key, userId: 1n },
    { type: 'destroyed', key: c.key, userId: 1n, reason: 'logout' },
    { type: 'created', key: d.key, userId: 1n, remembered: false },
    { type: 'destroyed', key: d.key, userId: 1n, reason: 'revoked' },
    { type: 'created', key: e.key, userId: 1n, remembered: false },
    { type: 'invalidated', userId: 1n, count: 1 },
    { type: 'created', key: f.key, userId: null, remembered: false },
    { type: 'expired', key: f.key, userId: null },
  ])
})

it('the diagnostics channel hears the same objects', async () => {
  const [events, published]: unknown[][] = [[], []]
  const onMessage = (message: unknown) => published!.push(message)
  subscribe('coatcheck', onMessage)
  const { sessions } = setUp({ onEvent: (event: unknown) => events!.push(event) })
  await sessions.destroy(await sessions.create())
  unsubscribe('coatcheck', onMessage)
  await sessions.create()
  expect(events).toHaveLength(3)
  // A manager of another test may still tell something there.
  expect(published!.filter(event => events!.includes(event))).toEqual(events!.slice(0, 2))
})

const fail = (thrown: unknown) => () => {
  throw thrown
}
const unshowable = { toString: fail(new Error('no')) }
const nameless = Object.assign(new Error('x'), { message: Symbol('x') })

it.each<[string, () => unknown, string]>([
  ['throws', fail(new Error('log is full')), 'log is full'],
  ['throws what is no error', fail('log is full'), '"log is full"'],
  ['throws an object without a prototype', fail(Object.create(null)), 'an object'],
  ['throws what cannot be shown', fail(unshowable), 'an object'],
  ['throws an error whose message is a symbol', fail(nameless), 'Symbol(x)'],
  ['rejects', () => Promise.reject(new Error('log is full')), 'log is full'],
  ['rejects with what cannot be shown', () => Promise.reject(unshowable), 'an object'],
  ['rejects with a promise of another realm', () => runInNewContext("Promise.reject('log is full')"), '"log is full"'],
])('a listener that %s is a process warning, and sessions begin and end all the same', async (_, onEvent, reason) => {
  const warnings: Error[] = []
  // Others of this thread may warn meanwhile.
  const onWarning = (warning: Error) => /^onEvent threw/.test(warning.message) && warnings.push(warning)
  process.on('warning', onWarning)
  const { sessions } = setUp({ onEvent })
  const session = await sessions.create()
  expect(await sessions.get(session.secret)).not.toBeNull()
  await sessions.destroy(session)
  expect(await sessions.get(session.secret)).toBeNull()
  await new Promise(resolve => setImmediate(resolve))
  process.off('warning', onWarning)
  const told = ['created', 'destroyed'].map(type => `onEvent threw at '${type}': ${reason}`)
  expect(warnings.map(({ name, message }) => [name, message])).toEqual(told.map(each => ['CoatcheckWarning', each]))
})

describe('a login that is refused is told', () => {
  it('by the limit: with the user, and with the session that was to end for it', async () => {
    const { sessions, events } = setUp({ limit: { max: 1, onLimit: 'refuse' } })
    await sessions.create({ user })
    const limit = { code: 'ERR_SESSION_LIMIT', message: 'the user has 1 sessions already: end one first' }
    await expect(sessions.create({ user })).rejects.toMatchObject(limit)
    const visitor = await sessions.create()
    await expect(sessions.logIn(visitor, { user })).rejects.toMatchObject(limit)
    expect(refusals(events)).toEqual([
      { type: 'write-refused', reason: 'limit', key: null, userId: 1n },
      { type: 'write-refused', reason: 'limit', key: visitor.key, userId: 1n },
    ])
  })

  it('by the limit, where a remember token was to begin the session', async () => {
    const { sessions, events } = setUp({ limit: { max: 1, onLimit: 'refuse' }, rememberFor: '30d' })
    const session = await sessions.create({ user })
    const token = await sessions.issueRememberToken(session)
    await sessions.destroy(await sessions.regenerate(session))
    await sessions.create({ user })
    expect(await sessions.redeemRememberToken(token)).toBeNull()
    expect(refusals(events)).toEqual([{ type: 'write-refused', reason: 'limit', key: null, userId: 1n }])
  })

  it('and not where the limit ends the oldest', async () => {
    const { sessions, events } = setUp({ limit: { max: 1, onLimit: 'end-oldest' } })
    const first = await sessions.create({ user })
    await sessions.create({ user })
    expect(refusals(events)).toEqual([])
    expect(events).toContainEqual({ type: 'destroyed', key: first.key, userId: 1n, reason: 'limit' })
  })

  it('by a password that was changed meanwhile: at each method that begins or carries on a session', async () => {
    const { sessions, events } = setUp({ rememberFor: '30d' })
    const old = { user: { ...user, passwordVersion: 1 } }
    const kept = await sessions.create(old)
    const visitor = await sessions.create()
    await sessions.invalidateUser(1, { except: kept, minPasswordVersion: 2 })
    const stale = { code: 'ERR_SESSION_STALE_LOGIN' }
    await expect(sessions.create(old)).rejects.toMatchObject(stale)
    await expect(sessions.logIn(visitor, old)).rejects.toMatchObject(stale)
    await expect(sessions.regenerate(kept)).rejects.toMatchObject(stale)
    await expect(sessions.issueRememberToken(kept)).rejects.toMatchObject(stale)
    const told = { type: 'write-refused', reason: 'stale-login', userId: 1n }
    expect(refusals(events)).toEqual([
      { ...told, key: null },
      { ...told, key: visitor.key },
      { ...told, key: kept.key },
      { ...told, key: kept.key },
    ])
  })
})

describe('a conflict is told', () => {
  it('once for each write that others left no time for', async () => {
    // So that a wait never takes longer than it was meant to: then the store would have no time, which is another error.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const { sessions, store, events } = setUp()
    const session = await sessions.create({ user })
    store.every('update', faults.answers('conflict'))
    const refused = expect(sessions.update(session, { n: 1 })).rejects.toMatchObject({
      code: 'ERR_SESSION_CONFLICT',
      message: 'gave up after storeTimeout: other requests kept changing this session',
    })
    await vi.advanceTimersByTimeAsync(10_000)
    await refused
    expect(refusals(events)).toEqual([{ type: 'write-refused', reason: 'conflict', key: session.key, userId: 1n }])
  })

  it('and not for writes that went through at last', async () => {
    const { sessions, store, events } = setUp()
    const session = await sessions.create({ user })
    for (const _ of times(3)) store.next('update', faults.answers('conflict'))
    expect((await sessions.update(session, { n: 1 }))?.data).toEqual({ n: 1 })
    expect(refusals(events)).toEqual([])
  })
})

it('a session says whether a remember token began it', async () => {
  const { sessions, events } = setUp({ rememberFor: '30d' })
  const token = await sessions.issueRememberToken(await sessions.create({ user }))
  const redeemed = await sessions.redeemRememberToken(token)
  expect(events).toMatchObject([
    { type: 'created', remembered: false },
    { type: 'created', remembered: true, key: redeemed!.session.key, userId: 1n },
  ])
})

it('an event of a tenant has its name, and one of the manager itself has none', async () => {
  const { sessions, events } = setUp({ rememberFor: '30d' })
  for (const manager of [sessions.namespace('acme'), sessions]) {
    const session = await manager.create({ user })
    await manager.destroy(await manager.regenerate(session))
    await manager.invalidateUser(1)
  }
  expect(events).toHaveLength(8)
  for (const [at, event] of events.entries()) expect(event.namespace).toBe(at < 4 ? 'acme' : undefined)
  for (const event of events.slice(4)) expect(event).not.toHaveProperty('namespace')
})

it.each([
  ['stale-login', 'ERR_SESSION_STALE_LOGIN', 'the password was changed after it was verified: log in again'],
  ['orphan', 'ERR_SESSION_UNAUTHENTICATED', 'the session has ended meanwhile: log in again'],
  ['collision', 'ERR_SESSION_ID_COLLISION', 'new IDs collide: the random generator or the store is broken'],
  ['nonsense', 'ERR_SESSION_ID_COLLISION', 'new IDs collide: the random generator or the store is broken'],
])(
  'a login at which the store answers %s is refused with the code %s, and says what helps',
  async (answer, code, message) => {
    const { sessions, store } = setUp()
    store.every('create', faults.answers(answer))
    await expect(sessions.create({ user })).rejects.toMatchObject({ code, message })
  },
)
