// What is promised of sessions that are bound to a device, walked through by a browser with its keys in the test, and by
// those who have its cookies: run for every store.
import type { SessionManager, SessionOptions, Store } from 'coatcheck'
import { type DeviceBoundOptions, deviceBound, deviceOf, deviceState } from 'coatcheck/device-bound'
import { fetchVisits } from 'coatcheck/fetch'
import { describe, expect, it } from 'vitest'
import { faults } from './barrier-store.ts'
import { DeviceBrowser, type Options } from './device-browser.ts'
import { newDevice, refreshProof, registrationProof } from './device-key.ts'
import { type Data, guaranteeKit, type SetUp, times } from './guarantee-kit.ts'
import { MINUTE, SECOND } from './test-clock.ts'

const LIFETIME = 5 * MINUTE
const REGISTER = '/device-session/register'
const REFRESH = '/device-session/refresh'

interface Service {
  readonly at: SetUp
  browser(options?: Options): DeviceBrowser
  /** Who a browser is to the service, and why. */
  who(browser: DeviceBrowser): Promise<string>
  send(request: Request): Promise<Response>
  count(type: string): number
}

/** A service over one store: another node with `manager`. */
function serviceOf(
  at: SetUp,
  options: DeviceBoundOptions = {},
  manager?: Partial<SessionOptions<Data, 'bigint', Data>>,
): Service {
  const sessions: SessionManager<Data> = manager === undefined ? at.sessions : at.manager(manager)
  const visits = deviceBound(fetchVisits(sessions), options)
  async function send(request: Request): Promise<Response> {
    const answer = await visits.handled(request)
    if (answer !== null) return answer
    return visits.handle(request, async visit => {
      const { pathname } = new URL(request.url)
      if (pathname === '/login') await visit.logIn({ user: at.user, remember: request.headers.has('x-remember') })
      if (pathname === '/logout') await visit.logOut()
      if (pathname === '/rotate') await visit.regenerate({ grace: '1m' })
      if (pathname === '/regenerate') await visit.regenerate()
      const session = await visit.get()
      return new Response(`${session?.user?.name ?? 'no one'} ${await deviceState(visit)}`)
    })
  }
  return {
    at,
    send,
    browser: more => new DeviceBrowser(send, at.clock, more),
    who: async browser => (await browser.request('/')).text(),
    count: type => at.events.filter(event => event.type === type).length,
  }
}

export function testDevices(open: () => Store | Promise<Store>): void {
  const kit = guaranteeKit(open)
  const start = async (options?: DeviceBoundOptions, manager?: Parameters<typeof kit.setUp>[0]) =>
    serviceOf(await kit.setUp(manager), options)

  /** A browser that is logged in and bound, with no request under way from before. */
  async function bound(service: Service, options: Options = {}): Promise<DeviceBrowser> {
    const browser = service.browser(options)
    await browser.request('/login', { method: 'POST' })
    service.at.clock.advance(11 * SECOND)
    expect(await service.who(browser)).toBe('ada bound')
    return browser
  }
  /** A POST to one of the two paths, with these cookies. */
  const post = (service: Service, path: string, cookies: string, headers: Record<string, string>) =>
    service.send(
      new Request(`https://app.example${path}`, { method: 'POST', headers: { Cookie: cookies, ...headers } }),
    )

  describe('a browser that binds its session', () => {
    it.each([
      ['as Chromium speaks', {}],
      ['as the specification has it, in quotation marks', { isQuoting: true }],
    ])('%s: registers, refreshes, and is told to forget it at the logout', async (_, options: Options) => {
      const service = await start()
      const browser = await bound(service, options)
      expect(service.count('device-bound')).toBe(1)
      const provedAt = async () => {
        const [listed] = await service.at.sessions.list(service.at.user.id)
        return deviceOf(listed!)!.provedAt
      }
      const first = await provedAt()
      for (let round = 0; round < 3; round += 1) {
        service.at.clock.advance(LIFETIME)
        expect(await service.who(browser)).toBe('ada bound')
      }
      // One step each: the challenge came with the reply before.
      expect(browser.posts.map(({ path, status }) => `${path} ${status}`)).toEqual([
        `${REGISTER} 200`,
        ...times(3).map(() => `${REFRESH} 200`),
      ])
      expect(await provedAt()).toBe(first + 3 * LIFETIME + 11 * SECOND)
      const cookies = browser.cookies
      await browser.request('/logout', { method: 'POST' })
      expect(await service.who(browser)).toBe('no one none')
      expect(browser.registered.size).toBe(0)
      expect(await (await post(service, REFRESH, cookies, { 'Sec-Secure-Session-Id': 'x' })).json()).toEqual({
        continue: false,
      })
    })

    it('recovers when it has lost its challenge, and when the challenge has ended', async () => {
      const service = await start()
      const browser = await bound(service)
      const [session] = browser.registered.values()
      session!.challenge = null
      service.at.clock.advance(LIFETIME)
      expect(await service.who(browser)).toBe('ada bound')
      expect(browser.posts.slice(1).map(({ status }) => status)).toEqual([403, 200])
      service.at.clock.advance(LIFETIME + 6 * MINUTE)
      expect(await service.who(browser)).toBe('ada bound')
      expect(browser.posts.slice(3).map(({ status }) => status)).toEqual([403, 200])
    })

    it('is not logged out by an outage: it asks again', async () => {
      const service = await start()
      const browser = await bound(service)
      service.at.clock.advance(LIFETIME)
      service.at.store.every('update', faults.rejects)
      expect(await service.who(browser)).toBe('no one unproved')
      expect(browser.posts.at(-1)!.status).toBe(503)
      service.at.store.every('update', null)
      expect(await service.who(browser)).toBe('ada bound')
    })

    it('goes on by the session cookie alone if it knows nothing of it', async () => {
      const service = await start()
      const browser = service.browser({ isAble: false })
      await browser.request('/login', { method: 'POST' })
      service.at.clock.advance(20 * MINUTE)
      expect(await service.who(browser)).toBe('ada unbound')
    })

    it('costs one read for a request, one read and one write for a refresh', async () => {
      const service = await start()
      const browser = await bound(service)
      const { store, clock } = service.at
      store.reset()
      await service.who(browser)
      expect(store.calls.map(({ verb }) => verb)).toEqual(['read'])
      clock.advance(LIFETIME)
      store.reset()
      await browser.refresh([...browser.registered.keys()][0]!)
      expect(store.calls.map(({ verb }) => verb)).toEqual(['read', 'update'])
    })

    it('keeps its binding with a new ID', async () => {
      const service = await start()
      const browser = await bound(service)
      for (const path of ['/rotate', '/regenerate']) {
        expect(await (await browser.request(path, { method: 'POST' })).text()).toBe('ada bound')
        expect(await service.who(browser)).toBe('ada bound')
        service.at.clock.advance(LIFETIME)
        expect(await service.who(browser)).toBe('ada bound')
      }
      expect(service.count('device-bound')).toBe(1)
    })

    it('binds anew at each login, and forgets the session before', async () => {
      const service = await start()
      const browser = await bound(service)
      const [before] = browser.registered.keys()
      await browser.request('/login', { method: 'POST' })
      expect(service.count('device-bound')).toBe(2)
      service.at.clock.advance(LIFETIME)
      expect(await service.who(browser)).toBe('ada bound')
      expect([...browser.registered.keys()]).not.toContain(before)
      expect(browser.registered.size).toBe(1)
    })

    it('refreshes fifty times at once: one state, and no request is locked out, also with the value before', async () => {
      const service = await start()
      const browser = await bound(service)
      const nodes = [service, serviceOf(service.at, {}, {}), serviceOf(service.at, {}, {})]
      const earlier = browser.stolenBy()
      service.at.clock.advance(LIFETIME / 2 + SECOND)
      const proof = browser.proof()
      const [id] = browser.registered.keys()
      const answers = await Promise.all(
        times(50).map(at =>
          post(nodes[at % 3]!, REFRESH, browser.cookies, {
            'Secure-Session-Response': proof,
            'Sec-Secure-Session-Id': id!,
          }),
        ),
      )
      const statuses = new Set(answers.map(({ status }) => status))
      expect(
        [...statuses].every(status => status === 200 || status === 403),
        [...statuses].join(),
      ).toBe(true)
      // Each value that was handed out is good, and so is the one before, until its own end.
      const values = answers.flatMap(({ headers }) => headers.getSetCookie()).map(line => line.split(';')[0]!)
      expect(values.length).toBeGreaterThanOrEqual(1)
      const [sessionCookie] = browser.cookies.split('; ')
      for (const value of values) {
        const request = new Request('https://app.example/', { headers: { Cookie: `${sessionCookie}; ${value}` } })
        expect(await (await service.send(request)).text()).toBe('ada bound')
      }
      expect(await service.who(earlier)).toBe('ada bound')
      service.at.clock.advance(LIFETIME)
      expect(await service.who(browser)).toBe('ada bound')
      expect(service.count('device-theft')).toBe(0)
    })
  })

  describe('who has copied the cookies of a bound session', () => {
    it('is out when the bound cookie has ended, and the browser goes on', async () => {
      const service = await start()
      const browser = await bound(service)
      const thief = browser.stolenBy()
      expect(await service.who(thief)).toBe('ada bound')
      service.at.clock.advance(LIFETIME)
      // Whatever the jar of a thief does with cookies that have ended.
      const kept = [...browser.jar].map(([name, { value }]) => `${name}=${value}`).join('; ')
      for (const Cookie of [kept, thief.cookies]) {
        const response = await service.send(new Request('https://app.example/', { headers: { Cookie } }))
        expect(await response.text()).toBe('no one unproved')
      }
      expect(await service.who(browser)).toBe('ada bound')
      expect(await service.who(thief)).toBe('no one unproved')
      expect(service.count('device-theft')).toBe(0)
    })

    it('cannot refresh with a key of its own, nor with a key in the proof: that ends the session', async () => {
      for (const header of ['signature', 'jwk'] as const) {
        const service = await start()
        const browser = await bound(service)
        const [id] = browser.registered.keys()
        const key = newDevice()
        const { challenge } = browser.registered.get(id!)!
        const proof = header === 'jwk' ? registrationProof(key, challenge!) : refreshProof(key, challenge!)
        const answer = await post(service, REFRESH, browser.cookies, {
          'Secure-Session-Response': proof,
          'Sec-Secure-Session-Id': id!,
        })
        expect(answer.status).toBe(400)
        expect(answer.headers.getSetCookie()).toEqual([])
        if (header === 'signature') {
          expect(service.count('device-theft')).toBe(1)
          expect(await service.who(browser)).toBe('no one none')
        } else expect(await service.who(browser)).toBe('ada bound')
      }
    })

    it('cannot register once the session is bound', async () => {
      const service = await start()
      const browser = await bound(service)
      const proof = registrationProof(newDevice(), browser.offers[0]!.challenge)
      const answer = await post(service, REGISTER, browser.cookies, { 'Secure-Session-Response': proof })
      expect(answer.status).toBe(403)
      service.at.clock.advance(LIFETIME)
      expect(await service.who(browser)).toBe('ada bound')
    })

    it('ends the session with a wrong value', async () => {
      const service = await start()
      const browser = await bound(service)
      const [sessionCookie] = browser.cookies.split('; ')
      const Cookie = `${sessionCookie}; __Host-session_bound=${'A'.repeat(43)}`
      const response = await service.send(new Request('https://app.example/', { headers: { Cookie } }))
      expect(await response.text()).toBe('no one stolen')
      expect(service.count('device-theft')).toBe(1)
      expect(await service.who(browser)).toBe('no one none')
    })

    it('gets nothing by a proof that was sent before', async () => {
      const service = await start()
      const browser = await bound(service)
      service.at.clock.advance(LIFETIME)
      await service.who(browser)
      const { proof } = browser.posts.at(-1)!
      const [id] = browser.registered.keys()
      const replay = () =>
        post(service, REFRESH, browser.cookies.split('; ')[0]!, {
          'Secure-Session-Response': proof!,
          'Sec-Secure-Session-Id': id!,
        })
      for (const wait of [0, 11 * SECOND, LIFETIME]) {
        service.at.clock.advance(wait)
        const answer = await replay()
        expect(answer.headers.getSetCookie()).toEqual([])
      }
      expect((await replay()).status).toBe(403)
      expect(await service.who(browser)).toBe('ada bound')
    })

    it('gets nothing by the proof, the challenge or the identifier of another session', async () => {
      const service = await start()
      const [one, other] = [await bound(service), await bound(service)]
      const [own] = one.registered.values()
      const [foreign] = other.registered.values()
      service.at.clock.advance(LIFETIME)
      const cookies = one.cookies
      const ask = (proof: string, id: string) =>
        post(service, REFRESH, cookies, { 'Secure-Session-Response': proof, 'Sec-Secure-Session-Id': id })
      // The other session's identifier, with its own proof: the cookie decides, and this browser has no such session.
      expect(await (await ask(other.proof(), foreign!.id)).json()).toEqual({ continue: false })
      // The other session's challenge, signed by the right key: to be signed again.
      const wrong = await ask(refreshProof(own!.device, foreign!.challenge!), own!.id)
      expect(wrong.status).toBe(403)
      expect(wrong.headers.get('Secure-Session-Challenge')).toContain(`id="${own!.id}"`)
      // The challenge of the registration is none of a refresh.
      expect((await ask(refreshProof(own!.device, one.offers[0]!.challenge), own!.id)).status).toBe(403)
      for (const browser of [one, other]) expect(await service.who(browser)).toBe('ada bound')
    })

    it('does not burn the offer of a login by junk', async () => {
      const service = await start()
      const browser = service.browser({ isEager: false })
      await browser.request('/login', { method: 'POST' })
      const [{ challenge } = { challenge: '' }] = browser.offers
      const thief = newDevice()
      const junk = [
        'junk',
        '',
        registrationProof(thief, 'another challenge'),
        registrationProof(thief, challenge, { alg: 'none' }),
        registrationProof(thief, challenge, { typ: 'JWT' }),
        registrationProof(thief, challenge, { jwk: newDevice().jwk }),
        refreshProof(thief, challenge),
      ]
      for (const proof of junk) {
        const answer = await post(service, REGISTER, browser.cookies, { 'Secure-Session-Response': proof })
        expect(answer.status).toBe(400)
        await post(service, REFRESH, browser.cookies, {
          'Secure-Session-Response': proof,
          'Sec-Secure-Session-Id': 'x',
        })
      }
      expect(await browser.register()).toBe(200)
      service.at.clock.advance(11 * SECOND)
      expect(await service.who(browser)).toBe('ada bound')
      // It was taken once.
      expect(
        await service
          .browser()
          .register(browser.offers[0])
          .catch(() => 401),
      ).toBe(401)
      expect(await browser.stolenBy(undefined, { isEager: false }).register(browser.offers[0])).toBe(403)
    })

    it('cannot use an offer after five minutes, nor that of another session', async () => {
      const service = await start()
      const [late, one, other] = times(3).map(() => service.browser({ isEager: false }))
      for (const browser of [late!, one!, other!]) await browser.request('/login', { method: 'POST' })
      expect(await one!.register(other!.offers[0])).toBe(400)
      expect(await one!.register()).toBe(200)
      service.at.clock.advance(5 * MINUTE)
      expect(await late!.register()).toBe(403)
    })
  })

  describe('a registration under way', () => {
    const ends: Record<string, (service: Service, browser: DeviceBrowser) => Promise<unknown>> = {
      'a logout': (_, browser) => browser.request('/logout', { method: 'POST' }),
      'the end of all sessions of the user': ({ at }) => at.manager().invalidateUser(at.user.id),
      'another login': (_, browser) => browser.request('/login', { method: 'POST' }),
    }
    it.each(Object.keys(ends))('loses against %s, before and after each of its store calls', async name => {
      await kit.atEveryPoint(
        {},
        async at => {
          const service = serviceOf(at)
          const browser = service.browser({ isEager: false })
          await browser.request('/login', { method: 'POST' })
          return { service, browser, before: browser.stolenBy() }
        },
        async (_, { browser }) => browser.register(),
        (at, { browser }) => {
          // On another node: on one, writers of a session wait for each other.
          const node = serviceOf(at, {}, {})
          browser.send = node.send
          return ends[name]!(node, browser)
        },
        async (at, { service, browser, before }, _outcome, where) => {
          // The session of before is dead, whatever the registration was answered, and so is it with the bound value.
          expect(await service.who(before), where).toBe('no one none')
          const [, value] = [...browser.jar].find(([cookie]) => cookie === '__Host-session_bound') ?? []
          if (value !== undefined) before.jar.set('__Host-session_bound', value)
          expect(await service.who(before), where).toBe('no one none')
          // The new session is bound by its own offer alone.
          const live = await at.sessions.list(at.user.id)
          expect(live.map(deviceOf), where).toEqual(name === 'another login' ? [null] : [])
          if (name === 'another login') {
            expect(await browser.register(), where).toBe(200)
            at.clock.advance(11 * SECOND)
            expect(await service.who(browser), where).toBe('ada bound')
          }
        },
      )
    })

    it('loses as a refresh against the end of all sessions of the user', async () => {
      await kit.atEveryPoint(
        {},
        async at => {
          const service = serviceOf(at)
          const browser = await bound(service)
          at.clock.advance(LIFETIME)
          return { service, browser }
        },
        async (_, { browser }) => browser.refresh([...browser.registered.keys()][0]!),
        at => at.manager().invalidateUser(at.user.id),
        async (at, { service, browser }, _outcome, where) => {
          expect(await service.who(browser), where).toBe('no one none')
          expect(await at.sessions.list(at.user.id), where).toEqual([])
        },
      )
    })
  })

  describe('a session that has to be bound', () => {
    it('is refused when five minutes have gone by without, and is none that a copied remember token begins', async () => {
      const service = await start({ require: true }, { rememberFor: '30d' })
      const unable = service.browser({ isAble: false })
      await unable.request('/login', { method: 'POST', headers: { 'x-remember': '1' } })
      expect(await service.who(unable)).toBe('ada unbound')
      service.at.clock.advance(5 * MINUTE)
      expect(await service.who(unable)).toBe('no one required')
      const able = await bound(service)
      service.at.clock.advance(5 * MINUTE)
      expect(await service.who(able)).toBe('ada bound')
      // The session cookie is thrown away: the remember token alone. Where nothing has to be bound it begins a session.
      const lenient = await start({}, { rememberFor: '30d' })
      const free = lenient.browser({ isAble: false })
      await free.request('/login', { method: 'POST', headers: { 'x-remember': '1' } })
      for (const browser of [unable, free])
        for (const name of browser.jar.keys()) if (/session_id$/.test(name)) browser.jar.delete(name)
      expect(await lenient.who(free)).toMatch(/^ada/)
      expect(await service.who(unable)).toMatch(/^no one/)
      expect(service.count('device-bound')).toBe(1)
    })
  })
}
