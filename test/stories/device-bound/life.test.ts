// The life of a bound session: how it begins, is proved and ends, beside everything else that happens to a session.
import { SessionManager, type SessionOptions } from 'coatcheck'
import { type DeviceBoundOptions, deviceOf, deviceState } from 'coatcheck/device-bound'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { BarrierStore, faults } from '../../support/barrier-store.ts'
import { BOUND_COOKIE, boundEdge, DeviceClient, REFRESH, REGISTER } from '../../support/device-client.ts'
import { newDevice, refreshProof, registrationProof } from '../../support/device-key.ts'
import { MINUTE, SECOND, testClock } from '../../support/test-clock.ts'

const ADA = { id: 42n, name: 'ada' }
const LIFE = 5 * MINUTE

function setUp(options: DeviceBoundOptions = {}, more: Partial<SessionOptions> = {}) {
  const store = BarrierStore.over(new MemoryStore())
  const clock = testClock()
  const events: any[] = []
  const sessions = new SessionManager({ store, now: clock, onEvent: event => events.push(event), ...more })
  const edge = boundEdge(sessions, options)
  const types = () => events.map(({ type, reason }) => (reason ? `${type} ${reason}` : type))
  return { store, clock, events, types, sessions, edge, client: () => new DeviceClient(edge) }
}

/** A browser whose session was bound long enough ago that nothing is under way any more. */
async function boundBrowser(made: ReturnType<typeof setUp>) {
  const browser = made.client()
  await browser.logIn(ADA)
  await browser.register()
  made.clock.advance(11 * SECOND)
  return browser
}

describe('a login', () => {
  it('offers to bind the session, by one header and no write of its own', async () => {
    const { store, client } = setUp()
    const response = await client().logIn(ADA)
    expect(response.headers.get('secure-session-registration')).toMatch(
      /^\(ES256\);path="\/device-session\/register";challenge="[A-Za-z0-9_-]{43}"$/,
    )
    expect(store.counts()).toEqual({ create: 1 })
  })

  it('offers nothing to visitors, and nothing where the visits bind none', async () => {
    const { sessions, client, edge } = setUp()
    const visitor = client()
    const response = await visitor.page(async visit => {
      await visit.update({ cart: 1 })
      return new Response()
    })
    expect(response.headers.getSetCookie()).toHaveLength(1)
    expect(response.headers.has('secure-session-registration')).toBe(false)
    const session = await sessions.create({ user: ADA })
    expect(deviceOf(session)).toBeNull()
    expect(await edge.handled(new Request('https://shop.example/device-session/refresh'))).toBeNull()
    expect(await edge.handled(new Request('https://shop.example/', { method: 'POST' }))).toBeNull()
  })

  it('goes on unbound in a browser that does not know the header', async () => {
    const { client, clock } = setUp()
    const browser = client()
    await browser.logIn(ADA)
    for (let minutes = 0; minutes < 60; minutes += 20) {
      clock.advance(20 * MINUTE)
      expect(await browser.user()).toBe('ada')
    }
  })

  it('begins unbound again in a browser that was bound, and takes the old value away', async () => {
    const made = setUp()
    const browser = await boundBrowser(made)
    const old = browser.jar.get(BOUND_COOKIE)
    const response = await browser.logIn(ADA)
    expect(response.headers.has('secure-session-registration')).toBe(true)
    expect(old).toBeDefined()
    expect(browser.jar.has(BOUND_COOKIE)).toBe(false)
    expect(await browser.user()).toBe('ada')
    // The browser still has the session that it kept for the earlier one.
    expect(await (await browser.refresh()).json()).toEqual({ continue: false })
    await browser.register(challengeFrom(response))
    expect(await browser.user()).toBe('ada')
  })
})

const challengeFrom = (response: Response) =>
  /challenge="([^"]+)"/.exec(response.headers.get('secure-session-registration') ?? '')![1]!

describe('a registration', () => {
  it('answers what the browser keeps, the cookie with the same attributes, and the challenge of the first refresh', async () => {
    const { client, types, store } = setUp({ exclude: ['/assets'] })
    const browser = client()
    await browser.logIn(ADA)
    store.reset()
    const response = await browser.register()
    expect(response.status).toBe(200)
    expect(store.counts()).toEqual({ read: 1, update: 1 })
    const [cookie] = response.headers.getSetCookie()
    expect(cookie).toMatch(
      /^__Host-session_bound=[A-Za-z0-9_-]{43}; Max-Age=270; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
    )
    expect(await response.json()).toEqual({
      session_identifier: expect.stringMatching(/^[A-Za-z0-9_-]{16}$/),
      refresh_url: REFRESH,
      scope: { include_site: false, scope_specification: [{ type: 'exclude', path: '/assets' }] },
      credentials: [{ type: 'cookie', name: BOUND_COOKIE, attributes: 'Path=/; HttpOnly; Secure; SameSite=Lax' }],
    })
    expect(response.headers.get('secure-session-challenge')).toMatch(/^"[A-Za-z0-9_-]{43}";id="[A-Za-z0-9_-]{16}"$/)
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(types()).toEqual(['created', 'device-bound'])
  })

  it('leaves the offer open to all that is no genuine answer to it', async () => {
    const { client, clock } = setUp()
    const browser = client()
    await browser.logIn(ADA)
    const offer = browser.challenge!
    const thief = browser.copy()
    // The cookie alone does not tell the challenge.
    for (const proof of ['junk', registrationProof(newDevice(), 'x'.repeat(43)), refreshProof(newDevice(), offer)])
      expect((await thief.post(REGISTER, { 'secure-session-response': proof })).status).toBe(400)
    expect((await thief.post(REGISTER, {})).status).toBe(400)
    expect((await browser.register(offer)).status).toBe(200)
    expect((await browser.register(offer)).status).toBe(403)
    clock.advance(11 * SECOND)
    expect(await browser.user()).toBe('ada')
    expect(await thief.user()).toBeNull()
  })

  it.each([
    ['a logout', async (_: any, browser: DeviceClient) => browser.copy().logOut()],
    ['logout-everywhere', async (made: any) => made.sessions.invalidateUser(ADA.id)],
    ['another login', async (_: any, browser: DeviceClient) => browser.copy().logIn({ id: 7n, name: 'max' })],
    [
      'a new ID',
      async (_: any, browser: DeviceClient) =>
        browser.copy().page(async visit => {
          await visit.regenerate()
          return new Response()
        }),
    ],
  ])('loses to %s at every point', async (_, other) => {
    for (const [verb, when] of [
      ['read', 'before'],
      ['read', 'after'],
      ['update', 'before'],
    ] as const) {
      const made = setUp()
      // On another node: in one process, writers to one session take turns.
      const elsewhere = new SessionManager({ store: made.store, now: made.clock })
      const browser = new DeviceClient(boundEdge(elsewhere))
      await browser.logIn(ADA)
      const pause = made.store.pause(verb, when)
      const registering = new DeviceClient(made.edge)
      Object.assign(registering, { jar: new Map(browser.jar), challenge: browser.challenge })
      const running = registering.register()
      await pause.reached
      await other({ sessions: elsewhere }, browser)
      pause.resume()
      expect((await running).status, `${when} ${verb}`).toBe(401)
      expect(await browser.user()).toBeNull()
    }
  })

  it('wins once, where two browsers with one cookie answer the same offer', async () => {
    const { client } = setUp()
    const browser = client()
    await browser.logIn(ADA)
    const statuses = await Promise.all(Array.from({ length: 10 }, () => browser.copy().register()))
    expect(statuses.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(403)])
  })

  it('is not lost with the answer of the store: the browser gets the value that was written', async () => {
    const made = setUp()
    const browser = made.client()
    await browser.logIn(ADA)
    made.store.next('update', faults.rejectsAfter)
    expect((await browser.register()).status).toBe(200)
    made.clock.advance(11 * SECOND)
    expect(await browser.user()).toBe('ada')
    const other = made.client()
    await other.logIn(ADA)
    made.store.next('update', faults.rejects)
    expect((await other.register()).status).toBe(503)
    expect(await other.user()).toBe('ada')
  })
})

describe('a bound session', () => {
  it('is null to a request without a current value, which neither ends it nor keeps it alive', async () => {
    const made = setUp()
    const browser = await boundBrowser(made)
    const thief = browser.copy()
    thief.loseValue()
    for (let minutes = 0; minutes < 27; minutes += 9) {
      made.clock.advance(9 * MINUTE)
      made.store.reset()
      const response = await thief.page(async visit => {
        expect(await visit.get()).toBeNull()
        await expect(visit.requireUser()).rejects.toMatchObject({ code: 'ERR_SESSION_UNAUTHENTICATED' })
        expect(await visit.update({ a: 1 })).toBeNull()
        await expect(visit.create()).rejects.toMatchObject({ code: 'ERR_SESSION_CONFLICT' })
        expect(await visit.regenerate()).toBeNull()
        expect(await visit.regenerate({ grace: '1m' })).toBeNull()
        expect(await visit.csrfToken()).toBeNull()
        expect(await deviceState(visit)).toBe('unproved')
        return new Response()
      })
      expect(made.store.counts()).toEqual({ read: 1 })
      expect(response.headers.getSetCookie()).toEqual([])
      expect(response.headers.get('cache-control')).toBe('no-store')
      expect(response.headers.get('vary')).toBe('Cookie')
    }
    expect(made.events.filter(({ reason }) => reason === 'device')).toHaveLength(3)
    // 27 minutes after the last visit that counted.
    expect((await browser.refresh()).status).toBe(403)
    expect((await browser.refresh()).status).toBe(200)
    expect(await browser.user()).toBe('ada')
    made.clock.advance(31 * MINUTE)
    expect(await (await browser.refresh()).json()).toEqual({ continue: false })
  })

  it('regenerates and rotates for no copied cookie, also where nothing was read before', async () => {
    const made = setUp()
    const browser = await boundBrowser(made)
    for (const verb of ['regenerate', 'rotate'] as const) {
      const thief = browser.copy()
      thief.loseValue()
      const response = await thief.page(async visit => {
        expect(await (verb === 'rotate' ? visit.regenerate({ grace: '1m' }) : visit.regenerate())).toBeNull()
        return new Response()
      })
      expect(response.headers.getSetCookie()).toEqual([])
    }
    expect(await browser.user()).toBe('ada')
  })

  it('tells a browser whose value has ended to drop it, with the challenge to sign', async () => {
    const made = setUp()
    const browser = await boundBrowser(made)
    made.clock.advance(LIFE)
    const response = await browser.page(async visit => {
      expect(await visit.get()).toBeNull()
      return new Response()
    })
    expect(response.headers.getSetCookie().map(line => line.split(';', 1)[0])).toEqual([`${BOUND_COOKIE}=`])
    expect(response.headers.get('secure-session-challenge')).toContain(`;id="${browser.name}"`)
    expect((await browser.refresh()).status).toBe(200)
    expect(await browser.user()).toBe('ada')
  })

  it('ends where a wrong value comes, with its series, and tells it once', async () => {
    const made = setUp({}, { rememberFor: '30d' })
    const browser = made.client()
    await browser.logIn(ADA, { remember: true })
    await browser.register()
    made.clock.advance(11 * SECOND)
    const thief = browser.copy()
    thief.jar.set(BOUND_COOKIE, 'A'.repeat(43))
    await Promise.all([thief.copy().user(), thief.copy().user()])
    expect(
      made
        .types()
        .filter(type => /^destroyed|theft/.test(type))
        .sort(),
    ).toEqual(['destroyed revoked', 'device-theft'])
    expect(await browser.user()).toBeNull()
    expect(await (await browser.refresh()).json()).toEqual({ continue: false })
  })

  it('ends all sessions of the user where onTheft says so', async () => {
    const made = setUp({ onTheft: 'invalidate-user' })
    const browser = await boundBrowser(made)
    const elsewhere = made.client()
    await elsewhere.logIn(ADA)
    browser.jar.set(BOUND_COOKIE, 'wrong')
    expect(await browser.user()).toBeNull()
    expect(await elsewhere.user()).toBeNull()
    expect(made.types()).toContain('device-theft')
  })

  it('ends all of the user also where the store fails when it has ended the copied session, and tells it once', async () => {
    const made = setUp({ onTheft: 'invalidate-user' })
    const browser = await boundBrowser(made)
    const elsewhere = made.client()
    await elsewhere.logIn(ADA)
    const key = (await made.sessions.list(ADA.id)).at(-1)!.key
    expect(key).not.toBe((await made.sessions.get(elsewhere.jar.get('session_id') as never))!.key)
    made.store.next('deleteUser', async (_, [, options, call]) => {
      // The first of its pieces.
      if (options.exceptKey !== key) await made.store.inner.delete(key, call)
      throw new Error('ECONNRESET')
    })
    const thief = browser.copy()
    thief.jar.set(BOUND_COOKIE, 'A'.repeat(43))
    for (let attempt = 0; attempt < 2; attempt++) await thief.user().catch(() => null)
    expect(await elsewhere.user()).toBeNull()
    expect(await browser.user()).toBeNull()
    expect(made.types().filter(type => type === 'device-theft')).toHaveLength(1)
  })

  it('is offered to no thief who adds another value to a copied cookie', async () => {
    for (const added of ['A'.repeat(43), 'junk']) {
      const made = setUp({ require: true })
      const { secret } = await made.sessions.create({ user: ADA })
      const thief = made.client()
      for (const cookies of [`${secret}; session_id=${added}`, `${added}; session_id=${secret}`]) {
        thief.jar.set('session_id', cookies)
        expect(await thief.user()).toBe('ada')
        expect(thief.challenge).toBeNull()
      }
    }
  })

  it('does not end where a sibling host planted a value beside the right one, or beside none', async () => {
    const sessions = new SessionManager({ store: new MemoryStore(), now: testClock() })
    const edge = boundEdge(sessions, {}, { cookie: { path: '/app' } })
    const browser = new DeviceClient(edge)
    await browser.logIn(ADA)
    expect(browser.challenge).not.toBeNull()
    await browser.post('/app/device-session/register', {
      'secure-session-response': registrationProof(browser.device, browser.challenge!),
    })
    const value = browser.jar.get('session_bound')
    const cookie = `session_id=${browser.jar.get('session_id')}`
    const seen = async (line: string) => {
      const visit = edge.of(new Request('https://shop.example/app', { headers: { cookie: line } }))
      return (await visit.get())?.user?.name ?? null
    }
    expect(await seen(`${cookie}; session_bound=planted; session_bound=${value}`)).toBe('ada')
    expect(await seen(`${cookie}; session_bound=${value}`)).toBe('ada')
  })

  it('keeps its binding over new IDs and writes, and says when it was proved', async () => {
    const made = setUp()
    const browser = await boundBrowser(made)
    const provedAt = made.clock() - 11 * SECOND
    for (const verb of ['update', 'regenerate', 'rotate'] as const) {
      await browser.page(async visit => {
        if (verb === 'update') await visit.update({ a: 1 })
        else await (verb === 'rotate' ? visit.regenerate({ grace: '1m' }) : visit.regenerate())
        return new Response()
      })
      await browser.page(async visit => {
        const session = await visit.get()
        expect(deviceOf(session!), verb).toEqual({ boundAt: provedAt, provedAt })
        expect(await deviceState(visit)).toBe('bound')
        return new Response()
      })
    }
    await made.sessions.updateUserSessions(ADA.id, { role: 'admin' })
    expect((await made.sessions.list(ADA.id)).map(each => deviceOf(each)?.provedAt)).toEqual([provedAt])
    made.clock.advance(LIFE)
    // The challenge was derived from an ID that has been replaced: the browser signs the one that it is told.
    expect((await browser.refresh()).status).toBe(403)
    expect((await browser.refresh()).status).toBe(200)
    expect(await browser.user()).toBe('ada')
    expect(deviceOf((await made.sessions.list(ADA.id))[0]!)?.provedAt).toBe(made.clock())
  })

  it('tells the browser to forget its session after a logout, and clears both cookies', async () => {
    const made = setUp()
    const browser = await boundBrowser(made)
    await browser.logOut()
    expect([...browser.jar.keys()]).toEqual([])
    const response = await browser.refresh()
    expect([response.status, await response.json()]).toEqual([200, { continue: false }])
  })
})

describe('a refresh', () => {
  it('goes on if it met a new ID, and ends once the session has', async () => {
    const made = setUp()
    const browser = await boundBrowser(made)
    const late = browser.tab()
    await browser.page(async visit => {
      await visit.regenerate()
      return new Response()
    })
    // Told that the session is over, browsers would forget their key.
    expect((await late.refresh()).status).toBe(200)
    // The old ID leads on for a while, and without a proof it is worth nothing.
    made.clock.advance(MINUTE)
    const thief = late.copy()
    thief.loseValue()
    expect([await thief.user(), await browser.user()]).toEqual([null, 'ada'])
    const later = browser.tab()
    await browser.logOut()
    expect(await (await later.refresh()).json()).toEqual({ continue: false })
  })

  it('leaves the value before good until its own end, for requests that are on their way', async () => {
    const made = setUp()
    const browser = await boundBrowser(made)
    made.clock.advance(3 * MINUTE)
    const late = browser.copy()
    await browser.refresh()
    expect(browser.jar.get(BOUND_COOKIE)).not.toBe(late.jar.get(BOUND_COOKIE))
    expect(await late.user()).toBe('ada')
    made.clock.advance(2 * MINUTE)
    expect(await late.user()).toBeNull()
    expect(made.types().filter(type => /theft/.test(type))).toEqual([])
    expect(await browser.user()).toBe('ada')
  })

  it('gives up no value that is good', async () => {
    const made = setUp()
    const browser = await boundBrowser(made)
    // A browser that has lost each response asks again and again.
    for (let count = 0; count < 20; count += 1) {
      const lost = browser.copy()
      const again = new DeviceClient(made.edge, browser.device)
      Object.assign(again, { jar: lost.jar, challenge: browser.challenge, name: browser.name })
      again.loseValue()
      await again.refresh()
      browser.challenge = again.challenge
    }
    expect(await browser.user()).toBe('ada')
  })

  it('goes on after a lost answer of the store, of the network, and of an outage', async () => {
    const made = setUp()
    const browser = await boundBrowser(made)
    made.clock.advance(LIFE)
    made.store.next('update', faults.rejectsAfter)
    const lost = await browser.refresh()
    expect([lost.status, lost.headers.get('retry-after')]).toEqual([503, '5'])
    made.store.next('read', faults.rejects)
    expect((await browser.refresh()).status).toBe(503)
    expect((await browser.refresh()).status).toBe(403)
    expect((await browser.refresh()).status).toBe(200)
    expect(await browser.user()).toBe('ada')
  })

  it('ends the session where the signature is of another key, and only then', async () => {
    const made = setUp()
    const browser = await boundBrowser(made)
    const thief = browser.copy()
    for (const proof of ['junk', 'a.b.c', registrationProof(browser.device, browser.challenge!)])
      expect(
        (await thief.post(REFRESH, { 'sec-secure-session-id': browser.name!, 'secure-session-response': proof }))
          .status,
      ).toBe(400)
    expect(await browser.user()).toBe('ada')
    expect((await thief.refresh(thief.challenge!, 'A'.repeat(16))).status).toBe(200)
    expect(await browser.user()).toBe('ada')
    expect((await thief.refresh()).status).toBe(400)
    expect(await browser.user()).toBeNull()
    expect(made.types().slice(-2)).toEqual(['destroyed revoked', 'device-theft'])
  })

  it('answers 503 where nobody can tell which cookie is the right one', async () => {
    const made = setUp()
    const browser = made.client()
    await browser.logIn(ADA)
    await browser.register()
    const two = browser.request(REFRESH, 'POST', { 'sec-secure-session-id': browser.name! })
    const beside = async (id: string) => {
      const headers = { ...Object.fromEntries(two.headers), cookie: `session_id=${id}; ${two.headers.get('cookie')}` }
      return (await made.edge.handled(new Request(two, { headers })))!.status
    }
    expect(await beside((await made.sessions.create({ user: { id: 7n, name: 'max' } })).secret)).toBe(503)
    expect(await beside('B'.repeat(43)), 'a dead one does not count: the proof is asked for').toBe(403)
    expect(await browser.user()).toBe('ada')
  })
})

describe('where a binding is required', () => {
  it('a session that is not bound is refused from five minutes after its login', async () => {
    const made = setUp({ require: session => session.user?.id === ADA.id })
    const [ada, max] = [made.client(), made.client()]
    await ada.logIn(ADA)
    await max.logIn({ id: 7n, name: 'max' })
    expect([await ada.user(), await max.user()]).toEqual(['ada', 'max'])
    made.clock.advance(5 * MINUTE)
    expect([await ada.user(), await max.user()]).toEqual([null, 'max'])
    expect(made.types().at(-1)).toBe('request-refused device')
    await ada.page(async visit => {
      expect(await deviceState(visit)).toBe('required')
      return new Response()
    })
  })
})

describe('a remembered session', () => {
  it('begins unbound, and registers again', async () => {
    const made = setUp({}, { rememberFor: '30d' })
    const browser = made.client()
    await browser.logIn(ADA, { remember: true })
    await browser.register()
    made.clock.advance(60 * MINUTE)
    browser.loseValue()
    const response = await browser.page(async visit => {
      expect((await visit.get())?.remembered).toBe(true)
      return new Response()
    })
    expect(response.headers.has('secure-session-registration')).toBe(true)
    expect((await browser.register()).status).toBe(200)
    made.clock.advance(11 * SECOND)
    expect(await browser.user()).toBe('ada')
    const thief = browser.copy()
    thief.loseValue()
    thief.jar.delete('remember_token')
    expect(await thief.user()).toBeNull()
  })
})
