// The first documented form of the fetch edge: whatever a handler does, its response has our headers, or nothing began.
import { type FetchVisit, fetchVisits } from 'coatcheck/fetch'
import { describe, expect, it } from 'vitest'
import { ada, type Data, jar, makeSessions } from '../support/edge-service.ts'

const URL = 'https://app.example.com/'
const request = (headers: Record<string, string> = {}, method = 'POST') => new Request(URL, { method, headers })
type Visit = FetchVisit<Data, 'bigint', Data>
const ours = /^session_id=[\w-]{43}; Max-Age=1800/
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
    const cookie = jar(response.headers.getSetCookie())
    const profile = await visits.handle(request({ cookie }, 'GET'), async visit =>
      Response.json((await visit.get())?.user?.name),
    )
    expect(await profile.json()).toBe('ada')
  })

  it('takes a handler that is not asynchronous', async () => {
    const { sessions } = makeSessions()
    const response = await fetchVisits(sessions).handle(request(), () => new Response('x'))
    expect(await response.text()).toBe('x')
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

  it('passes on the error of a handler that asked for no session, and its bare response', async () => {
    const visits = fetchVisits(makeSessions().sessions)
    const failure = new Error('the template is broken')
    const outcome = visits.handle(request(), () => {
      throw failure
    })
    await expect(outcome).rejects.toBe(failure)
    const bare = Response.error()
    expect(await visits.handle(request(), () => bare)).toBe(bare)
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

  it('refuses a handler that answers no Response', async () => {
    for (const answer of [undefined, null, 'text', { status: 200 }, new Headers()]) {
      const made = makeSessions()
      const outcome = fetchVisits(made.sessions).handle(request(), (async (visit: Visit) => {
        await visit.logIn(ada)
        return answer
      }) as never)
      await expect(outcome).rejects.toThrow(/handle: expected a Response/)
    }
  })

  it('passes on a response that can carry no cookie as it is', async () => {
    for (const bare of [Response.error(), { status: 101, headers: new Headers() } as Response]) {
      const response = await fetchVisits(makeSessions().sessions).handle(request(), async visit => {
        await visit.logIn(ada)
        return bare
      })
      expect(response).toBe(bare)
    }
  })
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
    const slid = visits.of(request({ ...websocket, cookie: session }, 'GET'))
    expect((await slid.get())?.user?.name).toBe('ada')
    const recalled = visits.of(request({ ...websocket, cookie: token }, 'GET'))
    expect(await recalled.get()).toBeNull()
    for (const verb of [() => recalled.create(), () => recalled.update({ n: 1 }), () => recalled.logIn(ada)])
      await expect(verb()).rejects.toMatchObject({ code: 'ERR_SESSION_HEADERS_SENT' })
    expect([slid.headers.getSetCookie(), recalled.headers.getSetCookie(), made.calls]).toEqual([[], [], ['read']])
  })

  it('may be taken over by the server: handle lets the handler answer nothing', async () => {
    const { sessions } = makeSessions()
    const answer = await fetchVisits(sessions).handle(request(websocket, 'GET'), async visit => {
      expect(await visit.get()).toBeNull()
      return undefined
    })
    expect(answer).toBeUndefined()
  })

  it('may be refused: then the response of the handler is the answer', async () => {
    const { sessions } = makeSessions()
    const refusal = new Response('log in first', { status: 401 })
    const answer = await fetchVisits(sessions).handle(request(websocket, 'GET'), () => refusal)
    expect([answer.status, await answer.text()]).toEqual([401, 'log in first'])
  })

  it('that offers HTTP/2 alone is an ordinary request', async () => {
    const made = makeSessions()
    const response = await fetchVisits(made.sessions).handle(request({ upgrade: 'h2c' }), async visit => {
      await visit.logIn(ada)
      return new Response()
    })
    expect(response.headers.getSetCookie()).toHaveLength(1)
  })
})
