// How a session begins, in place of another or of none, and how its writers keep out of each other's way.

import type { SessionManager } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { MemoryStore } from 'coatcheck/stores/memory'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { barrierManagers } from '../support/barrier-managers.ts'
import { faults } from '../support/barrier-store.ts'
import { onlyHost } from '../support/only-host.ts'
import { MINUTE } from '../support/test-clock.ts'

const user = { id: 1, name: 'ada' }
const other = { id: 2, name: 'max' }
const setUp = (options: object = {}) => barrierManagers(new MemoryStore(), options)

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

  it('gets the data that its function makes of the session before: of a visitor’s and of the user’s own, never of another’s', async () => {
    const { sessions } = setUp({ initial: () => ({ cart: [] as string[] }) })
    const login = { user, data: (before: any) => ({ cart: [...before.cart, 'new'] }) }
    for (const [owner, cart] of [
      [null, ['tea', 'new']],
      [user, ['tea', 'new']],
      [other, ['new']],
    ] as const)
      for (const of of [(session: any) => session, (session: any) => session.secret]) {
        const data = { cart: ['tea'] }
        const before = owner === null ? await sessions.create({ data }) : await sessions.create({ user: owner, data })
        expect((await sessions.logIn(of(before), login)).data).toEqual({ cart })
      }
    expect((await sessions.logIn(null, login)).data).toEqual({ cart: ['new'] })
    const kept = await sessions.create({ data: { cart: ['tea'] } })
    expect((await sessions.logIn(kept, { user })).data).toEqual({ cart: [] })
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
    ['rotate', 'replace', (sessions, session) => sessions.regenerate(session, { grace: '1m' })],
    ['remember', 'create', (sessions, session) => sessions.issueRememberToken(session)],
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
  const open = (sessions: SessionManager, secret: string) =>
    openVisit(sessions, { method: 'POST', secure: true, cookie: `session_id=${secret}`, header: onlyHost })

  it('begins with its own data, and the other is over', async () => {
    const { sessions } = setUp({ initial: () => ({ cart: 0, theme: 'light' }) })
    const before = await sessions.create({ user, data: { cart: 3, theme: 'dark' } })
    const visit = open(sessions, before.secret)
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
      const [visit, parallel] = [open(sessions, before.secret), open(sessions, before.secret)]
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
      expect(
        visit
          .finish()
          .headers.getSetCookie()
          .filter(each => !each.includes('Max-Age=0')),
      ).toEqual([])
    }
  })
})

describe('two processes that redeem one remember token', () => {
  const redeeming = async () => {
    const at = setUp({ rememberFor: '30d' })
    const token = await at.sessions.issueRememberToken(await at.sessions.create({ user }))
    const pause = at.store.pause('create', 'before')
    const slow = at.sessions.redeemRememberToken(token)
    await pause.reached
    return { ...at, token, slow, pause, node: at.manager() }
  }

  it('begin one session, whichever stores it', async () => {
    const { slow, pause, node, token, sessions } = await redeeming()
    const quick = (await node.redeemRememberToken(token))!
    pause.resume()
    const answer = (await slow)!
    expect([answer.session.secret, answer.token]).toEqual([quick.session.secret, quick.token])
    expect(answer.session.remembered).toBe(true)
    expect(await sessions.list(1)).toHaveLength(2)
  })

  it('begin no second one where the first got a new ID meanwhile, or ended', async () => {
    for (const end of [
      (node: SessionManager, session: any) => node.regenerate(session),
      (node: SessionManager, session: any) =>
        node.regenerate(session, { grace: '1m' }).then(next => node.regenerate(next)),
    ]) {
      const { slow, pause, node, token, sessions } = await redeeming()
      await end(node, (await node.redeemRememberToken(token))!.session)
      pause.resume()
      expect(await slow).toBeNull()
      expect(await sessions.list(1)).toHaveLength(2)
    }
  })
})

describe('the time at which a password was verified', () => {
  it('is not stored where it was just now, since the session began then', async () => {
    const { sessions, store, clock } = setUp()
    await sessions.create({ user, verifiedAt: clock() })
    await sessions.create({ user, verifiedAt: clock() - 1 })
    expect(store.calls.map(({ args }) => args[0].data)).toEqual(['{}', `@v${clock() - 1}@{}`])
  })
})

describe('data that no longer fits', () => {
  it('is the start value where it is read, and told as reset', async () => {
    const { sessions, events, manager } = setUp()
    const session = await sessions.create({ user: { id: 1, name: 'ada' }, data: { n: 'one' } })
    events.length = 0
    const strict = {
      '~standard': {
        version: 1,
        vendor: 'none',
        validate: (value: any) =>
          typeof value.n === 'number' ? { value } : { issues: [{ message: 'n is not a number' }] },
      },
    }
    const sessionsNow = manager({ schema: strict, initial: () => ({ n: 0 }) })
    const found = (await sessionsNow.get(session.secret))!
    expect([found.user, found.data]).toEqual([session.user, { n: 0 }])
    expect(events).toMatchObject([{ type: 'data-reset', key: session.key }])
    expect(events[0].cause).toBeInstanceOf(Error)
    const [listed] = await sessionsNow.list(1)
    expect(listed!.data).toEqual({ n: 0 })
  })

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
  const open = (sessions: SessionManager, cookie: string) =>
    openVisit(sessions, { method: 'POST', secure: true, cookie, header: onlyHost })
  const cookiesOf = (visit: { finish(): { headers: Headers } }) =>
    visit
      .finish()
      .headers.getSetCookie()
      .filter(each => !each.includes('Max-Age=0'))

  it('begins nothing, and its logout does not end the login', async () => {
    const { sessions } = setUp()
    const before = await sessions.create()
    const session = await sessions.logIn(before, { user })
    const late = open(sessions, `session_id=${before.secret}`)
    await expect(late.create()).rejects.toMatchObject({ code: 'ERR_SESSION_CONFLICT' })
    await sessions.destroy(before)
    expect((await sessions.get(session.secret))?.user?.id).toBe(1n)
    expect(await sessions.count()).toBe(1)
  })

  it('begins nothing with the remember token of before either', async () => {
    const { sessions, clock } = setUp({ rememberFor: '30d' })
    const token = await sessions.issueRememberToken(await sessions.create({ user }))
    clock.advance(60 * MINUTE)
    const recalled = (await sessions.redeemRememberToken(token))!
    await sessions.logIn(recalled.session, { user })
    const late = open(sessions, `remember_token=${recalled.token}`)
    await expect(late.create()).rejects.toMatchObject({ code: 'ERR_SESSION_CONFLICT' })
    expect(await sessions.count()).toBe(1)
  })

  it('that began a session before the login was answered loses it, and its cookie is not sent', async () => {
    const { sessions, store, events } = setUp()
    const before = await sessions.create()
    const pause = store.pause('replace', 'after')
    const login = sessions.logIn(before, { user })
    await pause.reached
    const late = open(sessions, `session_id=${before.secret}`)
    const begun = await late.create()
    expect((await sessions.get(begun.secret))?.key).toBe(begun.key)
    events.length = 0
    pause.resume()
    const session = await login
    expect(cookiesOf(late)).toEqual([])
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
    const late = open(sessions, `session_id=${before.secret}`)
    await late.create()
    store.every('delete', faults.rejects)
    pause.resume()
    expect((await sessions.get((await login).secret))?.user?.id).toBe(1n)
    expect(cookiesOf(late)).toEqual([])
  })
})
