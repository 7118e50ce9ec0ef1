// Whose a session is: logouts everywhere, limits, password changes, and logins without a new ID.
import { connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { BarrierStore } from '../support/barrier-store.ts'
import { serve, userOf } from './service.ts'

const MINUTE = 60_000

describe('a user', () => {
  it('has no more sessions than the limit, also those of logins without a new ID', async () => {
    const { browser, sessions, clock, events } = await serve(
      {},
      {
        manager: { limit: { max: 2, onLimit: 'end-oldest' } },
      },
    )
    const all = [browser(), browser(), browser()]
    for (const one of all) {
      await one.go('/write?key=cart&value=tea')
      await one.go('/login-in-place?user=42')
      clock.now += 1000
    }
    expect(await sessions.list(42n)).toHaveLength(2)
    expect(events).toEqual(['created', 'regenerated', 'created', 'regenerated', 'created', 'destroyed', 'regenerated'])
    expect(await Promise.all(all.map(one => one.read()))).toEqual([
      {},
      { cart: 'tea', user: '42' },
      { cart: 'tea', user: '42' },
    ])
  })

  it('who is at a limit that refuses is told so, and the browser is not logged in', async () => {
    const { browser, events } = await serve({}, { manager: { limit: { max: 1, onLimit: 'refuse' } } })
    await browser().go('/login?user=42')
    const one = browser()
    expect(await one.go('/login?user=42')).toMatchObject({ status: 409, body: 'ERR_SESSION_LIMIT' })
    expect([...new Set(events)]).toEqual(['created', 'write-refused'])
    expect(await one.read()).toEqual({})
  })
})

describe('a login without a new ID', () => {
  it('keeps the data of the visitor, and is found with one read in this process, with two in another', async () => {
    const { browser, calls, sessions, store } = await serve()
    const one = browser()
    await one.go('/write?key=cart&value=tea')
    calls.length = 0
    const sid = (await one.go('/login-in-place?user=42')).body
    expect(calls).toEqual(['read', 'replace'])
    calls.length = 0
    expect(await one.read()).toEqual({ cart: 'tea', user: '42' })
    expect(calls).toEqual(['read'])
    calls.length = 0
    const other = connectStore(sessions, { userOf: userOf as never })
    expect(await other.get(sid)).toMatchObject({ user: '42' })
    expect(await other.get(sid)).toMatchObject({ user: '42' })
    expect(calls).toEqual(['read', 'read', 'read'])
    expect((await sessions.get(store.idOf(sid)))?.user?.id).toBe(42n)
  })

  it('lasts as long as the session may, in another process too, and ends with its logout', async () => {
    const { browser, clock, sessions } = await serve()
    const one = browser()
    await one.go('/write?key=cart&value=tea')
    const sid = (await one.go('/login-in-place?user=42')).body
    for (let hours = 0; hours < 11; hours += 0.4) {
      clock.now += 24 * MINUTE
      expect((await one.read()).user).toBe('42')
    }
    expect(await connectStore(sessions, { userOf: userOf as never }).get(sid)).toMatchObject({ user: '42' })
    const copy = one.copy()
    await one.go('/logout')
    expect(await copy.read()).toEqual({})
    expect(await sessions.list(42n)).toEqual([])
  })

  const [login, write] = ['/login-in-place?user=42', '/write?key=seen&value=page']
  it.each([
    ['starts with what another request of the visitor wrote meanwhile', 'replace', login, write],
    ['gets what a late request of the visitor writes', 'update', write, login],
  ] as const)('%s, at another node', async (_, verb, slow, fast) => {
    const barrier = BarrierStore.over(new MemoryStore())
    const nodes = [await serve({}, { manager: { store: barrier } }), await serve({}, { manager: { store: barrier } })]
    const one = nodes[0]!.browser()
    await one.go('/write?key=cart&value=tea')
    const pause = barrier.pause(verb, 'before')
    const late = one.go(slow)
    await pause.reached
    await one.copy().go(fast, nodes[1]!.port)
    pause.resume()
    await late
    expect(await one.read()).toEqual({ cart: 'tea', seen: 'page', user: '42' })
  })

  it('of one user leaves a slower one of another user, at another node, without a session', async () => {
    const barrier = BarrierStore.over(new MemoryStore())
    const nodes = [await serve({}, { manager: { store: barrier } }), await serve({}, { manager: { store: barrier } })]
    const one = nodes[0]!.browser()
    await one.go('/write?key=cart&value=tea')
    const pause = barrier.pause('replace', 'before')
    const slow = one.go('/login-in-place?user=43')
    await pause.reached
    await one.copy().go('/login-in-place?user=42', nodes[1]!.port)
    pause.resume()
    await slow
    expect(await one.read()).toEqual({ cart: 'tea', user: '42' })
    expect(await nodes[0]!.sessions.list(43n)).toEqual([])
  })

  it('is found for eight users in one session: the ninth logs in anew, and none is left by a logout', async () => {
    const { browser, sessions, store } = await serve()
    const one = browser()
    const sid = (await one.go('/write?key=cart&value=tea')).body
    const elsewhere = () => connectStore(sessions, { userOf: userOf as never }).get(sid)
    for (let user = 1; user <= 8; user += 1) {
      await one.go(`/login-in-place?user=${user}`)
      // The same one again is none that counts.
      await one.go('/forget-user')
      await one.go(`/login-in-place?user=${user}`)
      expect(await elsewhere()).toMatchObject({ user: String(user), cart: 'tea' })
    }
    await one.go('/login-in-place?user=9')
    expect(await elsewhere()).toBeNull()
    await store.destroy(sid)
    expect(await sessions.count()).toBe(0)
  })
})
