// A cookie that no response carries: the login answered 200, and the browser is not logged in.
import type { SessionEvent } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { onlyHost } from '../support/only-host.ts'

const { SessionManager } = await import('coatcheck')
const { openVisit } = await import('coatcheck/custom-server')
const { fetchVisits } = await import('coatcheck/fetch')
const { deviceBound } = await import('coatcheck/device-bound')
const { nextVisits } = await import('coatcheck/next')

const ada = { user: { id: 42n, name: 'ada' } }

type Request = Parameters<typeof openVisit>[1]

function telling() {
  const lost: SessionEvent[] = []
  const onEvent = (event: SessionEvent) => {
    if (event.type === 'unsent-cookie') lost.push(event)
  }
  const sessions = new SessionManager({ store: new MemoryStore(), sweepInterval: false, onEvent })
  const visit = (request: Partial<Request> = {}) =>
    openVisit(sessions, { method: 'POST', secure: true, cookie: null, header: onlyHost, ...request })
  return { lost, sessions, visit }
}

describe('a cookie that is in no head', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  })
  afterEach(() => {
    vi.advanceTimersByTime(60_000)
    vi.useRealTimers()
    vi.restoreAllMocks()
  })

  it('is told ten seconds after the login, once, with the key of its session', async () => {
    const { lost, visit } = telling()
    const { key } = await visit().logIn(ada)
    vi.advanceTimersByTime(9_999)
    expect(lost).toEqual([])
    vi.advanceTimersByTime(1)
    expect(lost).toEqual([{ type: 'unsent-cookie', key }])
    vi.advanceTimersByTime(60_000)
    expect(lost).toHaveLength(1)
  })

  it('is not told where a head brought it, or where the response is still under way', async () => {
    const { lost, sessions, visit } = telling()
    const sent = visit()
    await sent.logIn(ada)
    expect(sent.finish().headers.getSetCookie()).toHaveLength(1)
    const device = deviceBound(fetchVisits(sessions)).of(new Request('https://app.example.com/', { method: 'POST' }))
    await device.logIn(ada)
    expect(device.finish().headers.getSetCookie()).toHaveLength(2)
    await visit({ isPending: () => true }).logIn(ada)
    vi.advanceTimersByTime(60_000)
    expect(lost).toEqual([])
    await visit({ isPending: () => false }).logIn(ada)
    vi.advanceTimersByTime(60_000)
    expect(lost).toHaveLength(1)
  })

  it('is told of a visit that did not finish, however often its headers and cookies were looked at', async () => {
    const { lost, visit } = telling()
    const looked = visit()
    await looked.logIn(ada)
    expect([looked.headers.getSetCookie().length, looked.cookies.length]).toEqual([1, 1])
    vi.advanceTimersByTime(60_000)
    expect(lost).toHaveLength(1)
  })

  it('is told again of what began after the visit had finished', async () => {
    const { lost, visit } = telling()
    const late = visit()
    await late.logIn(ada)
    late.finish()
    const { key } = (await late.regenerate())!
    vi.advanceTimersByTime(60_000)
    expect(lost).toEqual([{ type: 'unsent-cookie', key }])
  })

  it('is told of a handler of fetchVisits that threw after a minute', async () => {
    const { lost, sessions } = telling()
    const request = new Request('https://app.example.com/', { method: 'POST' })
    const handled = fetchVisits(sessions).handle(request, async visit => {
      await visit.logIn(ada)
      vi.advanceTimersByTime(60_000)
      throw new Error('the template is broken')
    })
    await expect(handled).rejects.toThrow('the template is broken')
    expect(lost).toEqual([])
    vi.advanceTimersByTime(10_000)
    expect(lost).toHaveLength(1)
    vi.advanceTimersByTime(60_000)
    expect(lost).toHaveLength(1)
  })

  it("is not told of a login in a component of Next, where Next's cookie jar refuses it: its session has ended", async () => {
    const { lost, sessions } = telling()
    const given = new Headers({ host: 'localhost:3000' })
    const set = () => {
      throw new Error('Cookies can only be modified in a Server Action')
    }
    for (const cookies of [{ set }, { set: () => {} }]) {
      const visits = nextVisits(fetchVisits(sessions), { headers: async () => given, cookies: async () => cookies })
      await visits.withVisit(visit => visit.logIn(ada)).catch(() => {})
      vi.advanceTimersByTime(60_000)
    }
    expect(lost).toEqual([])
  })

  it('is not told while a handler of fetchVisits runs, and is told where none was given', async () => {
    const { lost, sessions } = telling()
    const visits = fetchVisits(sessions)
    const request = () => new Request('https://app.example.com/', { method: 'POST' })
    const response = await visits.handle(request(), async visit => {
      await visit.logIn(ada)
      vi.advanceTimersByTime(60_000)
      return new Response()
    })
    expect([response.headers.getSetCookie().length, lost]).toEqual([1, []])
    await visits.of(request()).logIn(ada)
    vi.advanceTimersByTime(60_000)
    expect(lost).toHaveLength(1)
  })

  it('is told of a handler of fetchVisits that threw, or answered what carries no cookie', async () => {
    const ends = [
      () => {
        throw new Error('the template is broken')
      },
      () => undefined as never,
      () => Response.error(),
    ]
    for (const end of ends) {
      const { lost, sessions } = telling()
      const request = new Request('https://app.example.com/', { method: 'POST' })
      const handled = fetchVisits(sessions).handle(request, async visit => {
        await visit.logIn(ada)
        return end()
      })
      await handled.catch(() => {})
      vi.advanceTimersByTime(60_000)
      expect(lost).toHaveLength(1)
    }
  })

  it('is told of one of two logins in one visit, since one cookie was to come', async () => {
    const { lost, visit } = telling()
    const twice = visit()
    await twice.logIn(ada)
    await twice.logIn({ user: { id: 7n, name: 'max' } })
    vi.advanceTimersByTime(60_000)
    expect(lost).toHaveLength(1)
    await twice.regenerate()
    vi.advanceTimersByTime(60_000)
    expect(lost).toHaveLength(2)
  })

  it('is not told after a logout, which takes the session back', async () => {
    const { lost, visit } = telling()
    const left = visit()
    await left.logIn(ada)
    await left.logOut()
    vi.advanceTimersByTime(60_000)
    expect(lost).toEqual([])
  })
})

describe('the warning', () => {
  const request = () => new Request('https://app.example.com/', { method: 'POST' })

  /** What the process is warned of meanwhile. Fresh: whether a warning was given is kept by the process. */
  const warned = async (during: () => Promise<unknown>) => {
    vi.resetModules()
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    try {
      await during()
      return warn.mock.calls.map(([message]) => message)
    } finally {
      warn.mockRestore()
      vi.resetModules()
    }
  }

  it.each([
    [
      'fetchVisits',
      /answer within `visits\.handle\(request, visit => response\)`, .* a new Request, .* or send `visit\.respond\(response\)`$/,
      async () => {
        const { fetchVisits } = await import('coatcheck/fetch')
        await fetchVisits(telling().sessions).of(request()).logIn(ada)
      },
    ],
  ])('says how a cookie that was lost at %s gets into a response', async (_, message, logIn) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const late = async () => {
        await logIn()
        vi.advanceTimersByTime(60_000)
      }
      expect(await warned(late)).toEqual([expect.stringMatching(message)])
    } finally {
      vi.useRealTimers()
    }
  })
})
