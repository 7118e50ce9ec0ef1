// A request that comes late, or beside a login or a logout of the same browser, step by step; test/guarantees/two-requests.test.ts has
// them in every order.

import { SessionManager, sessionId } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it, vi } from 'vitest'
import { BarrierStore } from '../support/barrier-store.ts'
import { type AnyVisit, jar } from '../support/edge-service.ts'
import { onlyHost } from '../support/only-host.ts'
import { MINUTE, testClock } from '../support/test-clock.ts'

const ADA = { user: { id: 42n, name: 'ada' } }
const DEAD = `session_id=${'a'.repeat(43)}`

async function browser() {
  const store = BarrierStore.over(new MemoryStore())
  const clock = testClock()
  const manager = () => new SessionManager({ store, now: clock, sweepInterval: false, rememberFor: '30d' })
  const [sessions, elsewhere] = [manager(), manager()]
  const visit = (cookie: string | null): AnyVisit =>
    openVisit(sessions, { method: 'POST', secure: true, header: onlyHost, cookie }) as never
  const logIn = async (cookie: string | null, remember = false) => {
    const visiting = visit(cookie)
    await visiting.logIn({ ...ADA, remember })
    return jar(visiting.finish().headers.getSetCookie())
  }
  const anonymous = async () => {
    const visiting = visit(null)
    await visiting.create()
    return jar(visiting.finish().headers.getSetCookie())
  }
  /** What a request with these cookies comes to: whether it has a session, and what it sets. */
  const late = async (cookie: string, ask: (visiting: AnyVisit) => Promise<unknown>) => {
    const visiting = visit(cookie)
    const answer = await ask(visiting)
    return [answer, visiting.finish().headers.getSetCookie()]
  }
  return { store, clock, sessions, elsewhere, visit, logIn, anonymous, late }
}

/** The cookie of this name, of a whole header. */
const only = (name: string, cookies: string) => cookies.split('; ').find(pair => pair.startsWith(`${name}=`))!

describe('what a stranger sends', () => {
  it('makes this process forget no login and no logout, however many invented cookies are logged out', async () => {
    const { anonymous, visit, late, logIn, sessions } = await browser()
    const [left, cookies, replaced] = [await anonymous(), await logIn(null, true), await anonymous()]
    await visit(left).logOut()
    await visit(cookies).logOut()
    await visit(replaced).logIn(ADA)
    for (let number = 0; number <= 20_000; number += 1) {
      const invented = `${number}`.padStart(43, '-')
      await sessions.destroy(sessionId(invented))
      await sessions.revokeRememberToken(`${invented}.${invented}`)
    }
    for (const cookie of [left, cookies, replaced])
      expect(await late(cookie, each => each.update({ n: 1 }))).toEqual([null, []])
  })
})

describe('a request that began a session', () => {
  it.each([1, 2])('and %i more in its place sends no cookie after a login of the browser', async more => {
    const { visit, logIn, sessions, elsewhere } = await browser()
    const visiting = visit(DEAD)
    await visiting.update({ n: 1 })
    for (let times = 0; times < more; times += 1) await visiting.create()
    const begun = (await visiting.get())!
    await logIn(DEAD)
    // To look changes nothing.
    for (let times = 0; times < 3; times += 1) {
      expect([[...visiting.headers.keys()], visiting.cookies]).toEqual([['cache-control', 'vary'], []])
      expect(await elsewhere.get(begun.secret, { touch: false })).not.toBeNull()
    }
    const { headers, cookies } = visiting.finish()
    expect([[...headers.keys()], cookies]).toEqual([['cache-control', 'vary'], []])
    await expect.poll(() => elsewhere.get(begun.secret)).toBeNull()
    expect(await sessions.list(42n)).toHaveLength(1)
  })
})

describe('a request that asks for a new ID of a session that has ended', () => {
  const asks: Record<string, (visiting: AnyVisit) => Promise<unknown>> = {
    regenerate: visiting => visiting.regenerate(),
    rotate: visiting => visiting.regenerate({ grace: '1m' }),
  }
  it.each(Object.entries(asks))('by %s begins no other one in its place, if it had found it live', async (_, ask) => {
    const { anonymous, visit, elsewhere } = await browser()
    const visiting = visit(await anonymous())
    await elsewhere.destroy((await visiting.get())!)
    expect([await ask(visiting), await visiting.update({ n: 1 })]).toEqual([null, null])
    await expect(visiting.create()).rejects.toMatchObject({ code: 'ERR_SESSION_CONFLICT' })
    expect(visiting.finish().headers.getSetCookie()).toEqual([])
  })

  it.each(Object.entries(asks))('by %s begins one where it had not looked', async (_, ask) => {
    const { anonymous, visit, elsewhere, sessions } = await browser()
    const cookie = await anonymous()
    await elsewhere.destroy((await visit(cookie).get())!)
    const visiting = visit(cookie)
    expect(await ask(visiting)).toBeNull()
    const begun = await visiting.update({ n: 1 })
    expect([begun?.data, (await sessions.get(begun!.secret))?.key]).toEqual([{ n: 1 }, begun?.key])
  })
})

describe('a late request brings nobody back by a remember token', () => {
  it('after its session got a new ID whose answer was lost: until the old ID leads on no more, on any node', async () => {
    // Where an ID leads is remembered by this clock, and the wait goes to the last millisecond.
    vi.useFakeTimers({ toFake: ['performance'] })
    for (const grace of [undefined, '10s'] as const) {
      const { visit, elsewhere, logIn, clock } = await browser()
      const cookies = await logIn(null, true)
      const other = () => openVisit(elsewhere, { method: 'POST', secure: true, header: onlyHost, cookie: cookies })
      await visit(cookies).regenerate(grace && { grace })
      const leadsOn = 5 * MINUTE + (grace === undefined ? 0 : 10_000)
      for (const wait of [1, leadsOn - 2]) {
        clock.advance(wait)
        // With a grace the old ID finds the session; without one nothing begins, since the new ID is on its way.
        for (const each of [visit(cookies), other()])
          expect(((await each.get({ touch: false })) === null) === (grace === undefined)).toBe(true)
      }
      clock.advance(1)
      expect((await visit(cookies).get())?.remembered).toBe(true)
      expect((await other().get())?.remembered).toBe(true)
    }
  })

  it('after its session got a new ID and that ended on another node: then it begins one at once', async () => {
    for (const grace of [undefined, '10s'] as const) {
      const { visit, elsewhere, logIn, clock, store } = await browser()
      const cookies = await logIn(null, true)
      const renewed = (await visit(cookies).regenerate(grace && { grace }))!
      if (grace !== undefined) expect(await visit(cookies).get({ touch: false })).not.toBeNull()
      await elsewhere.destroy(renewed)
      store.reset()
      expect((await visit(cookies).get())?.remembered).toBe(true)
      expect(store.counts().create).toBe(1)
      clock.advance(MINUTE)
    }
  })

  it('but begins one at once if the application ended the session alone', async () => {
    const { visit, sessions, logIn } = await browser()
    const cookies = await logIn(null, true)
    await sessions.destroy(await visit(cookies).get())
    expect((await visit(cookies).get())?.remembered).toBe(true)
  })
})

describe('a response that is under way', () => {
  it('brings neither the cookie nor the token of what has ended meanwhile', async () => {
    const { visit, sessions } = await browser()
    const slow = visit(null)
    const session = await slow.logIn({ ...ADA, remember: true })
    expect(slow.cookies.map(({ name }) => name)).toEqual(['session_id', 'remember_token'])
    const [, { value: token } = { value: '' }] = slow.cookies
    await sessions.destroy(session)
    expect(slow.cookies.map(({ name }) => name)).not.toContain('session_id')
    await sessions.revokeRememberToken(token)
    expect(slow.cookies).toEqual([])
  })

  it('brings no cookie of a session that a remember token began, as soon as its logout has begun here', async () => {
    const { visit, sessions, logIn, store } = await browser()
    const token = only('remember_token', await logIn(null, true))
    const slow = visit(token)
    await slow.get()
    const next = slow.cookies[1]!.value
    expect(slow.cookies.map(({ name }) => name)).toEqual(['session_id', 'remember_token'])
    const pause = store.pause('read', 'before')
    const ending = sessions.revokeRememberToken(next)
    await pause.reached
    expect(slow.cookies).toEqual([])
    pause.resume()
    await ending
  })

  it('does not bring the cookie again that the session had before it got a new ID', async () => {
    const { visit, logIn, clock } = await browser()
    const cookie = await logIn(null)
    clock.advance(5 * MINUTE)
    const slow = visit(cookie)
    await slow.get()
    expect(slow.cookies.map(({ value }) => `session_id=${value}`)).toEqual([cookie])
    await visit(cookie).regenerate()
    expect(slow.cookies).toEqual([])
  })

  it('brings no cookie of a session that another process has ended, once it has seen that', async () => {
    const { visit, elsewhere } = await browser()
    const visiting = visit(null)
    await elsewhere.destroy(await visiting.logIn(ADA))
    expect(await visiting.update({ n: 1 })).toBeNull()
    expect(visiting.cookies).toEqual([])
  })
})
