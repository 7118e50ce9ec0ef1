// What docs/connect.md promises of a session behind express-session: whose it is, how it ends, what it costs, what is stored.
import { sessionId } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it, vi } from 'vitest'
import { BarrierStore, faults } from '../support/barrier-store.ts'
import { APPS, startApp } from './apps.ts'
import { HANDLERS, makeStore, SECRET, serve, sidOf, userOf } from './service.ts'

const MINUTE = 60_000
const body = async (reply: Promise<{ body: string }>) => JSON.parse((await reply).body)

describe('a session', () => {
  it('is one of the manager, under an ID that the ID of the middleware leads to', async () => {
    const { browser, sessions, store } = await serve(HANDLERS)
    const one = browser()
    const sid = (await one.go('/login?user=42')).body
    const id = store.idOf(sid)
    expect(sessionId(id)).toBe(id)
    const session = (await sessions.get(id))!
    expect(session).toMatchObject({ user: { id: 42n }, data: { user: '42' } })
    await sessions.update(session, { cart: ['tea'] })
    expect(await body(one.go('/read'))).toEqual({ user: '42', cart: ['tea'] })
    expect(await sessions.revoke(42n, session.key)).toBe(true)
    expect(await body(one.go('/read'))).toEqual({})
  })

  it('goes on where the middleware has a new secret beside the old one, and not without the old one', async () => {
    const made = makeStore()
    const one = (await serve(HANDLERS, {}, made)).browser()
    await one.go('/login?user=42')
    for (const [secret, found] of [
      [['the next secret', SECRET], { user: '42' }],
      ['the next secret', {}],
    ] as const) {
      const after = (await serve(HANDLERS, { middleware: { secret: secret as string } }, made)).browser()
      for (const [name, value] of one.cookies) after.cookies.set(name, value)
      expect(await body(after.go('/read'))).toEqual(found)
    }
  })

  it('is stored under a hash: neither the ID of the middleware nor ours reaches the store', async () => {
    const barrier = BarrierStore.over(new MemoryStore())
    const { browser, store } = await serve(HANDLERS, { manager: { store: barrier } })
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

  it('costs one read, a write if something changed, and one to say that it is used once per interval', async () => {
    const { browser, calls, clock } = await serve(HANDLERS)
    const one = browser()
    await one.go('/login?user=42')
    calls.length = 0
    await one.go('/read')
    expect(calls).toEqual(['read'])
    await one.go('/write?key=a&value=1')
    expect(calls).toEqual(['read', 'read', 'update'])
    calls.length = 0
    await one.go('/write?key=a&value=1')
    expect(calls).toEqual(['read'])
    clock.now += 4 * MINUTE
    calls.length = 0
    await one.go('/read')
    await one.go('/read')
    expect(calls).toEqual(['read', 'touch', 'read'])
  })

  it('costs nothing for a visitor, unless saveUninitialized says so', async () => {
    const quiet = await serve(HANDLERS)
    await quiet.browser().go('/read')
    expect(quiet.calls).toEqual([])
    const { browser, calls } = await serve(HANDLERS, { middleware: { saveUninitialized: true } })
    const one = browser()
    await one.go('/read')
    expect(calls).toEqual(['create'])
    await one.go('/read')
    expect(calls).toEqual(['create', 'read'])
  })

  it.each([{ resave: true }, { rolling: true }])('is not written if nothing changed, with %o', async middleware => {
    const { browser, calls } = await serve(HANDLERS, { middleware: { ...middleware, cookie: { maxAge: 60 * MINUTE } } })
    const one = browser()
    await one.go('/login?user=42')
    calls.length = 0
    const { cookies } = await one.go('/read')
    expect(calls).toEqual(['read'])
    expect(cookies).toHaveLength('rolling' in middleware ? 1 : 0)
  })

  it.each(Object.keys(APPS))('is not written if the clock goes on between any two looks at it, in %s', async name => {
    const { store, calls } = makeStore({ userIds: 'string' } as never)
    const { browser, close } = await startApp(name, store, { cookie: { maxAge: MINUTE, secure: false } })
    let now = Date.now()
    vi.spyOn(Date, 'now').mockImplementation(() => ++now)
    try {
      const one = browser()
      await one.go('/login?user=ada')
      calls.length = 0
      for (const _ of [1, 2, 3]) await one.go('/read')
      expect(calls).toEqual(['read', 'read', 'read'])
    } finally {
      vi.restoreAllMocks()
      await close()
    }
  })

  it.each(Object.keys(APPS))(
    'begins anew at a login in %s: as one whose password was verified just now',
    async name => {
      const { store, sessions } = makeStore({ userIds: 'string' } as never)
      const sids: string[] = []
      const { set } = store
      store.set = (sid, ...args) => {
        sids.push(sid)
        return set.call(store, sid, ...args)
      }
      const { browser, close } = await startApp(name, store)
      const one = browser()
      await one.go('/write?key=cart')
      await one.go('/write?key=seen')
      const copy = one.copy()
      await one.go('/login?user=ada')
      expect((await one.go('/read')).body).toMatchObject({ user: 'ada' })
      expect((await copy.go('/read')).body?.user).toBeUndefined()
      expect(await store.get(sids[0]!)).toBeNull()
      const isLastFresh = async () => sessions.isFresh(await sessions.get(store.idOf(sids.at(-1)!)), '5m')
      expect(await isLastFresh()).toBe(true)
      await browser().go('/login-in-place?user=ada')
      expect(await isLastFresh()).toBe(true)
      await close()
    },
  )

  it.each(Object.keys(APPS))('costs one read in %s, and one write if something changed', async name => {
    const { store, calls } = makeStore({ userIds: 'string' } as never)
    for (const rolling of [false, true]) {
      const { browser, close } = await startApp(name, store, { rolling, cookie: { maxAge: MINUTE, secure: false } })
      const one = browser()
      await one.go('/login?user=ada')
      calls.length = 0
      // koa-session keeps the end of a rolling cookie in the data: in the same millisecond it would be the same.
      const loggedIn = Date.now()
      await vi.waitUntil(() => Date.now() > loggedIn, { interval: 1 })
      await one.go('/read')
      expect(calls).toEqual(rolling && name.startsWith('koa') ? ['read', 'update'] : ['read'])
      calls.length = 0
      await one.go('/write?key=a')
      expect(calls).toEqual(['read', 'update'])
      await close()
    }
  })

  it('ends by the two clocks of the manager, whatever its cookie says', async () => {
    const manager = { idleTimeout: '30m', absoluteTimeout: '2h' } as const
    const { browser, clock } = await serve(HANDLERS, { manager, middleware: { cookie: { maxAge: 400 * 86_400_000 } } })
    const one = browser()
    await one.go('/login?user=42')
    for (let minutes = 0; minutes < 115; minutes += 25) {
      expect(await body(one.go('/read'))).toEqual({ user: '42' })
      clock.now += 25 * MINUTE
    }
    expect(await body(one.go('/read'))).toEqual({})
    await one.go('/login?user=42')
    clock.now += 31 * MINUTE
    expect(await body(one.go('/read'))).toEqual({})
  })
})

describe('a user', () => {
  it('is logged out everywhere', async () => {
    const { browser, sessions } = await serve(HANDLERS)
    const both = [browser(), browser()]
    for (const one of both) await one.go('/login?user=42')
    expect(await sessions.list(42n)).toHaveLength(2)
    expect(await sessions.invalidateUser(42n)).toBe(2)
    for (const one of both) expect(await body(one.go('/read'))).toEqual({})
  })

  it('has no more sessions than the limit, also those of logins without a new ID', async () => {
    const { browser, sessions, clock, events } = await serve(HANDLERS, {
      manager: { limit: { max: 2, onLimit: 'end-oldest' } },
    })
    const all = [browser(), browser(), browser()]
    for (const one of all) {
      await one.go('/write?key=cart&value=tea')
      await one.go('/login-in-place?user=42')
      clock.now += 1000
    }
    expect(await sessions.list(42n)).toHaveLength(2)
    expect(events).toEqual(['created', 'regenerated', 'created', 'regenerated', 'created', 'destroyed', 'regenerated'])
    expect(await Promise.all(all.map(one => body(one.go('/read'))))).toEqual([
      {},
      { cart: 'tea', user: '42' },
      { cart: 'tea', user: '42' },
    ])
  })

  it('who is at a limit that refuses is told so, and the browser is not logged in', async () => {
    const { browser, events } = await serve(HANDLERS, { manager: { limit: { max: 1, onLimit: 'refuse' } } })
    await browser().go('/login?user=42')
    const one = browser()
    expect(await one.go('/login?user=42')).toMatchObject({ status: 409, body: 'ERR_SESSION_LIMIT' })
    expect([...new Set(events)]).toEqual(['created', 'write-refused'])
    expect(await body(one.go('/read'))).toEqual({})
  })

  it.each(['create', 'replace'] as const)(
    'whose password changed during a slow login (%s) gets no session',
    async verb => {
      const barrier = BarrierStore.over(new MemoryStore())
      const user = { id: '42', passwordVersion: 1 }
      const { browser, sessions, errors } = await serve(
        {
          ...HANDLERS,
          '/slow': async (request, response) => {
            if (verb === 'create') await new Promise(resolve => request.session.regenerate(resolve))
            request.session.user = user
            await new Promise((resolve, reject) =>
              request.session.save((e: unknown) => (e ? reject(e) : resolve(null))),
            )
            response.end('logged in')
          },
        },
        { manager: { store: barrier } },
      )
      const one = browser()
      await one.go('/write?key=cart&value=tea')
      const pause = barrier.pause(verb, 'before')
      const login = one.go('/slow')
      await pause.reached
      await sessions.invalidateUser(42n, { minPasswordVersion: 2 })
      pause.resume()
      await login
      expect(errors).toContainEqual(expect.objectContaining({ code: 'ERR_SESSION_STALE_LOGIN' }))
      expect(await sessions.list(42n)).toEqual([])
      expect((await body(one.go('/read'))).user).toBeUndefined()
    },
  )

  it('who logs in while all sessions are ended is logged in or not, and never half', async () => {
    const barrier = BarrierStore.over(new MemoryStore())
    for (const when of ['before', 'after'] as const) {
      const { browser, sessions } = await serve(HANDLERS, { manager: { store: barrier } })
      const one = browser()
      const pause = barrier.pause('create', when)
      const login = one.go('/login?user=42')
      await pause.reached
      const ended = await sessions.invalidateUser(42n)
      pause.resume()
      expect((await login).status).toBe(200)
      const listed = await sessions.list(42n)
      expect(listed).toHaveLength(when === 'before' ? 1 : 0)
      expect(ended).toBe(when === 'before' ? 0 : 1)
      expect((await body(one.go('/read'))).user).toBe(when === 'before' ? '42' : undefined)
      await sessions.invalidateUser(42n)
    }
  })
})

describe('a login without a new ID', () => {
  const start = () => serve(HANDLERS)

  it('keeps the data of the visitor, and is found with one read in this process, with two in another', async () => {
    const { browser, calls, sessions, store } = await start()
    const one = browser()
    await one.go('/write?key=cart&value=tea')
    calls.length = 0
    const sid = (await one.go('/login-in-place?user=42')).body
    expect(calls).toEqual(['read', 'replace'])
    calls.length = 0
    expect(await body(one.go('/read'))).toEqual({ cart: 'tea', user: '42' })
    expect(calls).toEqual(['read'])
    calls.length = 0
    const other = connectStore(sessions, { userOf: userOf as never })
    expect(await other.get(sid)).toMatchObject({ user: '42' })
    expect(await other.get(sid)).toMatchObject({ user: '42' })
    expect(calls).toEqual(['read', 'read', 'read'])
    expect((await sessions.get(store.idOf(sid)))?.user?.id).toBe(42n)
  })

  it('lasts as long as the session may, and ends with its logout', async () => {
    const { browser, clock, sessions } = await start()
    const one = browser()
    await one.go('/write?key=cart&value=tea')
    await one.go('/login-in-place?user=42')
    for (let hours = 0; hours < 11; hours += 0.4) {
      clock.now += 24 * MINUTE
      expect((await body(one.go('/read'))).user).toBe('42')
    }
    const copy = browser()
    for (const [name, value] of one.cookies) copy.cookies.set(name, value)
    await one.go('/logout')
    expect(await body(copy.go('/read'))).toEqual({})
    expect(await sessions.list(42n)).toEqual([])
  })

  /** Two processes over one store, and a browser that meets both. */
  async function twoNodes() {
    const barrier = BarrierStore.over(new MemoryStore())
    const [here, there] = [
      await serve(HANDLERS, { manager: { store: barrier } }),
      await serve(HANDLERS, { manager: { store: barrier } }),
    ]
    const one = here.browser()
    const elsewhere = async (path: string) => {
      const two = there.browser()
      for (const [name, value] of one.cookies) two.cookies.set(name, value)
      return two.go(path)
    }
    return { barrier, one, elsewhere, sessions: here.sessions }
  }

  it('starts with what parallel requests of the visitor wrote meanwhile', async () => {
    const { barrier, one, elsewhere } = await twoNodes()
    await one.go('/write?key=cart&value=tea')
    const pause = barrier.pause('replace', 'before')
    const login = one.go('/login-in-place?user=42')
    await pause.reached
    await elsewhere('/write?key=seen&value=page')
    pause.resume()
    await login
    expect(await body(one.go('/read'))).toEqual({ cart: 'tea', seen: 'page', user: '42' })
  })

  it('gets what a late request of the visitor writes', async () => {
    const { barrier, one, elsewhere } = await twoNodes()
    await one.go('/write?key=cart&value=tea')
    const pause = barrier.pause('update', 'before')
    const late = one.go('/write?key=seen&value=page')
    await pause.reached
    await elsewhere('/login-in-place?user=42')
    pause.resume()
    await late
    expect(await body(one.go('/read'))).toEqual({ cart: 'tea', seen: 'page', user: '42' })
  })

  it('is found for eight users in one session: the ninth logs in anew, and none is left by a logout', async () => {
    const { browser, sessions, store } = await start()
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

describe('a store that fails', () => {
  it.each(['rejects', 'throws'] as const)('is an error for next, and no new session (%s)', async how => {
    const barrier = BarrierStore.over(new MemoryStore())
    const { browser } = await serve(HANDLERS, { manager: { store: barrier } })
    const one = browser()
    await one.go('/login?user=42')
    const { cookie } = one
    barrier.every('read', faults[how])
    const reply = await one.go('/read')
    expect(reply).toMatchObject({ status: 503, cookies: [] })
    barrier.every('read', null)
    expect(one.cookie).toBe(cookie)
    expect(await body(one.go('/read'))).toEqual({ user: '42' })
  })

  it.each(Object.keys(APPS))('is a 503 in %s, and the browser stays logged in', async name => {
    const barrier = BarrierStore.over(new MemoryStore())
    const { store, sessions } = makeStore({ userIds: 'string', store: barrier } as never)
    const { browser, close } = await startApp(name, store)
    const one = browser()
    await one.go('/login?user=ada')
    const cookies = new Map(one.cookies)
    for (const [verb, path] of [
      ['read', '/read'],
      ['read', '/write?key=a'],
      ['delete', '/logout'],
    ] as const) {
      barrier.every(verb, faults.rejects)
      expect((await one.go(path)).status).toBe(503)
      expect(one.cookies).toEqual(cookies)
      barrier.every(verb, null)
    }
    expect((await one.go('/read')).body).toMatchObject({ user: 'ada' })
    expect(await sessions.count()).toBe(1)
    await close()
  })

  it('fails a save and a logout, which can be repeated', async () => {
    const barrier = BarrierStore.over(new MemoryStore())
    const { browser, errors } = await serve(HANDLERS, { manager: { store: barrier } })
    const one = browser()
    await one.go('/login?user=42')
    barrier.every('update', faults.rejects)
    await one.go('/write?key=a&value=1')
    expect(errors).toMatchObject([{ code: 'ERR_SESSION_STORE' }])
    barrier.every('update', null)
    await one.go('/write?key=a&value=1')
    expect(await body(one.go('/read'))).toEqual({ user: '42', a: '1' })
    barrier.every('delete', faults.rejects)
    expect((await one.go('/logout')).status).toBe(503)
    barrier.every('delete', null)
    expect((await one.go('/logout')).status).toBe(200)
  })

  it('takes no process down if nobody waits for the answer', async () => {
    const barrier = BarrierStore.over(new MemoryStore())
    const { browser, events } = await serve(
      {
        ...HANDLERS,
        '/leave': (request, response) => {
          request.session.destroy()
          response.end('left')
        },
      },
      { manager: { store: barrier } },
    )
    const one = browser()
    await one.go('/login?user=42')
    barrier.every('delete', faults.rejects)
    // A rejection that nobody handles would fail this run.
    expect((await one.go('/leave')).body).toBe('left')
    expect(events).toContain('store-error')
  })

  it('whose answer to a create was lost is asked again by the next save of the same object', async () => {
    const barrier = BarrierStore.over(new MemoryStore())
    const { store } = makeStore({ store: barrier })
    const session = { cookie: {}, user: '42' }
    barrier.next('create', faults.rejectsAfter)
    await expect(store.set(sidOf('lost'), session)).rejects.toMatchObject({ code: 'ERR_SESSION_STORE' })
    await store.set(sidOf('lost'), session)
    expect(await store.get(sidOf('lost'))).toEqual(session)
  })

  it('has lost a record that is no session: that is none, and an event', async () => {
    const barrier = BarrierStore.over(new MemoryStore())
    const { browser, events } = await serve(HANDLERS, { manager: { store: barrier } })
    const one = browser()
    await one.go('/login?user=42')
    barrier.next('read', faults.answers({ corrupt: 'no session' }))
    expect(await body(one.go('/read'))).toEqual({})
    expect(events).toContain('corrupt-record')
  })
})
