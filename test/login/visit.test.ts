import { setTimeout as pause } from 'node:timers/promises'
import { type Change, SessionManager, SessionStoreError, type Store } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { ada, type Data, jar, type Manager, makeSessions } from '../support/edge-service.ts'
import { onlyHost } from '../support/only-host.ts'

type Options = Parameters<typeof openVisit>[2]
type Request = Parameters<typeof openVisit>[1]

/** A visit without any server, as a cookie jar would open it. */
const visitOf = (sessions: Manager, cookie: string | null = null, request: Partial<Request> = {}, options?: Options) =>
  openVisit(sessions, { method: 'GET', secure: true, header: onlyHost, ...request, cookie }, options)
const setCookies = (visit: { finish(): { headers: Headers } }) => visit.finish().headers.getSetCookie()

async function loggedIn(made: ReturnType<typeof makeSessions>, options?: Options) {
  const visit = visitOf(made.sessions, null, {}, options)
  const session = await visit.logIn(ada)
  made.calls.length = 0
  return { cookie: jar(setCookies(visit)), session }
}

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

  it('of an anonymous visitor reads nothing, writes nothing and sets no cookie', async () => {
    const { sessions, calls } = makeSessions({ rememberFor: '30d' })
    const visit = visitOf(sessions)
    expect(await visit.get()).toBeNull()
    expect(await visit.take('flash')).toBeUndefined()
    expect(await visit.regenerate()).toBeNull()
    expect(await visit.regenerate({ grace: '30s' })).toBeNull()
    await expect(visit.requireUser()).rejects.toMatchObject({ code: 'ERR_SESSION_UNAUTHENTICATED', status: 401 })
    expect([...visit.headers]).toEqual([['vary', 'Cookie']])
    expect(calls).toEqual([])
  })

  it('whose session is not asked for leaves no trace', () => {
    const { sessions } = makeSessions()
    expect([...visitOf(sessions, `session_id=${'a'.repeat(43)}`).headers]).toEqual([])
  })

  it('says no-store for a session, and keeps the cookie as it is', async () => {
    const made = makeSessions()
    const { cookie } = await loggedIn(made)
    const visit = visitOf(made.sessions, cookie)
    await visit.get()
    expect([...visit.headers]).toEqual([
      ['cache-control', 'no-store'],
      ['vary', 'Cookie'],
    ])
  })

  it('says no-store as soon as it may depend on a session: while the store is asked, and where it fails', async () => {
    const made = makeSessions()
    const { cookie } = await loggedIn(made)
    const personal = [
      ['cache-control', 'no-store'],
      ['vary', 'Cookie'],
    ]
    const early = visitOf(made.sessions, cookie)
    const reading = early.get()
    expect([...early.headers]).toEqual(personal)
    await reading
    const store = Object.assign(new MemoryStore(), { read: () => Promise.reject(new Error('down')) })
    const failed = visitOf(new SessionManager({ store }), cookie)
    await expect(failed.get()).rejects.toMatchObject({ code: 'ERR_SESSION_STORE' })
    expect([...failed.headers]).toEqual(personal)
  })

  it('does not say no-store where it was refused before the store was asked', async () => {
    const { sessions, calls } = makeSessions()
    const visit = visitOf(sessions, `session_id=${'a'.repeat(43)}`, { method: 'POST', secure: false })
    await expect(visit.logIn(ada)).rejects.toMatchObject({ code: 'ERR_SESSION_INSECURE' })
    expect([[...visit.headers], calls]).toEqual([[['vary', 'Cookie']], []])
  })

  it('does not clear a cookie that leads nowhere: only a logout does', async () => {
    const { sessions } = makeSessions()
    for (const value of ['a'.repeat(43), 'junk', '']) {
      const visit = visitOf(sessions, `session_id=${value}`)
      expect(await visit.get()).toBeNull()
      expect(setCookies(visit)).toEqual([])
    }
  })

  it('ends the session and clears the cookie at a logout, also where there is no session', async () => {
    const made = makeSessions()
    const { cookie, session } = await loggedIn(made)
    const visit = visitOf(made.sessions, cookie, { method: 'POST' })
    await visit.logOut()
    expect(await visit.get()).toBeNull()
    // The read is for the remember token that the session may have begun with.
    expect(made.calls).toEqual(['read', 'delete'])
    expect(setCookies(visit)).toEqual([
      expect.stringMatching(/^session_id=; Max-Age=0; Path=\/; Expires=Thu, 01 Jan 1970/),
    ])
    expect(await made.sessions.get(session.secret)).toBeNull()
    const anonymous = visitOf(made.sessions, null, { method: 'POST' })
    await anonymous.logOut()
    expect(setCookies(anonymous)).toHaveLength(1)
  })

  it('ends by an old ID, which it found dead, the session that has a new one', async () => {
    for (const verb of ['logOut', 'logIn'] as const) {
      const made = makeSessions()
      const { cookie, session } = await loggedIn(made)
      // Another process gave the new ID, so that this one remembers nothing of it.
      await makeSessions({ store: made.store }).sessions.regenerate(session.secret)
      const visit = visitOf(made.sessions, cookie, { method: 'POST' })
      expect(await visit.get()).toBeNull()
      const begun = verb === 'logIn' ? await visit.logIn(ada) : await visit.logOut()
      expect((await made.sessions.list(42n)).map(({ key }) => key)).toEqual(begun ? [begun.key] : [])
    }
  })

  it('takes a new login after a destroy', async () => {
    const made = makeSessions()
    const { cookie } = await loggedIn(made)
    const visit = visitOf(made.sessions, cookie, { method: 'POST' })
    await visit.logOut()
    const session = await visit.logIn(ada)
    expect(jar(setCookies(visit))).toBe(`session_id=${session.secret}`)
    expect(await visit.get()).toBe(session)
  })

  it('begins an anonymous session after a logout of its own, though none in place of one that others ended', async () => {
    for (const begin of ['create', 'update'] as const) {
      const made = makeSessions()
      const { cookie } = await loggedIn(made)
      const visit = visitOf(made.sessions, cookie, { method: 'POST' })
      await visit.logOut()
      const session = await (begin === 'create' ? visit.create() : visit.update({ n: 1 }))
      expect(jar(setCookies(visit))).toBe(`session_id=${session?.secret}`)
    }
  })

  it('ends at a login what it began itself before', async () => {
    const made = makeSessions()
    const visit = visitOf(made.sessions, null, { method: 'POST' })
    const anonymous = await visit.update({ n: 1 })
    const session = await visit.logIn({ ...ada, data: before => ({ n: before.n! + 1 }) })
    expect([await made.sessions.get(anonymous!.secret), session.data]).toEqual([null, { n: 2 }])
  })

  it('lets a save wait for the login before it, also where an earlier verb has ended meanwhile', async () => {
    const made = makeSessions()
    const visit = visitOf(made.sessions, null, { method: 'POST' })
    const first = visit.update({ n: 1 })
    const second = visit.logIn(ada)
    await first
    for (let turn = 0; turn < 10; turn += 1) await null
    const saved = await visit.update({ n: 3 })
    expect([saved?.key, saved?.user?.name, saved?.data]).toEqual([(await second).key, 'ada', { n: 3 }])
  })

  it('finds the session of a login that was under way when it was asked', async () => {
    const made = makeSessions()
    const { cookie } = await loggedIn(made)
    const visit = visitOf(made.sessions, cookie, { method: 'POST' })
    const logIn = visit.logIn(ada)
    // The read is answered after the login: it finds the old ID, which is dead by then.
    const get = made.sessions.get.bind(made.sessions)
    made.sessions.get = (...args) => logIn.then(() => get(...args))
    const found = await visit.get()
    expect([found, await visit.get()]).toEqual([await logIn, await logIn])
    expect(jar(setCookies(visit))).toBe(`session_id=${found?.secret}`)
  })

  it('shares the read that is under way with a verb that writes', async () => {
    const made = makeSessions()
    const { cookie } = await loggedIn(made)
    const visit = visitOf(made.sessions, cookie, { method: 'POST' })
    await Promise.all([visit.get(), visit.logIn(ada)])
    expect(made.calls).toEqual(['read', 'replace'])
  })

  it('that logs out and in again has a session that no other browser gets which does the same', async () => {
    const { sessions } = makeSessions()
    const keys = new Set<string>()
    for (let browser = 0; browser < 3; browser += 1) {
      const visit = visitOf(sessions, null, { method: 'POST' })
      await visit.logOut()
      keys.add((await visit.logIn(ada)).key)
    }
    expect(keys.size).toBe(3)
  })

  it('begins an anonymous session at the first update, with the data', async () => {
    const { sessions, calls } = makeSessions()
    const visit = visitOf(sessions)
    const session = await visit.update(draft => {
      draft.n = (draft.n ?? 0) + 1
    })
    expect([session?.user, session?.data]).toEqual([null, { n: 1 }])
    expect(await visit.get()).toBe(session)
    expect(jar(setCookies(visit))).toBe(`session_id=${session?.secret}`)
    expect(calls).not.toContain('read')
  })

  it('begins nothing in place of a session that ended meanwhile', async () => {
    const made = makeSessions()
    const { cookie, session } = await loggedIn(made)
    const visit = visitOf(made.sessions, cookie)
    await visit.get()
    await made.sessions.destroy(session)
    expect(await visit.update({ n: 1 })).toBeNull()
    expect(await visit.get()).toBeNull()
    expect(setCookies(visit)).toEqual([])
  })

  it('begins none at the next update either, where another process ended it', async () => {
    const made = makeSessions()
    const { cookie, session } = await loggedIn(made)
    const other = makeSessions({ store: made.store })
    for (const isKnown of [true, false]) {
      const visit = visitOf(made.sessions, cookie)
      if (isKnown) await visit.get()
      await other.sessions.destroy(session.secret)
      expect([(await visit.update({ n: 1 })) === null, (await visit.update({ n: 2 })) === null]).toEqual([
        isKnown,
        isKnown,
      ])
    }
  })

  it('stores nothing when the first update throws', async () => {
    const { sessions, calls } = makeSessions({ store: new MemoryStore() })
    const visit = visitOf(sessions)
    const failing = visit.update(() => {
      throw new RangeError('no')
    })
    await expect(failing).rejects.toThrow(RangeError)
    await expect(visit.update({ n: 1n as never })).rejects.toMatchObject({ code: 'ERR_SESSION_DATA' })
    await expect(visit.update([] as never)).rejects.toThrow(/^update: expected keys/)
    expect(calls).toEqual([])
    expect(setCookies(visit)).toEqual([])
  })

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

  it('sees its own changes', async () => {
    const made = makeSessions()
    const visit = visitOf(made.sessions)
    await visit.create({ data: { flash: 'hello', n: 1 } })
    expect((await visit.update({ n: 2 }))?.data).toEqual({ flash: 'hello', n: 2 })
    expect((await visit.get())?.data).toEqual({ flash: 'hello', n: 2 })
    expect(await visit.take('flash')).toBe('hello')
    expect(await visit.take('flash')).toBeUndefined()
    expect((await visit.get())?.data).toEqual({ n: 2 })
  })

  it('ends the session before when a new one is created', async () => {
    const made = makeSessions()
    const { cookie, session } = await loggedIn(made)
    const visit = visitOf(made.sessions, cookie)
    const created = await visit.create({ data: { n: 1 } })
    expect(await visit.get()).toBe(created)
    expect(await made.sessions.get(session.secret)).toBeNull()
    expect(await made.sessions.get(created.secret)).not.toBeNull()
  })

  it('reads a session once to begin an anonymous one in its place, and ends it, however old it is', async () => {
    const made = makeSessions()
    const { cookie, session } = await loggedIn(made)
    made.clock.now += 20 * 60_000
    const created = await visitOf(made.sessions, cookie, { method: 'POST' }).create()
    expect([created.user, created.data, made.calls]).toEqual([null, {}, ['read', 'create', 'delete']])
    expect(await made.sessions.get(session.secret)).toBeNull()
  })

  it('refuses options that its verbs do not have, with a session and without one', async () => {
    const made = makeSessions()
    const { cookie } = await loggedIn(made)
    for (const header of [null, cookie]) {
      const visit = visitOf(made.sessions, header, { method: 'POST' }) as unknown as Record<
        string,
        (options: unknown) => Promise<unknown>
      >
      for (const [verb, options, message] of [
        ['get', { tuch: false }, /^get: "tuch" is not an option \(there are: /],
        [
          'get',
          { touch: 'no' },
          /^get: touch: expected true or false, got "no"|^touch: expected true or false, got "no"/,
        ],
        ['get', null, /^get: expected an object of options, got null/],
        ['requireUser', { freshWithn: '5m' }, /^requireUser: "freshWithn" is not an option \(there are: /],
        ['requireUser', { freshWithin: 5 }, /freshWithin: expected a duration/],
        ['requireUser', null, /^requireUser: expected an object of options, got null/],
        ['create', { dta: {} }, /^create: "dta" is not an option \(there are: /],
        ['logIn', { ...ada, rember: true }, /^logIn: "rember" is not an option \(there are: /],
        ['logIn', { ...ada, password: 'x' }, /^logIn: "password" is not an option .* absoluteTimeout, remember\)/],
        ['regenerate', { garce: '1m' }, /^regenerate: "garce" is not an option/],
        ['regenerate', ada, /logIn/],
      ] as const)
        await expect(visit[verb]!(options)).rejects.toThrow(message)
    }
  })

  it('gives a new ID at each login, and carries the data that is asked for', async () => {
    const made = makeSessions()
    const first = visitOf(made.sessions)
    const anonymous = await first.update({ cart: ['tea'], n: 1 })
    const visit = visitOf(made.sessions, jar(setCookies(first)), { method: 'POST' })
    const session = await visit.logIn({ ...ada, data: before => ({ cart: before.cart ?? [] }) })
    expect(session.data).toEqual({ cart: ['tea'] })
    expect(session.secret).not.toBe(anonymous?.secret)
    expect(await made.sessions.get(anonymous!.secret)).toBeNull()
    expect(jar(setCookies(visit))).toBe(`session_id=${session.secret}`)
  })

  it('rotates the ID, and parallel requests within the grace get the same cookie', async () => {
    const made = makeSessions()
    const { cookie, session } = await loggedIn(made)
    const visit = visitOf(made.sessions, cookie)
    const rotated = await visit.regenerate({ grace: '30s' })
    expect(rotated?.secret).not.toBe(session.secret)
    const late = visitOf(made.sessions, cookie)
    expect((await late.get())?.secret).toBe(rotated?.secret)
    expect(jar(setCookies(late))).toBe(jar(setCookies(visit)))
  })

  it('demands a password that was verified lately where it is asked to', async () => {
    const made = makeSessions()
    const { cookie } = await loggedIn(made)
    made.clock.now += 5 * 60_000
    expect((await visitOf(made.sessions, cookie).requireUser({ freshWithin: '5m' })).user.name).toBe('ada')
    made.clock.now += 1
    const late = visitOf(made.sessions, cookie).requireUser({ freshWithin: '5m' })
    await expect(late).rejects.toMatchObject({ code: 'ERR_SESSION_NOT_FRESH', status: 401 })
  })
})

describe('the cookie goes with the session', () => {
  const MINUTE = 60_000

  it('is sent again twice, with what is left of the absolute time: at the first touch and half of the idle time', async () => {
    const made = makeSessions({ idleTimeout: '30m', absoluteTimeout: '40m', touchInterval: '3m' })
    const { cookie } = await loggedIn(made)
    const ages: (string | undefined)[] = []
    for (const minutes of [1, 4, 1, 6, 6, 15]) {
      made.clock.now += minutes * MINUTE
      const visit = visitOf(made.sessions, cookie)
      await visit.get()
      ages.push(/Max-Age=(\d+)/.exec(setCookies(visit)[0] ?? '')?.[1])
    }
    // After 1, 5, 6, 12, 18 and 33 minutes.
    expect(ages).toEqual([undefined, String(35 * 60), undefined, undefined, String(22 * 60), undefined])
    expect(made.calls.filter(call => call === 'touch')).toHaveLength(4)
  })

  it('is never sent again with a lifetime that no use prolongs', async () => {
    for (const lifetime of ['absolute', 'browser'] as const) {
      const options = { cookie: { lifetime } }
      const made = makeSessions()
      const { cookie } = await loggedIn(made, options)
      made.clock.now += 20 * MINUTE
      const visit = visitOf(made.sessions, cookie, {}, options)
      expect((await visit.get())?.seenAt).toBe(made.clock.now)
      expect(setCookies(visit)).toEqual([])
    }
  })

  it('is sent with a new ID that another request gave, whatever its lifetime', async () => {
    for (const lifetime of ['idle', 'absolute', 'browser'] as const) {
      const options = { cookie: { lifetime } }
      const made = makeSessions()
      const { cookie } = await loggedIn(made, options)
      const rotated = await visitOf(made.sessions, cookie, {}, options).regenerate({ grace: '1m' })
      const late = visitOf(made.sessions, cookie, {}, options)
      await late.get()
      expect(jar(setCookies(late))).toBe(`session_id=${rotated?.secret}`)
    }
  })

  it('stays as it is for a poll, and where no cookie can be sent', async () => {
    const made = makeSessions()
    const { cookie } = await loggedIn(made)
    made.clock.now += 20 * MINUTE
    await visitOf(made.sessions, cookie).get({ touch: false })
    await visitOf(made.sessions, cookie, { canSend: () => false }).get()
    expect(made.calls).toEqual(['read', 'read'])
  })

  it('is prolonged by a later look that is a use: a poll or a log that looked first does not keep it from that', async () => {
    for (const verb of ['get', 'requireUser', 'csrfToken'] as const) {
      const made = makeSessions()
      const { cookie } = await loggedIn(made)
      made.clock.now += 20 * MINUTE
      const visit = visitOf(made.sessions, cookie)
      const looked = await visit.get({ touch: false })
      const both = [visit.get({ touch: false }), visit[verb](), visit[verb]()]
      await Promise.all(both)
      expect(made.calls).toEqual(['read', 'touch'])
      expect([looked?.seenAt, (await visit.get())?.seenAt]).toEqual([looked?.createdAt, made.clock.now])
      expect(setCookies(visit)).toHaveLength(1)
    }
  })

  it('is not asked for again by that look where nothing is due, nor where no cookie can be sent', async () => {
    const made = makeSessions()
    const { cookie } = await loggedIn(made)
    const visit = visitOf(made.sessions, cookie)
    const looked = await visit.get({ touch: false })
    expect(await visit.get()).toBe(looked)
    made.clock.now += 20 * MINUTE
    const socket = visitOf(made.sessions, cookie, { canSend: () => false })
    await socket.get({ touch: false })
    await socket.get()
    expect(made.calls).toEqual(['read', 'read'])
  })

  it('is as the store says where the session ended between a look that is no visit and one that is', async () => {
    const made = makeSessions()
    const { cookie, session } = await loggedIn(made)
    made.clock.now += 20 * MINUTE
    const visit = visitOf(made.sessions, cookie)
    await visit.get({ touch: false })
    await made.sessions.destroy(session)
    expect([await visit.get(), setCookies(visit)]).toEqual([null, []])
  })

  it.each([
    ['five minutes behind', 5, '30m', 60],
    ['five minutes ahead', -5, '30m', 60],
    ['five minutes behind, and the session may be idle for 10', 5, '10m', 30],
  ])('is sent often enough by a node whose clock is %s', async (_, minutes, idle, seconds) => {
    const made = makeSessions({ idleTimeout: '30m' })
    const login = visitOf(made.sessions, null)
    await login.logIn({ ...ada, idleTimeout: idle as '7m' })
    const started = made.clock.now
    made.clock.now -= minutes * MINUTE
    // A browser that drops the cookie once Max-Age has passed since it came, by its own time.
    let expires = started + Number(/Max-Age=(\d+)/.exec(setCookies(login)[0]!)![1]) * 1000
    const cookie = jar(setCookies(login))
    for (let time = started; time < started + 60 * MINUTE; time += seconds * 1000) {
      expect(time, `after ${(time - started) / MINUTE} minutes`).toBeLessThan(expires)
      made.clock.now = time - minutes * MINUTE
      const visit = visitOf(made.sessions, cookie)
      expect(await visit.get()).not.toBeNull()
      const age = /Max-Age=(\d+)/.exec(setCookies(visit)[0] ?? '')?.[1]
      if (age !== undefined) expires = time + Number(age) * 1000
    }
    expect(made.calls.filter(call => call === 'touch').length).toBeLessThan(30)
  })

  it('stays as it is, in the store too, where a response that is under way writes data', async () => {
    const made = makeSessions()
    const { cookie, session } = await loggedIn(made)
    let canSend = true
    const stream = visitOf(made.sessions, cookie, { canSend: () => canSend })
    await stream.update({ flash: 'hello' })
    canSend = false
    for (let minutes = 0; minutes < 25; minutes += 5) {
      made.clock.now += 5 * MINUTE
      expect((await stream.update({ n: minutes }))?.expiresAt).toBe(session.expiresAt)
    }
    expect(await stream.take('flash')).toBe('hello')
    const socket = visitOf(made.sessions, cookie, { upgrade: true, canSend: () => false })
    expect((await socket.update({ n: 1 }))?.expiresAt).toBe(session.expiresAt)
    expect([setCookies(stream), setCookies(socket)]).toEqual([[], []])
    // Had the store slid, this page view would not be due, and the browser would drop the cookie of a live session.
    const page = visitOf(made.sessions, cookie)
    await page.get()
    expect(setCookies(page)).toHaveLength(1)
  })

  it('is not sent for a session in whose place this browser logged in meanwhile', async () => {
    const made = makeSessions()
    const { cookie } = await loggedIn(made)
    made.clock.now += 20 * MINUTE
    const slow = visitOf(made.sessions, cookie)
    await slow.get()
    expect(setCookies(slow)).toHaveLength(1)
    const login = visitOf(made.sessions, cookie, { method: 'POST' })
    await login.logIn(ada)
    expect(setCookies(slow)).toEqual([])
    expect(setCookies(login)).toHaveLength(1)
  })
})

describe('an outage is not a logout', () => {
  const broken = (verbs: (keyof Store)[], made: { store: Store }) => {
    const failing = { on: false }
    const store = new Proxy(made.store, {
      get(target, verb) {
        const value = Reflect.get(target, verb)
        return typeof value === 'function'
          ? (...args: unknown[]) =>
              failing.on && verbs.includes(verb as keyof Store)
                ? Promise.reject(new Error('connection refused'))
                : Reflect.apply(value, target, args)
          : value
      },
    })
    return { store, failing }
  }

  it('touches no cookie, asks once, and answers 503', async () => {
    const { store, failing } = broken(['read', 'delete', 'create', 'replace'], { store: new MemoryStore() })
    const made = makeSessions({ store, rememberFor: '30d' })
    const first = visitOf(made.sessions, null, { method: 'POST' })
    await first.logIn({ ...ada, remember: true })
    const cookie = jar(setCookies(first))
    failing.on = true
    made.calls.length = 0
    const visit = visitOf(made.sessions, cookie)
    await expect(visit.get()).rejects.toMatchObject({ code: 'ERR_SESSION_STORE', status: 503 })
    await expect(visit.get()).rejects.toMatchObject({ code: 'ERR_SESSION_STORE' })
    expect(made.calls).toEqual(['read'])
    for (const verb of ['logOut', 'create', 'logIn'] as const) {
      const write = verb === 'logIn' ? visit.logIn(ada) : visit[verb]()
      await expect(write).rejects.toMatchObject({ status: 503 })
    }
    expect(setCookies(visit)).toEqual([])
    expect(visit.headers.get('cache-control')).toBe('no-store')
  })

  it('is over for a verb that gives a new ID, though the read before it failed', async () => {
    for (const verb of ['regenerate', 'rotate'] as const) {
      const { store, failing } = broken(['read'], { store: new MemoryStore() })
      const made = makeSessions({ store })
      const { cookie, session } = await loggedIn(made)
      const visit = visitOf(made.sessions, cookie, { method: 'POST' })
      failing.on = true
      await expect(visit.get()).rejects.toMatchObject({ status: 503 })
      failing.on = false
      const renewed = await (verb === 'regenerate' ? visit.regenerate() : visit.regenerate({ grace: '1m' }))
      expect([renewed?.user?.name, renewed?.secret === session.secret]).toEqual(['ada', false])
    }
  })

  it('leaves no session behind when the remember token cannot be stored', async () => {
    const { store, failing } = broken([], { store: new MemoryStore() })
    const made = makeSessions({ store, rememberFor: '30d' })
    const visit = visitOf(made.sessions, null, { method: 'POST' })
    made.sessions.issueRememberToken = () => Promise.reject(new Error('no'))
    failing.on = true
    await expect(visit.logIn({ ...ada, remember: true })).rejects.toThrow('no')
    expect(setCookies(visit)).toEqual([])
    expect(await made.sessions.list(42n)).toEqual([])
  })
})

describe('where no cookie can be sent', () => {
  it('nothing begins, and the store does not hear of it', async () => {
    const made = makeSessions({ rememberFor: '30d' })
    const visit = visitOf(made.sessions, null, { method: 'POST', canSend: () => false })
    for (const attempt of [
      visit.create(),
      visit.update({ n: 1 }),
      visit.logIn(ada),
      visit.logIn({ ...ada, remember: true }),
    ])
      await expect(attempt).rejects.toMatchObject({ code: 'ERR_SESSION_HEADERS_SENT', status: 500 })
    expect(made.calls).toEqual([])
  })

  it('a session is found, keeps its ID, is written to, and can end', async () => {
    const made = makeSessions()
    const { cookie, session } = await loggedIn(made)
    const visit = visitOf(made.sessions, cookie, { canSend: () => false })
    expect((await visit.get())?.key).toBe(session.key)
    expect((await visit.update({ n: 1 }))?.data).toEqual({ n: 1 })
    await expect(visit.regenerate()).rejects.toMatchObject({ code: 'ERR_SESSION_HEADERS_SENT' })
    expect(await made.sessions.get(session.secret)).not.toBeNull()
    await visit.logOut()
    expect(await made.sessions.get(session.secret)).toBeNull()
  })

  it('a visitor without a session hears that there is none to get a new ID', async () => {
    const visit = visitOf(makeSessions().sessions, null, { method: 'POST', canSend: () => false })
    expect([await visit.regenerate(), await visit.regenerate({ grace: '1m' })]).toEqual([null, null])
  })

  it('a session that got a new ID while the head went out goes on under the old one, as long as its grace lasts', async () => {
    const store = new MemoryStore()
    let canSend = true
    const replace = store.replace.bind(store)
    store.replace = async (...args) => {
      canSend = false
      return replace(...args)
    }
    const made = makeSessions({ store })
    const { cookie } = await loggedIn(made)
    const visit = visitOf(made.sessions, cookie, { method: 'POST', canSend: () => canSend })
    await expect(visit.regenerate({ grace: '30s' })).rejects.toMatchObject({ code: 'ERR_SESSION_HEADERS_SENT' })
    expect((await visit.get())?.user?.name).toBe('ada')
    const next = visitOf(made.sessions, cookie)
    expect((await next.get())?.user?.name).toBe('ada')
    expect(setCookies(next), 'the browser gets the new ID now').toHaveLength(1)
    expect(made.events).not.toContain('destroyed')
  })

  it('a login whose head went out, or whose old token cannot be ended, leaves no session and no remember token', async () => {
    for (const cause of ['the head', 'the store'] as const) {
      const store = new MemoryStore()
      const made = makeSessions({ store, rememberFor: '30d' })
      const first = visitOf(made.sessions, null, { method: 'POST' })
      await first.logIn({ ...ada, remember: true })
      const stored = (kind: 'session' | 'remember') => store.listUser('42', kind, { now: Date.now() })
      const [token] = await stored('remember')
      let canSend = true
      const { create, delete: end } = { create: store.create.bind(store), delete: store.delete.bind(store) }
      store.create = async (...args) => {
        canSend = cause !== 'the head' || args[0].kind !== 'remember'
        return create(...args)
      }
      store.delete = async (...args) => {
        if (cause === 'the store' && args[0] === token!.key) throw new Error('away for a moment')
        return end(...args)
      }
      const visit = visitOf(made.sessions, jar(setCookies(first)), { method: 'POST', canSend: () => canSend })
      await expect(visit.logIn({ ...ada, remember: true })).rejects.toMatchObject({
        code: cause === 'the head' ? 'ERR_SESSION_HEADERS_SENT' : 'ERR_SESSION_STORE',
      })
      expect(await stored('session'), cause).toEqual([])
      expect(
        (await stored('remember')).filter(({ key }) => key !== token!.key),
        cause,
      ).toEqual([])
    }
  })

  it('a session that began while the head went out ends again', async () => {
    for (const begin of ['create', 'update', 'logIn', 'remember'] as const) {
      const store = new MemoryStore()
      let canSend = true
      const create = store.create.bind(store)
      store.create = async (...args) => {
        await pause(1)
        canSend = false
        return create(...args)
      }
      const made = makeSessions({ store, rememberFor: '30d' })
      const visit = visitOf(made.sessions, null, { method: 'POST', canSend: () => canSend })
      const attempt =
        begin === 'logIn'
          ? visit.logIn(ada)
          : begin === 'remember'
            ? visit.logIn({ ...ada, remember: true })
            : begin === 'update'
              ? visit.update({ n: 1 })
              : visit.create()
      await expect(attempt).rejects.toMatchObject({ code: 'ERR_SESSION_HEADERS_SENT' })
      expect(await made.sessions.list(42n)).toEqual([])
      expect(await visit.get()).toBeNull()
      expect(setCookies(visit)).toEqual([])
      expect(made.events.filter(type => type === 'created')).toHaveLength(
        made.events.filter(type => type === 'destroyed').length,
      )
    }
  })
})

describe('remember me', () => {
  const rememberMe = async () => {
    const made = makeSessions({ rememberFor: '30d' })
    const visit = visitOf(made.sessions, null, { method: 'POST' })
    const session = await visit.logIn({ ...ada, remember: true })
    const [sessionCookie, rememberCookie] = setCookies(visit)
    made.calls.length = 0
    return { ...made, session, sessionCookie: sessionCookie!, rememberCookie: rememberCookie! }
  }

  it('sets a cookie of its own, as well protected as the session’s', async () => {
    const { rememberCookie } = await rememberMe()
    expect(rememberCookie).toMatch(
      /^remember_token=[A-Za-z0-9_.-]+; Max-Age=2592000; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
    )
  })

  it('brings the user back after the browser lost the session, with two new cookies', async () => {
    const made = await rememberMe()
    made.clock.now += 24 * 3_600_000
    const visit = visitOf(made.sessions, jar([made.sessionCookie, made.rememberCookie]))
    const session = await visit.get()
    expect([session?.user?.name, session?.remembered]).toEqual(['ada', true])
    const [id, token] = setCookies(visit)
    expect(id).toMatch(`session_id=${session?.secret}; Max-Age=43200`)
    expect(token).toMatch(/^remember_token=[^;]+; Max-Age=2505600;/)
    expect(token).not.toBe(made.rememberCookie)
    const next = visitOf(made.sessions, jar([id!, token!]))
    expect((await next.get())?.key).toBe(session?.key)
    await expect(next.requireUser({ freshWithin: '1h' })).rejects.toMatchObject({ code: 'ERR_SESSION_NOT_FRESH' })
  })

  it('gives 20 parallel requests the same session and the same next token', async () => {
    const made = await rememberMe()
    const visits = Array.from({ length: 20 }, () => visitOf(made.sessions, jar([made.rememberCookie])))
    const found = await Promise.all(visits.map(visit => visit.get()))
    expect(new Set(found.map(session => session?.key)).size).toBe(1)
    expect(new Set(visits.map(visit => setCookies(visit).join())).size).toBe(1)
    expect(made.events).not.toContain('remember-theft')
  })

  it('is not asked while the session lives, and never where the answer could not be sent', async () => {
    const made = await rememberMe()
    await visitOf(made.sessions, jar([made.sessionCookie, made.rememberCookie])).get()
    expect(made.calls).toEqual(['read'])
    const upgrade = visitOf(made.sessions, jar([made.rememberCookie]), { canSend: () => false })
    expect(await upgrade.get()).toBeNull()
    expect(made.calls).toEqual(['read'])
  })

  it('ends with the logout, and both cookies go', async () => {
    const made = await rememberMe()
    const cookie = jar([made.sessionCookie, made.rememberCookie])
    const visit = visitOf(made.sessions, cookie, { method: 'POST' })
    await visit.logOut()
    expect(setCookies(visit).map(each => each.split(';', 2).join(';'))).toEqual([
      'session_id=; Max-Age=0',
      'remember_token=; Max-Age=0',
    ])
    const later = visitOf(made.sessions, cookie)
    expect(await later.get()).toBeNull()
  })

  it('ends with the logout of a session that it started', async () => {
    const made = await rememberMe()
    const visit = visitOf(made.sessions, jar([made.rememberCookie]), { method: 'POST' })
    await visit.get()
    const cookie = jar(setCookies(visit))
    await visit.logOut()
    expect(jar(setCookies(visit))).toBe('')
    expect(await visitOf(made.sessions, cookie).get()).toBeNull()
    expect(await visitOf(made.sessions, jar([made.rememberCookie])).get()).toBeNull()
  })

  it('ends with the logout of a session that it started, though its cookie is not honoured', async () => {
    const made = await rememberMe()
    const visit = visitOf(made.sessions, jar([made.rememberCookie]))
    await visit.get()
    const [cookie, token] = setCookies(visit).map(each => jar([each]))
    await visitOf(made.sessions, cookie, { method: 'POST', secure: false }).logOut()
    expect(await visitOf(made.sessions, token).get()).toBeNull()
  })

  it('ends with what the same request does next, before any response brings it', async () => {
    for (const next of ['logOut', 'logIn', 'logIn to be remembered'] as const) {
      const made = makeSessions({ rememberFor: '30d' })
      const tokens: string[] = []
      const remember = made.sessions.issueRememberToken.bind(made.sessions)
      made.sessions.issueRememberToken = async session => {
        const token = await remember(session)
        tokens.push(token)
        return token
      }
      const visit = visitOf(made.sessions, null, { method: 'POST' })
      await visit.logIn({ ...ada, remember: true })
      if (next === 'logOut') await visit.logOut()
      else await visit.logIn({ ...ada, remember: next !== 'logIn' })
      expect([next, await made.sessions.redeemRememberToken(tokens[0]!)]).toEqual([next, null])
      expect((await made.sessions.list(42n)).length).toBe(next === 'logOut' ? 0 : 1)
    }
  })

  it.each(['logIn', 'logOut'] as const)('%s says unknown where a step fails that came after a write', async verb => {
    const store = new MemoryStore()
    const made = makeSessions({ store, rememberFor: '30d' })
    const first = visitOf(made.sessions, null, { method: 'POST' })
    const { key } = await first.logIn({ ...ada, remember: true })
    let hasWritten = false
    const spied = (name: 'replace' | 'delete' | 'read', isRefused: (key: string) => boolean) => {
      const inner = store[name].bind(store) as (...args: unknown[]) => unknown
      store[name] = (async (...args: [string, ...unknown[]]) => {
        if (hasWritten && isRefused(args[0])) throw new SessionStoreError(name as 'read', 'not-applied', 'refused')
        hasWritten ||= name !== 'read'
        return inner(...args)
      }) as never
    }
    spied('replace', () => false)
    spied('read', () => verb === 'logIn')
    spied('delete', each => each === key)
    const visit = visitOf(made.sessions, jar(setCookies(first)), { method: 'POST' })
    const attempt = verb === 'logIn' ? visit.logIn(ada) : visit.logOut()
    await expect(attempt).rejects.toMatchObject({ outcome: 'unknown', cause: { outcome: 'not-applied' } })
  })

  it.each(['logIn', 'logOut'] as const)(
    '%s says that nothing was written where its first step was refused',
    async verb => {
      const store = new MemoryStore()
      const made = makeSessions({ store, rememberFor: '30d' })
      const { cookie } = await loggedIn(made)
      const refuse = (name: 'replace' | 'delete') => () =>
        Promise.reject(new SessionStoreError(name, 'not-applied', 'refused'))
      store.replace = refuse('replace')
      store.delete = refuse('delete')
      const visit = visitOf(made.sessions, cookie, { method: 'POST' })
      const attempt = verb === 'logIn' ? visit.logIn(ada) : visit.logOut()
      await expect(attempt).rejects.toMatchObject({ outcome: 'not-applied' })
    },
  )

  it('is not sent where the login fails after it was made', async () => {
    const made = await rememberMe()
    const forgotten: string[] = []
    const forget = made.sessions.revokeRememberToken.bind(made.sessions)
    made.sessions.revokeRememberToken = async token => {
      forgotten.push(token)
      if (forgotten.length === 1) throw new Error('the store is gone')
      await forget(token)
    }
    const visit = visitOf(made.sessions, jar([made.rememberCookie]), { method: 'POST' })
    await expect(visit.logIn({ user: { id: 7n, name: 'max' }, remember: true })).rejects.toThrow('the store is gone')
    expect(forgotten).toHaveLength(1)
    expect([await made.sessions.list(7n), setCookies(visit)]).toEqual([[], []])
  })

  it('does not bring another user back after the next login on this browser', async () => {
    const made = await rememberMe()
    const visit = visitOf(made.sessions, jar([made.sessionCookie, made.rememberCookie]), { method: 'POST' })
    await visit.logIn({ user: { id: 7n, name: 'max' } })
    expect(setCookies(visit)[1]).toMatch(/^remember_token=; Max-Age=0/)
    expect(await visitOf(made.sessions, jar([made.rememberCookie])).get()).toBeNull()
  })

  it('that is dead hinders no login after an update of the same request', async () => {
    const made = await rememberMe()
    await makeSessions({ store: made.store, rememberFor: '30d' }).sessions.invalidateUser(42n)
    const visit = visitOf(made.sessions, jar([made.rememberCookie]), { method: 'POST' })
    await visit.update({ n: 1 })
    const session = await visit.logIn(ada)
    expect(visit.cookies.map(({ name, value }) => [name, value])).toEqual([
      ['session_id', session.secret],
      ['remember_token', ''],
    ])
    expect(await made.sessions.get(session.secret)).not.toBeNull()
  })

  it('begins nothing after a parallel request gave a new ID: its cookie would be overwritten', async () => {
    for (const [verb, hasSession, calls] of [
      // Its old ID is looked for, and then whether the new one lives.
      ['regenerate', true, ['read', 'read']],
      ['logIn', true, ['read']],
      ['logIn', false, []],
      ['logOut', false, []],
    ] as const) {
      const made = await rememberMe()
      const cookie = jar([...(hasSession ? [made.sessionCookie] : []), made.rememberCookie])
      const first = visitOf(made.sessions, cookie, { method: 'POST' })
      await (verb === 'logIn' ? first.logIn(ada) : first[verb]())
      made.calls.length = 0
      const late = visitOf(made.sessions, cookie)
      expect([await late.get(), setCookies(late), made.calls]).toEqual([null, [], calls])
    }
  })

  it('is worth nothing as a session ID, nor a session ID as a token', async () => {
    const made = await rememberMe()
    const token = made.rememberCookie.split(/[=;]/)[1]!
    for (const cookie of [
      `session_id=${token}`,
      `session_id=${token.split('.')[0]}`,
      `session_id=${token.split('.')[1]}`,
      `remember_token=${made.session.secret}`,
      `remember_token=${made.session.secret}.${made.session.secret}`,
      `remember_token=${token}${token}`,
      `remember_token=${token.slice(0, -1)}`,
    ]) {
      const visit = visitOf(made.sessions, cookie)
      expect([cookie, await visit.get(), setCookies(visit)]).toEqual([cookie, null, []])
    }
  })

  it('is a TypeError where the manager has it off', async () => {
    const { sessions, calls } = makeSessions()
    const visit = visitOf(sessions, null, { method: 'POST' })
    await expect(visit.logIn({ ...ada, remember: true })).rejects.toThrow(/remember: is off/)
    expect(calls).toEqual([])
    expect(await visitOf(sessions, 'remember_token=x.y').get()).toBeNull()
  })

  it('takes the __Host- form with the session’s cookie', async () => {
    const { sessions } = makeSessions({ rememberFor: '30d' })
    const visit = visitOf(sessions, null, { method: 'POST' }, { cookie: { hostPrefix: true } })
    await visit.logIn({ ...ada, remember: true })
    expect(setCookies(visit).map(each => each.split('=')[0])).toEqual(['__Host-session_id', '__Host-remember_token'])
  })
})

describe('options of visits', () => {
  const { sessions } = makeSessions()
  const wrong: [unknown, RegExp][] = [
    [{ rememberCookie: { name: 'session_id' } }, /rememberCookie\.name: "session_id"/],
    [{ rememberCookie: { name: 'a b' } }, /rememberCookie\.name: .* got "a b"/],
    [{ rememberCookie: { name: undefined } }, /rememberCookie\.name: .* got undefined/],
    [{ rememberCookie: 'keep' }, /rememberCookie: expected an object of options, got "keep"/],
    [
      { rememberCookie: { name: 'keep', sameSite: 'none' } },
      /rememberCookie: "sameSite" is not an option; it is the session cookie's, for both: \{ cookie: \{ sameSite \} \}/,
    ],
    [{ trustedOrigin: [] }, /openVisit: "trustedOrigin" is not an option \(there are: /],
    [
      { secure: true },
      /openVisit: "secure" is not an option; it belongs to the cookie of nodeVisits: \{ cookie: \{ secure \} \}/,
    ],
    [{ cookie: { hostPrefix: true, domain: 'example.com' } }, /cookie\.domain: "example\.com"/],
    [
      { cookie: { name: 'sid' }, rememberCookie: { name: 'sid' } },
      /rememberCookie\.name: "sid" is the session cookie's/,
    ],
    [{ rememberCookie: {} }, /rememberCookie\.name: .* got undefined/],
    [{ trustedOrigins: 'https://app.example.com' }, /trustedOrigins: /],
    [{ trustedProxies: ['::1'] }, /openVisit: "trustedProxies" is not an option; it belongs to nodeVisits/],
    [{ isSecure: () => true }, /openVisit: "isSecure" is not an option; it belongs to nodeVisits/],
    [null, /null/],
  ]
  it('hold for both cookies, but for the name', async () => {
    const remembering = makeSessions({ rememberFor: '30d' }).sessions
    const options = {
      cookie: { sameSite: 'strict', path: '/app', name: 'sid' },
    } as const
    const visit = visitOf(remembering, null, { method: 'POST' }, options)
    await visit.logIn({ ...ada, remember: true })
    const attributes = (cookie: string) => cookie.replace(/^[^;]+; Max-Age=\d+; |Expires=[^;]+; /g, '')
    const [session, token, ...more] = setCookies(visit)
    expect([session, token].map(cookie => cookie!.split('=')[0])).toEqual(['sid', 'remember_token'])
    for (const cookie of [session, token])
      expect(attributes(cookie!)).toBe('Path=/app; HttpOnly; Secure; SameSite=Strict')
    expect(more).toEqual([])
  })

  it('may name the cookies as browsers bind them to the host, in any case', async () => {
    const remembering = makeSessions({ rememberFor: '30d' }).sessions
    for (const name of ['__Host-sid', '__host-sid']) {
      const visit = visitOf(remembering, null, { method: 'POST' }, { cookie: { name } })
      await visit.logIn({ ...ada, remember: true })
      expect(setCookies(visit).map(cookie => cookie.split('=')[0])).toEqual([name, '__Host-remember_token'])
    }
    const other = visitOf(remembering, null, { method: 'POST' }, { cookie: { name: 'x__Host-sid' } })
    await other.logIn({ ...ada, remember: true })
    expect(setCookies(other).map(cookie => cookie.split('=')[0])).toEqual(['x__Host-sid', 'remember_token'])
  })

  it('are looked at once as long as they are the same object', () => {
    let looks = 0
    const options: Options = {
      get trustedOrigins() {
        looks += 1
        return ['https://front.example.net']
      },
    }
    visitOf(sessions, null, {}, options)
    const atFirst = looks
    for (let visits = 0; visits < 3; visits += 1) visitOf(sessions, null, {}, options)
    expect([atFirst > 0, looks]).toEqual([true, atFirst])
  })

  it.each(wrong)('%j is a TypeError that quotes it', (options, message) => {
    const open = () =>
      openVisit(sessions, { method: 'GET', secure: true, cookie: null, header: onlyHost }, options as Options)
    if (options !== null) expect(open).toThrow(TypeError)
    expect(open).toThrow(message)
  })
})

it('types flow from the manager to the visit', async () => {
  const sessions = new SessionManager({ store: new MemoryStore(), initial: (): Data => ({ n: 1 }), userIds: 'string' })
  const visit = openVisit(sessions, { method: 'POST', secure: true, cookie: null, header: onlyHost })
  const session = await visit.logIn({ user: { id: 'u-1', name: 'ada' } })
  const id: string = session.user.id
  const n: number | undefined = session.data.n
  expect([id, n]).toEqual(['u-1', 1])
  await sessions.close()
})
