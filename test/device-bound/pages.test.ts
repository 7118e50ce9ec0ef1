// What a page sees of a bound session, what its response says about the device, and what an application may do with its data.
import { SessionManager, type Visit } from 'coatcheck'
import { deviceBound, deviceOf, deviceState } from 'coatcheck/device-bound'
import { fetchVisits } from 'coatcheck/fetch'
import { nextVisits } from 'coatcheck/next'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import * as zod from 'zod'
import { faults } from '../support/barrier-store.ts'
import { ADA, BOUND_COOKIE, boundEdge, boundService, DeviceClient } from '../support/device-client.ts'
import { MINUTE } from '../support/test-clock.ts'

/** What a page with these bound cookies comes to: the state, and what the response says. */
async function ask(browser: DeviceClient, values: readonly string[], headers: object = {}, edge = browser.edge) {
  const cookie = [`session_id=${browser.jar.get('session_id')}`, ...values.map(each => `${BOUND_COOKIE}=${each}`)]
  const request = new Request('https://shop.example/', { headers: { cookie: cookie.join('; '), ...headers } })
  const response = await edge.handle(request, async visit => Response.json(await deviceState(visit)))
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
const offers = (response: Response) => response.headers.has('secure-session-registration')
const boundValue = (browser: DeviceClient) => browser.jar.get(BOUND_COOKIE)!
const kept = async ({ edge, jar }: DeviceClient): Promise<any> =>
  edge.sessions.get(jar.get('session_id') as never, { touch: false })

describe('a request of a bound session', () => {
  it('is bound by a value for lifetime and five minutes, unproved without, and never a theft', async () => {
    const made = boundService()
    const browser = await made.bound()
    const value = boundValue(browser)
    const unproved = { ...FINE, state: 'unproved', challenge: `"${browser.name}"` }
    const cleared = { ...unproved, cookies: [`${BOUND_COOKIE}=`] }
    expect(await ask(browser, [value])).toEqual(FINE)
    expect(await ask(browser, [])).toEqual(unproved)
    const [name, time, mac] = value.split('.') as [string, string, string]
    const later = (Number.parseInt(time, 36) + 1).toString(36)
    const forged = ['w'.repeat(43), '', `${name}.${later}.${mac}`, `${name}.${time}`, `.${time}.${mac}`]
    for (const wrong of [boundValue(await made.bound()), ...forged])
      expect(await ask(browser, [wrong])).toEqual(cleared)
    // What the store has makes no value: here another session of that instant has the same.
    const { secret } = await made.sessions.create({ user: ADA, data: (await kept(browser)).data })
    const twin = browser.copy()
    twin.jar.set('session_id', secret)
    expect((await ask(twin, [value])).state).toBe('unproved')
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

  it('may come to a node whose clock is five minutes away, in either direction, and no more', async () => {
    const made = boundService({ lifetime: '2m' })
    const other = (ahead: number) => boundEdge(made.manager({ now: made.clock.skewed(ahead) }), { lifetime: '2m' })
    const browser = await made.bound()
    expect((await ask(browser, [boundValue(browser)], {}, other(-5 * MINUTE - 1))).state).toBe('unproved')
    made.clock.advance(96_000)
    for (const edge of [other(5 * MINUTE), other(-5 * MINUTE)]) {
      expect((await ask(browser, [boundValue(browser)], {}, edge)).state).toBe('bound')
      expect((await ask(browser, [], {}, edge)).state).toBe('unproved')
      const there = browser.copy(browser.device, edge)
      expect((await there.refresh()).status).toBe(200)
      expect((await ask(browser, [boundValue(there)])).state).toBe('bound')
    }
  })

  it('without a value can do nothing with it, by any method, and keeps nothing alive', async () => {
    const { store, clock, bound } = boundService({}, { rememberFor: '30d' })
    const browser = await bound()
    clock.advance(4 * MINUTE)
    store.reset()
    const code = (promise: Promise<unknown>) => promise.catch(error => error.code)
    await browser
      .copy()
      .loseValue()
      .page(async visit => {
        expect([await visit.get(), await visit.csrfToken(), await visit.take('n')]).toEqual([null, null, undefined])
        expect([await visit.update({ n: 1 }), await visit.regenerate({ grace: '1m' })]).toEqual([null, null])
        expect(await code(visit.requireUser())).toBe('ERR_SESSION_UNAUTHENTICATED')
        expect(await code(visit.create())).toBe('ERR_SESSION_CONFLICT')
        expect(await code(visit.checkCsrf('x'))).toBe('ERR_SESSION_CSRF')
      })
    expect(store.counts()).toEqual({ read: 1 })
    expect(await browser.user()).toBe('ada')
    clock.advance(31 * MINUTE)
    expect(await (await browser.refresh()).json()).toEqual({ continue: false })
  })

  it('with a value is asked for a fresh login, its own origin and its form token, and leaves as any other', async () => {
    const { bound, clock } = boundService()
    const [browser, begun] = [await bound(), clock()]
    clock.advance(MINUTE)
    const code = (promise: Promise<unknown>) => promise.catch(error => error.code)
    await browser.page(async visit => {
      expect(await code(visit.requireUser({ freshWithin: '59s' }))).toBe('ERR_SESSION_NOT_FRESH')
      expect(await code(visit.checkCsrf('x'))).toBe('ERR_SESSION_CSRF')
      await visit.checkCsrf(await visit.csrfToken())
      visit.onLeave(() => clock.advance(MINUTE))
      await visit.logOut()
    })
    expect(clock() - begun).toBe(2 * MINUTE)
    const visit = browser.edge.of(browser.request('/', 'POST', { 'sec-fetch-site': 'cross-site' }))
    expect(() => visit.checkOrigin()).toThrow(expect.objectContaining({ code: 'ERR_SESSION_CROSS_ORIGIN' }))
  })

  it('loads its page anew where that brings a proof: after a link on another site, or with a value of no use', async () => {
    const browser = await boundService().bound()
    for (const [values, site, mode, refresh] of [
      [[], 'cross-site', 'navigate', '0'],
      [[], 'same-site', 'navigate', '0'],
      [[boundValue(browser)], 'cross-site', 'navigate', null],
      [[], 'cross-site', 'cors', null],
      [[], 'same-origin', 'navigate', null],
      [['wrong'], 'same-origin', 'navigate', '0'],
      [['wrong'], 'same-origin', 'cors', null],
    ] as const)
      expect((await ask(browser, values, { 'sec-fetch-site': site, 'sec-fetch-mode': mode })).refresh).toBe(refresh)
    // A form that was sent is not sent again.
    browser.jar.set(BOUND_COOKIE, 'wrong')
    const form = browser.request('/', 'POST', { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'navigate' })
    const answer = await browser.edge.handle(form, async visit => Response.json(await visit.get()))
    expect(answer.headers.has('refresh')).toBe(false)
  })

  it('goes on by the first value until the browser has come with one of its device', async () => {
    const { browser, clock, bound } = boundService()
    await browser.logIn()
    const first = boundValue(browser)
    expect((await ask(browser, [])).state).toBe('unbound')
    await browser.copy().register(browser.challenge!)
    // The answer was lost: the browser has what came with the login, and the value of another session takes its place.
    const unbound = { ...FINE, state: 'unbound' }
    for (let look = 0; look < 2; look += 1) {
      expect(await ask(browser, [first])).toEqual(unbound)
      clock.advance(15 * MINUTE)
    }
    expect(await ask(browser, ['of.another'])).toEqual({ ...unbound, cookies: [`${BOUND_COOKIE}=${first}`] })
    expect((await ask(browser, [])).state).toBe('unproved')
    expect((await ask(await bound(), [])).state).toBe('unproved')
  })

  it('goes on by the first value for lifetime and five minutes once the browser has come: requests were under way', async () => {
    const { browser, clock } = boundService()
    await browser.logIn()
    const first = boundValue(browser)
    await browser.register()
    expect([await browser.state(), (await ask(browser, [first])).state]).toEqual(['bound', 'bound'])
    clock.advance(10 * MINUTE)
    expect((await ask(browser, [first])).state).toBe('unproved')
  })
})

describe('an offer', () => {
  it('belongs to the response of a login: a copied ID gets none, nor a new ID of it, nor the old one', async () => {
    const { client, clock, sessions } = boundService({ require: true })
    const owner = client()
    expect(offers(await owner.logIn())).toBe(true)
    // Thrown, too. What has no head that could be changed stays as it is.
    for (const response of [Response.redirect('https://shop.example/', 303), Response.error()]) {
      const handled = owner.edge.handle(client().request('/', 'POST'), async visit => {
        await visit.logIn({ user: ADA })
        throw response
      })
      expect(offers(await handled.catch(thrown => thrown))).toBe(response.status === 303)
    }
    // From before there was device-bound: nothing in the data says that it was offered.
    const early = client()
    early.jar.set('session_id', (await sessions.create({ user: ADA })).secret)
    for (const victim of [owner, early])
      for (const options of [undefined, { grace: '1m' }] as const) {
        const [thief, late] = [victim.copy(), victim.copy()]
        thief.jar.set('session_id', `${thief.jar.get('session_id')}; session_id=${'A'.repeat(43)}`)
        const told = [
          await thief.page(visit => visit.get()),
          await thief.page(async visit => void (await visit.regenerate(options))),
        ]
        victim.jar.set('session_id', thief.jar.get('session_id')!)
        for (const each of [thief, victim, late]) told.push(await each.page(visit => visit.get()))
        expect(told.filter(offers)).toEqual([])
      }
    // The value that came with it is no challenge of it.
    expect((await owner.copy().register(boundValue(owner).split('.').slice(1).join('.'))).status).toBe(400)
    expect((await owner.register()).status).toBe(200)
    expect(await owner.user()).toBe('ada')
    expect(offers(await client().page(visit => visit.update({ cart: 1 })))).toBe(false)
    clock.advance(6 * MINUTE)
    expect([await client().state(), await early.state()]).toEqual(['none', 'required'])
  })

  it('is made anew by each login, in the place of the value before; a logout takes that away', async () => {
    const browser = await boundService().bound()
    const before = boundValue(browser)
    expect(offers(await browser.logIn())).toBe(true)
    expect(boundValue(browser)).not.toBe(before)
    expect(await (await browser.copy(browser.device).refresh()).json()).toEqual({ continue: false })
    await browser.register()
    expect(await browser.state()).toBe('bound')
    await browser.logOut()
    expect([...browser.jar.keys()]).toEqual([])
  })

  it('is of a session that a remember token begins, in one of the responses that bring it', async () => {
    const { client, clock, store } = boundService({}, { rememberFor: '30d' })
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
    expect(offers(await thief.page(visit => visit.get()))).toBe(false)
    expect(await thief.user()).toBeNull()
    // Where it cannot be stored, the session goes on unbound.
    const other = await client().bind({ remember: true })
    clock.advance(60 * MINUTE)
    store.next('update', rotation => rotation())
    store.next('update', faults.rejects)
    expect([offers(await other.page(visit => visit.get())), await other.user()]).toEqual([false, 'ada'])
  })

  it('is refused in an action of Next, which sends cookies alone: by a route handler it is made', async () => {
    const { edge, sessions, client } = boundService()
    const jar: string[] = []
    const next = nextVisits(edge, {
      headers: async () => new Headers({ host: 'localhost:3000' }),
      cookies: async () => ({ set: (name: string) => jar.push(name) }),
    })
    const logIn = (visit: Visit) => visit.logIn({ user: ADA })
    await expect(next.withVisit(logIn)).rejects.toThrow(/^deviceBound: a login offers .* log in by a route handler/)
    expect([jar, await sessions.list(42n)]).toEqual([[], []])
    const route = next.route(async visit => Response.json((await logIn(visit)).user.name))
    expect(offers(await route(client().request('/', 'POST'), {}))).toBe(true)
    await next.withVisit(visit => visit.update({ n: 1 }))
    const visit = edge.of(client().request('/', 'POST'))
    await visit.logIn({ user: ADA })
    for (const { headers } of [visit, visit.finish()]) expect(headers.has('secure-session-registration')).toBe(true)
    const handled = await edge.handle(client().request('/', 'POST'), async visit => {
      await logIn(visit)
      return Response.json(visit.cookies.map(({ name }) => name))
    })
    expect(await handled.json()).toEqual(['session_id', BOUND_COOKIE])
  })
})

describe('where a binding is required', () => {
  it('a session that is not bound is none from six minutes after its login, and no remember token begins one', async () => {
    const require = (session: { user: { name: string } | null }) => session.user?.name === 'ada'
    const { client, clock, sessions, events } = boundService({ require }, { rememberFor: '30d' })
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
  })

  it('each wrapper of the same visits goes by its own options', async () => {
    const { sessions, clock } = boundService()
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
  it('is out of reach of an application that writes what a client sent, or empties what it finds', async () => {
    const browser = await boundService({}, { initial: () => ({ cart: { hats: 1 } }) }).bound()
    const { '~device': ours } = (await kept(browser)).data
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
    expect([found.sort(), (await kept(browser)).data]).toMatchObject([['cart', 'n'], { '~device': ours }])
    for (const data of [sent, (before: object) => ({ ...before, ...sent })]) {
      await browser.logIn(ADA, { data })
      expect((await kept(browser)).data).toMatchObject({ n: 1, '~device': expect.stringMatching(/^[\w-]{142}$/) })
    }
    await expect(browser.logIn(ADA, { data: 'text' })).rejects.toMatchObject({ code: 'ERR_SESSION_DATA' })
  })

  it('binds no later login that carries the data over, and shows itself in each session', async () => {
    const { bound, clock, sessions } = boundService()
    const browser = await bound()
    const session = await kept(browser)
    expect([deviceOf(session), deviceOf({ ...session })]).toEqual(Array(2).fill({ boundAt: clock() }))
    clock.advance(1)
    expect(deviceOf(await sessions.logIn(session, { user: ADA, data: before => before }))).toBeNull()
    for (const wrong of [null, undefined, {}, 'session', { user: ADA }])
      expect(() => deviceOf(wrong as never)).toThrow(/^deviceOf: expected a session, got /)
    for (const wrong of [null, undefined, {}, fetchVisits(sessions).of(browser.request('/'))])
      await expect(deviceState(wrong as never)).rejects.toThrow(/^deviceState: expected a visit of deviceBound/)
  })

  it('needs a schema that keeps keys which it does not name', async () => {
    const n = zod.number().default(0)
    expect(await (await boundService({}, { schema: zod.looseObject({ n }) }).bound()).user()).toBe('ada')
    const { browser } = boundService({}, { schema: zod.object({ n }) })
    await expect(browser.logIn()).rejects.toThrow(/^deviceBound: the manager's `schema` drops the key '~device'/)
    await expect(boundService({}, { schema: zod.strictObject({ n }) }).bound()).rejects.toThrow(/~device/)
  })

  it('is of its tenant', async () => {
    const sessions = new SessionManager({ store: new MemoryStore() })
    const acme = await new DeviceClient(boundEdge(sessions.namespace('acme'))).bind()
    expect([await acme.user(), await acme.copy(acme.device, boundEdge(sessions)).user()]).toEqual(['ada', null])
  })
})
