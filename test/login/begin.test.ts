// How a session begins, in place of another or of none.

import { describe, expect, it } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import { cookiesSent, openWith, other, setUp, user } from '../support/manager-kit.ts'
import { MINUTE } from '../support/test-clock.ts'

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
    for (const start of [{ user }, { user: other }, {}]) {
      const { sessions, manager, events } = setUp()
      const held = await sessions.create(start as never)
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

it('a visitor’s session in place of another does not outlive a logout that came while it was made', async () => {
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
    expect(events.filter(({ type }) => type === 'destroyed').map(({ reason }) => reason)).toEqual(['logout', 'logout'])
    expect(cookiesSent(visit)).toEqual([])
  }
})

it('a late request that began a session beside a login loses it; that the store fails in that moment fails no login', async () => {
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
