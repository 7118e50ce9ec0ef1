// What the two paths answer, word for word: browsers go by the status, and people by the body.
import { SessionManager } from 'coatcheck'
import { deviceOf } from 'coatcheck/device-bound'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it, vi } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import {
  ADA,
  BOUND_COOKIE,
  boundEdge,
  boundService,
  DeviceClient,
  REFRESH,
  REGISTER,
} from '../support/device-client.ts'
import { jwsOf, newDevice, refreshProof, registrationProof, rsaDevice } from '../support/device-key.ts'
import { MINUTE } from '../support/test-clock.ts'

const COMMON = { 'cache-control': 'no-store', 'content-type': 'application/json' }

/** Status, body and headers. */
const told = async (response: Response) => [
  response.status,
  await response.json(),
  Object.fromEntries(response.headers),
]
const refused = (status: number, error: string) => [status, { error }, COMMON]
const OVER = [200, { continue: false }, COMMON]
const BUSY = [503, { error: 'busy' }, { ...COMMON, 'retry-after': '5' }]
const instructions = (name: string, exclude: string[] = []) => ({
  session_identifier: name,
  refresh_url: REFRESH,
  scope: { include_site: false, scope_specification: exclude.map(path => ({ type: 'exclude', path })) },
  credentials: [{ type: 'cookie', name: BOUND_COOKIE, attributes: 'Path=/; HttpOnly; Secure; SameSite=Lax' }],
})
const VALUE = /^__Host-session_bound=[\w-]{16}\.\w+\.[\w-]{43}; Max-Age=270; Path=\/; HttpOnly; Secure; SameSite=Lax$/

describe('a registration', () => {
  it('is answered with what the browser keeps, its first value and its first challenge, by one event', async () => {
    const { browser, events } = boundService({ exclude: ['/a', '/b'] })
    const login = await browser.logIn()
    expect(login.headers.get('secure-session-registration')).toMatch(
      /^\(ES256\);path="\/device-session\/register";challenge="[\w.-]{52}"$/,
    )
    // As long as the session may last: if the answer to the registration is lost, the browser gets no other.
    expect(login.headers.getSetCookie()[1]).toMatch(/^__Host-session_bound=.*; Max-Age=43200; /)
    const response = await browser.register()
    expect(await response.clone().json()).toEqual(instructions(browser.name!, ['/a', '/b']))
    expect(response.headers.getSetCookie()).toEqual([expect.stringMatching(VALUE)])
    expect(response.headers.get('secure-session-challenge')).toBe(`"${browser.challenge}";id="${browser.name}"`)
    expect(events.map(({ type }) => type)).toEqual(['created', 'device-bound'])
  })

  it('is refused with the reason where it is wrong, and the offer stays open', async () => {
    const { browser, client } = boundService()
    const [one, other] = [newDevice(), newDevice()]
    const post = (proof?: string, by = browser) =>
      by.post(REGISTER, proof === undefined ? {} : { 'secure-session-response': proof })
    expect(await told(await post(registrationProof(one, 'x')))).toEqual(refused(401, 'no_session'))
    await browser.logIn()
    const offer = browser.challenge!
    const wrong: [string | undefined, string][] = [
      [undefined, 'no_proof'],
      ['"unclosed', 'no_proof'],
      ['junk', 'malformed'],
      [refreshProof(one, offer), 'malformed'],
      [jwsOf(one, { alg: 'HS256', typ: 'dbsc+jwt', jwk: one.jwk }, { jti: offer }), 'algorithm'],
      [registrationProof(rsaDevice(), offer), 'algorithm'],
      [registrationProof(one, offer, { jwk: { ...one.jwk, x: 'AA' } }), 'key'],
      [registrationProof(one, offer, { jwk: other.jwk }), 'signature'],
      [registrationProof(one, 'another'), 'challenge'],
    ]
    for (const [proof, reason] of wrong) expect(await told(await post(proof))).toEqual(refused(400, reason))
    const foreign = client()
    await foreign.logIn()
    expect(await told(await browser.register(foreign.challenge!))).toEqual(refused(400, 'challenge'))
    expect((await browser.register(offer)).status).toBe(200)
  })

  it('is one: the same key again gets the same answer, and another key none', async () => {
    const { browser, client, events } = boundService()
    await browser.logIn()
    const offer = browser.challenge!
    const others = Array.from({ length: 5 }, () => browser.copy())
    const statuses = await Promise.all([browser, ...others].map(each => each.register(offer)))
    expect(statuses.map(({ status }) => status).sort()).toEqual([200, 403, 403, 403, 403, 403])
    const winner = [browser, ...others][statuses.findIndex(({ status }) => status === 200)]!
    const again = await winner.register(offer)
    expect([again.status, await again.json()]).toEqual([200, instructions(winner.name!)])
    expect(events.filter(({ type }) => type === 'device-bound')).toHaveLength(1)
    expect(await winner.user()).toBe('ada')
    expect(await client().user()).toBeNull()
  })

  it('has six minutes: one for the browser, and five because clocks differ', async () => {
    const { browser, client, clock, sessions } = boundService()
    const late = client()
    for (const each of [browser, late]) await each.logIn()
    clock.advance(6 * MINUTE - 1)
    expect((await browser.register()).status).toBe(200)
    expect((await sessions.list(42n)).map(deviceOf)).toContainEqual({ boundAt: clock() })
    clock.advance(1)
    expect((await late.register()).status).toBe(403)
    browser.jar.set('session_id', (await sessions.create({ user: ADA })).secret)
    expect(await told(await browser.register('x'))).toEqual(refused(403, 'no_offer'))
  })
})

describe('a refresh', () => {
  it('renews the value, and is told what to sign where it brings no proof, or one for a challenge not its own or too old', async () => {
    const { browser, clock, store } = boundService()
    await browser.bind()
    const own = browser.challenge!
    const other = await new DeviceClient(browser.edge).bind()
    store.reset()
    const challenged = async (response: Response) => {
      const header = { 'secure-session-challenge': `"${browser.challenge}";id="${browser.name}"` }
      expect(await told(response)).toEqual([403, { error: 'challenge' }, { ...COMMON, ...header }])
    }
    await challenged(await browser.post(REFRESH, { 'sec-secure-session-id': browser.name! }))
    for (const challenge of ['another', 'zzzz.x', other.challenge!]) await challenged(await browser.refresh(challenge))
    clock.advance(10 * MINUTE)
    await challenged(await browser.refresh(own))
    const renewed = await browser.loseValue().refresh()
    expect([renewed.status, await renewed.json()]).toEqual([200, instructions(browser.name!)])
    expect(renewed.headers.getSetCookie()).toEqual([expect.stringMatching(VALUE)])
    expect(Object.keys(store.counts())).toEqual(['read'])
  })

  it('is refused where it is no proof, and the session goes on', async () => {
    const { browser, events } = boundService()
    await browser.bind()
    const post = (headers: Record<string, string>) => browser.post(REFRESH, headers)
    const named = { 'sec-secure-session-id': browser.name! }
    expect(await told(await post({ 'secure-session-response': 'junk' }))).toEqual(refused(400, 'no_session_id'))
    for (const [proof, reason] of [
      ['"unclosed', 'malformed'],
      ['junk', 'malformed'],
      [registrationProof(browser.device, browser.challenge!), 'malformed'],
      [refreshProof(rsaDevice(), browser.challenge!), 'algorithm'],
    ] as const)
      expect(await told(await post({ ...named, 'secure-session-response': proof }))).toEqual(refused(400, reason))
    // Not even of another key: it does not answer the challenge.
    expect((await browser.copy().refresh('another')).status).toBe(403)
    expect(await browser.user()).toBe('ada')
    expect(events.filter(({ type }) => /theft/.test(type))).toEqual([])
  })

  it('is over where there is no such session, or no such binding', async () => {
    const { browser, client } = boundService()
    await browser.bind()
    const named = { 'sec-secure-session-id': browser.name!, 'secure-session-response': 'x.y.z' }
    const unbound = client()
    expect(await told(await unbound.post(REFRESH, named))).toEqual(OVER)
    await unbound.logIn()
    expect(await told(await unbound.post(REFRESH, named))).toEqual(OVER)
    const other = await client().bind()
    expect(await told(await other.post(REFRESH, named))).toEqual(OVER)
    await browser.logOut()
    expect(await told(await browser.refresh())).toEqual(OVER)
  })

  it.each(['end-device', 'invalidate-user'] as const)(
    'signed by another key ends the session and its remember token; with %s the rest accordingly',
    async onTheft => {
      const { client, events, sessions } = boundService({ onTheft }, { rememberFor: '30d' })
      const other = client()
      await other.logIn()
      const browser = await client().bind({ remember: true })
      const token = browser.jar.get('remember_token')!
      // Two requests of one thief at once are one theft.
      const answers = await Promise.all([browser.copy().refresh(), browser.copy().refresh()])
      for (const answer of answers) expect(await told(answer)).toEqual(refused(400, 'signature'))
      expect([await browser.user(), await sessions.redeemRememberToken(token)]).toEqual([null, null])
      expect(await other.user()).toBe(onTheft === 'invalidate-user' ? null : 'ada')
      expect(events.filter(({ type }) => type === 'device-theft')).toEqual([
        { type: 'device-theft', key: expect.any(String), userId: 42n },
      ])
    },
  )

  it.each([
    [undefined, 0],
    [{ grace: '1m' }, 5 * MINUTE + 59_999],
  ] as const)(
    'goes on by the ID before a new one (%j), since its browser may have no other yet',
    async (options, wait) => {
      const { browser, clock } = boundService()
      await browser.bind()
      const late = browser.copy(browser.device)
      await browser.page(async visit => void (await visit.regenerate(options)))
      clock.advance(wait)
      expect((await late.refresh()).status).toBe(200)
      await browser.refresh()
      expect([await browser.user(), await late.user(), await late.loseValue().user()]).toEqual(['ada', 'ada', null])
    },
  )
})

describe('both', () => {
  it('are answered 503 in an outage, and where nobody can tell which cookie counts: browsers try again', async () => {
    const { browser, store, sessions } = boundService()
    await browser.logIn()
    for (const verb of ['read', 'update'] as const) {
      store.next(verb, faults.rejects)
      expect(await told(await browser.copy().register())).toEqual(BUSY)
    }
    await browser.register()
    store.next('read', faults.rejects)
    expect(await told(await browser.refresh())).toEqual(BUSY)
    const planted = browser.copy(browser.device)
    const theirs = await sessions.create({ user: { id: 7n, name: 'max' } })
    planted.jar.set('session_id', `${browser.jar.get('session_id')}; session_id=${theirs.secret}`)
    expect([await told(await planted.refresh()), await told(await planted.register())]).toEqual([BUSY, BUSY])
    // A dead one of another scope does not count.
    browser.jar.set('session_id', `${'b'.repeat(43)}; session_id=${browser.jar.get('session_id')}`)
    expect((await browser.refresh()).status).toBe(200)
  })

  it('need no write for a proof, so that a full store logs nobody out', async () => {
    const { browser, store, clock } = boundService()
    await browser.logIn()
    await browser.register()
    store.every('update', faults.rejects)
    for (let count = 0; count < 3; count += 1) {
      expect([await browser.user(), await browser.state()]).toEqual(['ada', 'bound'])
      clock.advance(5 * MINUTE)
      expect((await browser.loseValue().refresh()).status).toBe(200)
    }
  })

  it('never reject: what is no outage is a warning of the process, and 503', async () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    const now = (): number => {
      throw new RangeError('no clock')
    }
    const browser = new DeviceClient(boundEdge(new SessionManager({ store: new MemoryStore(), now })))
    browser.jar.set('session_id', 's'.repeat(43))
    expect([await told(await browser.register('x')), await told(await browser.refresh('x', 'x'))]).toEqual([BUSY, BUSY])
    expect(warn.mock.calls).toEqual([[expect.stringContaining('no clock'), expect.anything()]])
  })

  it('are for a POST to the very path', async () => {
    const { edge } = boundService()
    const isAnswered = async (path: string, method = 'POST') =>
      (await edge.handled(new Request(`https://shop.example${path}`, { method }))) !== null
    for (const path of [REGISTER, REFRESH]) {
      expect([await isAnswered(path), await isAnswered(`${path}?from=menu`)]).toEqual([true, true])
      for (const method of ['GET', 'HEAD', 'PUT', 'OPTIONS']) expect(await isAnswered(path, method)).toBe(false)
      expect(await isAnswered(`${path}/`)).toBe(false)
    }
  })

  it('need no room in the data of a session that its user has filled', async () => {
    const { browser, clock, sessions } = boundService({}, { initial: () => ({ cart: '' }) })
    await browser.logIn()
    const fill = (size: number) => browser.page(visit => visit.update({ cart: 'x'.repeat(size) }))
    let size = 16_384
    while ((await fill(size).catch(() => null)) === null) size -= 1
    // From the login on, and never more.
    expect(16_384 - '{"cart":""}'.length - size).toBe(155)
    expect((await browser.register()).status).toBe(200)
    expect(await browser.user()).toBe('ada')
    clock.advance(5 * MINUTE)
    expect((await browser.refresh()).status).toBe(200)
    expect(await (await browser.page(async visit => (await visit.update({ cart: '' })) !== null)).json()).toBe(true)
    const [listed] = await sessions.list(42n)
    expect(deviceOf(listed!)).toEqual({ boundAt: expect.any(Number) })
  })
})
