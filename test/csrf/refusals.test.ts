// A request that a guard refuses: what the event says, and the error.
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { type SessionEvent, SessionManager } from 'coatcheck'
import type { VisitRequest } from 'coatcheck/custom-server'
import { fetchVisits } from 'coatcheck/fetch'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  type AnyVisit,
  ada,
  type Data,
  loggedIn,
  type Manager,
  makeSessions,
  visitOf as openVisit,
} from '../support/edge-service.ts'

/** A manager and what it tells about refusals. */
function telling(options: Parameters<typeof makeSessions>[0] = {}) {
  const refusals: SessionEvent[] = []
  const onEvent = (event: SessionEvent) => {
    if (event.type === 'request-refused' || event.type === 'write-refused') refusals.push(event)
  }
  return { ...makeSessions({ ...options, onEvent }), refusals }
}

const HOST = 'app.example.com'
const headers = (values: Record<string, string>) => (name: string) => ({ host: HOST, ...values })[name] ?? null
const visitOf = (sessions: Manager, cookie: string | null, request: Partial<VisitRequest> = {}) =>
  openVisit(sessions, cookie, { header: headers({}), ...request })

const EVIL = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }
const crossOrigin = { type: 'request-refused', reason: 'cross-origin', key: null, userId: null, method: 'POST' }
const insecure = { type: 'request-refused', reason: 'insecure', key: null, userId: null, method: 'POST', origin: null }

const VERBS: Record<string, (visit: AnyVisit) => Promise<unknown>> = {
  get: visit => visit.get(),
  requireUser: visit => visit.requireUser(),
  create: visit => visit.create(),
  update: visit => visit.update({ n: 1 }),
  take: visit => visit.take('n'),
  logIn: visit => visit.logIn(ada),
  regenerate: visit => visit.regenerate(),
  rotate: visit => visit.regenerate({ grace: '1m' }),
  csrfToken: visit => visit.csrfToken(),
  checkCsrf: visit => visit.checkCsrf('guessed'),
  logOut: visit => visit.logOut(),
}
const someVerbs = fc.array(fc.constantFrom(...Object.keys(VERBS).filter(verb => verb !== 'logOut')), {
  minLength: 1,
  maxLength: 8,
})

async function ask(visit: AnyVisit, verbs: readonly string[], inParallel: boolean): Promise<void> {
  const asked = verbs.map(verb => () => VERBS[verb]!(visit).catch(() => {}))
  if (inParallel) await Promise.all(asked.map(verb => verb()))
  else for (const verb of asked) await verb()
}

describe('a request that a guard refuses is told', () => {
  it('by a page of another origin: with the origin and the host, and no more', async () => {
    const { sessions, refusals } = telling()
    const visit = visitOf(sessions, `session_id=${'a'.repeat(43)}`, { header: headers(EVIL) })
    await expect(visit.logIn(ada)).rejects.toMatchObject({ code: 'ERR_SESSION_CROSS_ORIGIN' })
    expect(refusals).toEqual([{ ...crossOrigin, origin: 'https://evil.example', host: HOST }])
  })

  it('by a line before the routes, for which no store is read', async () => {
    const { sessions, refusals } = telling()
    const { secret } = await sessions.create({ user: ada.user })
    await sessions.close()
    const read = vi.spyOn(MemoryStore.prototype, 'read')
    const own = visitOf(sessions, `session_id=${secret}`, { header: headers({ origin: `https://${HOST}` }) })
    expect(own.checkOrigin()).toBeUndefined()
    const foreign = visitOf(sessions, `session_id=${secret}`, { header: headers(EVIL) })
    expect(() => foreign.checkOrigin()).toThrow(expect.objectContaining({ code: 'ERR_SESSION_CROSS_ORIGIN' }))
    expect(refusals).toEqual([{ ...crossOrigin, origin: 'https://evil.example', host: HOST }])
    expect(read).not.toHaveBeenCalled()
    expect([...own.headers]).toEqual([]) // and the response may be cached
  })

  it('by `handle` before its handler runs, with an answer', async () => {
    const { sessions, refusals } = telling()
    const foreign = new Request(`https://${HOST}/contact`, { method: 'POST', headers: EVIL })
    const handler = vi.fn(async () => new Response('sent'))
    const answer = await fetchVisits(sessions).handle(foreign, handler)
    expect([answer.status, await answer.text()]).toEqual([403, expect.stringContaining('ERR_SESSION_CROSS_ORIGIN')])
    expect(handler).not.toHaveBeenCalled()
    expect(refusals).toEqual([{ ...crossOrigin, origin: 'https://evil.example', host: HOST }])
    const link = new Request(`https://${HOST}/contact`, { headers: EVIL })
    expect((await fetchVisits(sessions).handle(link, handler)).status).toBe(200)
  })

  it.each([
    ['a user', ada, 42n],
    ['a visitor', {}, null],
    ['nobody', null, null],
  ] as const)('with a wrong CSRF token of %s: with the session that it was sent for', async (_, login, userId) => {
    const { sessions, refusals } = telling()
    const session = login && (await sessions.create(login as typeof ada))
    const own = `https://${HOST}`
    const visit = visitOf(sessions, session && `session_id=${session.secret}`, { header: headers({ origin: own }) })
    await expect(visit.checkCsrf('guessed')).rejects.toMatchObject({ code: 'ERR_SESSION_CSRF' })
    if (session) await visit.checkCsrf(await visit.csrfToken())
    const said = { type: 'request-refused', reason: 'csrf', method: 'POST', origin: own, host: HOST }
    expect(refusals).toEqual([{ ...said, key: session?.key ?? null, userId }])
  })

  it('without HTTPS: a login, and a cookie that is not honoured', async () => {
    const made = telling()
    const { sessions, refusals } = made
    await expect(visitOf(sessions, null, { secure: false }).logIn(ada)).rejects.toMatchObject({
      code: 'ERR_SESSION_INSECURE',
    })
    expect(refusals).toEqual([{ ...insecure, host: HOST }])
    const { cookie } = await loggedIn(made)
    expect(await visitOf(sessions, cookie, { secure: false, method: 'GET' }).get()).toBeNull()
    expect(refusals.slice(1)).toEqual([{ ...insecure, method: 'GET', host: HOST }])
  })

  it('without HTTPS: a remember token that is not honoured, and a logout whose cookie is not', async () => {
    const made = telling({ rememberFor: '30d' })
    const { sessions, refusals } = made
    const { cookie, token } = await loggedIn(made, { ...ada, remember: true })
    expect(await visitOf(sessions, token, { secure: false }).get()).toBeNull()
    expect(refusals).toHaveLength(1)
    await visitOf(sessions, `${cookie}; ${token}`, { secure: false }).logOut()
    expect(refusals).toHaveLength(2)
  })

  it('to begin in place of a session that ended meanwhile: with the key that it came with, if any', async () => {
    const { sessions, refusals, store } = telling()
    const elsewhere = makeSessions({ store }).sessions
    const { key, secret } = await sessions.create(ada)
    for (const [cookie, told] of [
      [`session_id=${secret}`, key],
      [null, null],
    ] as const) {
      const visit = visitOf(sessions, cookie)
      await elsewhere.destroy((await visit.get()) ?? (await visit.create()))
      expect(await visit.update({ n: 1 })).toBeNull()
      await expect(visit.create()).rejects.toMatchObject({ code: 'ERR_SESSION_CONFLICT' })
      expect(refusals.splice(0)).toEqual([{ type: 'write-refused', reason: 'conflict', key: told, userId: null }])
    }
  })

  it('by a page of another origin, over nodeVisits: also a request that says no method', async () => {
    const { sessions, refusals } = telling()
    const request = { headers: { host: HOST, origin: 'https://evil.example' } }
    await expect(
      nodeVisits(sessions)
        .of(request as never)
        .get(),
    ).rejects.toMatchObject({ code: 'ERR_SESSION_CROSS_ORIGIN' })
    expect(refusals).toEqual([{ ...crossOrigin, method: '', origin: 'https://evil.example', host: HOST }])
  })
})

const TOKEN = `remember_token=${'s'.repeat(43)}.${'v'.repeat(43)}`

describe('a request that may do what it asks for is not told as a refusal', () => {
  it.each<[string, Partial<VisitRequest>, string[], string?]>([
    ['an anonymous look without HTTPS', { secure: false }, ['get', 'take', 'csrfToken']],
    ['a logout without HTTPS and without a cookie', { secure: false }, ['logOut']],
    ['a whole life over HTTPS', {}, ['create', 'update', 'logIn', 'get', 'rotate', 'regenerate', 'take', 'logOut']],
    ['a look from another origin', { method: 'GET', header: headers(EVIL) }, ['get']],
    ['a look without HTTPS and with a token, where the service remembers no user', { secure: false }, ['get'], TOKEN],
  ])('%s', async (_, request, verbs, cookie = '') => {
    const { sessions, refusals } = telling(cookie === '' ? { rememberFor: '30d' } : {})
    await ask(visitOf(sessions, cookie, request), verbs, false)
    expect(refusals).toEqual([])
  })

  it('an anonymous look, where the application itself says that it came without HTTPS', async () => {
    const { sessions, refusals } = telling()
    const visits = fetchVisits(sessions, { isSecure: () => false })
    await visits.of(new Request(`https://${HOST}/`)).get()
    expect(refusals).toEqual([])
    await visits.of(new Request(`https://${HOST}/`, { headers: { cookie: `session_id=${'a'.repeat(43)}` } })).get()
    expect(refusals).toMatchObject([{ reason: 'insecure', host: HOST }])
  })
})

describe('one refusal is one event', () => {
  it('however often a visit is asked, in turn or in parallel', async () => {
    await fc.assert(
      fc.asyncProperty(
        someVerbs,
        fc.boolean(),
        fc.constantFrom<[Partial<VisitRequest>, string]>(
          [{ header: headers(EVIL) }, 'cross-origin'],
          [{ secure: false }, 'insecure'],
        ),
        async (verbs, inParallel, [request, reason]) => {
          const { sessions, refusals } = telling()
          await ask(visitOf(sessions, `session_id=${'a'.repeat(43)}; ${TOKEN}`, request), verbs, inParallel)
          const isForged = reason === 'insecure' && verbs.includes('checkCsrf')
          expect(refusals.map(event => 'reason' in event && event.reason).sort()).toEqual(
            isForged ? ['csrf', reason] : [reason],
          )
        },
      ),
      { numRuns: 100 },
    )
  })

  it('where a handler tries the header and then the field of a form', async () => {
    const { sessions, refusals } = telling()
    const visit = visitOf(sessions, null)
    await visit.checkCsrf(undefined).catch(() => visit.checkCsrf('guessed').catch(() => {}))
    expect(refusals).toHaveLength(1)
  })
})

it.each<[string, string, number, RegExp, (sessions: Manager, cookie: string) => Promise<unknown>]>([
  [
    'a page of another origin the option that lists it',
    'ERR_SESSION_CROSS_ORIGIN',
    403,
    /^cross-origin request refused; to allow this origin, add it to `trustedOrigins` /,
    (sessions, cookie) => visitOf(sessions, cookie, { header: headers(EVIL) }).get(),
  ],
  [
    'a request without a user that there is none',
    'ERR_SESSION_UNAUTHENTICATED',
    401,
    /no user/,
    sessions => visitOf(sessions, null).requireUser(),
  ],
  [
    'a password that was verified long ago within which time',
    'ERR_SESSION_NOT_FRESH',
    401,
    /password.* 10m /,
    (sessions, cookie) => visitOf(sessions, cookie).requireUser({ freshWithin: '10m' }),
  ],
])('the error says of %s', async (_, code, status, message, asked) => {
  const made = makeSessions()
  const { cookie } = await loggedIn(made)
  made.clock.now += 11 * 60_000
  await expect(asked(made.sessions, cookie)).rejects.toMatchObject({
    code,
    status,
    message: expect.stringMatching(message),
  })
})

describe('what an event of a refusal holds', () => {
  it('is bounded, whatever the client sends, and never a cookie, an ID or a token', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ maxLength: 1000 }), fc.string({ maxLength: 1000 }), async (origin, host) => {
        const { sessions, refusals } = telling()
        const secret = 's'.repeat(43)
        const header = (name: string) => ({ origin: `x${origin}`, host, cookie: `session_id=${secret}` })[name]
        const cookie = `session_id=${secret}; remember_token=${secret}.${secret}`
        await visitOf(sessions, cookie, { method: 'P'.repeat(1000), header })
          .checkCsrf(secret)
          .catch(() => {})
        const [event] = refusals as Extract<SessionEvent, { method: string }>[]
        expect(event).toMatchObject({ origin: `x${origin}`.slice(0, 200), host: host.slice(0, 200) || null })
        expect(event!.method).toBe('P'.repeat(200))
        expect(JSON.stringify(event)).not.toContain(secret)
      }),
      { numRuns: 50 },
    )
  })

  it('is text, also where a server of one’s own gives something else', async () => {
    const { sessions, refusals } = telling()
    const odd = {
      method: undefined,
      header: () => ['https://evil.example', 'null'],
    } as unknown as Partial<VisitRequest>
    await expect(visitOf(sessions, null, odd).get()).rejects.toMatchObject({ code: 'ERR_SESSION_CROSS_ORIGIN' })
    expect(refusals).toMatchObject([{ method: 'undefined', origin: 'https://evil.example,null' }])
  })
})

describe('where nothing listens', () => {
  const heard: unknown[] = []
  const onMessage = (message: unknown) => heard.push(message)
  afterEach(() => {
    unsubscribe('coatcheck', onMessage)
  })

  it('the channel of diagnostics hears of a refusal all the same', async () => {
    const sessions = new SessionManager<Data>({ store: new MemoryStore(), sweepInterval: false })
    subscribe('coatcheck', onMessage)
    await expect(visitOf(sessions, null, { secure: false }).logIn(ada)).rejects.toMatchObject({ status: 403 })
    expect(heard).toContainEqual({ ...insecure, host: HOST })
  })
})
