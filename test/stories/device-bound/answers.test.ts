// What the two paths answer, word for word: browsers go by the status, and people by the body.
import { SessionError, SessionManager, type SessionOptions } from 'coatcheck'
import type { DeviceBoundOptions } from 'coatcheck/device-bound'
import { deviceBound, deviceOf, deviceState } from 'coatcheck/device-bound'
import { fetchVisits } from 'coatcheck/fetch'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { barrierManagers } from '../../support/barrier-managers.ts'
import { faults } from '../../support/barrier-store.ts'
import { BOUND_COOKIE, boundEdge, DeviceClient, REFRESH, REGISTER } from '../../support/device-client.ts'
import { jwsOf, newDevice, refreshProof, registrationProof, rsaDevice } from '../../support/device-key.ts'
import { MINUTE, SECOND } from '../../support/test-clock.ts'

const ADA = { id: 42n, name: 'ada' }
const COMMON = { 'cache-control': 'no-store', 'content-type': 'application/json' }

function service(options: DeviceBoundOptions = {}, device = newDevice(), more: Partial<SessionOptions> = {}) {
  const made = barrierManagers(new MemoryStore(), more)
  const edge = boundEdge(made.sessions, options)
  return { ...made, edge, browser: new DeviceClient(edge, device) }
}
async function bound(options: DeviceBoundOptions = {}, device = newDevice()) {
  const made = service(options, device)
  await made.browser.logIn(ADA)
  expect((await made.browser.register()).status).toBe(200)
  made.clock.advance(11 * SECOND)
  return made
}

/** Status, body and headers. */
async function told(response: Response) {
  return [response.status, await response.json(), Object.fromEntries(response.headers)]
}
const refused = (status: number, error: string) => [status, { error }, COMMON]
const OVER = [200, { continue: false }, COMMON]
const BUSY = [503, { error: 'busy' }, { ...COMMON, 'retry-after': '5' }]

describe('a registration is answered', () => {
  const register = (browser: DeviceClient, proof?: string) =>
    browser.post(REGISTER, proof === undefined ? {} : { 'secure-session-response': proof })

  it('400, where it brings no proof, or none that can be read', async () => {
    const { browser } = service()
    await browser.logIn(ADA)
    expect(await told(await register(browser))).toEqual(refused(400, 'no_proof'))
    expect(await told(await register(browser, '"unclosed'))).toEqual(refused(400, 'no_proof'))
  })

  it('401, where there is no session', async () => {
    const { browser } = service()
    const proof = registrationProof(newDevice(), 'x')
    expect(await told(await register(browser, proof))).toEqual(refused(401, 'no_session'))
    browser.jar.set('session_id', 'a'.repeat(43))
    expect(await told(await register(browser, proof))).toEqual(refused(401, 'no_session'))
  })

  it('400 with the reason, where the proof is wrong; the offer stays open', async () => {
    const { browser } = service()
    await browser.logIn(ADA)
    const offer = browser.challenge!
    const [one, other] = [newDevice(), newDevice()]
    const wrong: [string, string][] = [
      ['junk', 'malformed'],
      [jwsOf(one, { alg: 'HS256', typ: 'dbsc+jwt', jwk: one.jwk }, { jti: offer }), 'algorithm'],
      [registrationProof(one, offer, { jwk: { ...one.jwk, x: 'AA' } }), 'key'],
      [registrationProof(one, offer, { jwk: other.jwk }), 'signature'],
      [registrationProof(one, 'another'), 'challenge'],
    ]
    for (const [proof, reason] of wrong)
      expect(await told(await register(browser, proof))).toEqual(refused(400, reason))
    expect((await browser.register(offer)).status).toBe(200)
  })

  it('403, where nothing is offered any more: from five minutes after the login, or once it is bound', async () => {
    const { browser, clock } = service()
    await browser.logIn(ADA)
    const late = browser.copy()
    clock.advance(5 * MINUTE - 1)
    expect((await browser.register()).status).toBe(200)
    expect(await told(await late.register())).toEqual(refused(403, 'no_offer'))
    const next = service()
    await next.browser.logIn(ADA)
    next.clock.advance(5 * MINUTE)
    expect(await told(await next.browser.register())).toEqual(refused(403, 'no_offer'))
  })

  it('403, where it began with visits that bind none', async () => {
    const { store, clock } = service()
    const sessions = new SessionManager({ store, now: clock, sweepInterval: false })
    const plain = fetchVisits(sessions).of(new Request('https://shop.example/', { method: 'POST' }))
    const { secret } = await plain.logIn({ user: ADA })
    const client = new DeviceClient(boundEdge(sessions))
    client.jar.set('session_id', secret)
    expect(await told(await client.register('x'))).toEqual(refused(403, 'no_offer'))
  })

  it('403, where nothing was ever offered', async () => {
    const { browser, sessions } = service()
    browser.jar.set('session_id', (await sessions.create({ user: ADA })).secret)
    expect(await told(await browser.register('x'))).toEqual(refused(403, 'no_offer'))
  })

  it('403 to all but the first of those that come at once, and 401 where the session ends meanwhile', async () => {
    const { browser, store, sessions, events } = service()
    await browser.logIn(ADA)
    const writing = store.pause('update', 'before')
    const first = browser.copy().register()
    await writing.reached
    const second = browser.copy().register()
    writing.resume()
    expect([(await first).status, await told(await second)]).toEqual([200, refused(403, 'no_offer')])
    expect(events.at(-1)).toEqual({ type: 'device-bound', key: expect.any(String), userId: 42n })
    await browser.logIn(ADA)
    const late = store.pause('update', 'before')
    const third = browser.copy().register()
    await late.reached
    const [{ key } = { key: '' }] = await sessions.list(42n)
    await store.inner.delete(key, { now: 0, deadline: 0 } as never)
    late.resume()
    expect(await told(await third)).toEqual(refused(401, 'no_session'))
  })

  it('503 in an outage, and where cookies of two users came; the browser tries again', async () => {
    const { browser, store, sessions } = service()
    await browser.logIn(ADA)
    for (const verb of ['read', 'update'] as const) {
      store.next(verb, faults.rejects)
      expect(await told(await browser.copy().register())).toEqual(BUSY)
    }
    const planted = browser.copy()
    const theirs = await sessions.create({ user: { id: 7n, name: 'max' } })
    planted.jar.set('session_id', `${browser.jar.get('session_id')}; session_id=${theirs.secret}`)
    expect(await told(await planted.register())).toEqual(BUSY)
    // A dead one of another scope does not count.
    browser.jar.set('session_id', `${'b'.repeat(43)}; session_id=${browser.jar.get('session_id')}`)
    expect((await browser.register()).status).toBe(200)
  })

  it('200 by one read and one write; also where the answer of the write is lost, but not where the session has gone', async () => {
    const { browser, store, clock } = service()
    await browser.logIn(ADA)
    store.reset()
    expect((await browser.register()).status).toBe(200)
    expect(store.counts()).toEqual({ read: 1, update: 1 })
    await browser.logIn(ADA)
    store.next('update', faults.rejectsAfter)
    expect((await browser.register()).headers.getSetCookie()).toHaveLength(1)
    clock.advance(11 * SECOND)
    expect(await browser.user()).toBe('ada')
    await browser.logIn(ADA)
    store.next('update', async (_, [key]) => {
      await store.inner.delete(key, { now: clock(), deadline: 0 } as never)
      throw new Error('ECONNRESET')
    })
    expect(await told(await browser.register())).toEqual(BUSY)
  })

  it('200, also for the ID before a rotation, within its grace', async () => {
    const { browser } = service()
    await browser.logIn(ADA)
    const old = browser.tab()
    await browser.page(async visit => {
      await visit.regenerate({ grace: '1m' })
      return new Response()
    })
    expect((await old.register()).status).toBe(200)
  })

  it('with the fault itself where it is no outage', async () => {
    for (const fault of [
      new RangeError('no clock'),
      Object.assign(new RangeError('no clock'), { status: 503 }),
      new SessionError('ERR_SESSION_HEADERS_SENT', 'no clock'),
    ]) {
      const broken = new SessionManager({
        store: new MemoryStore(),
        now: () => {
          throw fault
        },
      })
      const visits = deviceBound(fetchVisits(broken))
      const client = new DeviceClient(visits)
      client.jar.set('session_id', 's'.repeat(43))
      const request = client.request(REGISTER, 'POST', { 'secure-session-response': 'x' })
      await expect(visits.handled(request)).rejects.toBe(fault)
    }
  })

  it('at its own path alone, to a POST alone', async () => {
    const { edge } = service()
    const answers = (path: string, method: string) =>
      edge.handled(new Request(`https://shop.example${path}`, { method }))
    for (const path of [REGISTER, REFRESH]) {
      expect(await answers(path, 'POST')).not.toBeNull()
      for (const method of ['GET', 'HEAD', 'PUT', 'OPTIONS']) expect(await answers(path, method)).toBeNull()
      expect(await answers(`${path}/`, 'POST')).toBeNull()
    }
    expect(await answers('/', 'POST')).toBeNull()
  })
})

describe('a refresh is answered', () => {
  it('400, where it names no session; continue: false, where it names another', async () => {
    const { browser } = await bound()
    const proof = refreshProof(browser.device, browser.challenge!)
    expect(await told(await browser.post(REFRESH, { 'secure-session-response': proof }))).toEqual(
      refused(400, 'no_session_id'),
    )
    const named = { 'sec-secure-session-id': 'x'.repeat(16), 'secure-session-response': proof }
    expect(await told(await browser.post(REFRESH, named))).toEqual(OVER)
    const anonymous = new DeviceClient(browser.edge)
    expect(await told(await anonymous.post(REFRESH, named))).toEqual(OVER)
    const unbound = new DeviceClient(browser.edge)
    await unbound.logIn(ADA)
    expect(await told(await unbound.post(REFRESH, named))).toEqual(OVER)
  })

  it('403 with the challenge to sign, where it brings no proof, or one for another challenge', async () => {
    const { browser, clock, store } = await bound()
    clock.advance(3 * MINUTE)
    const name = browser.name!
    const outstanding = browser.challenge!
    const header = { 'secure-session-challenge': `"${outstanding}";id="${name}"` }
    const challenged = [403, { error: 'challenge' }, { ...COMMON, ...header }]
    store.reset()
    expect(await told(await browser.post(REFRESH, { 'sec-secure-session-id': name }))).toEqual(challenged)
    expect(await told(await browser.refresh('another'))).toEqual(challenged)
    // It is the one that is outstanding, which costs no write.
    expect(store.counts()).toEqual({ read: 2 })
    expect((await browser.refresh(outstanding)).status).toBe(200)
  })

  it('with a new challenge from the end of the one before: ten minutes after the proof', async () => {
    for (const [after, isNew] of [
      [10 * MINUTE - 1, false],
      [10 * MINUTE, true],
    ] as const) {
      const { browser, clock, store } = await bound()
      clock.advance(after - 11 * SECOND)
      const before = browser.challenge!
      store.reset()
      const response = await browser.refresh(before)
      expect([response.status, store.counts()]).toEqual([isNew ? 403 : 200, { read: 1, update: 1 }])
      expect(browser.challenge).not.toBe(before)
      expect(response.headers.getSetCookie()).toHaveLength(isNew ? 0 : 1)
      if (isNew) expect((await browser.refresh()).status).toBe(200)
      expect(await browser.user()).toBe('ada')
    }
  })

  it('400 with the reason, where the proof cannot be one: the session goes on', async () => {
    const { browser } = await bound()
    const challenge = browser.challenge!
    for (const [proof, reason] of [
      ['junk', 'malformed'],
      [registrationProof(browser.device, challenge), 'malformed'],
      [refreshProof(rsaDevice(), challenge), 'algorithm'],
    ] as const)
      expect(
        await told(
          await browser.post(REFRESH, { 'sec-secure-session-id': browser.name!, 'secure-session-response': proof }),
        ),
      ).toEqual(refused(400, reason))
    const unreadable = { 'sec-secure-session-id': browser.name!, 'secure-session-response': '"unclosed' }
    expect(await told(await browser.post(REFRESH, unreadable))).toEqual(refused(400, 'malformed'))
    expect(await browser.user()).toBe('ada')
  })

  it.each(['end-device', 'invalidate-user'] as const)(
    '400 where another key has signed: with %s the rest ends',
    async onTheft => {
      const { edge, events, sessions } = service({ onTheft }, newDevice(), { rememberFor: '30d' })
      const [browser, other] = [new DeviceClient(edge), new DeviceClient(edge)]
      await other.logIn(ADA)
      await browser.logIn(ADA, { remember: true })
      await browser.register()
      const token = browser.jar.get('remember_token')!
      expect((await browser.copy().refresh()).status).toBe(400)
      expect([await browser.user(), await sessions.redeemRememberToken(token)]).toEqual([null, null])
      expect(await other.user()).toBe(onTheft === 'invalidate-user' ? null : 'ada')
      expect(events.map(({ type }) => type)).toContain('device-theft')
      expect(events.find(({ type }) => type === 'destroyed')).toMatchObject({ userId: 42n, reason: 'revoked' })
    },
  )

  it('400 where another key has signed, which ends the session', async () => {
    const { browser, events } = await bound()
    const thief = browser.copy()
    expect(await told(await thief.refresh())).toEqual(refused(400, 'signature'))
    expect(await browser.user()).toBeNull()
    expect(events.filter(({ type }) => type === 'device-theft')).toEqual([
      { type: 'device-theft', key: expect.any(String), userId: 42n },
    ])
  })

  it('200 with what the browser keeps, and with a value unless it has eight that are good', async () => {
    const { browser, clock } = await bound({ exclude: ['/a', '/b'] })
    const keeps = {
      session_identifier: browser.name,
      refresh_url: REFRESH,
      scope: {
        include_site: false,
        scope_specification: [
          { type: 'exclude', path: '/a' },
          { type: 'exclude', path: '/b' },
        ],
      },
      credentials: [{ type: 'cookie', name: BOUND_COOKIE, attributes: 'Path=/; HttpOnly; Secure; SameSite=Lax' }],
    }
    clock.advance(4 * MINUTE)
    const due = await browser.refresh()
    expect([due.status, await due.json()]).toEqual([200, keeps])
    expect(due.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^__Host-session_bound=[\w-]{43}; Max-Age=270; Path=\/; HttpOnly; Secure; SameSite=Lax$/),
    ])
    // Asked seven times more, it has eight values that are good: the browser keeps the one that it has.
    for (let times = 0; times < 6; times += 1) expect((await browser.refresh()).headers.getSetCookie()).toHaveLength(1)
    const full = await browser.refresh()
    expect([full.status, await full.json(), full.headers.getSetCookie()]).toEqual([200, keeps, []])
    expect(await browser.user()).toBe('ada')
  })

  it('200 where it meets a new ID, and continue: false once that session is over', async () => {
    const { browser, clock, sessions } = await bound()
    const [late, later] = [browser.tab(), browser.tab()]
    await browser.page(async visit => {
      await visit.regenerate()
      return new Response()
    })
    expect((await late.refresh()).status).toBe(200)
    clock.advance(6 * MINUTE)
    expect(await told(await later.refresh())).toEqual(OVER)
    await sessions.invalidateUser(42n)
    expect(await told(await late.refresh())).toEqual(OVER)
  })

  it('where its session ends or gets a new ID while it is written', async () => {
    for (const ends of [true, false]) {
      const { browser, clock, store, sessions } = await bound()
      clock.advance(5 * MINUTE)
      browser.loseValue()
      const elsewhere = new SessionManager({ store, now: clock, sweepInterval: false })
      const writing = store.pause('update', 'before')
      const refreshing = browser.tab().refresh()
      await writing.reached
      const session = await elsewhere.get(browser.jar.get('session_id') as never, { touch: false })
      if (ends) await elsewhere.destroy(session!)
      else await elsewhere.regenerate(session!, { grace: '10s' })
      writing.resume()
      if (ends) expect(await told(await refreshing)).toEqual(OVER)
      else expect((await refreshing).status).toBe(200)
      expect(await sessions.list(42n)).toHaveLength(ends ? 0 : 1)
    }
  })

  it('by one read and one write, which prolong no visit', async () => {
    const { browser, clock, store, sessions } = await bound()
    const [before] = await sessions.list(42n)
    clock.advance(5 * MINUTE)
    store.reset()
    expect((await browser.refresh()).status).toBe(200)
    expect(store.counts()).toEqual({ read: 1, update: 1 })
    const [after] = await sessions.list(42n)
    expect([after!.seenAt, after!.expiresAt]).toEqual([before!.seenAt, before!.expiresAt])
    expect(deviceOf(after!)).toMatchObject({ boundAt: expect.any(Number), provedAt: clock() })
    // Two in turn in one process: the second need not meet a conflict.
    clock.advance(5 * MINUTE)
    store.reset()
    await browser.refresh()
    expect(store.counts()).toEqual({ read: 1, update: 1 })
  })
})

describe('what a request says about its device', () => {
  const stateOf = async (edge: DeviceClient['edge'], request: Request) => deviceState(edge.of(request))

  it('is told by deviceState', async () => {
    const { browser, edge, clock } = await bound()
    const at = (cookies: Record<string, string>) => {
      const cookie = Object.entries(cookies).map(([name, value]) => `${name}=${value}`)
      return stateOf(edge, new Request('https://shop.example/', { headers: { cookie: cookie.join('; ') } }))
    }
    const session_id = browser.jar.get('session_id')!
    expect(await at({})).toBe('none')
    expect(await at({ session_id: 'a'.repeat(43) })).toBe('none')
    expect(await at({ session_id, [BOUND_COOKIE]: browser.jar.get(BOUND_COOKIE)! })).toBe('bound')
    expect(await at({ session_id })).toBe('unproved')
    const other = new DeviceClient(edge)
    await other.logIn(ADA)
    expect(await at(Object.fromEntries(other.jar))).toBe('unbound')
    clock.advance(1)
    expect(await at({ session_id, [BOUND_COOKIE]: 'x'.repeat(43) })).toBe('stolen')
    expect(await at({ session_id })).toBe('none')
  })

  it('is none where the session ends while the visit is written down', async () => {
    for (const isBound of [true, false]) {
      const { browser, edge, clock, store, sessions } = isBound ? await bound() : service()
      if (!isBound) await browser.logIn(ADA)
      clock.advance(4 * MINUTE)
      store.next('touch', async proceed => {
        for (const { key } of await sessions.list(42n))
          await store.inner.delete(key, { now: clock(), deadline: 0 } as never)
        return proceed()
      })
      if (!isBound) browser.jar.set(BOUND_COOKIE, 'of another session')
      const visit = edge.of(browser.request('/'))
      expect([await deviceState(visit), visit.headers.getSetCookie()]).toEqual(['none', []])
    }
  })

  it('is none without a session', async () => {
    const { edge } = service()
    expect(await deviceState(edge.of(new Request('https://shop.example/')))).toBe('none')
  })

  it('is a TypeError for what is no visit, and no session', async () => {
    const { edge, sessions: others } = service()
    const bare = fetchVisits(others).of(new Request('https://shop.example/'))
    for (const wrong of [null, undefined, {}, 'visit', bare])
      await expect(deviceState(wrong as never)).rejects.toThrow(
        /^deviceState: expected a visit of deviceBound\(visits\), such as visits\.of\(request, response\), got /,
      )
    expect(await deviceState(edge.of(new Request('https://shop.example/')))).toBe('none')
    for (const wrong of [null, undefined, {}, 'session', { user: ADA }])
      expect(() => deviceOf(wrong as never)).toThrow(/^deviceOf: expected a session, got /)
    const { browser, sessions } = await bound()
    const session = await sessions.get(browser.jar.get('session_id') as never)
    expect(Object.isFrozen(deviceOf(session!))).toBe(true)
    expect(deviceOf({ ...session! })).toEqual(deviceOf(session!))
  })
})
