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

it('without options values last five minutes, at /device-session, and no session has to be bound', async () => {
  expect(of()).toMatchObject({
    lifetime: 300_000,
    registerPath: '/device-session/register',
    refreshPath: '/device-session/refresh',
    exclude: [],
    attributes: 'Path=/; HttpOnly; Secure; SameSite=Lax',
  })
  expect(of().requires(await sessions.create({ user: { id: 1, name: 'ada' } }))).toBe(false)
})

it('the bound cookie ends in the browser a little before its value', () => {
  const ages = (['2s', '10s', '1m', '5m', '1h'] as const).map(lifetime => of({ lifetime }).maxAge)
  expect(ages).toEqual([1, 8, 48, 270, 3570])
})

it('the bound cookie has the attributes of the session cookie, and a name of its own with __Host- where a browser takes it', () => {
  const name = (cookie: CookieOptions, options: DeviceBoundOptions = {}) => of(options, cookie).cookie.name
  expect(name({}, { cookie: 'bound' })).toBe('__Host-bound')
  expect(name({}, { cookie: 'session_id' })).toBe('__Host-session_id')
  for (const cookie of [{}, { hostPrefix: true }, { path: '/' }]) expect(name(cookie)).toBe('__Host-session_bound')
  for (const cookie of [{ secure: false }, { path: '/app' }]) expect(name(cookie)).toBe('session_bound')
  expect(of({}, { path: '/app', sameSite: 'strict' }).attributes).toBe('Path=/app; HttpOnly; Secure; SameSite=Strict')
  expect(of({}, { name: 'sid', lifetime: 'browser' }).attributes).toBe('Path=/; HttpOnly; Secure; SameSite=Lax')
  expect(() => of({ cookie: 'sid' }, { name: 'sid', path: '/app' })).toThrow(
    /^deviceBound: cookie: "sid" is the session/,
  )
  expect(() => of({ cookie: 'session_id' }, { hostPrefix: true })).toThrow(/"__Host-session_id" is the session cookie/)
})

it('the two paths are within the path of the session cookie', () => {
  expect(of({}, { path: '/app' }).registerPath).toBe('/app/device-session/register')
  expect(of({}, { path: '/app/' }).refreshPath).toBe('/app/device-session/refresh')
  expect(of({ path: '/app/auth' }, { path: '/app/' }).refreshPath).toBe('/app/auth/refresh')
  expect(of({ path: '/auth' }).registration('x')).toBe('(ES256);path="/auth/register";challenge="x"')
  for (const path of ['/device', '/application', '/app'])
    expect(() => of({ path }, { path: '/app' })).toThrow(/^deviceBound: path: expected one within "\/app"/)
})

it('sessions that have to be bound are all, or those that a function says', async () => {
  const both = [await sessions.create({ user: { id: 1, name: 'ada' } }), await sessions.create()]
  const asked = (require: DeviceBoundOptions['require'] & {}) => both.map(session => of({ require }).requires(session))
  expect([asked(true), asked(false)].flat()).toEqual([true, true, false, false])
  expect(asked(session => session.user?.name === 'ada')).toEqual([true, false])
  // A promise, for one: what is not said at once is not said.
  expect(asked((() => Promise.resolve(true)) as never)).toEqual([false, false])
})

describe('an option that cannot be', () => {
  const bind = (options: object) => deviceBound(fetchVisits(sessions), options)
  it.each<[object, RegExp]>([
    [{ lifetime: '61m' }, /lifetime: .*got "61m"/],
    [{ lifetime: 5 }, /lifetime: .*got 5/],
    [{ path: '/a/' }, /path: expected a path such as '\/device-session', without a '\/' at its end, got "\/a\/"/],
    ...['/', 7, '/a//b', '/a b', '/a/..', '/a%2fb'].map(
      path => [{ path }, /path: expected a path/] as [object, RegExp],
    ),
    ...['', 'a b', 7].map(cookie => [{ cookie }, /cookie: expected a token such as/] as [object, RegExp]),
    [{ exclude: '/assets' }, /exclude: .*paths/],
    [{ exclude: ['assets'] }, /a path such as .*got "assets"/],
    [{ require: null }, /require: expected true, false, or a function of the session, got null/],
    [{ onTheft: 'end-all' }, /onTheft: expected 'end-device' or 'invalidate-user', got "end-all"/],
    [{ secret: 'x' }, /deviceBound: "secret" is not an option/],
  ])('%j is a TypeError that quotes it', (options, message) => {
    expect(() => bind(options)).toThrow(TypeError)
    expect(() => bind(options)).toThrow(message)
  })

  it('is a domain of the session cookie, and none of what follows', () => {
    expect(() => of({}, { domain: 'shop.example' })).toThrow(
      /^deviceBound: impossible beside cookie\.domain "shop\.example": a browser proves a session to one origin/,
    )
    const everything = { path: "/a-b_c~d.e/!$&'()*+,=:@", cookie: 'a__b', exclude: ['/assets', '/a/b'] }
    bind({ ...everything, lifetime: '1h', require: true })
    bind({ lifetime: '2s', path: '/a..b/.c', cookie: '_x', require: () => true })
  })
})
