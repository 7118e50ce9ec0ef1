// How the session ID is read from Cookie headers, whoever wrote them.
import { once } from 'node:events'
import { connect } from 'node:net'
import { SessionCookie, withCookies } from 'coatcheck/custom-server'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { anyText } from '../support/any-text.ts'
import { ada, loggedIn, makeSessions, serve, threeEndpoints, visitOf } from '../support/edge-service.ts'
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

describe('a Cookie header over HTTP', () => {
  /** Sends bytes as they are, since http.request refuses half of what a hostile client sends. */
  async function raw(port: number, lines: readonly string[]): Promise<string> {
    const socket = connect(port, '127.0.0.1')
    const answer: string[] = []
    socket.setEncoding('latin1').on('data', chunk => answer.push(String(chunk)))
    socket.on('error', () => {})
    const request = ['GET / HTTP/1.1', 'Host: localhost', 'Connection: close', ...lines, '', '']
    socket.write(Buffer.from(request.join('\r\n'), 'latin1'))
    await once(socket, 'close')
    return answer.join('')
  }
  const many = (name: string, count: number) =>
    Array.from({ length: count }, (_, at) => `${name}${at}=${at}`).join('; ')

  it('that is hostile leads to no session, and the store is not asked', async () => {
    const { port, sessions, calls } = await serve(threeEndpoints)
    const { secret: id } = await sessions.create(ada)
    calls.length = 0
    for (const line of [
      '',
      '!\x80\xff;;;===;"',
      `session_idx=${id}; xsession_id=${id}; Session_id=${id}`,
      `\xa0session_id=${id}`,
      `\xe2\x80\x83session_id=${id}`,
      `session_id=%${id.charCodeAt(0).toString(16)}${id.slice(1)}`,
      many('c', 1000),
      `session_id=${'A'.repeat(15_000)}`,
      ';'.repeat(15_000),
      'session_id=__proto__; __proto__=session_id; constructor=x',
    ]) {
      const answer = await raw(port, [`Cookie: ${line}`])
      expect([answer.split('\r\n')[0], answer.split('\r\n\r\n')[1], calls]).toEqual(['HTTP/1.1 200 OK', 'null', []])
      expect(answer.toLowerCase()).not.toContain('set-cookie')
    }
  })

  it('that is odd leads to the session, by one read', async () => {
    const { port, sessions, calls } = await serve(threeEndpoints)
    const { secret: id } = await sessions.create(ada)
    for (const lines of [
      [`${many('c', 500)}; session_id=${id}; ${many('d', 400)}`],
      ['a=b', `session_id=${id}`],
      [`session_id=${id}x`, `session_id=${id}`],
    ]) {
      calls.length = 0
      const answer = await raw(
        port,
        lines.map(line => `Cookie: ${line}`),
      )
      expect([answer.split('\r\n\r\n')[1], calls]).toEqual(['ada', ['read']])
    }
  })
})

it('cookies in quotes find the session, begin one by its remember token, and end both', async () => {
  const made = makeSessions({ rememberFor: '30d' })
  const login = await loggedIn(made, { ...ada, remember: true })
  const [session, token] = [login.cookie, login.token].map(pair => pair.replace(/=(.*)/, '="$1"'))
  expect((await visitOf(made.sessions, session).get())?.user?.name).toBe('ada')
  expect((await visitOf(made.sessions, token).get())?.remembered).toBe(true)
  await visitOf(made.sessions, [session!, token!]).logOut()
  for (const header of [session!, token!]) expect(await visitOf(made.sessions, header).get()).toBeNull()
})

it('a value of the right shape finds nothing if it is no ID: the key of a session, or what is near an ID', async () => {
  const made = makeSessions()
  const { key, secret } = await made.sessions.create(ada)
  const ask = (id: string) => visitOf(made.sessions, `session_id=${id}`).get()
  for (const id of ['__proto__'.padEnd(43, '_'), key, key.slice(0, 43), key.slice(3), 'A'.repeat(43)])
    expect(await ask(id)).toBeNull()
  for (let at = 0; at < secret.length; at++)
    expect(await ask(secret.slice(0, at) + (secret[at] === 'A' ? 'B' : 'A') + secret.slice(at + 1))).toBeNull()
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
