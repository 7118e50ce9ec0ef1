// What a handler that loses a cookie is told by a warning of the process, and when: nothing else may warn in this process.
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { onlyHost } from '../support/only-host.ts'

// Fresh: whether a warning was given is kept by the process, and other files of this thread have their own.
vi.resetModules()
const { openVisit } = await import('coatcheck/custom-server')
const { fetchVisits } = await import('coatcheck/fetch')
const { nodeVisits } = await import('coatcheck/node')
const { ada, listen, makeSessions } = await import('../support/edge-service.ts')
afterAll(() => {
  vi.resetModules()
})

const request = (headers: Record<string, string> = {}) =>
  new Request('https://app.example.com/', { method: 'POST', headers })

const warnings: Error[] = []
const noteWarning = (warning: Error) => warnings.push(warning)
beforeEach(() => {
  warnings.length = 0
  process.on('warning', noteWarning)
})
afterEach(() => {
  process.off('warning', noteWarning)
  vi.restoreAllMocks()
})

/** The timers that watch for cookies that are not sent, to be fired by hand. */
function watches() {
  const { setTimeout: set, clearTimeout: clear } = globalThis
  const running = new Map<unknown, () => void>()
  const watch = {
    unrefed: 0,
    get size() {
      return running.size
    },
    fire() {
      for (const run of [...running.values()]) run()
    },
  }
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(((run: () => void, wait: number) => {
    if (wait !== 10_000) return set(run, wait)
    const timer = { unref: () => (watch.unrefed += 1) }
    running.set(timer, run)
    return timer
  }) as never)
  vi.spyOn(globalThis, 'clearTimeout').mockImplementation(timer => {
    if (!running.delete(timer)) clear(timer as never)
  })
  return watch
}

describe('a session whose cookie no response carries', () => {
  const told = (made: { events: string[] }) => made.events.filter(type => type === 'unsent-cookie').length
  const open = (made: ReturnType<typeof makeSessions>) =>
    openVisit(made.sessions, { method: 'POST', secure: true, cookie: null, header: onlyHost })

  it('is told as an event, and once as a process warning that says how to send it', async () => {
    const watch = watches()
    const made = makeSessions()
    const visits = fetchVisits(made.sessions)
    for (let round = 1; round <= 2; round += 1) {
      // A framework made a new Request: the one that is answered has another visit.
      const original = request()
      await visits.of(new Request(original)).logIn(ada)
      visits.of(original).respond(new Response())
      expect([watch.size, told(made)]).toEqual([1, round - 1])
      watch.fire()
      expect([watch.size, told(made)]).toEqual([0, round])
    }
    await new Promise(setImmediate)
    expect(warnings.map(({ message, name }) => [name, /visits\.handle\(request/.test(message)])).toEqual([
      ['CoatcheckWarning', true],
    ])
  })

  it('is not told of one that the browser holds, where a response under way reads it or writes data', async () => {
    const watch = watches()
    const made = makeSessions()
    const { secret } = await made.sessions.create(ada)
    const visits = nodeVisits(made.sessions)
    const { send } = await listen(async (request, response) => {
      const visit = visits.of(request, response)
      made.clock.now += 600_000
      const reading = visit.get()
      response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      await reading
      made.clock.now += 600_000
      expect((await visit.update({ n: 1 }))?.data.n).toBe(1)
      response.end('data: 1\n\n')
    })
    expect((await send('/', { headers: { Cookie: `session_id=${secret}` } })).status).toBe(200)
    watch.fire()
    expect([told(made), watch.size]).toEqual([0, 0])
  })

  it('is told of a remembered one too: its token was spent, and its use again would be a theft', async () => {
    const watch = watches()
    const made = makeSessions({ rememberFor: '30d' })
    const session = await made.sessions.create(ada)
    const token = await made.sessions.issueRememberToken(session)
    expect(
      await fetchVisits(made.sessions)
        .of(request({ cookie: `remember_token=${token}` }))
        .get(),
    ).not.toBeNull()
    watch.fire()
    expect(told(made)).toBe(1)
  })

  it('is not told of one that was sent, ended, or is still being handled', async () => {
    const watch = watches()
    const made = makeSessions()
    const visits = fetchVisits(made.sessions)
    const sent = visits.of(request())
    await sent.logIn(ada)
    sent.respond(new Response())
    const jarred = open(made)
    await jarred.logIn(ada)
    expect(jarred.finish().headers.getSetCookie()).toHaveLength(1)
    const ended = visits.of(request())
    await ended.logIn(ada)
    await ended.logOut()
    expect(watch.size).toBe(0)
    const slow = await visits.handle(request(), async visit => {
      await visit.logIn(ada)
      expect(watch.size).toBe(1)
      watch.fire()
      return new Response()
    })
    expect(slow.headers.getSetCookie()).toHaveLength(1)
    expect([told(made), watch.size]).toEqual([0, 0])
  })

  it('is told of an openVisit that did not finish after the last method', async () => {
    const watch = watches()
    const made = makeSessions()
    const visit = open(made)
    expect(visit.finish().headers.getSetCookie()).toEqual([])
    await visit.logIn(ada)
    watch.fire()
    expect(told(made)).toBe(1)
  })

  it('is watched by a timer that keeps no process alive, and may be a number, as in workers', async () => {
    const watch = watches()
    const made = makeSessions()
    const visits = fetchVisits(made.sessions)
    await visits.of(request()).logIn(ada)
    expect([watch.size, watch.unrefed]).toEqual([1, 1])
    const { setTimeout: set } = globalThis
    // Not by another spy, which would replace this one for itself too.
    globalThis.setTimeout = ((run: () => void, wait: number) => (wait === 10_000 ? 7 : set(run, wait))) as never
    try {
      expect((await visits.of(request()).logIn(ada)).user.name).toBe('ada')
    } finally {
      globalThis.setTimeout = set
    }
  })

  it('is not watched for at node:http, where the head asks by itself', async () => {
    const watch = watches()
    const made = makeSessions()
    const visits = nodeVisits(made.sessions)
    const { send } = await listen(async (request, response) => {
      await visits.of(request, response).logIn(ada)
      expect(watch.size).toBe(0)
      response.end('x')
    })
    expect((await send('/', { method: 'POST' })).status).toBe(200)
    expect(told(made)).toBe(0)
  })

  it('is told of a framework that throws something else than a Response to redirect', async () => {
    const watch = watches()
    const made = makeSessions()
    const redirect = Object.assign(new Error('NEXT_REDIRECT'), { digest: 'NEXT_REDIRECT;push;/;307;' })
    const answer = fetchVisits(made.sessions).handle(request(), async visit => {
      await visit.logIn(ada)
      throw redirect
    })
    await expect(answer).rejects.toBe(redirect)
    watch.fire()
    expect(told(made)).toBe(1)
  })
})
