// Visits for servers that work with Request and Response.
import { type FetchVisit, type FetchVisitsOptions, fetchVisits } from 'coatcheck/fetch'
import { describe, expect, it } from 'vitest'
import { ada, type Data, jar, type Manager, makeSessions } from '../support/edge-service.ts'

const URL = 'https://app.example.com/'
const ours = /^session_id=[\w-]{43}; Max-Age=1800/
type Visit = FetchVisit<Data, 'bigint', Data>
const request = (headers: Record<string, string> = {}, url = URL, method = 'POST') =>
  new Request(url, { method, headers })
const login = async (sessions: Manager, options?: FetchVisitsOptions) => {
  const visit = fetchVisits(sessions, options).of(request())
  const session = await visit.logIn(ada)
  return { session, cookie: jar(visit.respond(new Response()).headers.getSetCookie()) }
}

describe('fetchVisits', () => {
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
    for (const bare of [Response.error(), { status: 101, headers: new Headers() } as Response])
      expect(await fetchVisits(sessions).handle(request(), visit => visit.logIn(ada).then(() => bare))).toBe(bare)
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

  it('believes no forwarded header, but isSecure, which is asked alone, and nothing that is like true', async () => {
    const { sessions } = makeSessions()
    const { cookie } = await login(sessions)
    const found = async (url: string, headers: Record<string, string> = {}, options?: FetchVisitsOptions) =>
      (await fetchVisits(sessions, options)
        .of(request({ cookie, ...headers }, url))
        .get()) !== null
    const https = { 'x-forwarded-proto': 'https' }
    expect(await found('https://app.example.com/')).toBe(true)
    expect(await found('http://app.example.com/')).toBe(false)
    expect(await found('http://app.example.com/', https)).toBe(false)
    const isSecure = (asked: Request) => asked.headers.get('x-forwarded-proto') === 'https'
    expect(await found('http://app.example.com/', https, { isSecure })).toBe(true)
    expect(await found('https://app.example.com/', {}, { isSecure })).toBe(false)
    for (const near of [1, 'https', {}, Promise.resolve(true)])
      expect(await found('https://app.example.com/', {}, { isSecure: () => near as boolean })).toBe(false)
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
})

const live = async ({ sessions }: ReturnType<typeof makeSessions>) => (await sessions.list(42)).length
describe('visits.handle', () => {
  it('puts the headers into the response that the handler answers', async () => {
    const made = makeSessions()
    const visits = fetchVisits(made.sessions)
    const response = await visits.handle(request(), async visit => {
      await visit.logIn(ada)
      return Response.json('Logged in.', { status: 201, headers: { 'Set-Cookie': 'theme=dark' } })
    })
    expect([response.status, await response.json()]).toEqual([201, 'Logged in.'])
    expect(response.headers.getSetCookie()).toEqual(['theme=dark', expect.stringMatching(ours)])
    expect(response.headers.get('cache-control')).toBe('no-store')
  })

  it('throws on what a framework throws as a Response, with the headers in', async () => {
    const made = makeSessions()
    const thrown = await fetchVisits(made.sessions)
      .handle(request(), async visit => {
        await visit.logIn(ada)
        throw Response.redirect('https://app.example.com/home', 303)
      })
      .then(
        () => 'answered',
        error => error,
      )
    expect(thrown).toBeInstanceOf(Response)
    expect([thrown.status, thrown.headers.get('location')]).toEqual([303, 'https://app.example.com/home'])
    expect(thrown.headers.getSetCookie()).toEqual([expect.stringMatching(ours)])
    expect(await live(made)).toBe(1)
  })

  it('refuses a Response whose body was read already: it cannot be sent', async () => {
    for (const use of [(answer: Response) => answer.text(), (answer: Response) => answer.body!.getReader()]) {
      const made = makeSessions()
      const handled = fetchVisits(made.sessions).handle(request(), async visit => {
        await visit.logIn(ada)
        const answer = new Response('x')
        await use(answer)
        return answer
      })
      await expect(handled).rejects.toThrow('respond: the body of this Response was read already')
    }
    const made = makeSessions()
    const response = await fetchVisits(made.sessions).handle(request(), async visit => {
      await visit.logIn(ada)
      const answer = new Response('x')
      await answer.clone().text()
      return answer
    })
    expect([await response.text(), response.headers.getSetCookie().length]).toEqual(['x', 1])
  })

  it('ends what a verb begins after the handler has thrown', async () => {
    const made = makeSessions()
    let late: Promise<unknown> = Promise.resolve()
    const outcome = fetchVisits(made.sessions).handle(request(), async visit => {
      late = visit.logIn(ada)
      late.catch(() => {})
      throw new Error('something else failed first')
    })
    await expect(outcome).rejects.toThrow('first')
    await expect(late).rejects.toMatchObject({ code: 'ERR_SESSION_HEADERS_SENT' })
    expect(await live(made)).toBe(0)
  })

  it('keeps a session that began before, whatever the handler throws, and one rotated with a grace', async () => {
    const made = makeSessions()
    const { secret } = await made.sessions.create(ada)
    const cookie = `session_id=${secret}`
    for (const step of [
      async (visit: Visit) => void (await visit.get()),
      async (visit: Visit) => void (await visit.update({ n: 1 })),
      async (visit: Visit) => void (await visit.regenerate({ grace: '30s' })),
    ]) {
      const outcome = fetchVisits(made.sessions).handle(request({ cookie }), async visit => {
        await step(visit)
        throw new Error('broken')
      })
      await expect(outcome).rejects.toThrow('broken')
      expect((await made.sessions.get(secret))?.user?.name).toBe('ada')
    }
  })
})

it('a read for a part of the page that follows its head counts as a use', async () => {
  const made = makeSessions()
  const { cookie } = await login(made.sessions)
  made.clock.now += 20 * 60_000
  made.calls.length = 0
  const visit = fetchVisits(made.sessions).of(request({ cookie }, URL, 'GET'))
  visit.respond(new Response('<p>'))
  expect((await visit.get())?.user?.name).toBe('ada')
  expect(made.calls).toEqual(['read', 'touch'])
})

describe('an upgrade over fetchVisits', () => {
  const websocket = { connection: 'upgrade', upgrade: 'websocket' }
  it('begins and prolongs nothing, and uses no remember token: its 101 carries no cookie', async () => {
    const made = makeSessions({ rememberFor: '30d' })
    const visits = fetchVisits(made.sessions)
    const login = await visits.handle(request(), async visit => {
      await visit.logIn({ ...ada, remember: true })
      return new Response()
    })
    const [session, token] = login.headers.getSetCookie().map(cookie => jar([cookie])) as [string, string]
    made.clock.now += 20 * 60_000
    made.calls.length = 0
    const used = visits.of(request({ ...websocket, cookie: session }, URL, 'GET'))
    expect((await used.get())?.user?.name).toBe('ada')
    const remembered = visits.of(request({ ...websocket, cookie: token }, URL, 'GET'))
    expect(await remembered.get()).toBeNull()
    for (const verb of [() => remembered.create(), () => remembered.update({ n: 1 }), () => remembered.logIn(ada)])
      await expect(verb()).rejects.toMatchObject({ code: 'ERR_SESSION_HEADERS_SENT' })
    expect([used.headers.getSetCookie(), remembered.headers.getSetCookie(), made.calls]).toEqual([[], [], ['read']])
  })

  it('may be taken over by the server: handle lets the handler answer nothing', async () => {
    const { sessions } = makeSessions()
    const answer = await fetchVisits(sessions).handle(request(websocket, URL, 'GET'), async visit => {
      expect(await visit.get()).toBeNull()
      return undefined
    })
    expect(answer).toBeUndefined()
  })
})
