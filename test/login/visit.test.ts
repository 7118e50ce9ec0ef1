// One request's handle on its session: what it reads, what it begins and ends, and what its response says.
import { type Change, SessionManager } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it, vi } from 'vitest'
import { ada, type Data, jar, loggedIn, makeSessions, setCookies, visitOf } from '../support/edge-service.ts'

const PERSONAL = [
  ['cache-control', 'no-store'],
  ['vary', 'Cookie'],
]

describe('a visit', () => {
  it('reads the store once, however often and however much in parallel it is asked', async () => {
    const made = makeSessions()
    const { cookie } = await loggedIn(made)
    const visit = visitOf(made.sessions, cookie)
    const answers = await Promise.all([
      visit.get(),
      visit.get({ touch: false }),
      visit.requireUser(),
      visit.csrfToken(),
    ])
    expect((await visit.get())?.user?.name).toBe('ada')
    expect(answers[0]).toBe(answers[1])
    expect(made.calls).toEqual(['read'])
  })

  it('finds its session where the application has put another Promise in place of the global one', async () => {
    const made = makeSessions()
    const { cookie } = await loggedIn(made)
    vi.stubGlobal('Promise', class extends Promise<unknown> {})
    expect((await visitOf(made.sessions, cookie).get())?.user?.name).toBe('ada')
    expect(await visitOf(made.sessions, null).get()).toBeNull()
  })

  it('says no-store for a session, also while the store is asked, and where it fails', async () => {
    const made = makeSessions()
    const { cookie } = await loggedIn(made)
    const early = visitOf(made.sessions, cookie)
    const reading = early.get()
    expect([...early.headers]).toEqual(PERSONAL)
    await reading
    expect([...early.headers]).toEqual(PERSONAL)
    const store = Object.assign(new MemoryStore(), { read: () => Promise.reject(new Error('down')) })
    const failed = visitOf(new SessionManager({ store }) as never, cookie)
    await expect(failed.get()).rejects.toMatchObject({ code: 'ERR_SESSION_STORE' })
    expect([...failed.headers]).toEqual(PERSONAL)
  })

  it('does not say no-store where it was refused before the store was asked', async () => {
    const { sessions, calls } = makeSessions()
    const visit = visitOf(sessions, `session_id=${'a'.repeat(43)}`, { secure: false })
    await expect(visit.logIn(ada)).rejects.toMatchObject({ code: 'ERR_SESSION_INSECURE' })
    expect([[...visit.headers], calls]).toEqual([[['vary', 'Cookie']], []])
  })

  it('shares the read that is under way with a verb that writes', async () => {
    const made = makeSessions()
    const { cookie } = await loggedIn(made)
    const visit = visitOf(made.sessions, cookie)
    await Promise.all([visit.get(), visit.logIn(ada)])
    expect(made.calls).toEqual(['read', 'replace'])
  })
})

describe('a login', () => {
  it('has a new ID each time, and carries the data that is asked for', async () => {
    const made = makeSessions()
    const first = visitOf(made.sessions)
    const anonymous = await first.update({ cart: ['tea'], n: 1 })
    const visit = visitOf(made.sessions, jar(setCookies(first)))
    const session = await visit.logIn({ ...ada, data: before => ({ cart: before.cart ?? [] }) })
    expect(session.data).toEqual({ cart: ['tea'] })
    expect(session.secret).not.toBe(anonymous?.secret)
    expect(await made.sessions.get(anonymous!.secret)).toBeNull()
    expect(jar(setCookies(visit))).toBe(`session_id=${session.secret}`)
  })

  it('ends what the same visit began before', async () => {
    const made = makeSessions()
    const visit = visitOf(made.sessions)
    const anonymous = await visit.update({ n: 1 })
    const session = await visit.logIn({ ...ada, data: before => ({ n: before.n! + 1 }) })
    expect([await made.sessions.get(anonymous!.secret), session.data]).toEqual([null, { n: 2 }])
  })

  it('is waited for by a save after it, also where an earlier verb has ended meanwhile', async () => {
    const made = makeSessions()
    const visit = visitOf(made.sessions)
    const first = visit.update({ n: 1 })
    const second = visit.logIn(ada)
    await first
    for (let turn = 0; turn < 10; turn += 1) await null
    const saved = await visit.update({ n: 3 })
    expect([saved?.key, saved?.user?.name, saved?.data]).toEqual([(await second).key, 'ada', { n: 3 }])
  })

  it('that was under way when the session was asked for is what a read finds', async () => {
    const made = makeSessions()
    const { cookie } = await loggedIn(made)
    const visit = visitOf(made.sessions, cookie)
    const logIn = visit.logIn(ada)
    // The read is answered after the login: it finds the old ID, which is dead by then.
    const get = made.sessions.get.bind(made.sessions)
    made.sessions.get = (...args) => logIn.then(() => get(...args))
    const found = await visit.get()
    expect([found, await visit.get()]).toEqual([await logIn, await logIn])
    expect(jar(setCookies(visit))).toBe(`session_id=${found?.secret}`)
  })

  it('after a logout of the same visit has a session that no other browser gets which does the same', async () => {
    const { sessions } = makeSessions()
    const keys = new Set<string>()
    for (let browser = 0; browser < 3; browser += 1) {
      const visit = visitOf(sessions)
      await visit.logOut()
      keys.add((await visit.logIn(ada)).key)
    }
    expect(keys.size).toBe(3)
  })
})

describe('a logout', () => {
  it('ends the session and clears the cookie, also where there is no session', async () => {
    const made = makeSessions()
    const { cookie, session } = await loggedIn(made)
    const visit = visitOf(made.sessions, cookie)
    await visit.logOut()
    expect(await visit.get()).toBeNull()
    // The read is for the remember token that the session may have begun with.
    expect(made.calls).toEqual(['read', 'delete'])
    expect(setCookies(visit)).toEqual([
      expect.stringMatching(/^session_id=; Max-Age=0; Path=\/; Expires=Thu, 01 Jan 1970/),
    ])
    expect(await made.sessions.get(session.secret)).toBeNull()
    const anonymous = visitOf(made.sessions)
    await anonymous.logOut()
    expect(setCookies(anonymous)).toHaveLength(1)
  })

  it('alone clears a cookie: not a look that finds nothing', async () => {
    const { sessions } = makeSessions()
    for (const value of ['a'.repeat(43), 'junk', '']) {
      const visit = visitOf(sessions, `session_id=${value}`)
      expect([await visit.get(), await visit.get()]).toEqual([null, null])
      // Nor does it make the response a personal one.
      expect([...visit.headers]).toEqual([['vary', 'Cookie']])
      expect(setCookies(visit)).toEqual([])
    }
  })

  it.each(['logOut', 'logIn'] as const)('ends by an old ID that is dead what has the new one: %s', async verb => {
    const made = makeSessions()
    const { cookie, session } = await loggedIn(made)
    // Another process gave the new ID, so that this one remembers nothing of it.
    await makeSessions({ store: made.store }).sessions.regenerate(session.secret)
    const visit = visitOf(made.sessions, cookie)
    expect(await visit.get()).toBeNull()
    const begun = verb === 'logIn' ? await visit.logIn(ada) : await visit.logOut()
    expect((await made.sessions.list(42n)).map(({ key }) => key)).toEqual(begun ? [begun.key] : [])
  })

  it.each(['create', 'update', 'logIn'] as const)('leaves a browser that may begin anew, by %s', async begin => {
    const made = makeSessions()
    const { cookie } = await loggedIn(made)
    const visit = visitOf(made.sessions, cookie)
    await visit.logOut()
    const session = await {
      create: () => visit.create(),
      update: () => visit.update({ n: 1 }),
      logIn: () => visit.logIn(ada),
    }[begin]()
    expect(jar(setCookies(visit))).toBe(`session_id=${session?.secret}`)
    expect(await visit.get()).toBe(session)
  })

  it('leaves a browser that may begin anew, also where the visit found its session ended, and began none in its place', async () => {
    const made = makeSessions()
    const { cookie, session } = await loggedIn(made)
    const visit = visitOf(made.sessions, cookie)
    await visit.get()
    await makeSessions({ store: made.store }).sessions.destroy(session)
    for (let times = 0; times < 2; times += 1) expect(await visit.update({ n: 1 })).toBeNull()
    await expect(visit.create()).rejects.toMatchObject({ code: 'ERR_SESSION_CONFLICT' })
    await visit.logOut()
    expect((await visit.update({ n: 1 }))?.data).toEqual({ n: 1 })
  })
})

describe('an anonymous session', () => {
  it('begins with its first change in one store call, to the start value as any other', async () => {
    const { sessions, calls } = makeSessions({ initial: () => ({ flash: 'hello', n: 1 }) })
    const changes: [Change<Data>, object][] = [
      [{ n: 2 }, { flash: 'hello', n: 2 }],
      [draft => Object.assign(draft, { n: 2 }), { flash: 'hello', n: 2 }],
      [{ cart: ['tea'] }, { flash: 'hello', n: 1, cart: ['tea'] }],
    ]
    for (const [change, data] of changes) {
      calls.length = 0
      const begun = await visitOf(sessions).update(change)
      expect(calls).toEqual(['create'])
      expect([begun?.data, (await sessions.get(begun))?.data]).toEqual([data, data])
    }
  })

  it('is not stored when the first update throws', async () => {
    const { sessions, calls } = makeSessions()
    const visit = visitOf(sessions)
    const failing = visit.update(() => {
      throw new RangeError('no')
    })
    await expect(failing).rejects.toThrow(RangeError)
    await expect(visit.update({ n: 1n as never })).rejects.toMatchObject({ code: 'ERR_SESSION_DATA' })
    await expect(visit.update([] as never)).rejects.toThrow(/^update: expected keys/)
    expect([calls, setCookies(visit)]).toEqual([[], []])
  })

  it.each([true, false])(
    'begins where another process ended the one before, if it was not found live: %s',
    async isKnown => {
      const made = makeSessions()
      const { cookie, session } = await loggedIn(made)
      const other = makeSessions({ store: made.store })
      const visit = visitOf(made.sessions, cookie)
      if (isKnown) await visit.get()
      await other.sessions.destroy(session.secret)
      for (const n of [1, 2]) expect((await visit.update({ n })) === null).toBe(isKnown)
    },
  )

  it('shows its own changes', async () => {
    const visit = visitOf(makeSessions().sessions)
    await visit.create({ data: { flash: 'hello', n: 1 } })
    expect((await visit.update({ n: 2 }))?.data).toEqual({ flash: 'hello', n: 2 })
    expect((await visit.get())?.data).toEqual({ flash: 'hello', n: 2 })
    expect(await visit.take('flash')).toBe('hello')
    expect(await visit.take('flash')).toBeUndefined()
    expect((await visit.get())?.data).toEqual({ n: 2 })
  })

  it('ends the session before, of which it takes one read, however old that is', async () => {
    const made = makeSessions()
    const { cookie, session } = await loggedIn(made)
    made.clock.now += 20 * 60_000
    const visit = visitOf(made.sessions, cookie)
    const created = await visit.create()
    expect([created.user, created.data, made.calls]).toEqual([null, {}, ['read', 'create', 'delete']])
    expect(await visit.get()).toBe(created)
    expect([await made.sessions.get(session.secret), (await made.sessions.get(created.secret))?.key]).toEqual([
      null,
      created.key,
    ])
  })
})
