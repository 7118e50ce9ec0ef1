// What docs/connect.md promises of a session: under which ID it is found, what is stored, what it costs, whose store it is in.
import { sessionId } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { BarrierStore } from '../support/barrier-store.ts'
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
})

describe('one store', () => {
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
