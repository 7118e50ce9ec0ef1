// What docs/connect.md promises of a session: under which ID it is found, what is stored, what it costs, whose store it is in.
import { sessionId } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { BarrierStore } from '../support/barrier-store.ts'
import { SECRET } from '../support/connect/apps.ts'
import { makeStore, serve, sidOf, userOf } from './service.ts'

const MINUTE = 60_000
const SID = sidOf('one browser')

describe('a session', () => {
  it('is one of the manager, under an ID that the ID of the middleware leads to', async () => {
    const { browser, sessions, store } = await serve()
    const one = browser()
    const sid = (await one.go('/login?user=42')).body
    const id = store.idOf(sid)
    expect(sessionId(id)).toBe(id)
    const session = (await sessions.get(id))!
    expect(session).toMatchObject({ user: { id: 42n }, data: { user: '42' } })
    await sessions.update(session, { cart: ['tea'] })
    expect(await one.read()).toEqual({ user: '42', cart: ['tea'] })
    expect(await sessions.revoke(42n, session.key)).toBe(true)
    expect(await one.read()).toEqual({})
  })

  it('goes on where the middleware has a new secret beside the old one, and not without the old one', async () => {
    const made = makeStore()
    const one = (await serve({}, {}, made)).browser()
    await one.go('/login?user=42')
    for (const [secret, found] of [
      [['the next secret', SECRET], { user: '42' }],
      ['the next secret', {}],
    ] as const) {
      const after = await serve({}, { middleware: { secret: secret as string } }, made)
      expect(await one.copy(after.browser()).read()).toEqual(found)
    }
  })

  it('is stored under a hash: neither the ID of the middleware nor ours reaches the store', async () => {
    const barrier = BarrierStore.over(new MemoryStore())
    const { browser, store } = await serve({}, { manager: { store: barrier } })
    const one = browser()
    const sid = (await one.go('/login?user=42')).body
    await one.go('/write?key=a&value=1')
    await one.go('/login-in-place?user=43')
    await one.go('/logout')
    const seen = JSON.stringify(barrier.calls)
    for (const verb of ['create', 'read', 'update', 'replace', 'delete']) expect(seen).toContain(`"${verb}"`)
    expect(seen).not.toContain(sid)
    expect(seen).not.toContain(store.idOf(sid))
  })

  it('costs one write per interval to say that it is used', async () => {
    const { browser, calls, clock } = await serve()
    const one = browser()
    await one.go('/login?user=42')
    await one.go('/write?key=a&value=1')
    clock.now += 4 * MINUTE
    calls.length = 0
    for (const path of ['/read', '/write?key=a&value=1', '/read']) await one.go(path)
    expect(calls, 'the same value is no change').toEqual(['read', 'touch', 'read', 'read'])
  })

  it('costs nothing for a visitor, unless saveUninitialized says so', async () => {
    const quiet = await serve()
    await quiet.browser().go('/read')
    expect(quiet.calls).toEqual([])
    const { browser, calls } = await serve({}, { middleware: { saveUninitialized: true } })
    const one = browser()
    await one.go('/read')
    expect(calls).toEqual(['create'])
    await one.go('/read')
    expect(calls).toEqual(['create', 'read'])
  })
})

describe('one store', () => {
  it('serves two middlewares of one kind, each with cookies of its own', async () => {
    const made = makeStore()
    const [shop, admin] = [
      await serve({}, { middleware: { name: 'shop', cookie: { maxAge: 60 * MINUTE } } }, made),
      await serve({}, { middleware: { name: 'admin' } }, made),
    ]
    const [customer, clerk] = [shop.browser(), admin.browser()]
    await customer.go('/login?user=1')
    await clerk.go('/login?user=2')
    await customer.go('/write?key=cart&value=tea')
    await clerk.go('/write?key=page&value=orders')
    expect(await customer.read()).toEqual({ user: '1', cart: 'tea' })
    expect(await clerk.read()).toEqual({ user: '2', page: 'orders' })
    await customer.go('/logout')
    expect(await made.sessions.list(1n)).toEqual([])
    expect(await made.sessions.list(2n)).toHaveLength(1)
  })

  it('of another namespace has other sessions', async () => {
    const { sessions } = makeStore()
    const [one, two] = ['one', 'two'].map(name => connectStore(sessions.namespace(name), { userOf: userOf as never }))
    await one!.set(SID, { cookie: {}, user: '42' })
    expect(await two!.get(SID)).toBeNull()
    expect(await one!.get(SID)).toEqual({ cookie: {}, user: '42' })
    expect(await sessions.namespace('one').list(42n)).toHaveLength(1)
    expect(await sessions.list(42n)).toEqual([])
  })
})
