// How a session begins, in place of another or of none, and how its writers keep out of each other's way.

import type { SessionManager } from 'coatcheck'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import { cookiesSent, grace, openWith, other, setUp, user } from '../support/manager-kit.ts'
import { MINUTE } from '../support/test-clock.ts'

afterEach(() => {
  vi.useRealTimers()
})

describe('a login', () => {
  it('with an ID that leads nowhere here ends what may stand there for a node with a slower clock', async () => {
    const { sessions, store, clock, manager, events } = setUp()
    const old = await sessions.create({ user: other })
    clock.advance(30 * MINUTE)
    const slow = manager({ now: clock.skewed(-5 * MINUTE) })
    events.length = 0
    const session = await sessions.logIn(old.secret, { user })
    expect(await slow.get(old.secret)).toBeNull()
    expect((await store.inner.listUser('2', 'session', { now: 0 })).length).toBe(0)
    expect(events).toEqual([
      { type: 'destroyed', key: old.key, userId: null, reason: 'logout' },
      { type: 'created', key: session.key, userId: 1n, remembered: false },
    ])
  })

  it('with none at all begins one, and ends nothing', async () => {
    const { sessions, store } = setUp()
    for (const none of [null, undefined, 'no ID']) await sessions.logIn(none as null, { user })
    expect(store.counts()).toEqual({ create: 3 })
  })

  it('in place of a session that got a new ID meanwhile ends that one too, whoever it was', async () => {
    for (const owner of [user, other, null]) {
      const { sessions, manager, events } = setUp()
      const held = owner === null ? await sessions.create() : await sessions.create({ user: owner })
      const next = (await manager().regenerate(held))!
      events.length = 0
      const session = await sessions.logIn(held, { user })
      expect(await manager().get(next.secret)).toBeNull()
      expect((await manager().get(session.secret))?.user?.id).toBe(1n)
      expect(events.map(({ type, reason }) => [type, reason])).toEqual([
        ['destroyed', 'logout'],
        ['created', undefined],
      ])
    }
  })

  it('has the data as it was written while the login was under way', async () => {
    const { sessions, store, manager } = setUp()
    const before = await sessions.create({ data: { n: 1 } })
    const pause = store.pause('replace', 'before')
    const login = sessions.logIn(before, { user, data: (data: any) => data })
    await pause.reached
    await manager().update(before, { n: 2 })
    pause.resume()
    expect((await login).data).toEqual({ n: 2 })
  })
})

describe('IDs that collide', () => {
  const collision = 'collision'
  const verbs: [string, 'create' | 'replace', (sessions: SessionManager, session: any) => Promise<any>][] = [
    ['create', 'create', sessions => sessions.create({ user })],
    ['a login', 'replace', (sessions, session) => sessions.logIn(session, { user })],
    ['regenerate', 'replace', (sessions, session) => sessions.regenerate(session)],
    ['regenerate with a grace', 'replace', (sessions, session) => sessions.regenerate(session, grace)],
    ['issueRememberToken', 'create', (sessions, session) => sessions.issueRememberToken(session)],
  ]

  it.each(verbs)('%s: are drawn again, five times', async (...given) => {
    const [, verb, run] = given
    const { sessions, store } = setUp({ rememberFor: '30d' })
    const session = await sessions.create({ user })
    store.reset()
    for (let times = 0; times < 5; times += 1) store.next(verb, faults.answers(collision))
    expect(await run(sessions, session)).not.toBeNull()
    const keys = store.calls.filter(call => call.verb === verb).map(({ args }) => args[verb === 'create' ? 0 : 2].key)
    expect(new Set(keys).size).toBe(6)
  })

  it.each(verbs)('%s: mean a broken generator where that does not help, and nothing begins', async (...given) => {
    const [, verb, run] = given
    const { sessions, store } = setUp({ rememberFor: '30d' })
    const session = await sessions.create({ user })
    store.reset()
    store.every(verb, faults.answers(collision))
    await expect(run(sessions, session)).rejects.toMatchObject({
      code: 'ERR_SESSION_ID_COLLISION',
      message: 'new IDs collide: the random generator or the store is broken',
    })
    expect(store.counts()).toEqual({ [verb]: 6 })
    expect((await sessions.get(session.secret))?.key).toBe(session.key)
  })
})

describe('a write that met another writer', () => {
  it('is tried again at once the first time, and then after waits that others do not share', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const { sessions, store } = setUp({ storeTimeout: '2s' })
    const session = await sessions.create({ data: { n: 1 } })
    store.next('update', faults.answers('conflict'))
    expect((await sessions.update(session, { n: 2 }))?.data.n).toBe(2)
    store.reset()
    store.every('update', faults.answers('conflict'))
    const update = sessions.update(session, { n: 3 }).catch((error: unknown) => error)
    await vi.advanceTimersByTimeAsync(0)
    expect(store.counts().update).toBeLessThanOrEqual(3)
    await vi.advanceTimersByTimeAsync(2100)
    expect(await update).toMatchObject({ code: 'ERR_SESSION_CONFLICT' })
    // Not in a hurry: about 50 ms apart where it goes on, and until the deadline.
    expect(store.counts().update).toBeGreaterThan(15)
    expect(store.counts().update).toBeLessThan(400)
  })

  it('works with what the last writer of this process left, without a read of its own', async () => {
    const { sessions, store } = setUp()
    const session = await sessions.create({ data: { a: 0, b: 0 } })
    store.reset()
    const [one, two] = await Promise.all([sessions.update(session, { a: 1 }), sessions.update(session, { b: 1 })])
    expect([one?.data, two?.data]).toEqual([
      { a: 1, b: 0 },
      { a: 1, b: 1 },
    ])
    expect(store.counts()).toEqual({ update: 2 })
  })
})

describe('a visitor’s session in place of the one that a visit has', () => {
  it('begins with its own data, and the other is over', async () => {
    const { sessions } = setUp({ initial: () => ({ cart: 0, theme: 'light' }) })
    const before = await sessions.create({ user, data: { cart: 3, theme: 'dark' } })
    const visit = openWith(sessions, before)
    await visit.get()
    const session = await visit.create({ data: { cart: 1 } } as never)
    expect([session.data, session.user]).toEqual([{ cart: 1, theme: 'light' }, null])
    expect(await sessions.get(before.secret)).toBeNull()
    const again = await visit.create()
    expect(again.data).toEqual({ cart: 0, theme: 'light' })
    expect(await sessions.get(session.secret)).toBeNull()
  })

  it('does not outlive a logout that came while it was made', async () => {
    for (const when of ['before', 'after'] as const) {
      const { sessions, store, events } = setUp()
      const before = await sessions.create({ user })
      const [visit, parallel] = [openWith(sessions, before), openWith(sessions, before)]
      await visit.get()
      const pause = store.pause('create', when)
      const making = visit.create().catch((error: unknown) => error)
      await pause.reached
      await parallel.logOut()
      pause.resume()
      expect(await making).toMatchObject({ code: 'ERR_SESSION_CONFLICT' })
      expect(await sessions.count()).toBe(0)
      expect(events.filter(({ type }) => type === 'destroyed').map(({ reason }) => reason)).toEqual([
        'logout',
        'logout',
      ])
      expect(cookiesSent(visit)).toEqual([])
    }
  })
})

describe('data that no longer fits', () => {
  it('is told once as reset by a write, and data that fits is not', async () => {
    const { sessions, store, events } = setUp()
    const session = await sessions.create({ data: { n: 1 } })
    await sessions.update(session, { n: 2 })
    expect(events.map(({ type }) => type)).toEqual(['created'])
    const record: any = await store.inner.read(session.key, { now: 0 })
    await store.inner.update(
      session.key,
      record.version,
      { ...record, data: '{"n":', writeId: 'another' },
      { now: record.seenAt },
    )
    const written = (await sessions.update((await sessions.get(session.secret))!, { m: 1 }))!
    expect(written.data).toEqual({ m: 1 })
    expect(events.slice(1)).toMatchObject([{ type: 'data-reset', key: session.key }])
    expect(events[1].cause).toBeInstanceOf(Error)
  })
})

describe('a late request with the cookie of before a login', () => {
  it('begins nothing, and its logout does not end the login', async () => {
    const { sessions } = setUp()
    const before = await sessions.create()
    const session = await sessions.logIn(before, { user })
    const late = openWith(sessions, before)
    await expect(late.create()).rejects.toMatchObject({ code: 'ERR_SESSION_CONFLICT' })
    await sessions.destroy(before)
    expect((await sessions.get(session.secret))?.user?.id).toBe(1n)
    expect(await sessions.count()).toBe(1)
  })

  it('that began a session before the login was answered loses it, and its cookie is not sent', async () => {
    const { sessions, store, events } = setUp()
    const before = await sessions.create()
    const pause = store.pause('replace', 'after')
    const login = sessions.logIn(before, { user })
    await pause.reached
    const late = openWith(sessions, before)
    const begun = await late.create()
    expect((await sessions.get(begun.secret))?.key).toBe(begun.key)
    events.length = 0
    pause.resume()
    const session = await login
    expect(cookiesSent(late)).toEqual([])
    await new Promise(setImmediate)
    expect(await sessions.get(begun.secret)).toBeNull()
    expect((await sessions.get(session.secret))?.user?.id).toBe(1n)
    expect(events.filter(({ type }) => type === 'destroyed')).toEqual([
      { type: 'destroyed', key: begun.key, userId: null, reason: 'logout' },
    ])
  })

  it('that loses it where the store fails in that moment is no reason to fail the login', async () => {
    const { sessions, store } = setUp()
    const before = await sessions.create()
    const pause = store.pause('replace', 'after')
    const login = sessions.logIn(before, { user })
    await pause.reached
    const late = openWith(sessions, before)
    await late.create()
    store.every('delete', faults.rejects)
    pause.resume()
    expect((await sessions.get((await login).secret))?.user?.id).toBe(1n)
    expect(cookiesSent(late)).toEqual([])
  })
})
