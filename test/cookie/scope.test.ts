// A deploy changes the scope of the cookie, or its name, and a sibling host plants cookies of its own.
import type { CookieOptions } from 'coatcheck'
import { type FetchVisitsOptions, fetchVisits } from 'coatcheck/fetch'
import { describe, expect, it } from 'vitest'
import { ada, type Manager, makeSessions } from '../support/edge-service.ts'
import { ScopedJar } from './scoped-jar.ts'

const HOST = 'www.example.com'
const MINUTE = 60_000

/** The pages of a service: each answers who is logged in. */
function serviceOf(sessions: Manager, options: FetchVisitsOptions) {
  const visits = fetchVisits(sessions, options)
  return (page: string, cookie: string) =>
    visits.handle(
      new Request(`https://${HOST}/app/${page}`, { headers: { ...(cookie && { cookie }) } }),
      async visit => {
        if (page === 'login') await visit.logIn(ada)
        if (page === 'remember') await visit.logIn({ ...ada, remember: true })
        if (page === 'logout') await visit.logOut()
        return new Response((await visit.get())?.user?.name ?? 'nobody')
      },
    )
}
/** A browser asks a service. */
async function browse(jar: ScopedJar, ask: ReturnType<typeof serviceOf>, page: string) {
  const response = await ask(page, jar.header(HOST, `/app/${page}`))
  jar.take(response.headers.getSetCookie(), HOST)
  return response.text()
}

/** A browser, and the service as it is deployed now. */
function deployed(options: FetchVisitsOptions = {}) {
  const made = makeSessions({ rememberFor: '30d' })
  const jar = new ScopedJar(made.clock)
  let ask = serviceOf(made.sessions, options)
  return {
    ...made,
    jar,
    deploy: (next: FetchVisitsOptions) => {
      ask = serviceOf(made.sessions, next)
    },
    browse: (page: string) => browse(jar, ask, page),
  }
}

const embedded = { sameSite: 'none' } as const
const changes: readonly [string, CookieOptions, CookieOptions][] = [
  ['a domain', {}, { domain: 'example.com' }],
  ['no domain any more', { domain: 'example.com' }, {}],
  ['a shorter path', { path: '/app' }, { path: '/' }],
  ['a longer path', { path: '/' }, { path: '/app' }],
  ['partitions', embedded, { ...embedded, partitioned: true }],
  ['another SameSite', {}, { sameSite: 'strict' }],
  ['another lifetime', {}, { lifetime: 'absolute' }],
]

describe('after a deploy', () => {
  it.each(changes)('that gives the cookie %s its browser is logged in, in and out again', async (_, before, after) => {
    const { browse, deploy, events, clock, sessions } = deployed({ cookie: before })
    await browse('login')
    deploy({ cookie: after })
    expect(await browse('')).toBe('ada')
    for (let day = 0; day < 2; day += 1) {
      expect([await browse('login'), await browse('')]).toEqual(['ada', 'ada'])
      clock.now += 2 * MINUTE
      expect([await browse('logout'), await browse('')]).toEqual(['nobody', 'nobody'])
      expect(await sessions.list(42n)).toEqual([])
      expect([await browse('login'), await browse('')]).toEqual(['ada', 'ada'])
      // The session is over, and the cookie of before is not.
      clock.now += 31 * MINUTE
      expect(await browse('')).toBe('nobody')
    }
    expect(events).not.toContain('ambiguous-cookie')
  })

  it.each(changes)(
    'that gives it %s a remember token brings the user back, time and again',
    async (_, before, after) => {
      const { browse, deploy, events, clock, sessions } = deployed({ cookie: before })
      await browse('remember')
      deploy({ cookie: after })
      for (let time = 0; time < 4; time += 1) {
        clock.now += 13 * 60 * MINUTE
        expect([time, await browse(''), await browse('')]).toEqual([time, 'ada', 'ada'])
      }
      expect(await browse('logout')).toBe('nobody')
      clock.now += 20 * MINUTE
      expect([await browse(''), await sessions.list(42n)]).toEqual(['nobody', []])
      expect(events.filter(type => type === 'remember-theft' || type === 'ambiguous-cookie')).toEqual([])
    },
  )

  it('while nodes of both versions run a browser stays logged in at each', async () => {
    const { sessions, store, clock, jar } = deployed()
    const other = makeSessions({ rememberFor: '30d', store, now: () => clock.now })
    const before = serviceOf(sessions, {})
    const after = serviceOf(other.sessions, { cookie: { domain: 'example.com' } })
    for (const node of [before, after, after, before]) {
      expect(await browse(jar, node, 'login')).toBe('ada')
      for (const each of [before, after, before]) expect(await browse(jar, each, '')).toBe('ada')
      clock.now += MINUTE
    }
    await browse(jar, after, 'logout')
    for (const each of [before, after]) expect(await browse(jar, each, '')).toBe('nobody')
  })
})
