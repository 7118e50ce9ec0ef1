// How the session ID is read from Cookie headers, whoever wrote them.
import { SessionCookie, withCookies } from 'coatcheck/custom-server'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { anyText } from '../support/any-text.ts'
import { makeSessions, visitOf } from '../support/edge-service.ts'
import { onlyHost } from '../support/only-host.ts'

const ID = 'abc-0123456789_0123456789_0123456789-ABCDEF'
const cookie = new SessionCookie()
const parse = (header: unknown) => cookie.candidates(header as string)

describe('reading the cookie', () => {
  it.each([
    `session_id=${ID}`,
    `session_id=${ID};`,
    `;;; session_id=${ID} ;;`,
    `a=b; session_id=${ID}; c=d`,
    `a=b;session_id=${ID}`,
    `\t session_id \t=\t ${ID} \t`,
    `session_id=${ID}; session_idx=1; xsession_id=2`,
    `$Version=1; session_id=${ID}; $Path=/`,
    `junk; session_id=${ID}; =; ==; a`,
  ])('finds the value in %j, and takes it away', header => {
    expect(parse(header)).toEqual([ID])
    expect(parse(withCookies(header, [{ name: 'session_id', value: '' }]))).toEqual([])
  })

  it.each([
    null,
    undefined,
    '',
    ';',
    'session_id',
    'session_idx=1',
    `=session_id=${ID}`,
    `session%5Fid=${ID}`,
    `Session_id=${ID}`,
    `a="session_id=${ID}"`,
    `a=b, session_id=${ID}`,
    `\u00a0session_id=${ID}`,
    `session_id\u00a0=${ID}`,
    `\u2003session_id=${ID}`,
    `\vsession_id=${ID}`,
    `__Host-session_id=${ID}`,
  ])('finds nothing in %j', header => {
    expect(parse(header)).toEqual([])
  })

  it('decodes nothing and keeps Unicode spaces in the value', () => {
    expect(parse('session_id=%41%zz')).toEqual(['%41%zz'])
    expect(parse(`session_id=\u00a0${ID}`)).toEqual([`\u00a0${ID}`])
    expect(parse('session_id=a=b=c')).toEqual(['a=b=c'])
    expect(parse('session_id=')).toEqual([''])
  })

  // Java's HttpClient with its CookieManager puts them there (RFC 6265, section 4.1.1).
  it.each([
    ['"abc"', 'abc'],
    [' \t"abc" ', 'abc'],
    ['""', ''],
    ['"a"b"', 'a"b'],
    ['""abc""', '"abc"'],
    ['"', '"'],
    ['"abc', '"abc'],
    ['abc"', 'abc"'],
    ["'abc'", "'abc'"],
  ])('takes a pair of quotes off: %s is %s', (value, id) => {
    expect(parse(`a=1; session_id=${value}; b="2"`)).toEqual([id])
  })

  it('takes equal duplicates for one, and names different ones in their order, on one line or several', () => {
    expect(parse(`session_id=${ID}; session_id="${ID}"`)).toEqual([ID])
    expect(parse([`session_id=${ID}`, `a=1; session_id=${ID}`])).toEqual([ID])
    expect(parse([`session_id=planted`, `session_id=${ID}`])).toEqual(['planted', ID])
    expect(parse(`session_id=; session_id=${ID}`)).toEqual(['', ID])
    expect(parse(`session_id=a; session_id=b; session_id=a`)).toEqual(['a', 'b'])
  })

  it('shrugs at what is no line', () => {
    for (const odd of [[], 7, {}, true, [7, null, {}]]) expect(parse(odd)).toEqual([])
  })
})

it('no header makes a visit throw anything but what it documents', async () => {
  const made = makeSessions({ rememberFor: '30d' })
  const text = fc.oneof(anyText({ maxLength: 80 }), fc.constantFrom('session_id=x', 'remember_token=a.b; '))
  await fc.assert(
    fc.asyncProperty(
      fc.record({ method: text, secure: fc.boolean() }),
      fc.oneof(text, fc.array(text), fc.constant(null)),
      fc.dictionary(fc.constantFrom('origin', 'sec-fetch-site', 'host'), text),
      async (request, cookie, headers) => {
        const visit = visitOf(made.sessions, cookie, { ...request, header: name => headers[name] || onlyHost(name) })
        const outcome = await visit.get().then(
          session => session,
          error => error.code,
        )
        expect([null, 'ERR_SESSION_CROSS_ORIGIN']).toContain(outcome)
      },
    ),
    { numRuns: 200 },
  )
})
