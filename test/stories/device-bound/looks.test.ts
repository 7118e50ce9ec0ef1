// What a request of a page proves by its cookies, and what its response says about the device.
import { SessionManager, type SessionOptions, type Visit } from 'coatcheck'
import { type DeviceBoundOptions, deviceState } from 'coatcheck/device-bound'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { barrierManagers } from '../../support/barrier-managers.ts'
import { BOUND_COOKIE, boundEdge, DeviceClient } from '../../support/device-client.ts'
import { registrationProof } from '../../support/device-key.ts'
import { MINUTE, SECOND, testClock } from '../../support/test-clock.ts'

const ADA = { id: 42n, name: 'ada' }

async function bound(options: DeviceBoundOptions = {}, more: Partial<SessionOptions> = {}, remember = false) {
  const made = barrierManagers(new MemoryStore(), more)
  const edge = boundEdge(made.sessions, options)
  const browser = new DeviceClient(edge)
  await browser.logIn(ADA, { remember })
  expect((await browser.register()).status).toBe(200)
  const session_id = browser.jar.get('session_id')!
  const value = browser.jar.get(BOUND_COOKIE)!
  /** What a request with these bound cookies comes to. */
  const ask = async (values: readonly string[], headers: Record<string, string> = {}, init: RequestInit = {}) => {
    const cookie = [`session_id=${session_id}`, ...values.map(each => `${BOUND_COOKIE}=${each}`)].join('; ')
    const request = new Request('https://shop.example/', { ...init, headers: { cookie, ...headers } })
    let state = ''
    const response = (await edge.handle(request, async visit => {
      await visit.get()
      state = await deviceState(visit)
      return new Response()
    })) as Response
    return {
      state,
      cookies: response.headers.getSetCookie().map(line => line.split(';', 1)[0]),
      challenge: response.headers.get('secure-session-challenge'),
      refresh: response.headers.get('refresh'),
      cache: response.headers.get('cache-control'),
    }
  }
  return { ...made, edge, browser, value, ask, session_id }
}
const wrong = (count: number) => Array.from({ length: count }, (_, at) => `${at}`.padStart(43, 'w'))
const UNPROVED = { state: 'unproved', cookies: [], refresh: null, cache: 'no-store' }

describe('a request of a bound session', () => {
  it('is bound with a value until the value ends', async () => {
    const { ask, value, clock, browser } = await bound()
    clock.advance(MINUTE)
    expect(await ask([value])).toEqual({ ...UNPROVED, state: 'bound', challenge: null })
    clock.advance(4 * MINUTE - 1)
    expect((await ask([value])).state).toBe('bound')
    clock.advance(1)
    // It is taken away, so that the browser asks for another one before its next request.
    expect(await ask([value])).toMatchObject({
      ...UNPROVED,
      cookies: [`${BOUND_COOKIE}=`],
      challenge: `"${browser.challenge}";id="${browser.name}"`,
    })
  })

  it('may come without one, or with one of an earlier session, within ten seconds after the registration', async () => {
    const { ask, clock } = await bound()
    clock.advance(10 * SECOND - 1)
    for (const values of [[], wrong(1), wrong(2)]) expect((await ask(values)).state).toBe('bound')
    clock.advance(1)
    expect((await ask([])).state).toBe('unproved')
    expect((await ask(wrong(2))).state).toBe('unproved')
    expect((await ask(wrong(1))).state).toBe('stolen')
  })

  it('may have the right value among four, since a sibling host can plant some where the name has no prefix', async () => {
    const { ask, value, clock, events } = await bound()
    clock.advance(MINUTE)
    for (const at of [0, 1, 2, 3]) expect((await ask(wrong(3).toSpliced(at, 0, value))).state).toBe('bound')
    expect(await ask([...wrong(4), value])).toMatchObject(UNPROVED)
    clock.advance(4 * MINUTE)
    expect(await ask([...wrong(1), value])).toMatchObject({ ...UNPROVED, cookies: [`${BOUND_COOKIE}=`] })
    expect(events.filter(({ type }) => /theft/.test(type))).toEqual([])
  })

  it('is told the challenge as long as that can be answered', async () => {
    const { ask, clock, browser } = await bound()
    const challenge = `"${browser.challenge}";id="${browser.name}"`
    clock.advance(10 * MINUTE - 1)
    expect(await ask([])).toEqual({ ...UNPROVED, challenge })
    clock.advance(1)
    expect(await ask([])).toEqual({ ...UNPROVED, challenge: null })
  })

  it('with one wrong value ends it, takes the value away, and is told once', async () => {
    const { ask, clock, events, sessions } = await bound()
    clock.advance(MINUTE)
    events.length = 0
    expect(await ask(wrong(1))).toMatchObject({ state: 'stolen', cookies: [`${BOUND_COOKIE}=`], challenge: null })
    expect(events.map(({ type, reason }) => [type, reason])).toEqual([
      ['request-refused', 'device'],
      ['destroyed', 'revoked'],
      ['device-theft', undefined],
    ])
    expect(await sessions.list(42n)).toEqual([])
  })

  it('is refused by an event with its session', async () => {
    const { ask, clock, events } = await bound()
    clock.advance(MINUTE)
    events.length = 0
    await ask([])
    expect(events).toEqual([
      expect.objectContaining({
        type: 'request-refused',
        reason: 'device',
        userId: 42n,
        key: expect.any(String),
        method: 'GET',
      }),
    ])
  })

  it('that is not proved begins nothing by a remember token', async () => {
    const { clock, browser, sessions } = await bound({}, { rememberFor: '30d' }, true)
    clock.advance(MINUTE)
    const copy = browser.copy()
    copy.loseValue()
    expect(copy.jar.has('remember_token')).toBe(true)
    expect(await copy.user()).toBeNull()
    expect(await sessions.list(42n)).toHaveLength(1)
  })

  it('that is not proved writes nothing, begins nothing, and gets no new ID, also where nothing was read before', async () => {
    const { clock, browser, store } = await bound()
    clock.advance(MINUTE)
    const copy = browser.copy()
    copy.loseValue()
    store.reset()
    for (const ask of [
      (visit: Visit) => visit.update({ a: 1 }),
      (visit: Visit) => visit.regenerate(),
      (visit: Visit) => visit.regenerate({ grace: '1m' }),
    ]) {
      const response = await copy.page(async visit => new Response(String(await ask(visit))))
      expect([await response.text(), response.headers.getSetCookie()]).toEqual(['null', []])
    }
    expect(store.counts()).toEqual({ read: 3 })
  })

  it('that has gone, with a token of a series that has gone, is of nobody', async () => {
    const { edge, store } = await bound({}, { rememberFor: '30d' })
    const visitor = new DeviceClient(edge)
    visitor.jar.set('session_id', 'a'.repeat(43))
    visitor.jar.set('remember_token', `${'s'.repeat(43)}.${'v'.repeat(43)}`)
    store.reset()
    expect(await visitor.user()).toBeNull()
    expect(store.counts()).toEqual({ read: 2 })
  })
})

describe('a visit is written down', () => {
  it('only where it is proved, and where the handler lets it', async () => {
    const { ask, value, clock, store, browser } = await bound()
    clock.advance(4 * MINUTE)
    store.reset()
    await ask([])
    expect(store.counts()).toEqual({ read: 1 })
    await browser.page(async visit => {
      await visit.get({ touch: false })
      return new Response()
    })
    expect(store.counts()).toEqual({ read: 2 })
    await ask([value])
    expect(store.counts()).toEqual({ read: 3, touch: 1 })
    await ask([value])
    expect(store.counts()).toEqual({ read: 4, touch: 1 })
  })

  it('by the new ID itself, where the request gives one', async () => {
    for (const verb of ['regenerate', 'rotate'] as const) {
      const { clock, store, browser } = await bound()
      clock.advance(4 * MINUTE)
      store.reset()
      await browser.page(async visit => {
        await (verb === 'rotate' ? visit.regenerate({ grace: '1m' }) : visit.regenerate())
        return new Response()
      })
      expect(store.counts()).toEqual({ read: 1, replace: 1 })
    }
  })

  it('of a remembered session at its first use', async () => {
    const { browser, clock, store } = await bound({}, { rememberFor: '30d' }, true)
    clock.advance(60 * MINUTE)
    browser.jar.delete('session_id')
    expect(await browser.user()).toBe('ada')
    store.reset()
    expect(await browser.user()).toBe('ada')
    expect(store.counts().touch).toBe(1)
  })
})

describe('a page that another site led to loads itself anew', () => {
  const from = (site: string, mode = 'navigate') => ({ 'sec-fetch-site': site, 'sec-fetch-mode': mode })
  it('where it needs a proof, which came with no request of that site', async () => {
    const { ask, clock, value } = await bound()
    clock.advance(MINUTE)
    for (const site of ['cross-site', 'same-site']) {
      expect((await ask([], from(site))).refresh).toBe('0')
      expect((await ask([value], from(site))).refresh).toBeNull()
      expect((await ask([], from(site, 'cors'))).refresh).toBeNull()
      expect((await ask([], from(site), { method: 'HEAD' })).refresh).toBeNull()
    }
    for (const site of ['same-origin', 'none']) expect((await ask([], from(site))).refresh).toBeNull()
    expect((await ask([], { 'sec-fetch-mode': 'navigate' })).refresh).toBeNull()
    expect((await ask(wrong(1), from('cross-site'))).refresh).toBeNull()
  })
})

describe('where a binding is required', () => {
  it('a session that is not bound is one until five minutes after its login', async () => {
    const { edge, clock, events } = await bound({ require: true })
    const other = new DeviceClient(edge)
    await other.logIn(ADA)
    clock.advance(5 * MINUTE - 1)
    expect(await other.user()).toBe('ada')
    clock.advance(1)
    const response = await other.page(async visit => {
      expect([await visit.get(), await deviceState(visit)]).toEqual([null, 'required'])
      await expect(visit.create()).rejects.toMatchObject({ code: 'ERR_SESSION_CONFLICT' })
      return new Response()
    })
    expect([response.headers.getSetCookie(), response.headers.get('cache-control')]).toEqual([[], 'no-store'])
    expect(events.at(-1)).toMatchObject({ type: 'request-refused', reason: 'device' })
    // The value of another session stays: it may be good again.
    other.jar.set(BOUND_COOKIE, 'of another session')
    expect(await other.user()).toBeNull()
    expect(other.jar.has(BOUND_COOKIE)).toBe(true)
  })

  it('no remember token is given, and one that was begins nothing and ends', async () => {
    const { sessions } = await bound({}, { rememberFor: '30d' })
    const token = await sessions.issueRememberToken(await sessions.create({ user: ADA }))
    const strict = new DeviceClient(boundEdge(sessions, { require: true }))
    strict.jar.set('remember_token', token)
    expect(await strict.user()).toBeNull()
    expect(await sessions.redeemRememberToken(token)).toBeNull()
    await strict.logIn(ADA, { remember: true })
    expect(strict.jar.has('remember_token')).toBe(false)
  })

  it('a session that was never offered one is none from then on', async () => {
    const clock = testClock()
    const plain = new SessionManager({ store: new MemoryStore(), now: clock, sweepInterval: false })
    const client = new DeviceClient(boundEdge(plain, { require: true }))
    client.jar.set('session_id', (await plain.create({ user: ADA })).secret)
    clock.advance(5 * MINUTE - 1)
    expect(await client.user()).toBe('ada')
    clock.advance(1)
    expect(await client.user()).toBeNull()
  })
})

describe('the bound cookie of an earlier session', () => {
  it('goes with a new login and with a logout, where the browser has one; the application cannot set it', async () => {
    for (const has of [true, false])
      for (const verb of ['logIn', 'logOut'] as const) {
        const { browser } = await bound()
        if (!has) browser.loseValue()
        const response = await browser.page(async visit => {
          if (verb === 'logIn') await visit.logIn({ user: ADA } as never)
          else await visit.logOut()
          return new Response(null, { headers: [['Set-Cookie', `${BOUND_COOKIE}=theirs`]] })
        })
        const lines = response.headers.getSetCookie().filter(line => line.startsWith(BOUND_COOKIE))
        expect(lines).toEqual([
          has ? expect.stringMatching(/^__Host-session_bound=; Max-Age=0;/) : `${BOUND_COOKIE}=theirs`,
        ])
        expect(response.headers.has('secure-session-registration')).toBe(verb === 'logIn')
      }
  })

  it('stays with a new ID, which offers nothing', async () => {
    const { browser, value } = await bound()
    const response = await browser.page(async visit => {
      await visit.regenerate()
      return new Response()
    })
    expect(response.headers.has('secure-session-registration')).toBe(false)
    expect(browser.jar.get(BOUND_COOKIE)).toBe(value)
  })

  it('goes with a logout that proves nothing, and no challenge comes after it', async () => {
    const { edge, browser, clock } = await bound()
    clock.advance(5 * MINUTE)
    const visit = edge.of(browser.request('/', 'POST'))
    expect(await visit.get()).toBeNull()
    expect(visit.headers.has('secure-session-challenge')).toBe(true)
    await visit.logOut()
    expect(visit.headers.has('secure-session-challenge')).toBe(false)
    expect(visit.cookies.map(({ name, value }) => [name, value])).toEqual([
      ['session_id', ''],
      [BOUND_COOKIE, ''],
    ])
  })

  it('is not offered again by a page view', async () => {
    const { edge } = await bound()
    const fresh = new DeviceClient(edge)
    await fresh.logIn(ADA)
    const view = await fresh.page(async visit => new Response((await visit.get())?.user?.name))
    expect([await view.text(), view.headers.has('secure-session-registration')]).toEqual(['ada', false])
  })

  it('stays where nothing is looked for, and the response may be kept', async () => {
    const { edge } = await bound()
    const visitor = new DeviceClient(edge)
    visitor.jar.set(BOUND_COOKIE, 'old')
    const response = await visitor.page(async visit => {
      expect(await visit.get()).toBeNull()
      return new Response()
    })
    expect([response.headers.getSetCookie(), response.headers.get('cache-control')]).toEqual([[], null])
  })

  it('is offered again as long as the session can be bound, with a new ID too', async () => {
    const { edge, clock } = await bound()
    const fresh = new DeviceClient(edge)
    await fresh.logIn(ADA)
    const renewed = () =>
      fresh.page(async visit => {
        await visit.regenerate()
        return new Response()
      })
    clock.advance(5 * MINUTE - 1)
    expect((await renewed()).headers.has('secure-session-registration')).toBe(true)
    clock.advance(1)
    expect((await renewed()).headers.has('secure-session-registration')).toBe(false)
  })
})

describe('without the prefix __Host-, with which no other host can plant the bound cookie', () => {
  it('a wrong value that comes alone is unproved, and no theft', async () => {
    const made = barrierManagers(new MemoryStore())
    const edge = boundEdge(made.sessions, { path: '/app/device' }, { cookie: { path: '/app' } })
    const browser = new DeviceClient(edge)
    await browser.logIn(ADA)
    const registering = { 'secure-session-response': registrationProof(browser.device, browser.challenge!) }
    expect((await browser.post('/app/device/register', registering)).status).toBe(200)
    made.clock.advance(MINUTE)
    const right = browser.jar.get('session_bound')!
    browser.jar.set('session_bound', 'w'.repeat(43))
    expect(await browser.user()).toBeNull()
    expect(made.events.filter(({ type }) => /theft|destroyed/.test(type))).toEqual([])
    browser.jar.set('session_bound', right)
    expect(await browser.user()).toBe('ada')
  })
})

describe('a session that begins by itself', () => {
  it('is offered a binding by the response that brings it, and may be bound for five minutes from then', async () => {
    const { sessions, clock, store } = barrierManagers(new MemoryStore(), { rememberFor: '30d' })
    const edge = boundEdge(sessions, { require: false })
    const browser = new DeviceClient(edge)
    browser.jar.set('remember_token', await sessions.issueRememberToken(await sessions.create({ user: ADA })))
    clock.advance(60 * MINUTE)
    const page = () => browser.page(async visit => new Response((await visit.get())?.user?.name))
    store.reset()
    const response = await page()
    expect([await response.text(), response.headers.has('secure-session-registration')]).toEqual(['ada', true])
    expect((await page()).headers.has('secure-session-registration')).toBe(false)
    clock.advance(5 * MINUTE - 1)
    expect((await browser.register()).status).toBe(200)
  })

  it('is counted from when it began here, also where it is older, as an imported one is', async () => {
    const { sessions, clock } = barrierManagers(new MemoryStore())
    const edge = boundEdge(sessions, { require: true })
    // As an importer does it: the ID that the request brings leads to a session that is older than this response.
    const old = await sessions.create({ user: ADA })
    clock.advance(10 * MINUTE)
    const imported = (await sessions.regenerate(old, { grace: '2m' }))!
    const browser = new DeviceClient(edge)
    browser.jar.set('session_id', old.secret)
    const response = await browser.page(async visit => new Response((await visit.get())?.user?.name))
    expect([await response.text(), response.headers.has('secure-session-registration')]).toEqual(['ada', true])
    expect(browser.jar.get('session_id')).toBe(imported.secret)
    clock.advance(5 * MINUTE - 1)
    expect(await browser.user()).toBe('ada')
    expect((await browser.register()).status).toBe(200)
    clock.advance(MINUTE)
    expect(await browser.user()).toBe('ada')
    const other = new DeviceClient(edge)
    other.jar.set('session_id', (await sessions.create({ user: ADA })).secret)
    clock.advance(5 * MINUTE)
    expect(await other.user()).toBeNull()
  })
})
