import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { type SessionEvent, SessionManager } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { fetchVisits } from 'coatcheck/fetch'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { type AnyVisit, ada, type Data, jar, listen, type Manager, makeSessions } from '../support/edge-service.ts'

type Request = Parameters<typeof openVisit>[1]

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
const visitOf = (sessions: Manager, cookie: string | null, request: Partial<Request> = {}) =>
  openVisit(sessions, { method: 'POST', secure: true, header: headers({}), ...request, cookie })

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
}
const someVerbs = fc.array(fc.constantFrom(...Object.keys(VERBS)), { minLength: 1, maxLength: 8 })

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
    read.mockRestore()
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

  it('with a wrong CSRF token: with the session that it was sent for', async () => {
    const { sessions, refusals } = telling()
    const login = visitOf(sessions, null)
    const session = await login.logIn(ada)
    const visit = visitOf(sessions, jar(login.headers.getSetCookie()), {
      header: headers({ origin: `https://${HOST}` }),
    })
    await expect(visit.checkCsrf('guessed')).rejects.toMatchObject({ code: 'ERR_SESSION_CSRF' })
    await visit.checkCsrf(await visit.csrfToken())
    expect(refusals).toEqual([
      {
        type: 'request-refused',
        reason: 'csrf',
        key: session.key,
        userId: 42n,
        method: 'POST',
        origin: `https://${HOST}`,
        host: HOST,
      },
    ])
  })

  it('with a wrong CSRF token for an anonymous session: with its key', async () => {
    const { sessions, refusals } = telling()
    const { key, secret } = await sessions.create()
    const visit = visitOf(sessions, `session_id=${secret}`)
    await expect(visit.checkCsrf('guessed')).rejects.toMatchObject({ code: 'ERR_SESSION_CSRF' })
    expect(refusals).toMatchObject([{ reason: 'csrf', key, userId: null }])
  })

  it('with a CSRF token, and no session', async () => {
    const { sessions, refusals } = telling()
    await expect(visitOf(sessions, null).checkCsrf(undefined)).rejects.toMatchObject({ code: 'ERR_SESSION_CSRF' })
    expect(refusals).toMatchObject([{ reason: 'csrf', key: null, userId: null }])
  })

  it('without HTTPS: a login, and a cookie that is not honoured', async () => {
    const { sessions, refusals } = telling()
    await expect(visitOf(sessions, null, { secure: false }).logIn(ada)).rejects.toMatchObject({
      code: 'ERR_SESSION_INSECURE',
    })
    expect(refusals).toEqual([{ ...insecure, host: HOST }])
    const login = visitOf(sessions, null)
    await login.logIn(ada)
    const cookie = jar(login.headers.getSetCookie())
    expect(await visitOf(sessions, cookie, { secure: false, method: 'GET' }).get()).toBeNull()
    expect(refusals.slice(1)).toEqual([{ ...insecure, method: 'GET', host: HOST }])
  })

  it('without HTTPS: a remember token that is not honoured, and a logout whose cookie is not', async () => {
    const { sessions, refusals } = telling({ rememberFor: '30d' })
    const login = visitOf(sessions, null)
    await login.logIn({ ...ada, remember: true })
    const cookies = login.cookies.map(({ name, value }) => `${name}=${value}`)
    expect(await visitOf(sessions, cookies[1]!, { secure: false }).get()).toBeNull()
    expect(refusals).toHaveLength(1)
    await visitOf(sessions, cookies.join('; '), { secure: false }).logOut()
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

  it('for a tenant with its name', async () => {
    const { sessions, refusals } = telling()
    const tenant = sessions.namespace('acme')
    await expect(visitOf(tenant, null, { secure: false }).logIn(ada)).rejects.toMatchObject({ status: 403 })
    expect(refusals).toEqual([{ ...insecure, host: HOST, namespace: 'acme' }])
  })
})

describe('a request that may do what it asks for is not told as a refusal', () => {
  it.each([
    ['an anonymous look without HTTPS', { method: 'GET', secure: false }, ['get', 'take', 'csrfToken']],
    ['a whole life over HTTPS', {}, ['create', 'update', 'logIn', 'get', 'rotate', 'regenerate', 'take']],
    ['a look from another origin', { method: 'GET', header: headers(EVIL) }, ['get']],
  ])('%s', async (_, request, verbs) => {
    const { sessions, refusals } = telling()
    await ask(visitOf(sessions, null, request), verbs, false)
    expect(refusals).toEqual([])
  })

  it('an anonymous look without HTTPS, where a remember token would bring a session', async () => {
    const { sessions, refusals } = telling({ rememberFor: '30d' })
    expect(await visitOf(sessions, null, { method: 'GET', secure: false }).get()).toBeNull()
    expect(refusals).toEqual([])
  })

  it('a look without HTTPS and with a remember token, where the service remembers no user', async () => {
    const { sessions, refusals } = telling()
    const cookie = `remember_token=${'s'.repeat(43)}.${'v'.repeat(43)}`
    expect(await visitOf(sessions, cookie, { method: 'GET', secure: false }).get()).toBeNull()
    expect(refusals).toEqual([])
  })

  it('a logout without HTTPS and without a cookie', async () => {
    const { sessions, refusals } = telling()
    await visitOf(sessions, null, { secure: false }).logOut()
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
        fc.constantFrom<[Partial<Request>, string]>(
          [{ header: headers(EVIL) }, 'cross-origin'],
          [{ secure: false }, 'insecure'],
        ),
        async (verbs, inParallel, [request, reason]) => {
          const { sessions, refusals } = telling()
          const cookie = `session_id=${'a'.repeat(43)}; remember_token=${'b'.repeat(43)}.${'c'.repeat(43)}`
          await ask(visitOf(sessions, cookie, request), verbs, inParallel)
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

  it('over nodeVisits and fetchVisits, however often the visit is asked', async () => {
    const { sessions, refusals } = telling()
    const visits = nodeVisits(sessions)
    const { port, send } = await listen(async (request, response) => {
      await Promise.allSettled([
        visits.of(request, response).get(),
        visits.of(request).get(),
        visits.of(request, response).logIn(ada),
      ])
      response.end()
    })
    await send('/', { method: 'POST', headers: { origin: 'https://evil.example' } })
    const sent = { method: 'POST', origin: 'https://evil.example' }
    expect(refusals).toMatchObject([{ reason: 'cross-origin', ...sent, host: `127.0.0.1:${port}` }])
    const visit = fetchVisits(sessions)
    const request = new Request(`https://${HOST}/login`, {
      method: 'POST',
      headers: { origin: 'https://evil.example' },
    })
    await Promise.allSettled([visit.of(request).get(), visit.of(request).logIn(ada)])
    expect(refusals.slice(1)).toMatchObject([{ reason: 'cross-origin', ...sent, host: HOST }])
  })
})

describe('the error of a refusal has a code, and says what is wrong and what would be right', () => {
  const refusal = (asked: Promise<unknown>) =>
    asked.then(
      () => null,
      (error: { code: string; status: number; message: string }) => [error.code, error.status, error.message],
    )

  it('of a page of another origin: the option that lists it', async () => {
    const { sessions } = makeSessions()
    expect(await refusal(visitOf(sessions, null, { header: headers(EVIL) }).get())).toEqual([
      'ERR_SESSION_CROSS_ORIGIN',
      403,
      expect.stringMatching(/^cross-origin request refused; to allow this origin, add it to `trustedOrigins` /),
    ])
  })

  it('without HTTPS: what tells these visits about HTTPS, and how to do without', async () => {
    const { sessions } = makeSessions()
    expect(await refusal(visitOf(sessions, null, { secure: false }).logIn(ada))).toEqual([
      'ERR_SESSION_INSECURE',
      403,
      expect.stringMatching(
        /HTTPS.* `secure: true` in the request given to openVisit, or .*`cookie: \{ secure: false \}`/,
      ),
    ])
  })

  it('openVisit says where an option of other visits belongs', () => {
    const { sessions } = makeSessions()
    const request = { method: 'GET', cookie: null, secure: true, header: headers({}) }
    for (const option of [{ trustedProxies: ['10.0.0.0/8'] }, { isSecure: () => true }])
      expect(() => openVisit(sessions, request, option as never)).toThrow(
        /^openVisit: "(?:trustedProxies|isSecure)" is not an option; it belongs to nodeVisits/,
      )
  })

  it('without a response that could carry a cookie', async () => {
    const { sessions } = makeSessions()
    const visit = visitOf(sessions, null, { canSend: () => false })
    for (const asked of [visit.create(), visit.update({ n: 1 }), visit.logIn(ada)])
      expect(await refusal(asked)).toEqual([
        'ERR_SESSION_HEADERS_SENT',
        500,
        expect.stringMatching(/^cannot set the session cookie: the response headers were already sent/),
      ])
  })

  it('without a user, and without a password that was verified lately: within which time', async () => {
    const { sessions, clock } = makeSessions()
    const { secret } = await sessions.create(ada)
    clock.now += 11 * 60_000
    expect(await refusal(visitOf(sessions, null).requireUser())).toEqual([
      'ERR_SESSION_UNAUTHENTICATED',
      401,
      expect.stringContaining('no user'),
    ])
    expect(await refusal(visitOf(sessions, `session_id=${secret}`).requireUser({ freshWithin: '10m' }))).toEqual([
      'ERR_SESSION_NOT_FRESH',
      401,
      expect.stringMatching(/password.* 10m /),
    ])
  })

  it('with a wrong CSRF token', async () => {
    const { sessions } = makeSessions()
    expect(await refusal(visitOf(sessions, null).checkCsrf('guessed'))).toEqual([
      'ERR_SESSION_CSRF',
      403,
      expect.stringContaining('token'),
    ])
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
    const odd = { method: undefined, header: () => ['https://evil.example', 'null'] } as unknown as Partial<Request>
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
