// What went wrong in the field in the reading and writing of cookies.
import type { CookieOptions } from 'coatcheck'
import { SessionCookie, withCookies } from 'coatcheck/custom-server'
import { describe, expect, it } from 'vitest'

const ID = 'a'.repeat(43)
const PLANTED = 'b'.repeat(43)
const NAMES = [{}, { hostPrefix: true }, { name: '__Secure-id' }] as const satisfies readonly CookieOptions[]

/** What a header that a sibling host forged looks like, for a cookie of this name: none may count as that cookie. */
function expectIgnored(forge: (name: string) => readonly string[]): void {
  for (const options of NAMES) {
    const cookie = new SessionCookie(options)
    for (const pair of forge(cookie.name)) {
      const real = `${cookie.name}=${ID}`
      expect(cookie.candidates(pair), pair).toEqual([])
      for (const header of [`${pair}; ${real}`, `${real}; ${pair}`])
        expect(cookie.candidates(header), header).toEqual([ID])
      // A middleware that hands the request on must not make the session cookie of it either.
      const handedOn = withCookies(pair, [{ name: 'theme', value: 'dark' }])
      expect(cookie.candidates(handedOn), handedOn).toEqual([])
      expect(cookie.candidates(withCookies(pair, [{ name: cookie.name, value: ID }]))).toEqual([ID])
    }
  }
}

/** Every character that String.prototype.trim removes, but for space and tab, which browsers remove too. */
const BLANKS = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code)).filter(
  blank => blank.trim() === '' && blank !== ' ' && blank !== '\t',
)

describe('regressions of the field', () => {
  // Hono: a no-break space before a name was trimmed.
  it('CVE-2026-39410: a name with a no-break space, or another blank than space and tab, is another name', () => {
    expect(BLANKS).toContain('\u00a0')
    for (const blank of BLANKS)
      expectIgnored(name => [
        `${blank}${name}=${PLANTED}`,
        `${name}${blank}=${PLANTED}`,
        ` ${blank} ${name}=${PLANTED}`,
      ])
  })

  // Rack: names were percent-decoded, so that `__Host-` could be forged.
  it('CVE-2020-8184: a percent-encoded name is not decoded, so that no prefix can be forged', () => {
    const encoded = (char: string) => `%${char.charCodeAt(0).toString(16)}`
    expectIgnored(name => [
      `${encoded(name[0]!)}${name.slice(1)}=${PLANTED}`,
      `${[...name].map(encoded).join('')}=${PLANTED}`,
      `${name.slice(0, -1)}${encoded(name.at(-1)!).toUpperCase()}=${PLANTED}`,
      `${name}%3d${PLANTED}`,
    ])
  })

  // Werkzeug: a cookie without a name, `=__Host-id=…`, was read as `__Host-id`.
  it('CVE-2023-23934: a cookie without a name never becomes ours, whatever its value looks like', () => {
    expectIgnored(name => [`=${name}=${PLANTED}`, ` = ${name}=${PLANTED}`, `==${name}=${PLANTED}`, `${name}`, `=`])
  })

  // cookie: name, path and domain could write attributes of their own.
  it('CVE-2024-47764: a name, path or domain that would write further attributes into Set-Cookie is refused', () => {
    const breaks = [
      ';',
      '; Domain=evil.example',
      '\r\nSet-Cookie: a=b',
      '\n',
      '\0',
      '=',
      ',',
      ' ',
      '"',
      '\u00e9',
      '\u{1f36a}',
    ]
    for (const text of breaks) {
      expect(() => new SessionCookie({ name: `id${text}` }), JSON.stringify(text)).toThrow(/^cookie\.name: /)
      expect(() => new SessionCookie({ domain: `example.com${text}` }), JSON.stringify(text)).toThrow(
        /^cookie\.domain: /,
      )
    }
    for (const text of breaks.filter(each => /[;\p{Cc}\u0080-\u{10ffff}]/u.test(each)))
      expect(() => new SessionCookie({ path: `/app${text}` }), JSON.stringify(text)).toThrow(/^cookie\.path: /)
    for (const value of ['lax; Domain=evil.example', 'LAX', 'none\r\n'])
      expect(() => new SessionCookie({ sameSite: value as 'lax' })).toThrow(/^cookie\.sameSite: /)
    const { serializeValue } = SessionCookie.prototype
    const plain = new SessionCookie({ path: '/a,b "c" =d' })
    const line = `session_id=${ID}; Max-Age=60; Path=/a,b "c" =d; HttpOnly; Secure; SameSite=Lax`
    expect(serializeValue.call(plain, ID, 60)).toBe(line)
    for (const text of breaks.filter(each => each !== '='))
      expect(() => serializeValue.call(plain, `x${text}`, 60), JSON.stringify(text)).toThrow(/^serializeValue: /)
  })
})
