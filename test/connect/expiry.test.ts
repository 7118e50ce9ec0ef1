// How long a session may be idle: as long as its cookie lasts, by the manager's clock, within what the manager allows.
import { describe, expect, it, vi } from 'vitest'
import { called } from '../support/connect/apps.ts'
import { makeStore, type OldHandler, queryOf, serve, sidOf } from './service.ts'

const MINUTE = 60_000
const DAY = 1440 * MINUTE
const SID = sidOf('one browser')

/** `?minutes=`: how long the cookie lasts from now on. */
const setMaxAge: OldHandler = (request, response) => {
  request.session.cookie.maxAge = Number(queryOf(request).get('minutes')) * MINUTE
  response.end()
}
const HANDLERS: Record<string, OldHandler> = {
  '/max-age': setMaxAge,
  '/login-for': async (request, response) => {
    await called(callback => request.session.regenerate(callback))
    request.session.user = '42'
    setMaxAge(request, response, () => {})
  },
  '/cookie': (request, response) => response.end(JSON.stringify(request.session.cookie.data)),
}

/** ada is logged in, with a default cookie that ends with the browser. */
async function start(maxAge?: number, manager = {}) {
  const made = await serve(HANDLERS, {
    manager: { idleTimeout: '60m', ...manager },
    middleware: { cookie: maxAge === undefined ? {} : { maxAge } },
  })
  const one = made.browser()
  await one.go('/login?user=42')
  const minutesLeft = async () => {
    const [session] = await made.sessions.list(42n)
    return session && (session.expiresAt - session.seenAt) / MINUTE
  }
  const isIn = async (browser = one) => (await browser.read()).user === '42'
  return { ...made, one, minutesLeft, isIn }
}

it('a session ends by the two times of the manager, whatever its cookie says', async () => {
  const { one, clock, isIn } = await start(400 * DAY, { idleTimeout: '30m', absoluteTimeout: '2h' })
  for (let minutes = 0; minutes < 115; minutes += 25) {
    expect(await isIn()).toBe(true)
    clock.now += 25 * MINUTE
  }
  expect(await isIn()).toBe(false)
  await one.go('/login?user=42')
  clock.now += 31 * MINUTE
  expect(await isIn()).toBe(false)
})

describe('a session whose cookie has a maxAge', () => {
  it('may have got it at a login without a new ID', async () => {
    const { browser, clock } = await start()
    const visitor = browser()
    await visitor.go('/write?key=cart&value=tea')
    await visitor.go('/max-age?minutes=15')
    await visitor.go('/login-in-place?user=43')
    expect(await visitor.read()).toEqual({ cart: 'tea', user: '43' })
    clock.now += 15 * MINUTE
    expect(await visitor.read()).toEqual({})
  })

  it.each([
    [1, 12],
    [11.5, 12],
    [13, 13],
    [60, 60],
    [100_000, 60],
  ])('of %d minutes may be idle for %d: two touchIntervals at least, idleTimeout at most', async (maxAge, idle) => {
    const { minutesLeft, one } = await start(maxAge * MINUTE)
    expect(await minutesLeft()).toBe(idle)
    expect((await one.go('/cookie')).body).toMatchObject({
      originalMaxAge: maxAge * MINUTE,
      path: '/',
      httpOnly: true,
    })
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
      const { key, createdAt, absoluteExpiresAt } = before!
      expect((await sessions.list(42n))[0]).toMatchObject({ key, createdAt, absoluteExpiresAt })
      const session = await sessions.get(store.idOf((await one.go('/write?key=a&value=1')).body))
      expect(sessions.isFresh(session, '1s')).toBe(true)
      clock.now += minutes * MINUTE - 2000
      expect(await isIn()).toBe(true)
      clock.now += minutes * MINUTE
      expect(await isIn()).toBe(false)
      expect(await sessions.list(42n)).toEqual([])
    },
  )

  it('stays beside a parallel request that changes another key, and is that of the manager once there is none', async () => {
    const { store, sessions } = makeStore({ idleTimeout: '60m' })
    const get = () => new Promise<any>(resolve => void store.get(SID, (_: unknown, data: unknown) => resolve(data)))
    const idle = async () => {
      const { expiresAt, seenAt } = (await sessions.get(store.idOf(SID)))!
      return (expiresAt - seenAt) / MINUTE
    }
    await store.set(SID, { cookie: { originalMaxAge: 30 * MINUTE } })
    const [one, other] = [await get(), await get()]
    await store.set(SID, Object.assign(one, { cookie: { originalMaxAge: 20 * MINUTE } }))
    await store.set(SID, Object.assign(other, { cart: ['tea'] }))
    expect(await store.get(SID)).toMatchObject({ cart: ['tea'], cookie: { originalMaxAge: 20 * MINUTE } })
    expect(await idle()).toBe(20)
    await store.set(SID, { cookie: { originalMaxAge: null } })
    expect(await idle()).toBe(60)
  })
})

describe('a cookie', () => {
  it('with a maxAge beyond all dates has no date', async () => {
    const { store } = makeStore()
    await store.set(SID, { cookie: { originalMaxAge: 9e15 } })
    expect(await store.get(SID)).toEqual({ cookie: { originalMaxAge: 9e15, expires: null } })
  })

  it('that is set to be over ends the session, whose record goes', async () => {
    const { one, sessions } = await start()
    await one.go('/max-age?minutes=-1')
    expect(await sessions.count()).toBe(0)
    const { store, sessions: others } = makeStore()
    const cookie = (ms: number) => ({ originalMaxAge: null, expires: new Date(Date.now() + ms) })
    await store.set(SID, { cookie: cookie(DAY), a: 1 })
    expect(await store.get(SID)).toMatchObject({ a: 1 })
    await store.set(SID, { cookie: cookie(-1), a: 1 })
    expect([await store.get(SID), await others.count()]).toEqual([null, 0])
  })

  it('with a date of its own and no maxAge ends the session then', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const { store, sessions } = makeStore()
    await store.set(SID, { cookie: { originalMaxAge: null, expires: new Date(Date.now() + DAY) } })
    const session = (await sessions.get(store.idOf(SID)))!
    const until = (expires: string) => sessions.update(session, { cookie: { originalMaxAge: null, expires } })
    await until(new Date(Date.now()).toISOString())
    expect(await store.get(SID)).toBeNull()
    await until('no date')
    expect(await store.get(SID)).toMatchObject({ cookie: { expires: 'no date' } })
  })
})
