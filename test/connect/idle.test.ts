// How long a session may be idle: as long as its cookie lasts, by the manager's clock, within what the manager allows.
import { describe, expect, it } from 'vitest'
import { APPS, startApp } from './apps.ts'
import { called, HANDLERS, makeStore, type OldHandler, queryOf, serve, sidOf } from './service.ts'

const MINUTE = 60_000

/** `?minutes=`: how long the cookie lasts from now on. */
const setMaxAge: OldHandler = (request, response) => {
  request.session.cookie.maxAge = Number(queryOf(request).get('minutes')) * MINUTE
  response.end()
}
const loginFor: OldHandler = async (request, response) => {
  await called(callback => request.session.regenerate(callback))
  request.session.user = '42'
  request.session.cookie.maxAge = Number(queryOf(request).get('minutes')) * MINUTE
  await called(callback => request.session.save(callback))
  response.end()
}

/** ada is logged in, with a default cookie that ends with the browser. */
async function start(maxAge?: number, manager = {}) {
  const handlers = { ...HANDLERS, '/max-age': setMaxAge, '/login-for': loginFor }
  const made = await serve(handlers, {
    manager: { idleTimeout: '60m', ...manager },
    middleware: { cookie: maxAge === undefined ? {} : { maxAge } },
  })
  const one = made.browser()
  await one.go('/login?user=42')
  const minutesLeft = async () => {
    const [session] = await made.sessions.list(42n)
    return session && (session.expiresAt - session.seenAt) / MINUTE
  }
  const isIn = async (browser = one) => JSON.parse((await browser.go('/read')).body).user === '42'
  return { ...made, one, minutesLeft, isIn }
}

describe('a session whose cookie has a maxAge', () => {
  const lasting = { 'koa-session 7': (maxAge: number) => ({ maxAge }) }
  it.each(Object.keys(APPS))('may be idle for as long in %s', async name => {
    const { store, sessions, clock } = makeStore({ idleTimeout: '60m', userIds: 'string' } as never)
    const maxAge = 20 * MINUTE
    const options = lasting[name as keyof typeof lasting]?.(maxAge) ?? { cookie: { maxAge, secure: false } }
    const { browser, close } = await startApp(name, store, options)
    const one = browser()
    await one.go('/login?user=ada')
    const isIn = async () => (await one.go('/read')).body?.user === 'ada'
    for (let times = 0; times < 3; times += 1) {
      clock.now += 19 * MINUTE
      expect(await isIn()).toBe(true)
    }
    clock.now += 20 * MINUTE
    expect(await isIn()).toBe(false)
    expect(await sessions.list('ada' as never)).toEqual([])
    await close()
  })

  it('may have got it at its login, and others are as they were', async () => {
    const { browser, clock, isIn, one } = await start()
    const short = browser()
    await short.go('/login-for?minutes=15')
    clock.now += 15 * MINUTE
    expect(await isIn(short)).toBe(false)
    expect(await isIn(one)).toBe(true)
  })

  it('may have got it at a login without a new ID', async () => {
    const { browser, clock } = await start()
    const visitor = browser()
    await visitor.go('/write?key=cart&value=tea')
    await visitor.go('/max-age?minutes=15')
    await visitor.go('/login-in-place?user=43')
    expect(JSON.parse((await visitor.go('/read')).body)).toEqual({ cart: 'tea', user: '43' })
    clock.now += 15 * MINUTE
    expect(JSON.parse((await visitor.go('/read')).body)).toEqual({})
  })

  it.each([
    [1, 12],
    [11.5, 12],
    [13, 13],
    [60, 60],
    [100_000, 60],
  ])('of %d minutes may be idle for %d: two touchIntervals at least, idleTimeout at most', async (maxAge, idle) => {
    const { minutesLeft } = await start(maxAge * MINUTE)
    expect(await minutesLeft()).toBe(idle)
  })
})

describe('another maxAge', () => {
  it.each([15, 30, 50])(
    'of %d minutes in place of 30 holds from then on, and the session is the same',
    async minutes => {
      const { one, sessions, store, calls, clock, minutesLeft, isIn } = await start(30 * MINUTE)
      const [before] = await sessions.list(42n)
      clock.now += 1000
      calls.length = 0
      await one.go(`/max-age?minutes=${minutes}`)
      expect(calls).toEqual(minutes === 30 ? ['read'] : ['read', 'update'])
      expect(await minutesLeft()).toBe(minutes)
      const [after] = await sessions.list(42n)
      const { key, createdAt, absoluteExpiresAt } = before!
      expect(after).toMatchObject({ key, createdAt, absoluteExpiresAt })
      expect(sessions.isFresh(await sessions.get(store.idOf((await one.go('/write?key=a&value=1')).body)), '1s')).toBe(
        true,
      )
      clock.now += minutes * MINUTE - 2000
      expect(await isIn()).toBe(true)
      clock.now += minutes * MINUTE
      expect(await isIn()).toBe(false)
      expect(await sessions.list(42n)).toEqual([])
    },
  )

  it('makes no second session of a user at a limit, and a logout ends the one', async () => {
    const { one, sessions, isIn, calls } = await start(30 * MINUTE, { limit: { max: 1, onLimit: 'refuse' } })
    await one.go('/max-age?minutes=20')
    expect(await sessions.list(42n)).toHaveLength(1)
    await one.go('/logout')
    expect(await sessions.list(42n)).toEqual([])
    expect(await isIn()).toBe(false)
    expect(calls).not.toContain('replace')
  })

  it('at each request is a write at each request, of one session that ends by its absolute time', async () => {
    const { one, sessions, calls, clock, isIn } = await start(30 * MINUTE, { absoluteTimeout: '2h' })
    const key = (await sessions.list(42n))[0]!.key
    for (let turn = 0; turn < 22; turn += 1) {
      calls.length = 0
      await one.go(`/max-age?minutes=${20 + turn}`)
      expect(calls.filter(call => call !== 'touch')).toEqual(['read', 'update'])
      expect((await sessions.list(42n)).map(session => session.key)).toEqual([key])
      clock.now += 5 * MINUTE
    }
    expect(await isIn()).toBe(true)
    clock.now += 10 * MINUTE
    expect(await isIn()).toBe(false)
  })

  it('stays beside a parallel request that changes another key', async () => {
    const { store, sessions } = makeStore({ idleTimeout: '60m' })
    const sid = sidOf('parallel')
    const get = (): Promise<any> =>
      new Promise(resolve => void store.get(sid, (_: unknown, data: unknown) => resolve(data)))
    await called(done => store.set(sid, { user: '42', cookie: { originalMaxAge: 30 * MINUTE } }, done))
    const [one, other] = [await get(), await get()]
    await called(done => store.set(sid, Object.assign(one, { cookie: { originalMaxAge: 20 * MINUTE } }), done))
    await called(done => store.set(sid, Object.assign(other, { cart: ['tea'] }), done))
    const session = await sessions.get(store.idOf(sid))
    expect(session).toMatchObject({ data: { cart: ['tea'], cookie: { originalMaxAge: 20 * MINUTE } } })
    expect(session!.expiresAt - session!.seenAt).toBe(20 * MINUTE)
  })

  it('is that of the manager again once the cookie has none', async () => {
    const { store, sessions } = makeStore({ idleTimeout: '60m' })
    const sid = sidOf('none')
    await store.set(sid, { a: 1, cookie: { originalMaxAge: 20 * MINUTE } })
    await store.set(sid, { a: 1, cookie: { originalMaxAge: null } })
    const session = await sessions.get(store.idOf(sid))
    expect(session!.expiresAt - session!.seenAt).toBe(60 * MINUTE)
  })
})
