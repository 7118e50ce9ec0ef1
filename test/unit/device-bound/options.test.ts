// What follows from the options and from the session cookie of an edge.
import { SessionManager } from 'coatcheck'
import { type DeviceBoundOptions, deviceBound } from 'coatcheck/device-bound'
import { fetchVisits } from 'coatcheck/fetch'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { setUp } from '../../../src/device-bound/options.ts'
import type { CookieOptions } from '../../../src/visits/cookie.ts'

const sessions = new SessionManager({ store: new MemoryStore() })
const of = (options: DeviceBoundOptions = {}, cookie: CookieOptions = {}) => setUp(options, { sessions, cookie })

describe('without options', () => {
  it('values last five minutes, and browsers register and refresh below /device-session', () => {
    expect(of()).toMatchObject({
      lifetime: 300_000,
      registerPath: '/device-session/register',
      refreshPath: '/device-session/refresh',
      exclude: [],
      attributes: 'Path=/; HttpOnly; Secure; SameSite=Lax',
    })
    expect(of().cookie.name).toBe('__Host-session_bound')
  })

  it('no session has to be bound', async () => {
    expect(of().requires(await sessions.create({ user: { id: 1, name: 'ada' } }))).toBe(false)
  })
})

describe('the bound cookie', () => {
  it.each([
    ['2s', 1],
    ['10s', 8],
    ['1m', 48],
    ['5m', 270],
    ['1h', 3570],
  ] as const)(
    'of values for %s stays %i seconds in the browser: it is renewed a little earlier',
    (lifetime, maxAge) => {
      expect(of({ lifetime }).maxAge).toBe(maxAge)
    },
  )

  it('has the attributes of the session cookie, and the prefix __Host- where a browser takes it', () => {
    const name = (cookie: CookieOptions, options: DeviceBoundOptions = {}) => of(options, cookie).cookie.name
    expect(name({}, { cookie: 'bound' })).toBe('__Host-bound')
    expect(name({ hostPrefix: true })).toBe('__Host-session_bound')
    expect(name({ path: '/' })).toBe('__Host-session_bound')
    expect(name({ secure: false })).toBe('session_bound')
    expect(name({ path: '/app' })).toBe('session_bound')
    expect(of({}, { path: '/app', sameSite: 'strict' }).attributes).toBe('Path=/app; HttpOnly; Secure; SameSite=Strict')
    expect(of({}, { name: 'sid', lifetime: 'browser' }).attributes).toBe('Path=/; HttpOnly; Secure; SameSite=Lax')
  })

  it('has a name of its own', () => {
    expect(() => of({ cookie: 'sid' }, { name: 'sid', path: '/app' })).toThrow(
      new TypeError('deviceBound: cookie: "sid" is the session cookie\'s name'),
    )
    expect(() => of({ cookie: 'session_id' }, { hostPrefix: true })).toThrow(
      /"__Host-session_id" is the session cookie/,
    )
    expect(of({ cookie: 'session_id' }, {}).cookie.name).toBe('__Host-session_id')
  })
})

describe('the two paths', () => {
  it('are within the path of the session cookie', () => {
    expect(of({}, { path: '/app' }).registerPath).toBe('/app/device-session/register')
    expect(of({}, { path: '/app/' }).refreshPath).toBe('/app/device-session/refresh')
    expect(of({ path: '/app/auth' }, { path: '/app/' }).refreshPath).toBe('/app/auth/refresh')
    expect(of({ path: '/auth' }).registration('x')).toBe('(ES256);path="/auth/register";challenge="x"')
    for (const path of ['/device', '/application', '/app'])
      expect(() => of({ path }, { path: '/app' })).toThrow(/^deviceBound: path: expected one within "\/app"/)
  })
})

describe('sessions that have to be bound', () => {
  it('are all, or those that a function says', async () => {
    const [ada, max] = [await sessions.create({ user: { id: 1, name: 'ada' } }), await sessions.create()]
    const asked = (require: DeviceBoundOptions['require'] & {}) =>
      [ada, max].map(session => of({ require }).requires(session))
    expect([asked(true), asked(false)]).toEqual([
      [true, true],
      [false, false],
    ])
    expect(asked(session => session.user?.name === 'ada')).toEqual([true, false])
    // A promise, for one: what is not said at once is not said.
    expect(asked((() => Promise.resolve(true)) as never)).toEqual([false, false])
  })
})

describe('an option that cannot be', () => {
  const bind = (options: object) => deviceBound(fetchVisits(sessions), options)
  const wrong: [object, RegExp][] = [
    [{ lifetime: '61m' }, /lifetime: .*got "61m"/],
    [{ lifetime: 5 }, /lifetime: .*got 5/],
    [{ path: '/a/' }, /path: expected a path such as '\/device-session', without a '\/' at its end, got "\/a\/"/],
    [{ path: '/' }, /path: /],
    [{ path: 7 }, /path: .*got 7/],
    [{ path: '/a//b' }, /path: /],
    [{ path: '/a b' }, /path: /],
    [{ path: '/a/..' }, /path: /],
    [{ path: '/a%2fb' }, /path: /],
    [{ cookie: '' }, /cookie: expected a token such as/],
    [{ cookie: 'a b' }, /cookie: /],
    [{ cookie: 7 }, /cookie: .*got 7/],
    [{ exclude: '/assets' }, /exclude: .*paths/],
    [{ exclude: ['assets'] }, /a path such as .*got "assets"/],
    [{ require: null }, /require: expected true, false, or a function of the session, got null/],
    [{ onTheft: 'end-all' }, /onTheft: expected 'end-device' or 'invalidate-user', got "end-all"/],
    [{ secret: 'x' }, /deviceBound: "secret" is not an option/],
  ]
  it.each(wrong)('%j is a TypeError that quotes it', (options, message) => {
    expect(() => bind(options)).toThrow(TypeError)
    expect(() => bind(options)).toThrow(message)
  })

  it('is none of these', () => {
    for (const options of [
      {},
      { lifetime: '2s' },
      { lifetime: '1h' },
      { path: "/a-b_c~d.e/!$&'()*+,=:@" },
      { path: '/a..b/.c' },
      { cookie: '_x' },
      { cookie: 'a__b' },
      { exclude: ['/assets', '/a/b'] },
      { require: () => true },
      { require: true },
      { require: false },
    ] as DeviceBoundOptions[])
      expect(() => bind(options)).not.toThrow()
  })

  it('is read when it is given: a later change of the object changes nothing', async () => {
    const options: DeviceBoundOptions = { path: '/auth' }
    const visits = deviceBound(fetchVisits(sessions), options)
    options.path = '/elsewhere'
    const isHandled = async (path: string) =>
      (await visits.handled(new Request(`https://shop.example${path}`, { method: 'POST' }))) !== null
    for (const path of ['/auth/register', '/auth/refresh']) expect(await isHandled(path)).toBe(true)
    for (const path of ['/auth', '/elsewhere/register', '/auth/register/']) expect(await isHandled(path)).toBe(false)
  })

  it('is a domain of the session cookie', () => {
    expect(() => of({}, { domain: 'shop.example' })).toThrow(
      /^deviceBound: impossible beside cookie\.domain "shop\.example": a browser proves a session to one origin/,
    )
  })
})
