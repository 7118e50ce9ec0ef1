// What a page sees of a bound session, what its response says about the device, and what an application may do with its data.
import { SessionManager, type Visit } from 'coatcheck'
import { type DeviceBoundOptions, deviceBound, deviceOf, deviceState } from 'coatcheck/device-bound'
import { fetchVisits } from 'coatcheck/fetch'
import { nextVisits } from 'coatcheck/next'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import * as zod from 'zod'
import { barrierManagers } from '../../support/barrier-managers.ts'
import { ADA, BOUND_COOKIE, boundEdge, DeviceClient } from '../../support/device-client.ts'
import { MINUTE } from '../../support/test-clock.ts'

const OFFER = 'secure-session-registration'

function service(options: DeviceBoundOptions = {}, more: object = {}) {
  const made = barrierManagers(new MemoryStore(), more)
  const edge = boundEdge(made.sessions, options)
  return { ...made, edge, client: () => new DeviceClient(edge), bound: () => new DeviceClient(edge).bind() }
}
type Made = ReturnType<typeof service>

/** What a page with these bound cookies comes to: the state, and what the response says. */
async function ask(
  browser: DeviceClient,
  values: readonly string[],
  headers: Record<string, string> = {},
  edge = browser.edge,
) {
  const cookie = [`session_id=${browser.jar.get('session_id')}`, ...values.map(each => `${BOUND_COOKIE}=${each}`)]
  const request = new Request('https://shop.example/', { headers: { cookie: cookie.join('; '), ...headers } })
  const response = (await edge.handle(request, async visit => Response.json(await deviceState(visit)))) as Response
  const sent = response.headers
  return {
    state: await response.json(),
    cookies: sent.getSetCookie().flatMap(line => /^__Host-session_bound=[^;]*/.exec(line)?.[0] ?? []),
    challenge: sent.get('secure-session-challenge')?.split(';id=')[1] ?? null,
    refresh: sent.get('refresh'),
    cache: sent.get('cache-control'),
  }
}
const FINE = { state: 'bound', cookies: [], challenge: null, refresh: null, cache: 'no-store' }

describe('a request of a bound session', () => {
  it('is bound by a value for lifetime and five minutes, unproved without, and never a theft', async () => {
    const made = service()
    const browser = await made.bound()
    const other = await made.bound()
    const [value, foreign] = [browser, other].map(each => each.jar.get(BOUND_COOKIE)!) as [string, string]
    const unproved = { ...FINE, state: 'unproved', challenge: `"${browser.name}"` }
    const cleared = { ...unproved, cookies: [`${BOUND_COOKIE}=`] }
    expect(await ask(browser, [value])).toEqual(FINE)
    expect(await ask(browser, [])).toEqual(unproved)
    const [name, time, mac] = value.split('.') as [string, string, string]
    const later = (Number.parseInt(time, 36) + 1).toString(36)
    for (const wrong of ['w'.repeat(43), foreign, '', `${name}.${later}.${mac}`, `${name}.${time}`, `.${time}.${mac}`])
      expect(await ask(browser, [wrong])).toEqual(cleared)
    // A sibling host can plant some where the name has no prefix.
    for (const at of [0, 1, 2, 3])
      expect((await ask(browser, ['a', 'b', 'c'].toSpliced(at, 0, value))).state).toBe('bound')
    expect((await ask(browser, ['a', 'b', 'c', 'd', value])).state).toBe('unproved')
    made.clock.advance(10 * MINUTE - 1)
    expect((await ask(browser, [value])).state).toBe('bound')
    made.clock.advance(1)
    expect(await ask(browser, [value])).toEqual(cleared)
    expect(made.events.filter(({ type }) => /theft|destroyed/.test(type))).toEqual([])
    expect(made.events.at(-1)).toMatchObject({ type: 'request-refused', reason: 'device', userId: 42n, method: 'GET' })
  })

  it('may come to a node whose clock is five minutes away, in either direction', async () => {
    for (const ahead of [5 * MINUTE, -5 * MINUTE]) {
      const made = service({ lifetime: '2m' })
      const other = boundEdge(made.manager({ now: made.clock.skewed(ahead) }), { lifetime: '2m' })
      const browser = await made.bound()
      made.clock.advance(96_000)
      expect((await ask(browser, [browser.jar.get(BOUND_COOKIE)!], {}, other)).state).toBe('bound')
      expect((await ask(browser, [], {}, other)).state).toBe('unproved')
      const there = browser.copy(browser.device, other)
      expect((await there.refresh()).status).toBe(200)
      expect((await ask(browser, [there.jar.get(BOUND_COOKIE)!])).state).toBe('bound')
    }
  })

  it('without a value can do nothing with it, by any method, and keeps nothing alive', async () => {
    const { store, clock, bound } = service({}, { rememberFor: '30d' })
    const browser = await bound()
    const thief = browser.copy().loseValue()
    clock.advance(4 * MINUTE)
    store.reset()
    const CODE = (code: string) => (promise: Promise<unknown>) => expect(promise).rejects.toMatchObject({ code })
    await thief.page(async visit => {
      expect([await visit.get(), await visit.csrfToken(), await visit.take('n')]).toEqual([null, null, undefined])
      expect([await visit.update({ n: 1 }), await visit.regenerate(), await visit.regenerate({ grace: '1m' })]).toEqual(
        Array(3).fill(null),
      )
      await CODE('ERR_SESSION_UNAUTHENTICATED')(visit.requireUser())
      await CODE('ERR_SESSION_CONFLICT')(visit.create())
      await CODE('ERR_SESSION_CSRF')(visit.checkCsrf('x'))
    })
    expect(store.counts()).toEqual({ read: 1 })
    expect(await browser.user()).toBe('ada')
    clock.advance(31 * MINUTE)
    expect(await (await browser.refresh()).json()).toEqual({ continue: false })
  })

  it('loads its page anew where that brings a proof: after a link on another site, or with a value of no use', async () => {
    const browser = await service().bound()
    const [own, wrong] = [browser.jar.get(BOUND_COOKIE)!, 'w'.repeat(43)]
    const cases: [values: string[], site: string, mode: string, refresh: string | null][] = [
      [[], 'cross-site', 'navigate', '0'],
      [[], 'same-site', 'navigate', '0'],
      [[own], 'cross-site', 'navigate', null],
      [[], 'cross-site', 'cors', null],
      [[], 'same-origin', 'navigate', null],
      [[wrong], 'same-origin', 'navigate', '0'],
      [[wrong], 'same-origin', 'cors', null],
    ]
    for (const [values, site, mode, refresh] of cases)
      expect((await ask(browser, values, { 'sec-fetch-site': site, 'sec-fetch-mode': mode })).refresh).toBe(refresh)
  })

  it('goes on by the first value until the browser has come with one of its device', async () => {
    const made = service()
    const browser = made.client()
    await browser.logIn()
    const first = browser.jar.get(BOUND_COOKIE)!
    expect((await ask(browser, [])).state).toBe('unbound')
    await browser.copy().register(browser.challenge!)
    // The answer was lost: the browser has what came with the login, and the value of another session takes its place.
    made.clock.advance(15 * MINUTE)
    expect(await ask(browser, [first])).toEqual({ ...FINE, state: 'unbound' })
    expect(await ask(browser, ['of.another.session'])).toEqual({
      ...FINE,
      state: 'unbound',
      cookies: [`${BOUND_COOKIE}=${first}`],
    })
    expect((await ask(browser, [])).state).toBe('unproved')
    const next = await made.client().bind()
    expect((await ask(next, [])).state).toBe('unproved')
  })
})

describe('an offer', () => {
  const offers = (response: Response) => response.headers.has(OFFER)
  it('belongs to the response of a login, and to no other: a thief with the ID gets none, nor by a new ID', async () => {
    const { client, clock } = service({ require: true })
    const owner = client()
    expect(offers(await owner.logIn())).toBe(true)
    const old = owner.copy()
    const first = owner.jar.get(BOUND_COOKIE)
    for (const options of [undefined, { grace: '1m' }] as const) {
      const thief = owner.copy()
      thief.jar.set('session_id', `${thief.jar.get('session_id')}; session_id=${'A'.repeat(43)}`)
      const told = await thief.page(async visit => void (await visit.regenerate(options)))
      owner.jar.set('session_id', thief.jar.get('session_id')!)
      expect([offers(told), offers(await owner.page(visit => visit.get()))]).toEqual([false, false])
      if (options) expect(offers(await old.page(visit => visit.get()))).toBe(false)
      else old.jar = new Map(owner.jar)
    }
    expect(owner.jar.get(BOUND_COOKIE)).toBe(first)
    expect((await owner.register()).status).toBe(200)
    expect(await owner.user()).toBe('ada')
    expect(offers(await client().page(visit => visit.update({ cart: 1 })))).toBe(false)
    clock.advance(6 * MINUTE)
    expect(await client().state()).toBe('none')
  })

  it('is made anew by each login, in the place of the value before; a logout takes that away', async () => {
    const browser = await service().bound()
    const before = browser.jar.get(BOUND_COOKIE)
    const told = await browser.page(async visit => {
      await visit.logIn({ user: ADA })
      expect(visit.headers.has(OFFER)).toBe(true)
    })
    expect([offers(told), browser.jar.get(BOUND_COOKIE) === before]).toEqual([true, false])
    expect(await (await browser.refresh()).json()).toEqual({ continue: false })
    await browser.register(/challenge="([^"]+)"/.exec(told.headers.get(OFFER)!)![1])
    expect(await browser.state()).toBe('bound')
    await browser.logOut()
    expect([...browser.jar.keys()]).toEqual([])
  })

  it('is of a session that a remember token begins, in one of the responses that bring it', async () => {
    const { client, clock } = service({}, { rememberFor: '30d' })
    const browser = await client().bind({ remember: true })
    const thief = browser.copy()
    clock.advance(60 * MINUTE)
    const tabs = [browser, browser.copy(browser.device), browser.copy(browser.device)]
    const told = await Promise.all(tabs.map(tab => tab.page(visit => visit.get())))
    expect(told.filter(offers)).toHaveLength(1)
    const winner = tabs[told.findIndex(offers)]!
    expect((await winner.register()).status).toBe(200)
    expect(await winner.state()).toBe('bound')
    // His copy of the token begins nothing that may be bound, and is told as a theft when it is too late for a lost answer.
    const copied = await thief.page(visit => visit.get())
    expect(offers(copied)).toBe(false)
    expect(await thief.user()).toBeNull()
  })

  it('is refused in an action of Next, which sends cookies alone: by a route handler it is made', async () => {
    const { edge, sessions, client } = service()
    const jar: string[] = []
    const functions = {
      headers: async () => new Headers({ host: 'localhost:3000' }),
      cookies: async () => ({ set: (name: string) => jar.push(name) }),
    }
    const next = nextVisits(edge, functions)
    const logIn = (visit: Visit) => visit.logIn({ user: ADA })
    await expect(next.withVisit(logIn)).rejects.toThrow(/^deviceBound: a login offers .* log in by a route handler/)
    expect([jar, await sessions.list(42n)]).toEqual([[], []])
    const route = next.route(async visit => Response.json((await logIn(visit)).user.name))
    expect(offers(await route(client().request('/', 'POST'), {}))).toBe(true)
    await next.withVisit(visit => visit.update({ n: 1 }))
    const visit = edge.of(client().request('/', 'POST'))
    await visit.logIn({ user: ADA })
    expect(visit.finish().headers.has(OFFER)).toBe(true)
  })
})

describe('where a binding is required', () => {
  it('a session that is not bound is none from six minutes after its login, and no remember token begins one', async () => {
    const { client, clock, sessions, events } = service(
      { require: session => session.user?.name === 'ada' },
      { rememberFor: '30d' },
    )
    const [ada, max] = [client(), client()]
    await ada.logIn(ADA, { remember: true })
    await max.logIn({ id: 7n, name: 'max' })
    clock.advance(6 * MINUTE - 1)
    expect([await ada.user(), await max.user()]).toEqual(['ada', 'max'])
    clock.advance(1)
    expect([await ada.state(), await ada.user(), await max.user()]).toEqual(['required', null, 'max'])
    expect(events.at(-1)).toMatchObject({ type: 'request-refused', reason: 'device' })
    const token = ada.jar.get('remember_token')!
    ada.jar.delete('session_id')
    expect([await ada.user(), await sessions.redeemRememberToken(token)]).toEqual([null, null])
    const never = client()
    never.jar.set('session_id', (await sessions.create({ user: ADA })).secret)
    expect(await never.state()).toBe('unbound')
    clock.advance(6 * MINUTE)
    expect(await never.state()).toBe('required')
  })

  it('each wrapper of the same visits goes by its own options', async () => {
    const { sessions, clock } = service()
    const visits = fetchVisits(sessions)
    const [all, admin] = [deviceBound(visits), deviceBound(visits, { require: true })]
    const browser = new DeviceClient(all)
    await browser.logIn()
    clock.advance(6 * MINUTE)
    const request = browser.request('/')
    expect([(await all.of(request).get())?.user?.name, await admin.of(request).get()]).toEqual(['ada', null])
    expect(all.of(request)).toBe(all.of(request))
  })
})

describe('the binding in the data of a session', () => {
  const kept = async ({ sessions }: Made, browser: DeviceClient) =>
    (await sessions.get(browser.jar.get('session_id') as never, { touch: false }))!

  it('is out of reach of an application that writes what a client sent, or empties what it finds', async () => {
    const made = service({}, { initial: () => ({ cart: { hats: 1 } }) })
    const browser = await made.bound()
    const { '~device': ours } = (await kept(made, browser)).data as Record<string, unknown>
    const sent = { '~device': 'mine', n: 1 }
    const found: string[] = []
    await browser.page(async visit => {
      await visit.update(sent)
      await visit.update((data: object) => void Object.assign(data, sent))
      await visit.update((data: Record<string, unknown>) => {
        found.push(...Object.keys(data))
        for (const key of Object.keys(data)) delete data[key]
      })
      expect(await visit.take('~device')).toBeUndefined()
      await expect(visit.update(null as never)).rejects.toThrow(TypeError)
    })
    expect([found.sort(), (await kept(made, browser)).data]).toMatchObject([['cart', 'n'], { '~device': ours }])
    await browser.logIn(ADA, { data: (before: object) => ({ ...before, ...sent }) })
    expect((await kept(made, browser)).data).toMatchObject({ n: 1, '~device': expect.stringMatching(/^[\w-]{142}$/) })
    await expect(browser.logIn(ADA, { data: 'text' })).rejects.toMatchObject({ code: 'ERR_SESSION_DATA' })
  })

  it('binds no later login that carries the data over, and shows itself in each session', async () => {
    const made = service()
    const browser = await made.bound()
    const session = await kept(made, browser)
    expect([deviceOf(session), deviceOf({ ...session })]).toEqual(Array(2).fill({ boundAt: made.clock() }))
    made.clock.advance(1)
    expect(deviceOf(await made.sessions.logIn(session, { user: ADA, data: before => before }))).toBeNull()
    for (const wrong of [null, undefined, {}, 'session', { user: ADA }])
      expect(() => deviceOf(wrong as never)).toThrow(/^deviceOf: expected a session, got /)
    for (const wrong of [null, undefined, {}, fetchVisits(made.sessions).of(browser.request('/'))])
      await expect(deviceState(wrong as never)).rejects.toThrow(/^deviceState: expected a visit of deviceBound/)
  })

  it('needs a schema that keeps keys which it does not name', async () => {
    const n = zod.number().default(0)
    expect(await (await service({}, { schema: zod.looseObject({ n }) }).bound()).user()).toBe('ada')
    const { client } = service({}, { schema: zod.object({ n }) })
    await expect(client().logIn()).rejects.toThrow(/^deviceBound: the manager's `schema` drops the key '~device'/)
    await expect(service({}, { schema: zod.strictObject({ n }) }).bound()).rejects.toThrow(/~device/)
  })

  it('is of its tenant', async () => {
    const sessions = new SessionManager({ store: new MemoryStore() })
    const acme = await new DeviceClient(boundEdge(sessions.namespace('acme'))).bind()
    expect([await acme.user(), await acme.copy(acme.device, boundEdge(sessions)).user()]).toEqual(['ada', null])
  })
})
