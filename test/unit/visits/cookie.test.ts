import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Session } from '../../../src/session/session.ts'
import { type CookieOptions, SessionCookie } from '../../../src/visits/cookie.ts'

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

  it('takes by its name what it has without it', () => {
    const explicit = { name: 'session_id', hostPrefix: false, lifetime: 'idle', sameSite: 'lax', path: '/' } as const
    const line = new SessionCookie({ ...explicit, secure: true, partitioned: false }).serialize(session())
    expect(line).toBe(new SessionCookie().serialize(session()))
  })

  it('takes a name that has a prefix of browsers in the middle, where it binds nothing', () => {
    const cookie = new SessionCookie({ name: 'my__Host-sid', domain: 'example.com', path: '/app', secure: false })
    expect(cookie.serialize(session())).toMatch(
      /^my__Host-sid=.*; Domain=example\.com; Path=\/app; HttpOnly; SameSite=Lax$/,
    )
  })

  it('takes a domain as long as a name may be, and one with a dot in front', () => {
    for (const domain of [
      LONGEST_DOMAIN,
      'example.com',
      '.example.com',
      'a.b-c.d',
      'x',
      '127.0.0.1',
      'XN--P1AI.example',
    ])
      expect(new SessionCookie({ domain }).serialize(session())).toContain(`; Domain=${domain}; `)
  })

  it('is removed with the attributes it was written with', () => {
    expect(new SessionCookie({ domain: 'example.com', path: '/app' }).clear()).toBe(
      'session_id=; Max-Age=0; Domain=example.com; Path=/app; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly; Secure; SameSite=Lax',
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
    [
      { sameSite: 'none', secure: false },
      /cookie\.sameSite: "none" is impossible with secure: false, browsers refuse it$/,
    ],
    [
      { partitioned: true, secure: false },
      /cookie\.partitioned: true is impossible with secure: false, browsers refuse it$/,
    ],
    [{ sameSite: 'none', secure: false, partitioned: true }, /is impossible/],
    [{ partitioned: true }, /cookie\.partitioned: true is impossible without sameSite: 'none'/],
    [{ name: '' }, /^cookie\.name: expected a token such as 'session_id', got ""$/],
    [{ name: 7 as unknown as string }, /cookie\.name: .* got 7/],
    [{ name: ['sid'] as unknown as string }, /cookie\.name: /],
    [{ name: 'session id' }, /got "session id"/],
    [{ name: 'a=b' }, /got "a=b"/],
    [{ name: 'é' }, /got "é"/],
    [{ path: 'app' }, /^cookie\.path: expected a path that begins with '\/', got "app"$/],
    [{ path: 'app/' }, /cookie\.path/],
    [{ path: '' }, /cookie\.path/],
    [{ path: ['/app'] as unknown as string }, /cookie\.path/],
    [{ path: '/;x' }, /cookie\.path/],
    [{ path: '/\r\nX: y' }, /cookie\.path/],
    [{ domain: 'https://example.com' }, /cookie\.domain: .* got "https:\/\/example\.com"/],
    [{ domain: 'example.com:443' }, /cookie\.domain/],
    [{ domain: 'example.com; Path=/' }, /cookie\.domain/],
    [{ domain: '' }, /^cookie\.domain: expected a host name such as 'example\.com', got ""$/],
    [{ domain: 7 as unknown as string }, /cookie\.domain: .* got 7/],
    [{ domain: ['example.com'] as unknown as string }, /cookie\.domain/],
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

describe('reading the cookie', () => {
  const cookie = new SessionCookie()
  const parse = (header: string | readonly string[] | null | undefined) => cookie.candidates(header)

  it('finds the value wherever it stands', () => {
    for (const header of [
      `session_id=${ID}`,
      `session_id=${ID};`,
      `;;; session_id=${ID} ;;`,
      `a=b; session_id=${ID}; c=d`,
      `a=b;session_id=${ID}`,
      `\t session_id \t=\t ${ID} \t`,
      `session_id=${ID}; session_idx=1; xsession_id=2`,
      `$Version=1; session_id=${ID}; $Path=/`,
      `junk; session_id=${ID}; =; ==; a`,
    ])
      expect(parse(header)).toEqual([ID])
  })

  it('finds nothing in what is not our cookie', () => {
    for (const header of [
      null,
      undefined,
      '',
      ';',
      'session_id',
      'session_idx=1',
      `=session_id=${ID}`,
      `==session_id=${ID}`,
      `session%5Fid=${ID}`,
      `SESSION_ID=${ID}`,
      `Session_id=${ID}`,
      `a="session_id=${ID}"`,
      `a=b, session_id=${ID}`,
      `\u00a0session_id=${ID}`,
      `session_id\u00a0=${ID}`,
      `\u2003session_id=${ID}`,
      `\ufeffsession_id=${ID}`,
      `\vsession_id=${ID}`,
      `__Host-session_id=${ID}`,
    ])
      expect(parse(header)).toEqual([])
  })

  it('decodes nothing and keeps Unicode spaces in the value', () => {
    expect(parse('session_id=%41%zz')).toEqual(['%41%zz'])
    expect(parse(`session_id=\u00a0${ID}`)).toEqual([`\u00a0${ID}`])
    expect(parse('session_id=a=b=c')).toEqual(['a=b=c'])
    expect(parse('session_id=')).toEqual([''])
  })

  it('takes equal duplicates for one, and names different ones in their order', () => {
    expect(parse(`session_id=${ID}; session_id=${ID}`)).toEqual([ID])
    expect(parse([`session_id=${ID}`, `a=1; session_id=${ID}`])).toEqual([ID])
    expect(parse(`session_id=${ID}; session_id=planted`)).toEqual([ID, 'planted'])
    expect(parse([`session_id=planted`, `session_id=${ID}`])).toEqual(['planted', ID])
    expect(parse(`session_id=; session_id=${ID}`)).toEqual(['', ID])
    expect(parse(`session_id=a; session_id=b; session_id=a`)).toEqual(['a', 'b'])
    expect(parse(['session_id=b', 'x=y; session_id=c'])).toEqual(['b', 'c'])
  })

  it('reads several Cookie lines, and shrugs at what is no line', () => {
    expect(parse(['a=b', `session_id=${ID}`])).toEqual([ID])
    expect(parse([])).toEqual([])
    for (const odd of [7, {}, true, [7, null, {}]]) expect(parse(odd as unknown as string)).toEqual([])
  })

  it('never throws, and finds exactly what a splitting parser finds', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        'session_id',
        '=',
        ';',
        ' ',
        '\t',
        '\u00a0',
        'a',
        '"',
        ',',
        '%20',
        'session_id=x',
        'session_id=y',
        '__proto__',
      ),
      fc.string({ maxLength: 3 }),
    )
    const trim = (text: string) => text.replace(/^[ \t]+|[ \t]+$/g, '')
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20 }), pieces => {
        const header = pieces.join('')
        const values = new Set<string>()
        for (const pair of header.split(';')) {
          const equals = pair.indexOf('=')
          if (equals !== -1 && trim(pair.slice(0, equals)) === 'session_id') values.add(trim(pair.slice(equals + 1)))
        }
        expect(parse(header)).toEqual([...values])
      }),
      { numRuns: 5000 },
    )
  })
})
