// What a developer is told by events and warnings: a cookie that no response carries (the login answered 200, and the browser is not
// logged in), and a login without HTTPS.
import { deviceBound } from 'coatcheck/device-bound'
import { fetchVisits } from 'coatcheck/fetch'
import { nextVisits } from 'coatcheck/next'
import { nodeVisits } from 'coatcheck/node'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { ada, listen, makeSessions, visitOf } from '../support/edge-service.ts'

const MINUTE = 60_000
const request = (headers: Record<string, string> = {}) =>
  new Request('https://app.example.com/', { method: 'POST', headers })

function telling() {
  const lost: unknown[] = []
  const made = makeSessions({
    rememberFor: '30d',
    onEvent: event => {
      if (event.type === 'unsent-cookie') lost.push(event.key)
    },
  })
  return { ...made, lost }
}

let warn: ReturnType<typeof vi.spyOn>
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
})

describe('a cookie that is in no head is told', () => {
  it('ten seconds after the login, once, with the key of its session', async () => {
    const { lost, sessions } = telling()
    const { key } = await visitOf(sessions).logIn(ada)
    vi.advanceTimersByTime(9_999)
    expect(lost).toEqual([])
    vi.advanceTimersByTime(1)
    expect(lost).toEqual([key])
    vi.advanceTimersByTime(MINUTE)
    expect(lost).toHaveLength(1)
  })

  it('of a visit that did not finish, however often its headers and cookies were looked at', async () => {
    const { lost, sessions } = telling()
    const looked = visitOf(sessions)
    expect(looked.finish().headers.getSetCookie()).toEqual([])
    await looked.logIn(ada)
    expect([looked.headers.getSetCookie().length, looked.cookies.length]).toEqual([1, 1])
    vi.advanceTimersByTime(MINUTE)
    expect(lost).toHaveLength(1)
  })

  it('again of what began after the visit had finished', async () => {
    const { lost, sessions } = telling()
    const late = visitOf(sessions)
    await late.logIn(ada)
    late.finish()
    const { key } = (await late.regenerate())!
    vi.advanceTimersByTime(MINUTE)
    expect(lost).toEqual([key])
  })

  it('of one of two logins in one visit, since one cookie was to come', async () => {
    const { lost, sessions } = telling()
    const twice = visitOf(sessions)
    await twice.logIn(ada)
    await twice.logIn({ user: { id: 7n, name: 'max' } })
    vi.advanceTimersByTime(MINUTE)
    expect(lost).toHaveLength(1)
    await twice.regenerate()
    vi.advanceTimersByTime(MINUTE)
    expect(lost).toHaveLength(2)
  })

  it('of a remembered session too: its token was spent, and its use again would be a theft', async () => {
    const { lost, sessions } = telling()
    const token = await sessions.issueRememberToken(await sessions.create(ada))
    expect((await visitOf(sessions, `remember_token=${token}`).get())?.user?.name).toBe('ada')
    vi.advanceTimersByTime(MINUTE)
    expect(lost).toHaveLength(1)
  })

  it('where a framework made a new Request, which has a visit of its own', async () => {
    const { lost, sessions } = telling()
    const visits = fetchVisits(sessions)
    const original = request()
    await visits.of(new Request(original)).logIn(ada)
    visits.of(original).respond(new Response())
    vi.advanceTimersByTime(MINUTE)
    expect(lost).toHaveLength(1)
  })

  it.each<[string, () => Response]>([
    [
      'threw, as some frameworks do to redirect',
      () => {
        throw Object.assign(new Error('NEXT_REDIRECT'), { digest: 'NEXT_REDIRECT;push;/;307;' })
      },
    ],
    ['answered nothing', () => undefined as never],
    ['answered what carries no cookie', () => Response.error()],
  ])('of a handler of fetchVisits that %s, once that has ended, however late', async (_, end) => {
    const { lost, sessions } = telling()
    const handled = fetchVisits(sessions).handle(request(), async visit => {
      await visit.logIn(ada)
      vi.advanceTimersByTime(MINUTE)
      expect(lost).toEqual([])
      return end()
    })
    await handled.catch(() => {})
    vi.advanceTimersByTime(MINUTE)
    expect(lost).toHaveLength(1)
  })
})

describe('a cookie is not told as lost', () => {
  it('where a head brought it, or the response is still under way', async () => {
    const { lost, sessions } = telling()
    const sent = visitOf(sessions)
    await sent.logIn(ada)
    expect(sent.finish().headers.getSetCookie()).toHaveLength(1)
    const device = deviceBound(fetchVisits(sessions)).of(request())
    await device.logIn(ada)
    expect(device.finish().headers.getSetCookie()).toHaveLength(2)
    const slow = await fetchVisits(sessions).handle(request(), async visit => {
      await visit.logIn(ada)
      vi.advanceTimersByTime(MINUTE)
      return new Response()
    })
    expect(slow.headers.getSetCookie()).toHaveLength(1)
    await visitOf(sessions, null, { isPending: () => true }).logIn(ada)
    vi.advanceTimersByTime(MINUTE)
    expect(lost).toEqual([])
  })

  it('after a logout, which takes the session back', async () => {
    const { lost, sessions } = telling()
    const left = visitOf(sessions)
    await left.logIn(ada)
    await left.logOut()
    vi.advanceTimersByTime(MINUTE)
    expect(lost).toEqual([])
  })

  it('where the cookie jar of Next refuses it, in a component: the session has ended', async () => {
    const { lost, sessions } = telling()
    const given = new Headers({ host: 'localhost:3000' })
    const set = () => {
      throw new Error('Cookies can only be modified in a Server Action')
    }
    for (const cookies of [{ set }, { set: () => {} }]) {
      const visits = nextVisits(fetchVisits(sessions), { headers: async () => given, cookies: async () => cookies })
      await visits.withVisit(visit => visit.logIn(ada)).catch(() => {})
      vi.advanceTimersByTime(MINUTE)
    }
    expect(lost).toEqual([])
  })

  it('at node:http, where the head asks by itself, nor where a stream reads and writes a session that the browser has', async () => {
    const { lost, sessions, clock } = telling()
    const { secret } = await sessions.create(ada)
    const visits = nodeVisits(sessions)
    const { send } = await listen(async (asked, response) => {
      const visit = visits.of(asked, response)
      if (asked.url === '/login') {
        await visit.logIn(ada)
        expect(vi.getTimerCount()).toBe(0)
        response.end('x')
        return
      }
      clock.now += 600_000
      const reading = visit.get()
      response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      await reading
      clock.now += 600_000
      expect((await visit.update({ n: 1 }))?.data.n).toBe(1)
      response.end('data: 1\n\n')
    })
    expect((await send('/login', { method: 'POST' })).status).toBe(200)
    expect((await send('/', { headers: { Cookie: `session_id=${secret}` } })).status).toBe(200)
    vi.advanceTimersByTime(MINUTE)
    expect(lost).toEqual([])
  })
})

it('the timer that watches keeps no process alive, and may be a number, as in workers', async () => {
  const { sessions } = telling()
  const set = vi.spyOn(globalThis, 'setInterval')
  await visitOf(sessions).logIn(ada)
  expect((set.mock.results.at(-1)!.value as NodeJS.Timeout).hasRef()).toBe(false)
  set.mockReturnValue(7 as never)
  expect((await visitOf(sessions).logIn(ada)).user.name).toBe('ada')
})

it('the process is warned once, of how a cookie gets into a response', async () => {
  // Fresh: whether a warning was given is kept by the process.
  vi.resetModules()
  const { fetchVisits } = await import('coatcheck/fetch')
  const { lost, sessions } = telling()
  for (let times = 1; times <= 2; times += 1) {
    await fetchVisits(sessions).of(request()).logIn(ada)
    vi.advanceTimersByTime(MINUTE)
    expect(lost).toHaveLength(times)
  }
  expect(warn.mock.calls).toEqual([
    [
      expect.stringMatching(
        /10 seconds ago.* answer within `visits\.handle\(request, visit => response\)`, .* a new Request, .* or send `visit\.respond\(response\)`$/,
      ),
      { type: 'CoatcheckWarning', code: 'COATCHECK_UNSENT_COOKIE' },
    ],
  ])
  vi.resetModules()
})

it('a login that is refused for lack of HTTPS is a warning of the process, once, with the option to set', async () => {
  vi.resetModules()
  const { fetchVisits } = await import('coatcheck/fetch')
  const { sessions } = telling()
  for (let times = 0; times < 2; times += 1) {
    const visit = fetchVisits(sessions).of(new Request('http://app.example.com/login', { method: 'POST' }))
    await expect(visit.logIn(ada)).rejects.toMatchObject({ code: 'ERR_SESSION_INSECURE' })
  }
  // An application may answer with the code alone.
  expect(warn.mock.calls).toEqual([
    [
      expect.stringMatching(
        /^a session was refused: this request did not come over HTTPS; behind a proxy .* set `isSecure` of fetchVisits/,
      ),
      { type: 'CoatcheckWarning', code: 'COATCHECK_INSECURE' },
    ],
  ])
  vi.resetModules()
})
