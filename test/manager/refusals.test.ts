import { type SessionEvent, SessionManager, type SessionOptions } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { MemoryStore } from 'coatcheck/stores/memory'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { jar } from '../support/edge-service.ts'
import { onlyHost } from '../support/only-host.ts'
import { testClock } from '../support/test-clock.ts'

const user = { id: 1, name: 'ada' }

function telling(options: Partial<SessionOptions<Record<string, unknown>, 'bigint', Record<string, unknown>>> = {}) {
  const events: SessionEvent[] = []
  const store = new MemoryStore()
  const sessions = new SessionManager({
    store,
    now: testClock(),
    sweepInterval: false,
    onEvent: event => events.push(event),
    ...options,
  })
  return { sessions, store, events, refusals: () => events.filter(event => event.type === 'write-refused') }
}

afterEach(() => {
  vi.useRealTimers()
})

describe('a login that is refused is told', () => {
  it('by the limit: with the user, and with the session that was to end for it', async () => {
    const { sessions, refusals } = telling({ limit: { max: 1, onLimit: 'refuse' } })
    await sessions.create({ user })
    await expect(sessions.create({ user })).rejects.toMatchObject({ code: 'ERR_SESSION_LIMIT' })
    const visitor = await sessions.create()
    await expect(sessions.logIn(visitor, { user })).rejects.toMatchObject({ code: 'ERR_SESSION_LIMIT' })
    expect(refusals()).toEqual([
      { type: 'write-refused', reason: 'limit', key: null, userId: 1n },
      { type: 'write-refused', reason: 'limit', key: visitor.key, userId: 1n },
    ])
  })

  it('by the limit, where a remember token was to begin the session', async () => {
    const { sessions, refusals } = telling({ limit: { max: 1, onLimit: 'refuse' }, rememberFor: '30d' })
    const session = await sessions.create({ user })
    const token = await sessions.issueRememberToken(session)
    await sessions.destroy(await sessions.regenerate(session))
    await sessions.create({ user })
    expect(await sessions.redeemRememberToken(token)).toBeNull()
    expect(refusals()).toEqual([{ type: 'write-refused', reason: 'limit', key: null, userId: 1n }])
  })

  it('and not where the limit ends the oldest', async () => {
    const { sessions, refusals, events } = telling({ limit: { max: 1, onLimit: 'end-oldest' } })
    const first = await sessions.create({ user })
    await sessions.create({ user })
    expect(refusals()).toEqual([])
    expect(events).toContainEqual({ type: 'destroyed', key: first.key, userId: 1n, reason: 'limit' })
  })

  it('by a password that was changed meanwhile: at each verb that begins or carries on a session', async () => {
    const { sessions, refusals } = telling({ rememberFor: '30d' })
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
    expect(refusals()).toEqual([
      { ...told, key: null },
      { ...told, key: visitor.key },
      { ...told, key: kept.key },
      { ...told, key: kept.key },
    ])
  })

  it('of a tenant, with its name', async () => {
    const { sessions, refusals } = telling({ limit: { max: 1, onLimit: 'refuse' } })
    const tenant = sessions.namespace('acme')
    await tenant.create({ user })
    await expect(tenant.create({ user })).rejects.toMatchObject({ code: 'ERR_SESSION_LIMIT' })
    expect(refusals()).toEqual([{ type: 'write-refused', reason: 'limit', key: null, userId: 1n, namespace: 'acme' }])
  })
})

describe('a conflict is told', () => {
  it('once for each write that others left no time for', async () => {
    // So that a wait never takes longer than it was meant to: then the store would have no time, which is another error.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const { sessions, store, refusals } = telling()
    const session = await sessions.create({ user })
    let conflicts = 0
    store.update = async () => {
      conflicts += 1
      return 'conflict'
    }
    const refused = expect(sessions.update(session, { n: 1 })).rejects.toMatchObject({
      code: 'ERR_SESSION_CONFLICT',
      message: 'gave up after storeTimeout: other requests kept changing this session',
    })
    await vi.advanceTimersByTimeAsync(10_000)
    await refused
    expect(conflicts).toBeGreaterThan(2)
    expect(refusals()).toEqual([{ type: 'write-refused', reason: 'conflict', key: session.key, userId: 1n }])
  })

  it('and not for writes that went through at last', async () => {
    const { sessions, store, refusals } = telling()
    const session = await sessions.create({ user })
    const answers: string[] = []
    const { update } = store
    store.update = async (...all) => {
      answers.push(await update.apply(store, all))
      return answers.at(-1) as 'updated'
    }
    await sessions.update(session, { n: 0 })
    await Promise.all(Array.from({ length: 20 }, (_, n) => sessions.update(session, { n })))
    expect(answers).toContain('conflict')
    expect(refusals()).toEqual([])
  })

  it('where a browser that logged out a moment ago was to begin a session', async () => {
    const { sessions, refusals } = telling()
    const open = (cookie: string | null) =>
      openVisit(sessions, { method: 'POST', secure: true, cookie, header: onlyHost })
    const login = open(null)
    const session = await login.logIn({ user })
    const cookie = jar(login.headers.getSetCookie())
    await open(cookie).logOut()
    await expect(open(cookie).create()).rejects.toMatchObject({
      code: 'ERR_SESSION_CONFLICT',
      message: 'another request from this browser logged in or out at the same time, so no new session was created',
    })
    expect(refusals()).toEqual([{ type: 'write-refused', reason: 'conflict', key: session.key, userId: null }])
  })

  it('where a parallel request ended the session that another was to take the place of', async () => {
    const { sessions, refusals } = telling()
    const open = (cookie: string | null) =>
      openVisit(sessions, { method: 'POST', secure: true, cookie, header: onlyHost })
    const first = open(null)
    const session = await first.create()
    const visit = open(jar(first.finish().headers.getSetCookie()))
    await visit.get()
    await sessions.destroy(session)
    await expect(visit.create()).rejects.toMatchObject({ code: 'ERR_SESSION_CONFLICT' })
    expect(refusals()).toEqual([{ type: 'write-refused', reason: 'conflict', key: session.key, userId: null }])
  })
})

it('a session says whether a remember token began it', async () => {
  const { sessions, events } = telling({ rememberFor: '30d' })
  const token = await sessions.issueRememberToken(await sessions.create({ user }))
  const recalled = await sessions.redeemRememberToken(token)
  expect(events).toMatchObject([
    { type: 'created', remembered: false },
    { type: 'created', remembered: true, key: recalled!.session.key, userId: 1n },
  ])
})

it('an event of a tenant has its name, and one of the manager itself has none', async () => {
  const { sessions, events } = telling({ rememberFor: '30d' })
  for (const manager of [sessions.namespace('acme'), sessions]) {
    const session = await manager.create({ user })
    await manager.destroy(await manager.regenerate(session))
    await manager.invalidateUser(1)
  }
  expect(events).toHaveLength(8)
  for (const [at, event] of events.entries()) expect(event.namespace).toBe(at < 4 ? 'acme' : undefined)
  for (const event of events.slice(4)) expect(event).not.toHaveProperty('namespace')
})

describe('a refusal says why, and what helps', () => {
  it('at the limit: how many there may be', async () => {
    const { sessions } = telling({ limit: { max: 1, onLimit: 'refuse' } })
    await sessions.create({ user })
    await expect(sessions.create({ user })).rejects.toThrow('the user has 1 sessions already: end one first')
  })

  it('where the password was changed after it was verified', async () => {
    const { sessions } = telling()
    await sessions.invalidateUser(1, { minPasswordVersion: 2 })
    await expect(sessions.create({ user: { ...user, passwordVersion: 1 } })).rejects.toThrow(
      'the password was changed after it was verified: log in again',
    )
  })

  it('where the session to be remembered has ended meanwhile', async () => {
    const { sessions } = telling({ rememberFor: '30d' })
    const session = await sessions.create({ user })
    await sessions.destroy(session)
    const error = await sessions.issueRememberToken(session).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({
      code: 'ERR_SESSION_UNAUTHENTICATED',
      message: 'the session has ended meanwhile: log in again',
    })
  })

  it.each(['stale-login', 'orphan', 'collision', 'nonsense'] as const)(
    'where a store answers %s for no reason that this manager knows',
    async outcome => {
      const { sessions, store } = telling()
      store.create = async () => outcome as 'collision'
      const codes = {
        'stale-login': 'ERR_SESSION_STALE_LOGIN',
        orphan: 'ERR_SESSION_UNAUTHENTICATED',
        collision: 'ERR_SESSION_ID_COLLISION',
        nonsense: 'ERR_SESSION_ID_COLLISION',
      }
      await expect(sessions.create({ user })).rejects.toMatchObject({ code: codes[outcome] })
    },
  )
})
