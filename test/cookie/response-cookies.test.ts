// The cookies of a visit as values: for cookie jars of frameworks, for the page behind a middleware, and for tests.
import { withCookies } from 'coatcheck/custom-server'
import { fetchVisits } from 'coatcheck/fetch'
import { cookieHeader } from 'coatcheck/testing'
import { describe, expect, it } from 'vitest'
import { ada, makeSessions, visitOf } from '../support/edge-service.ts'

const manager = () => makeSessions({ rememberFor: '30d' }).sessions

describe('visit.cookies', () => {
  it('has name, value and options of a login, as jars take them', async () => {
    const visit = visitOf(manager())
    const { secret } = await visit.logIn(ada)
    expect(visit.cookies).toEqual([
      {
        name: 'session_id',
        value: secret,
        options: { path: '/', httpOnly: true, secure: true, sameSite: 'lax', maxAge: 1800 },
      },
    ])
  })

  it('has both cookies, and removes both by an empty value at the logout', async () => {
    const sessions = manager()
    const visit = visitOf(sessions)
    await visit.logIn({ ...ada, remember: true })
    expect(visit.cookies.map(({ name }) => name)).toEqual(['session_id', 'remember_token'])
    const after = visitOf(sessions, withCookies(null, visit.cookies))
    await after.logOut()
    expect(
      after.cookies.map(({ name, value, options }) => [name, value, options.maxAge, options.expires?.getTime()]),
    ).toEqual([
      ['session_id', '', 0, 0],
      ['remember_token', '', 0, 0],
    ])
  })

  it('says the same as the header lines, whatever the options of the cookie', async () => {
    for (const cookie of [
      {},
      { hostPrefix: true },
      { lifetime: 'browser' },
      { sameSite: 'none', partitioned: true },
      { domain: 'example.com', path: '/app', sameSite: 'strict' },
      { secure: false },
    ] as const) {
      const visit = visitOf(manager(), null, {}, { cookie })
      await visit.logIn({ ...ada, remember: true })
      const lines = visit.headers.getSetCookie()
      expect(visit.cookies.length).toBe(2)
      visit.cookies.forEach(({ name, value, options }, at) => {
        const { maxAge, domain, path, sameSite, partitioned } = options
        const attributes = [
          ...Object.entries({ 'Max-Age': maxAge, Domain: domain, Path: path, SameSite: sameSite }),
          ...Object.entries({ HttpOnly: options.httpOnly, Secure: options.secure, Partitioned: partitioned }),
        ].flatMap(([key, is]) => (is === undefined || is === false ? [] : is === true ? key : `${key}=${is}`))
        const line = lines[at]!.replace(/SameSite=\w+/, text => text.toLowerCase().replace('samesite', 'SameSite'))
        expect(line.split('; ').sort()).toEqual([`${name}=${value}`, ...attributes].sort())
      })
    }
  })

  it('and visit.headers only look: what visit.finish() returns is the same, however often either is asked', async () => {
    const visit = visitOf(manager())
    for (const step of [() => visit.logIn({ ...ada, remember: true }), () => visit.logOut()]) {
      await step()
      const looks = () => [visit.cookies, [...visit.headers]]
      const seen = looks()
      expect(looks()).toEqual(seen)
      for (let times = 0; times < 2; times += 1) {
        const { cookies, headers } = visit.finish()
        expect([cookies, [...headers]]).toEqual(seen)
      }
    }
  })
})

describe('a cookie jar', () => {
  it('gets nothing of a visit that has responded: it reads and takes, and begins nothing', async () => {
    const sessions = manager()
    const session = await sessions.create({ user: ada.user, data: { flash: 'Welcome.' } })
    const token = await sessions.issueRememberToken(session)
    const open = (cookie: string) => {
      const visit = fetchVisits(sessions).of(new Request('https://shop.example/', { headers: { cookie } }))
      visit.respond(new Response())
      return visit
    }
    const page = open(`session_id=${session.secret}`)
    expect((await page.get())?.user?.name).toBe('ada')
    expect(await page.take('flash')).toBe('Welcome.')
    await expect(page.logIn(ada)).rejects.toMatchObject({ code: 'ERR_SESSION_HEADERS_SENT' })
    await expect(page.regenerate()).rejects.toMatchObject({ code: 'ERR_SESSION_HEADERS_SENT' })
    expect(page.cookies).toEqual([])
    expect((await sessions.list(42n)).map(({ key }) => key)).toEqual([session.key])
    // The token stays as it is for a response that can bring the next one.
    expect(await open(`remember_token=${token}`).get()).toBeNull()
    expect((await sessions.redeemRememberToken(token))?.session.user?.name).toBe('ada')
  })
})

describe('withCookies', () => {
  it('hands a renewed session on to the page of the same request', async () => {
    const sessions = manager()
    const { secret } = await sessions.create(ada)
    const middleware = visitOf(sessions, `theme=dark; session_id=${secret}`)
    const renewed = await middleware.regenerate()
    const header = withCookies(`theme=dark; session_id=${secret}`, middleware.cookies)
    expect(header).toBe(`theme=dark; session_id=${renewed!.secret}`)
    expect((await visitOf(sessions, header).requireUser()).user.name).toBe('ada')
  })

  it('replaces each name once, drops what is removed, and leaves the others as they are', () => {
    const set = (name: string, value: string) => ({ name, value })
    expect(withCookies(null, [])).toBe('')
    expect(withCookies(undefined, [set('a', '1')])).toBe('a=1')
    expect(withCookies('a=1; b=2;  c ; a=3', [set('a', '9')])).toBe('b=2; c; a=9')
    expect(withCookies('a=1; b=x=y; ab=1', [set('a', '')])).toBe('b=x=y; ab=1')
    expect(withCookies(' ; ;', [set('a', '')])).toBe('')
  })
})

describe('for tests of an application', () => {
  it('cookieHeader is what a browser with the session sends', async () => {
    const sessions = manager()
    const session = await sessions.create(ada)
    const visits = fetchVisits(sessions, { cookie: { hostPrefix: true } })
    const request = new Request('https://shop.example/', {
      headers: { Cookie: cookieHeader(session, { hostPrefix: true }) },
    })
    const response = await visits.handle(request, async visit => new Response((await visit.requireUser()).user.name))
    expect(await response.text()).toBe('ada')
    expect(cookieHeader(session)).toBe(`session_id=${session.secret}`)
    expect(() => cookieHeader(session, { nme: 'x' } as never)).toThrow('nme')
  })
})
