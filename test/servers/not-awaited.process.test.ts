// A forgotten `await`: the response is sent while the login is under way, and its cookie is lost.
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

const ada = { user: { id: 42n, name: 'ada' } }
const quiet = (promise: Promise<unknown>) => void promise.catch(() => {})

/** Fresh: whether a warning was given is kept by the process. */
async function setUp() {
  vi.resetModules()
  const { SessionManager } = await import('coatcheck')
  const { fetchVisits } = await import('coatcheck/fetch')
  const { nodeVisits } = await import('coatcheck/node')
  const { MemoryStore } = await import('coatcheck/stores/memory')
  const store = new MemoryStore()
  const sessions = new SessionManager({ store, sweepInterval: false })
  const { secret } = await sessions.create({ ...ada, data: { n: 1, flash: 'hello' } })
  const visits = nodeVisits(sessions, { isSecure: () => true })
  /** Answers as soon as the handler has. */
  const handle = async (handler: (visit: ReturnType<typeof visits.of>) => unknown) => {
    const request = new IncomingMessage(new Socket())
    Object.assign(request, { method: 'POST', httpVersion: '1.1', headers: { cookie: `session_id=${secret}` } })
    const response = new ServerResponse(request)
    const handling = handler(visits.of(request, response))
    if (handling) await handling
    response.end('ok')
  }
  return { handle, store, secret, fetching: fetchVisits(sessions) }
}

describe('a response that is sent while a method of its visit is under way', () => {
  let warn: ReturnType<typeof vi.spyOn>
  beforeEach(() => {
    warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  })
  afterEach(() => {
    warn.mockRestore()
    vi.resetModules()
  })
  const warned = [
    expect.stringMatching(/was still under way.*await it/),
    { type: 'CoatcheckWarning', code: 'COATCHECK_NOT_AWAITED' },
  ]

  it.each<[string, Parameters<Awaited<ReturnType<typeof setUp>>['handle']>[0]]>([
    ['logIn', visit => quiet(visit.logIn(ada))],
    ['update', visit => quiet(visit.update({ n: 2 }))],
    ['logOut', visit => quiet(visit.logOut())],
    ['regenerate', visit => quiet(visit.regenerate())],
    ['take', visit => quiet(visit.take('flash'))],
    ['create', visit => quiet(visit.create())],
    ['get, whose promise an `if` takes for true', visit => quiet(visit.get())],
    ['requireUser', visit => quiet(visit.requireUser())],
  ])('is a warning of the process: %s', async (_method, forget) => {
    const { handle } = await setUp()
    await handle(forget)
    expect(warn.mock.calls).toEqual([warned])
  })

  it('is a warning and an unhandled rejection if the method fails', async () => {
    const { handle, store } = await setUp()
    const down = async () => {
      throw new Error('down')
    }
    Object.assign(store, { create: down, replace: down, update: down, delete: down })
    const unhandled: unknown[] = []
    const note = (reason: { code?: string }) => unhandled.push(reason.code)
    const before = process.listeners('unhandledRejection')
    process.removeAllListeners('unhandledRejection')
    process.on('unhandledRejection', note)
    try {
      await handle(visit => void visit.logIn(ada))
      await handle(visit => void visit.update({ n: 2 }))
      await handle(visit => void visit.logOut())
      await vi.waitFor(() =>
        expect(unhandled).toEqual(['ERR_SESSION_HEADERS_SENT', 'ERR_SESSION_STORE', 'ERR_SESSION_STORE']),
      )
    } finally {
      process.off('unhandledRejection', note)
      for (const listener of before) process.on('unhandledRejection', listener)
    }
    expect(warn.mock.calls).toEqual([warned])
  })

  it('is one warning in a process, however often it happens', async () => {
    const { handle } = await setUp()
    for (let times = 0; times < 3; times += 1) await handle(visit => quiet(visit.logIn(ada)))
    expect(warn.mock.calls).toEqual([warned])
  })

  it('is none if the methods were awaited, failed ones too, or nothing was written', async () => {
    const { handle, store } = await setUp()
    await handle(async visit => {
      await visit.update({ n: 2 })
      await Promise.all([visit.take('flash'), visit.regenerate(), visit.logIn(ada)])
      await visit.update('nonsense' as never).catch(() => {})
    })
    await handle(async (visit): Promise<void> => void (await Promise.all([visit.get({ touch: false }), visit.get()])))
    store.read = () => Promise.reject(new Error('down'))
    await handle(visit => visit.get().catch(() => {}))
    expect(warn.mock.calls).toEqual([])
  })

  it('is none at visits.handle for a get: the response waits for it', async () => {
    const { fetching, secret } = await setUp()
    const answer = (send: (response: Response) => Response) => {
      const request = new Request('https://app.example.com/', { headers: { cookie: `session_id=${secret}` } })
      return fetching.handle(request, visit => {
        void visit.get()
        return send(new Response('shell'))
      })
    }
    const thrown = answer(response => {
      throw response
    }).catch(response => response)
    for (const response of [await answer(response => response), await thrown])
      expect(response.headers.get('cache-control')).toBe('no-store')
    expect(warn.mock.calls).toEqual([])
  })

  it('is one at fetchVisits too', async () => {
    const { fetching } = await setUp()
    const visit = fetching.of(new Request('https://app.example.com/', { method: 'POST' }))
    quiet(visit.logIn(ada))
    visit.respond(new Response('ok'))
    expect(warn.mock.calls).toEqual([warned])
  })
})
