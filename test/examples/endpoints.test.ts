import { once } from 'node:events'
import { createServer, request as httpRequest, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { SessionManager } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createApp } from '../../examples/server/app.mjs'
import { openUsers } from '../../examples/server/users.mjs'
import { CHEAP, Client, PASSWORD, startExample } from '../support/example-service.ts'

// In this process, with passwords that are cheap to try; the program itself at the end.
let server: Server
let url: string
const client = (agent?: string) => new Client(url, agent)

beforeAll(async () => {
  const sessions = new SessionManager({
    store: new MemoryStore(),
    initial: () => ({ label: '' }),
    rememberFor: '30d',
    sweepInterval: false,
  })
  server = createServer(createApp({ sessions, users: await openUsers(CHEAP) })).listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const JSON_TYPE = { 'Content-Type': 'application/json' }
const FORM_TYPE = { 'Content-Type': 'application/x-www-form-urlencoded' }

describe('a user of the service', () => {
  it('logs in, reads the profile and logs out', async () => {
    const ada = client()
    const login = await ada.login()
    expect([login.status, login.text.trim()]).toEqual([200, '"Logged in."'])
    expect(login.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^session_id=[\w-]{43}; Max-Age=1800; Path=\/; HttpOnly; Secure; SameSite=Lax$/),
      expect.stringMatching(/^__Host-session_bound=[\w.-]+; Max-Age=\d+; Path=\/; HttpOnly; Secure; SameSite=Lax$/),
    ])

    const profile = await ada.send('GET', '/profile')
    expect(profile.text.trim()).toBe('{"id":42,"name":"ada"}')
    expect(profile.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(profile.headers.get('cache-control')).toBe('no-store')
    expect(profile.headers.get('vary')).toBe('Cookie')

    const stolen = ada.cookie
    const logout = await ada.send('POST', '/logout')
    expect([logout.status, logout.text.trim()]).toEqual([200, '"Logged out."'])
    const cleared = '=; Max-Age=0; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly; Secure; SameSite=Lax'
    expect(logout.headers.getSetCookie()).toEqual([`session_id${cleared}`, `__Host-session_bound${cleared}`])
    expect((await client().send('GET', '/profile', undefined, { Cookie: stolen })).text.trim()).toBe('null')
  })

  it('sees the largest user ID to the last digit', async () => {
    const max = client()
    await max.login('max')
    expect((await max.send('GET', '/profile')).text.trim()).toBe('{"id":18446744073709551615,"name":"max"}')
  })

  it('gets null as the profile before logging in, and no cookie', async () => {
    const answer = await client().send('GET', '/profile')
    expect([answer.status, answer.text.trim(), answer.headers.getSetCookie()]).toEqual([200, 'null', []])
  })

  it('may log out without a session', async () => {
    expect((await client().send('POST', '/logout')).status).toBe(200)
  })

  it('gets a new ID at each login, and the old one is dead', async () => {
    const ada = client()
    await ada.login()
    const before = ada.cookie
    await ada.login()
    expect(ada.cookie).not.toBe(before)
    expect((await client().send('GET', '/profile', undefined, { Cookie: before })).body).toBeNull()
    expect(await ada.whoami()).toBe('ada')
  })

  it('cannot choose the ID of a session', async () => {
    const ada = client()
    ada.cookies.set('session_id', 'A'.repeat(43))
    await ada.login()
    expect(ada.cookies.get('session_id')).not.toBe('A'.repeat(43))
  })

  it('cannot be told from an unknown name by the answer', async () => {
    const texts = new Set<string>()
    for (const name of ['ada', 'unknown']) {
      const { status, text } = await client().login(name, 'wrong password')
      expect(status).toBe(401)
      texts.add(text)
    }
    expect(texts.size).toBe(1)
  })

  it.each(['__proto__', 'constructor', 'toString', '', ' ada', 'ADA', 'ada\0', '\ud800', 'a'.repeat(10_000)])(
    'is refused under the name %j',
    async name => {
      expect((await client().login(name)).status).toBe(401)
    },
  )
})

describe('bad input', () => {
  const fields = [
    ['no body', ''],
    ['half a body', '{"username":"ada"'],
    ['a string', '"ada"'],
    ['null', 'null'],
    ['an array', '["ada"]'],
    ['no fields', '{}'],
    ['no password', '{"username":"ada"}'],
    ['a number as name', `{"username":42,"password":"${PASSWORD}"}`],
    ['null as password', '{"username":"ada","password":null}'],
    ['an object as password', '{"username":"ada","password":{"$ne":""}}'],
    ['fields of the prototype only', `{"__proto__":{"username":"ada","password":"${PASSWORD}"}}`],
    ['remember that is no flag', `{"username":"ada","password":"${PASSWORD}","remember":"yes"}`],
  ] as const
  it.each(fields)('POST /login with %s is 400', async (_, body) => {
    const answer = await client().send('POST', '/login', body, JSON_TYPE)
    expect(answer.status).toBe(400)
    expect(answer.body).toEqual({ error: expect.stringMatching(/^[a-z_]+$/), message: expect.any(String) })
    expect(answer.headers.getSetCookie()).toEqual([])
  })

  it('a body that is not UTF-8 is 400', async () => {
    const body = Buffer.from('{"username":"\xff","password":"x"}', 'latin1')
    expect((await client().send('POST', '/login', body, JSON_TYPE)).status).toBe(400)
  })

  it.each([
    ['{}', 400],
    ['{"oldPassword":"x"}', 400],
    [`{"oldPassword":"${PASSWORD}","newPassword":1}`, 400],
    [`{"oldPassword":"${PASSWORD}","newPassword":"short"}`, 400],
    [`{"oldPassword":"${PASSWORD}","newPassword":"${'x'.repeat(1025)}"}`, 400],
    [`{"oldPassword":"${PASSWORD}","newPassword":"\\ud800 lone surrogate"}`, 400],
    ['{"oldPassword":"wrong","newPassword":"long enough"}', 401],
  ])('POST /password with %s is %i, and the user stays logged in', async (body, status) => {
    const max = client()
    await max.login('max')
    const answer = await max.send('POST', '/password', body, JSON_TYPE)
    expect([answer.status, answer.headers.getSetCookie()]).toEqual([status, []])
    expect(await max.whoami()).toBe('max')
  })

  const body = JSON.stringify({ username: 'ada', password: PASSWORD })
  it.each([
    ['text/plain', {}],
    ['multipart/form-data; boundary=x', {}],
    ['application/jsonp', {}],
    ['application/json', { 'Content-Encoding': 'gzip' }],
  ] as const)('the content type %s %j is 415', async (type, headers) => {
    const answer = await client().send('POST', '/login', body, { 'Content-Type': type, ...headers })
    expect([answer.status, answer.body.error]).toEqual([415, 'unsupported_media_type'])
  })

  it('a body without a content type is 415', async () => {
    const answer = await client().send('POST', '/login', Buffer.from(body))
    expect(answer.status).toBe(415)
  })

  it.each(['application/json; charset=utf-8', 'Application/JSON', 'application/json ;x=y'])(
    'the content type %s is accepted',
    async type => {
      expect((await client().send('POST', '/login', body, { 'Content-Type': type })).status).toBe(200)
    },
  )

  const sized = (size: number) => {
    const empty = JSON.stringify({ username: 'ada', password: '' })
    return JSON.stringify({ username: 'ada', password: 'x'.repeat(size - empty.length) })
  }
  it('16 KiB are read, one byte more is 413', async () => {
    expect((await client().send('POST', '/login', sized(16_384), JSON_TYPE)).status).toBe(401)
    const answer = await client().send('POST', '/login', sized(16_385), JSON_TYPE)
    expect([answer.status, answer.body.error]).toEqual([413, 'body_too_large'])
  })

  it('a chunked body of unknown length is 413 as soon as it is too large, and the connection goes on', async () => {
    const answer = await new Promise<number | undefined>((resolve, reject) => {
      const request = httpRequest(`${url}/login`, { method: 'POST', headers: JSON_TYPE }, response => {
        response.resume().on('end', () => resolve(response.statusCode))
      })
      request.on('error', reject)
      for (let chunk = 0; chunk < 64; chunk++) request.write('x'.repeat(1024))
      request.end()
    })
    expect(answer).toBe(413)
  })

  it.each([
    ['GET', '/login', 'POST'],
    ['PUT', '/login', 'POST'],
    ['POST', '/profile', 'GET, HEAD'],
    ['GET', '/logout', 'POST'],
    ['DELETE', '/password', 'POST'],
    ['POST', '/sessions', 'GET, HEAD, DELETE'],
    ['POST', '/session', 'GET, HEAD'],
    ['GET', '/session/rotate', 'POST'],
    ['GET', '/sessions/end', 'POST'],
    ['GET', '/sessions/x', 'DELETE'],
    ['POST', '/', 'GET, HEAD'],
    ['DELETE', '/page.css', 'GET, HEAD'],
    ['OPTIONS', '/login', 'POST'],
  ])('%s %s is 405 and says what is allowed', async (method, path, allow) => {
    const answer = await client().send(method, path)
    expect([answer.status, answer.headers.get('allow'), answer.body.error]).toEqual([405, allow, 'method_not_allowed'])
  })

  it.each([
    '/nothing',
    '/login/',
    '/Login',
    '//login',
    '/sessions/',
    '/sessions/a/b',
    '/page.html',
    '/%2e%2e/users.mjs',
  ])('%s is 404', async path => {
    const answer = await client().send('GET', path)
    expect([answer.status, answer.body.error]).toEqual([404, 'not_found'])
  })

  it.each([
    ['POST', '/login', { username: 'ada', password: PASSWORD }],
    ['POST', '/login', { username: 'ada', password: 'wrong' }],
    ['POST', '/logout', undefined],
    ['POST', '/password', { oldPassword: PASSWORD, newPassword: 'long enough' }],
    ['DELETE', '/sessions/x', undefined],
    ['DELETE', '/sessions', undefined],
    ['POST', '/session/rotate', undefined],
  ])('%s %s from a page of another origin is 403 and changes nothing', async (method, path, body) => {
    const ada = client()
    await ada.login()
    for (const headers of [
      { 'Sec-Fetch-Site': 'cross-site' },
      { 'Sec-Fetch-Site': 'same-site' },
      { Origin: 'https://evil.example' },
      { Origin: 'null' },
    ]) {
      const answer = await ada.send(method, path, body, headers as Record<string, string>)
      expect([answer.status, answer.body.error]).toEqual([403, 'cross_origin'])
      expect(answer.headers.getSetCookie()).toEqual([])
    }
    expect(await ada.whoami()).toBe('ada')
  })

  it.each([
    ['GET', '/sessions'],
    ['DELETE', '/sessions/x'],
    ['DELETE', '/sessions'],
    ['POST', '/session/rotate'],
    ['POST', '/password'],
  ])('%s %s without a session is 401', async (method, path) => {
    const answer = await client().send(method, path, method === 'POST' ? {} : undefined)
    expect([answer.status, answer.body.error]).toEqual([401, 'unauthenticated'])
  })

  it.each([
    '',
    'session_id',
    'session_id=',
    'session_id=x; session_id=y',
    `session_id=${'%41'.repeat(43)}`,
    '=; ;;==;',
  ])('the cookie header %j names no session', async cookie => {
    const answer = await client().send('GET', '/profile', undefined, { Cookie: cookie })
    expect([answer.status, answer.body]).toEqual([200, null])
  })
})

describe('the page', () => {
  it('comes with a policy that runs nothing but its own files', async () => {
    const { status, headers, text } = await client().send('GET', '/')
    expect(status).toBe(200)
    const policy = headers.get('content-security-policy')
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("script-src 'self'")
    expect(policy).not.toMatch(/unsafe|\*|http/)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(text).not.toMatch(/<script(?! src="\/page\.js")|\son\w+=|style=|https?:\/\//)
  })

  it.each([
    ['/page.css', 'text/css; charset=utf-8'],
    ['/page.js', 'text/javascript; charset=utf-8'],
    ['/page.svg', 'image/svg+xml; charset=utf-8'],
  ])('is made of %s too', async (path, type) => {
    const { status, headers } = await client().send('GET', path)
    expect([status, headers.get('content-type')]).toEqual([200, type])
    const head = await client().send('HEAD', path)
    expect([head.status, head.text, head.headers.get('content-length')]).toEqual([
      200,
      '',
      headers.get('content-length'),
    ])
  })

  const tokenOf = (page: string) => /name="csrf" value="([^"]+)"/.exec(page)?.[1] ?? ''

  it('logs out by a plain form with its token', async () => {
    const ada = client()
    await ada.login()
    const token = tokenOf((await ada.send('GET', '/')).text)
    const answer = await ada.send('POST', '/logout', `csrf=${token}`, FORM_TYPE)
    expect([answer.status, answer.headers.get('location'), ada.cookie]).toEqual([303, '/', ''])
  })

  it('does not log out by a form without the token, or with that of another session', async () => {
    const [ada, max] = [client(), client()]
    await ada.login()
    await max.login('max')
    const foreign = tokenOf((await max.send('GET', '/')).text)
    for (const body of ['', 'csrf=', `csrf=${foreign}`, `csrf=${'A'.repeat(115)}`]) {
      const answer = await ada.send('POST', '/logout', body, FORM_TYPE)
      expect([answer.status, answer.body.error]).toEqual([403, 'csrf'])
    }
    expect(await ada.whoami()).toBe('ada')
  })

  it('masks its token afresh each time, and a login makes the old one worthless', async () => {
    const ada = client()
    await ada.login()
    const [first, second] = [await ada.send('GET', '/'), await ada.send('GET', '/')].map(({ text }) => tokenOf(text))
    expect(first).toMatch(/^[\w-]{86,}$/)
    expect(second).not.toBe(first)
    await ada.login()
    expect((await ada.send('POST', '/logout', `csrf=${first}`, FORM_TYPE)).status).toBe(403)
  })

  it('logs in by a plain form, also to be remembered, and says what is wrong on the page itself', async () => {
    const ada = client()
    const form = (fields: Record<string, string>) =>
      ada.send('POST', '/login', new URLSearchParams(fields).toString(), FORM_TYPE)
    const refused = await form({ username: '"><b>ada', password: 'wrong' })
    expect([refused.status, ada.cookie]).toEqual([401, ''])
    expect(refused.text).toContain('Wrong name or password.')
    expect(refused.text).toContain('value="&#34;&#62;&#60;b&#62;ada"')
    expect((await form({ username: 'ada' })).body.error).toBe('invalid_fields')

    const answer = await form({ username: 'ada', password: PASSWORD, remember: 'on' })
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/'])
    expect([...ada.cookies.keys()].sort()).toEqual(['__Host-session_bound', 'remember_token', 'session_id'])
    expect(await ada.whoami()).toBe('ada')
    const evil = await client().send('POST', '/login', 'username=ada', { ...FORM_TYPE, Origin: 'https://evil.example' })
    expect([evil.status, evil.body.error]).toEqual([403, 'cross_origin'])
  })

  it.each([
    ['/session/rotate', 'ada'],
    ['/sessions/end', null],
  ])('takes the plain form of %s with its token only', async (path, after) => {
    const ada = client()
    await ada.login()
    const before = ada.cookies.get('session_id')
    expect((await ada.send('POST', path, 'csrf=', FORM_TYPE)).status).toBe(403)
    expect(ada.cookies.get('session_id')).toBe(before)
    const token = tokenOf((await ada.send('GET', '/')).text)
    const answer = await ada.send('POST', path, `csrf=${token}`, FORM_TYPE)
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/'])
    expect(ada.cookies.get('session_id')).not.toBe(before)
    expect(await ada.whoami()).toBe(after)
  })

  it('shows the times of its session without script', async () => {
    const ada = client()
    await ada.login()
    const { text } = await ada.send('GET', '/')
    for (const name of ['createdAt', 'seenAt', 'expiresAt', 'absoluteExpiresAt'])
      expect(text).toMatch(new RegExp(`data-time="${name}" datetime="\\d{4}-[^"]+Z">\\w{3}, `))
    expect(text).toContain('data-time="rotatedAt" datetime="">not yet<')
    expect(text).toContain('with the password')
  })
})

describe('the times of a session', () => {
  it('are told without extending it, with a new ID noted', async () => {
    const ada = client()
    expect((await ada.send('GET', '/session')).body).toBeNull()
    await ada.login()
    const { body } = await ada.send('GET', '/session')
    expect(body).toEqual({
      now: expect.any(Number),
      createdAt: body.seenAt,
      remembered: false,
      seenAt: body.seenAt,
      rotatedAt: null,
      expiresAt: body.seenAt + 30 * 60_000,
      absoluteExpiresAt: body.createdAt + 12 * 3_600_000,
      boundAt: null,
    })
    const before = ada.cookies.get('session_id')
    expect((await ada.send('POST', '/session/rotate')).body).toBe('The session has a new ID.')
    expect(ada.cookies.get('session_id')).not.toBe(before)
    const after = (await ada.send('GET', '/session')).body
    expect(after).toMatchObject({ createdAt: body.createdAt, rotatedAt: expect.any(Number) })
  })

  it('end everywhere at once', async () => {
    const [laptop, phone] = [client(), client()]
    await laptop.login('ada', PASSWORD, true)
    await phone.login()
    expect((await laptop.send('DELETE', '/sessions')).body).toBe('Logged out everywhere.')
    expect([laptop.cookie, await laptop.whoami(), await phone.whoami()]).toEqual(['', null, null])
  })
})

describe('the program', () => {
  it('serves the same endpoints; an aborted body ends its request and nothing else', async () => {
    const service = await startExample('server.mjs')
    try {
      const { port } = new URL(service.url)
      for (let round = 0; round < 5; round++)
        await new Promise<void>(resolve => {
          const socket = connect(Number(port), '127.0.0.1', () => {
            socket.write(
              'POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"user',
              () => socket.destroy(),
            )
          })
          socket.on('close', () => resolve())
        })
      expect((await new Client(service.url).send('GET', '/profile')).status).toBe(200)
      expect(service.output()).not.toMatch(/Error|aborted/)
      const ada = new Client(service.url)
      expect((await ada.login()).text.trim()).toBe('"Logged in."')
      expect((await ada.send('GET', '/profile')).text.trim()).toBe('{"id":42,"name":"ada"}')
      expect((await ada.send('POST', '/logout')).text.trim()).toBe('"Logged out."')
      expect(await ada.whoami()).toBeNull()
      expect(service.output()).not.toMatch(/Error|aborted/)
    } finally {
      await service.stop()
    }
  }, 240_000)
})
