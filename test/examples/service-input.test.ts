// What the example service takes and refuses, and its page for people.
import { describe, expect, it } from 'vitest'
import { PASSWORD } from '../support/example-service.ts'
import { started } from '../support/started.ts'
import { type InProcess, openService } from './in-process.ts'

const service = started(openService)
const client = () => service().client()
const loggedIn = (...how: Parameters<InProcess['loggedIn']>) => service().loggedIn(...how)

const JSON_TYPE = { 'Content-Type': 'application/json' }
const FORM_TYPE = { 'Content-Type': 'application/x-www-form-urlencoded' }
const CREDENTIALS = { username: 'ada', password: PASSWORD }

describe('a login', () => {
  it('says the same for an unknown name as for a wrong password', async () => {
    const texts = new Set<string>()
    for (const name of ['ada', 'unknown', '__proto__', '', ' ada', 'ADA', 'ada\0', '\ud800', 'a'.repeat(10_000)]) {
      const { status, text } = await client().login(name, 'wrong password')
      expect([name, status]).toEqual([name, 401])
      texts.add(text)
    }
    expect(texts.size).toBe(1)
    expect((await client().login('ADA')).status).toBe(401)
  })

  it.each([
    ['no body', ''],
    ['half a body', '{"username":"ada"'],
    ['null', 'null'],
    ['an array', '["ada"]'],
    ['no password', '{"username":"ada"}'],
    ['a number as name', `{"username":42,"password":"${PASSWORD}"}`],
    ['an object as password', '{"username":"ada","password":{"$ne":""}}'],
    ['fields of the prototype only', `{"__proto__":{"username":"ada","password":"${PASSWORD}"}}`],
    ['remember that is no flag', `{"username":"ada","password":"${PASSWORD}","remember":"yes"}`],
    ['what is not UTF-8', Buffer.from('{"username":"\xff","password":"x"}', 'latin1')],
  ])('with %s is 400', async (_, body) => {
    const answer = await client().send('POST', '/login', body, JSON_TYPE)
    expect([answer.status, answer.body]).toEqual([
      400,
      { error: expect.stringMatching(/^[a-z_]+$/), message: expect.any(String) },
    ])
    expect(answer.headers.getSetCookie()).toEqual([])
  })

  it.each([
    [415, { 'Content-Type': 'text/plain' }],
    [415, { 'Content-Type': 'application/jsonp' }],
    [415, { ...JSON_TYPE, 'Content-Encoding': 'gzip' }],
    [415, {}],
    [200, { 'Content-Type': 'Application/JSON ;x=y' }],
  ] as const)('is answered with %i for a body with %j', async (status, headers) => {
    const body = Buffer.from(JSON.stringify(CREDENTIALS))
    const answer = await client().send('POST', '/login', body, headers as Record<string, string>)
    expect([answer.status, answer.body.error]).toEqual([status, status === 415 ? 'unsupported_media_type' : undefined])
  })

  it('takes 16 KiB, and no byte more, also of a length that is not said: the connection goes on', async () => {
    const sized = (size: number) => {
      const empty = JSON.stringify({ username: 'ada', password: '' })
      return JSON.stringify({ username: 'ada', password: 'x'.repeat(size - empty.length) })
    }
    const chunked = async (body: string) => {
      const sent = { method: 'POST', headers: JSON_TYPE, body: new Blob([body]).stream(), duplex: 'half' }
      return (await fetch(`${service().url}/login`, sent as RequestInit)).status
    }
    const answer = await client().send('POST', '/login', sized(16_385), JSON_TYPE)
    expect([answer.status, answer.body.error]).toEqual([413, 'body_too_large'])
    expect((await client().send('POST', '/login', sized(16_384), JSON_TYPE)).status).toBe(401)
    expect([await chunked(sized(16_384)), await chunked(sized(16_385)), await chunked(sized(65_536))]).toEqual([
      401, 413, 413,
    ])
  })
})

it.each([
  ['{"oldPassword":"x"}', 400],
  [`{"oldPassword":"${PASSWORD}","newPassword":1}`, 400],
  [`{"oldPassword":"${PASSWORD}","newPassword":"short"}`, 400],
  [`{"oldPassword":"${PASSWORD}","newPassword":"${'x'.repeat(1025)}"}`, 400],
  [`{"oldPassword":"${PASSWORD}","newPassword":"\\ud800 lone surrogate"}`, 400],
  ['{"oldPassword":"wrong","newPassword":"long enough"}', 401],
])('POST /password with %s is %i, and the user stays logged in', async (body, status) => {
  const max = await loggedIn('test', false, 'max')
  const answer = await max.send('POST', '/password', body, JSON_TYPE)
  expect([answer.status, answer.headers.getSetCookie()]).toEqual([status, []])
  expect(await max.whoami()).toBe('max')
})

it.each([
  ['GET', '/login', 'POST'],
  ['POST', '/profile', 'GET, HEAD'],
  ['POST', '/sessions', 'GET, HEAD, DELETE'],
  ['GET', '/session/rotate', 'POST'],
  ['GET', '/sessions/x', 'DELETE'],
  ['POST', '/', 'GET, HEAD'],
  ['DELETE', '/page.css', 'GET, HEAD'],
  ['OPTIONS', '/login', 'POST'],
])('%s %s is 405 and says what is allowed', async (method, path, allow) => {
  const answer = await client().send(method, path)
  expect([answer.status, answer.headers.get('allow'), answer.body.error]).toEqual([405, allow, 'method_not_allowed'])
})

it.each(['/nothing', '/login/', '//login', '/sessions/', '/sessions/a/b', '/page.html', '/%2e%2e/users.mjs'])(
  '%s is 404',
  async path => {
    const answer = await client().send('GET', path)
    expect([answer.status, answer.body.error]).toEqual([404, 'not_found'])
  },
)

describe('the page', () => {
  it('comes with a policy that runs nothing but its own files', async () => {
    const { status, headers, text } = await client().send('GET', '/')
    const policy = headers.get('content-security-policy')
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("script-src 'self'")
    expect(policy).not.toMatch(/unsafe|\*|http/)
    expect(text).not.toMatch(/<script(?! src="\/page\.js")|\son\w+=|style=|https?:\/\//)
  })

  const tokenOf = (page: string) => /name="csrf" value="([^"]+)"/.exec(page)?.[1] ?? ''

  it.each([
    ['/logout', null],
    ['/session/rotate', 'ada'],
    ['/sessions/end', null],
  ])('takes the plain form of %s with the token of its session only', async (path, after) => {
    const [ada, max] = [await loggedIn(), await loggedIn('test', false, 'max')]
    const before = ada.cookies.get('session_id')
    const foreign = tokenOf((await max.send('GET', '/')).text)
    for (const body of ['', 'csrf=', `csrf=${foreign}`]) {
      const refused = await ada.send('POST', path, body, FORM_TYPE)
      expect([refused.status, refused.body.error]).toEqual([403, 'csrf'])
    }
    expect(ada.cookies.get('session_id')).toBe(before)
    const token = tokenOf((await ada.send('GET', '/')).text)
    const answer = await ada.send('POST', path, `csrf=${token}`, FORM_TYPE)
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/'])
    expect(ada.cookies.get('session_id')).not.toBe(before)
    expect(await ada.whoami()).toBe(after)
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
    const answer = await form({ ...CREDENTIALS, remember: 'on' })
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/'])
    expect([...ada.cookies.keys()].sort()).toEqual(['__Host-session_bound', 'remember_token', 'session_id'])
    expect(await ada.whoami()).toBe('ada')
    const evil = await client().send('POST', '/login', 'username=ada', { ...FORM_TYPE, Origin: 'https://evil.example' })
    expect([evil.status, evil.body.error]).toEqual([403, 'cross_origin'])
  })

  it('shows the times of its session without script', async () => {
    const { text } = await (await loggedIn()).send('GET', '/')
    for (const name of ['createdAt', 'seenAt', 'expiresAt', 'absoluteExpiresAt'])
      expect(text).toMatch(new RegExp(`data-time="${name}" datetime="\\d{4}-[^"]+Z">\\w{3}, `))
    expect(text).toContain('data-time="rotatedAt" datetime="">not yet<')
    expect(text).toContain('with the password')
  })
})
