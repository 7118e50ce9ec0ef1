import { SessionManager } from 'coatcheck'
import { type FetchVisitsOptions, fetchVisits } from 'coatcheck/fetch'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { ada, jar, type Manager, makeSessions } from '../support/edge-service.ts'

const URL = 'https://app.example.com/'
const request = (headers: Record<string, string> = {}, url = URL, method = 'POST') =>
  new Request(url, { method, headers })
const login = async (sessions: Manager, options?: FetchVisitsOptions) => {
  const visit = fetchVisits(sessions, options).of(request())
  const session = await visit.logIn(ada)
  return { session, cookie: jar(visit.respond(new Response()).headers.getSetCookie()) }
}

describe('fetchVisits', () => {
  it('logs in, shows the profile and logs out', async () => {
    const { sessions } = makeSessions()
    const visits = fetchVisits(sessions)
    const { cookie } = await login(sessions)
    const profile = visits.of(request({ cookie }, URL, 'GET'))
    expect((await profile.get())?.user?.name).toBe('ada')
    const response = profile.respond(Response.json({ name: 'ada' }))
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('vary')).toBe('Cookie')
    expect(response.headers.getSetCookie()).toEqual([])
    expect(await response.json()).toEqual({ name: 'ada' })
    const logout = visits.of(request({ cookie }))
    await logout.logOut()
    expect(logout.respond(new Response()).headers.getSetCookie()).toEqual([
      expect.stringMatching(/^session_id=; Max-Age=0/),
    ])
    expect(await visits.of(request({ cookie })).get()).toBeNull()
  })

  it('keeps what the response says, whether its headers can be changed or not', async () => {
    const { sessions } = makeSessions()
    const responses = [
      new Response('x', {
        status: 201,
        statusText: 'Made',
        headers: [
          ['Set-Cookie', 'a=1'],
          ['Set-Cookie', 'b=2'],
          ['Set-Cookie', 'session_id=theirs'],
          ['Vary', 'Accept'],
          ['Cache-Control', 'public'],
        ],
      }),
      Response.redirect('https://app.example.com/next', 303),
      new Response(null, { status: 204 }),
      new Response(null, { status: 304 }),
    ]
    for (const response of responses) {
      const visit = fetchVisits(sessions).of(request())
      const { secret } = await visit.logIn(ada)
      const sent = visit.respond(response)
      const ours = `session_id=${secret}; Max-Age=1800; Path=/; HttpOnly; Secure; SameSite=Lax`
      expect([sent.status, sent.statusText]).toEqual([response.status, response.statusText])
      expect(sent.headers.getSetCookie()).toEqual(response.status === 201 ? ['a=1', 'b=2', ours] : [ours])
      expect(sent.headers.get('cache-control')).toBe('no-store')
      expect(sent.headers.get('vary')).toBe(response.status === 201 ? 'Accept, Cookie' : 'Cookie')
      expect(sent.headers.get('location')).toBe(response.headers.get('location'))
    }
  })

  it('leaves a response alone whose handler asked for no session, and one that cannot be copied', async () => {
    const { sessions } = makeSessions()
    const untouched = fetchVisits(sessions).of(request()).respond(new Response('x'))
    expect([...untouched.headers]).toEqual([['content-type', 'text/plain;charset=UTF-8']])
    const response = new Response('x')
    expect(fetchVisits(sessions).of(request()).respond(response)).toBe(response)
    const failed = Response.error()
    const visit = fetchVisits(sessions).of(request())
    await visit.get()
    expect(visit.respond(failed)).toBe(failed)
  })

  it('reads nothing from a request before a method is called: Astro warns of that while it prerenders a page', async () => {
    const visits = fetchVisits(makeSessions().sessions)
    const read: string[] = []
    const watched = () => {
      const given = request({}, URL, 'GET')
      for (const name of ['headers', 'method', 'url'] as const) {
        const value = given[name]
        Object.defineProperty(given, name, {
          get() {
            read.push(name)
            return value
          },
        })
      }
      return given
    }
    const page = await visits.handle(watched(), () => new Response('prerendered'))
    expect([await page.text(), page.headers.get('vary')]).toEqual(['prerendered', null])
    const visit = visits.of(watched())
    visit.respond(new Response())
    expect(read).toEqual(['method']) // by `handle`, which refuses what another origin sends
    await visit.get()
    expect(read).toContain('headers')
  })

  it('takes an offer of HTTP/2 for an ordinary request, however it is written, and anything else for a handshake', async () => {
    const { sessions } = makeSessions()
    const begin = (upgrade: string) =>
      fetchVisits(sessions)
        .of(request({ upgrade }))
        .logIn(ada)
        .then(
          () => 'began',
          error => error.code,
        )
    for (const upgrade of ['h2c', 'H2C', ' h2c ', 'TLS/1.2', 'h2c,TLS/1.3']) expect(await begin(upgrade)).toBe('began')
    for (const upgrade of ['websocket', 'WebSocket', 'h2', 'h2c, websocket', ''])
      expect(await begin(upgrade)).toBe('ERR_SESSION_HEADERS_SENT')
  })

  it('takes for HTTPS what isSecure says is true, and nothing that is like it', async () => {
    const { sessions } = makeSessions()
    const { cookie } = await login(sessions)
    const found = async (said: unknown) =>
      (await fetchVisits(sessions, { isSecure: () => said as boolean })
        .of(request({ cookie }))
        .get()) !== null
    expect(await found(true)).toBe(true)
    for (const said of [false, 1, 'https', {}, undefined, Promise.resolve(true)]) expect(await found(said)).toBe(false)
    for (const isSecure of [true, 'https', {}])
      expect(() => fetchVisits(sessions, { isSecure } as never)).toThrow(/^isSecure: expected a function, got/)
  })

  it('begins nothing after the response went out', async () => {
    const { sessions, calls } = makeSessions()
    const visit = fetchVisits(sessions).of(request())
    visit.respond(new Response())
    await expect(visit.logIn(ada)).rejects.toMatchObject({ code: 'ERR_SESSION_HEADERS_SENT' })
    expect(calls).toEqual([])
  })

  it('guards against other origins, by Host or by the URL', async () => {
    const { sessions } = makeSessions()
    const visits = fetchVisits(sessions, { trustedOrigins: ['https://front.example.net'] })
    const outcome = (headers: Record<string, string>, method = 'POST') =>
      visits
        .of(request(headers, URL, method))
        .get()
        .catch(error => error.code)
    expect(await outcome({ 'sec-fetch-site': 'cross-site' })).toBe('ERR_SESSION_CROSS_ORIGIN')
    expect(await outcome({ origin: 'https://evil.example' })).toBe('ERR_SESSION_CROSS_ORIGIN')
    expect(await outcome({ origin: 'https://evil.example' }, 'GET')).toBeNull()
    expect(await outcome({ origin: 'https://app.example.com' })).toBeNull()
    expect(await outcome({ origin: 'https://front.example.net', 'sec-fetch-site': 'cross-site' })).toBeNull()
  })

  it('honours cookies over https alone, save for names of this machine without a proxy', async () => {
    const { sessions } = makeSessions()
    const { cookie } = await login(sessions)
    const found = async (url: string, headers: Record<string, string> = {}, options?: FetchVisitsOptions) =>
      (await fetchVisits(sessions, options)
        .of(request({ cookie, ...headers }, url))
        .get()) !== null
    expect(await found('https://app.example.com/')).toBe(true)
    expect(await found('http://app.example.com/')).toBe(false)
    expect(await found('http://localhost:3000/')).toBe(true)
    expect(await found('http://[::1]:3000/')).toBe(true)
    expect(await found('http://localhost:3000/', { 'x-forwarded-proto': 'https' })).toBe(false)
    expect(await found('http://app.example.com/', { 'x-forwarded-proto': 'https' })).toBe(false)
    const isSecure = (request: Request) => request.headers.get('x-forwarded-proto') === 'https'
    expect(await found('http://app.example.com/', { 'x-forwarded-proto': 'https' }, { isSecure })).toBe(true)
    expect(await found('https://app.example.com/', {}, { isSecure })).toBe(false)
  })

  it('has no peer address, so that trustedProxies is a TypeError that names isSecure among what there is', () => {
    const { sessions } = makeSessions()
    expect(() => fetchVisits(sessions, { trustedProxies: ['10.0.0.0/8'] } as never)).toThrow(
      /^fetchVisits: "trustedProxies" is not an option; it belongs to nodeVisits\(.*isSecure\)$/,
    )
  })

  it('gives the same request the same visit', async () => {
    const { sessions, calls } = makeSessions()
    const { cookie } = await login(sessions)
    calls.length = 0
    const visits = fetchVisits(sessions)
    const same = request({ cookie })
    expect(visits.of(same)).toBe(visits.of(same))
    await Promise.all([visits.of(same).get(), visits.of(same).get()])
    expect(calls).toEqual(['read'])
  })

  it('types flow from the manager to the visit', async () => {
    const sessions = new SessionManager({ store: new MemoryStore(), userIds: 'number' })
    const session = await fetchVisits(sessions)
      .of(request())
      .logIn({ user: { id: 7, name: 'ada' } })
    const id: number = session.user.id
    expect(id).toBe(7)
    await sessions.close()
  })
})
