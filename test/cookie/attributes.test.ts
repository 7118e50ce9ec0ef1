// What the session cookie says to a browser, and the options that say it otherwise.
import type { CookieOptions, Session } from 'coatcheck'
import { SessionCookie } from 'coatcheck/custom-server'
import { describe, expect, it } from 'vitest'
import { ada, makeSessions, setCookies, visitOf } from '../support/edge-service.ts'

const ID = 'abc-0123456789_0123456789_0123456789-ABCDEF'
const session = (times: Partial<Session<object, 'bigint'>> = {}) =>
  ({
    secret: ID,
    createdAt: 1_000_000,
    seenAt: 1_000_000,
    expiresAt: 2_800_000,
    absoluteExpiresAt: 44_200_000,
    ...times,
  }) as Session<object, 'bigint'>
/** 253 characters (RFC 1035, section 2.3.4, without the bytes that stand for its ends). */
const LONGEST_DOMAIN = [63, 63, 63, 61].map(length => 'd'.repeat(length)).join('.')

describe('writing the cookie', () => {
  it('has safe attributes without any option', () => {
    expect(new SessionCookie().serialize(session())).toBe(
      `session_id=${ID}; Max-Age=1800; Path=/; HttpOnly; Secure; SameSite=Lax`,
    )
  })

  it('lets the absolute end decide if it comes first', () => {
    expect(new SessionCookie().serialize(session({ expiresAt: 1_000_400 }))).toContain('Max-Age=1;')
    expect(new SessionCookie({ lifetime: 'absolute' }).serialize(session())).toContain('Max-Age=43200;')
    expect(new SessionCookie({ lifetime: 'browser' }).serialize(session())).not.toContain('Max-Age')
  })

  it('lasts for what is left of the absolute time once the session was used, or if a remember token started it', () => {
    expect(new SessionCookie().serialize(session({ seenAt: 1_200_000 }))).toContain('Max-Age=43000;')
    expect(new SessionCookie().serialize(session({ remembered: true }))).toContain('Max-Age=43200;')
  })

  it('never writes a negative age', () => {
    expect(new SessionCookie().serialize(session({ expiresAt: 5 }))).toContain('Max-Age=0;')
  })

  it('takes the __Host- form', () => {
    const cookie = new SessionCookie({ hostPrefix: true })
    expect(cookie.name).toBe('__Host-session_id')
    expect(cookie.serialize(session())).toMatch(/^__Host-session_id=/)
    const header = `session_id=planted; __Host-session_id=${ID}`
    expect(cookie.candidates(header)).toEqual([ID])
    expect(cookie.valuesOfBothNames(header)).toEqual([ID, 'planted'])
    expect(new SessionCookie().valuesOfBothNames(header)).toEqual(['planted', ID])
    expect(new SessionCookie({ hostPrefix: true, name: '__Host-sid' }).name).toBe('__Host-sid')
  })

  it('writes the other attributes as asked', () => {
    const cookie = new SessionCookie({
      name: 'sid',
      sameSite: 'none',
      domain: 'example.com',
      path: '/app',
      partitioned: true,
    })
    expect(cookie.serialize(session())).toBe(
      `sid=${ID}; Max-Age=1800; Domain=example.com; Path=/app; HttpOnly; Secure; Partitioned; SameSite=None`,
    )
  })

  it('takes a name that has a prefix of browsers in the middle, where it binds nothing', () => {
    const cookie = new SessionCookie({ name: 'my__Host-sid', domain: 'example.com', path: '/app', secure: false })
    expect(cookie.serialize(session())).toMatch(
      /^my__Host-sid=.*; Domain=example\.com; Path=\/app; HttpOnly; SameSite=Lax$/,
    )
  })

  it('takes a domain as long as a name may be, and one with a dot in front', () => {
    for (const domain of [LONGEST_DOMAIN, '.example.com', 'a.b-c.d', 'x', '127.0.0.1', 'XN--P1AI.example'])
      expect(new SessionCookie({ domain }).serialize(session())).toContain(`; Domain=${domain}; `)
  })

  it('is removed with the attributes it was written with', () => {
    const options = { domain: 'example.com', path: '/app', sameSite: 'none', partitioned: true } as const
    expect(new SessionCookie(options).clear()).toBe(
      'session_id=; Max-Age=0; Domain=example.com; Path=/app; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly; Secure; Partitioned; SameSite=None',
    )
  })
})

describe('options that browsers would refuse are TypeErrors that quote them', () => {
  const impossible: [CookieOptions, RegExp][] = [
    [
      { hostPrefix: true, domain: 'example.com' },
      /cookie\.domain: "example\.com" is impossible beside the prefix __Host-/,
    ],
    [
      { hostPrefix: true, path: '/app' },
      /cookie\.path: "\/app" is impossible beside the prefix __Host-, which demands '\/'$/,
    ],
    [{ hostPrefix: true, secure: false }, /cookie\.secure: false is impossible beside the prefix __Host-$/],
    [{ name: '__Host-sid', domain: 'example.com' }, /cookie\.domain/],
    [{ name: '__host-sid', domain: 'example.com' }, /cookie\.domain/],
    [{ name: '__Secure-sid', secure: false }, /cookie\.secure: false/],
    [{ name: '__Http-sid', secure: false }, /cookie\.secure: false is impossible beside the prefix __Http-$/],
    [
      { sameSite: 'none', secure: false },
      /cookie\.sameSite: "none" is impossible with secure: false, browsers refuse it$/,
    ],
    [
      { partitioned: true, secure: false },
      /cookie\.partitioned: true is impossible with secure: false, browsers refuse it$/,
    ],
    [{ partitioned: true }, /cookie\.partitioned: true is impossible without sameSite: 'none'/],
    [{ name: '' }, /^cookie\.name: expected a token such as 'session_id', got ""$/],
    [{ name: 7 as unknown as string }, /cookie\.name: .* got 7/],
    [{ name: 'session id' }, /got "session id"/],
    [{ name: 'é' }, /got "é"/],
    [{ path: 'app' }, /^cookie\.path: expected a path that begins with '\/', got "app"$/],
    [{ path: '/;x' }, /cookie\.path/],
    [{ path: '/\r\nX: y' }, /cookie\.path/],
    [{ domain: 'example.com:443' }, /cookie\.domain/],
    [{ domain: 'example.com; Path=/' }, /cookie\.domain/],
    [{ domain: '' }, /^cookie\.domain: expected a host name such as 'example\.com', got ""$/],
    [{ domain: 7 as unknown as string }, /cookie\.domain: .* got 7/],
    [{ domain: `${LONGEST_DOMAIN}d` }, /cookie\.domain/],
    [{ lifetime: 'session' as 'browser' }, /cookie\.lifetime: .* got "session"/],
    [{ sameSite: 'Lax' as 'lax' }, /cookie\.sameSite: .* got "Lax"/],
    [{ secure: 'auto' as unknown as boolean }, /cookie\.secure: .* got "auto"/],
    [7 as CookieOptions, /^cookie: expected an object of options, got 7 \(/],
    [
      { maxAge: 1800 } as CookieOptions,
      /cookie: "maxAge" is not an option; idleTimeout and absoluteTimeout of the SessionManager/,
    ],
    [{ httpOnly: false } as CookieOptions, /cookie: "httpOnly" is not an option; the cookie always is/],
  ]
  it.each(impossible)('%j', (options, message) => {
    expect(() => new SessionCookie(options)).toThrow(TypeError)
    expect(() => new SessionCookie(options)).toThrow(message)
  })
})

describe('options of visits', () => {
  const remembering = () => makeSessions({ rememberFor: '30d' }).sessions
  const namesOf = async (cookie: CookieOptions) => {
    const visit = visitOf(remembering(), null, {}, { cookie })
    await visit.logIn({ ...ada, remember: true })
    return setCookies(visit).map(line => line.split('=')[0])
  }

  it('hold for both cookies, but for the name', async () => {
    const options = { cookie: { sameSite: 'strict', path: '/app', name: 'sid' } } as const
    const visit = visitOf(remembering(), null, {}, options)
    await visit.logIn({ ...ada, remember: true })
    const lines = setCookies(visit)
    expect(lines.map(line => line.split('=')[0])).toEqual(['sid', 'remember_token'])
    for (const line of lines)
      expect(line.replace(/^[^;]+; Max-Age=\d+; |Expires=[^;]+; /g, '')).toBe(
        'Path=/app; HttpOnly; Secure; SameSite=Strict',
      )
  })

  it('may name the cookies as browsers bind them to the host, in any case', async () => {
    expect(await namesOf({ hostPrefix: true })).toEqual(['__Host-session_id', '__Host-remember_token'])
    for (const name of ['__Host-sid', '__host-sid'])
      expect(await namesOf({ name })).toEqual([name, '__Host-remember_token'])
    expect(await namesOf({ name: 'x__Host-sid' })).toEqual(['x__Host-sid', 'remember_token'])
  })

  it('are looked at once as long as they are the same object', () => {
    let looks = 0
    const { sessions } = makeSessions()
    const options = {
      get trustedOrigins() {
        looks += 1
        return ['https://front.example.net']
      },
    }
    visitOf(sessions, null, {}, options)
    const atFirst = looks
    for (let visits = 0; visits < 3; visits += 1) visitOf(sessions, null, {}, options)
    expect([atFirst > 0, looks]).toEqual([true, atFirst])
  })

  it.each<[unknown, RegExp]>([
    [{ rememberCookie: { name: 'session_id' } }, /rememberCookie\.name: "session_id"/],
    [{ rememberCookie: { name: 'a b' } }, /rememberCookie\.name: .* got "a b"/],
    [{ rememberCookie: {} }, /rememberCookie\.name: .* got undefined/],
    [{ rememberCookie: 'keep' }, /rememberCookie: expected an object of options, got "keep"/],
    [
      { rememberCookie: { name: 'keep', sameSite: 'none' } },
      /rememberCookie: "sameSite" is not an option; it is the session cookie's, for both: \{ cookie: \{ sameSite \} \}/,
    ],
    [
      { cookie: { name: 'sid' }, rememberCookie: { name: 'sid' } },
      /rememberCookie\.name: "sid" is the session cookie's/,
    ],
    [null, /null/],
  ])('%j is a TypeError that quotes it', (options, message) => {
    expect(() => visitOf(makeSessions().sessions, null, {}, options as never)).toThrow(message)
  })
})
