// The example service: login, profile, logout, password change and devices.
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Client, PASSWORD } from '../support/example-service.ts'
import { type InProcess, openService } from './in-process.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const NEW_PASSWORD = 'a password that is new'
let service: InProcess
beforeEach(async () => {
  service = await openService()
})
afterEach(() => service.stop())

const client = () => service.client()
const loggedIn = (...how: Parameters<InProcess['loggedIn']>) => service.loggedIn(...how)
const down = () => Promise.reject(new Error('down'))
const change = (browser: Client, oldPassword = PASSWORD, newPassword = NEW_PASSWORD) =>
  browser.send('POST', '/password', { oldPassword, newPassword })
const profileOf = async (Cookie: string) => (await client().send('GET', '/profile', undefined, { Cookie })).body

it('logs in, shows the profile and logs out', async () => {
  const ada = client()
  expect((await ada.send('GET', '/profile')).text.trim()).toBe('null')
  const login = await ada.login()
  expect([login.status, login.text.trim()]).toEqual([200, '"Logged in."'])
  expect(login.headers.getSetCookie()).toEqual([
    expect.stringMatching(/^session_id=[\w-]{43}; Max-Age=1800; Path=\/; HttpOnly; Secure; SameSite=Lax$/),
    expect.stringMatching(/^__Host-session_bound=[\w.-]+; Max-Age=\d+; Path=\/; HttpOnly; Secure; SameSite=Lax$/),
  ])
  const profile = await ada.send('GET', '/profile')
  expect(profile.text.trim()).toBe('{"id":42,"name":"ada"}')
  expect(['content-type', 'cache-control', 'vary'].map(name => profile.headers.get(name))).toEqual([
    'application/json; charset=utf-8',
    'no-store',
    'Cookie',
  ])
  const stolen = ada.cookie
  const logout = await ada.send('POST', '/logout')
  expect([logout.status, logout.text.trim()]).toEqual([200, '"Logged out."'])
  const cleared = '=; Max-Age=0; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly; Secure; SameSite=Lax'
  expect(logout.headers.getSetCookie()).toEqual([`session_id${cleared}`, `__Host-session_bound${cleared}`])
  expect(await profileOf(stolen)).toBeNull()
  expect((await client().send('POST', '/logout')).status).toBe(200)
})

describe('a password change', () => {
  it('logs every other browser out, remember tokens too, gives the caller a new ID, and kills the old one', async () => {
    const [mine, second, phone] = [await loggedIn('laptop', true), await loggedIn(), await loggedIn('phone', true)]
    const max = await loggedIn('test', false, 'max')
    const old = mine.cookie
    const answer = await change(mine)
    expect([answer.status, answer.text.trim()]).toEqual([200, '"Password changed. All other devices are logged out."'])
    expect(mine.cookie).not.toBe(old)
    expect([await mine.whoami(), await second.whoami(), await phone.whoami()]).toEqual(['ada', null, null])
    expect([await profileOf(old), await max.whoami()]).toEqual([null, 'max'])
    for (const browser of [mine, phone]) {
      browser.cookies.delete('session_id')
      expect(await browser.whoami()).toBeNull()
    }
    expect((await client().login()).status).toBe(401)
    expect((await client().login('ada', NEW_PASSWORD)).status).toBe(200)
  })

  it('is done once when two ask at the same time', async () => {
    const [mine, other] = [await loggedIn(), await loggedIn()]
    const answers = await Promise.all([
      change(mine, PASSWORD, 'the first new password'),
      change(other, PASSWORD, 'the second new password'),
    ])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401])
  })

  it('says so when the other sessions could not be ended, and the same request again finishes it', async () => {
    const [mine, other] = [await loggedIn(), await loggedIn()]
    service.at.fault = method => method === 'deleteUser' && down()
    for (let attempt = 0; attempt < 2; attempt++) {
      const answer = await change(mine)
      expect([answer.status, answer.body.error]).toEqual([503, 'sessions_not_ended'])
    }
    expect([await mine.whoami(), await other.whoami()]).toEqual(['ada', 'ada'])
    service.at.fault = null
    expect((await change(mine)).status).toBe(200)
    expect([await mine.whoami(), await other.whoami()]).toEqual(['ada', null])
    // Once it is finished the new password is no old password.
    expect((await change(mine)).status).toBe(401)
  })

  it('is finished by the next login where the caller gave up', async () => {
    const [mine, other] = [await loggedIn(), await loggedIn()]
    service.at.fault = method => method === 'deleteUser' && down()
    expect((await change(mine)).status).toBe(503)
    service.at.fault = null
    await client().login('ada', NEW_PASSWORD)
    expect([await mine.whoami(), await other.whoami()]).toEqual([null, null])
  })

  it('is refused to a remembered session, and 15 minutes after the login: a new login with the password is needed', async () => {
    const phone = await loggedIn('phone', true)
    const desk = await loggedIn('desk')
    service.at.later = 15 * MINUTE + 1
    const late = await change(desk)
    expect([late.status, late.body.error]).toEqual([401, 'not_fresh'])
    service.at.later += 60 * MINUTE
    expect(await phone.whoami()).toBe('ada')
    expect((await phone.send('GET', '/sessions')).body.map(({ label }: { label: string }) => label)).toEqual(['phone'])
    const remembered = await change(phone)
    expect([remembered.status, remembered.body.error]).toEqual([401, 'not_fresh'])
    expect((await phone.login()).status).toBe(200)
    expect((await change(phone)).status).toBe(200)
  })
})

describe('devices', () => {
  it('are listed with label and times, and which one this is', async () => {
    const laptop = await loggedIn('a laptop')
    const begun = service.now()
    service.at.later = MINUTE
    const phone = await loggedIn('a phone')
    await loggedIn('of max', false, 'max')
    const { body, text } = await laptop.send('GET', '/sessions')
    const key = expect.stringMatching(/^[\w-]{46}$/)
    expect(body).toEqual([
      { key, label: 'a phone', createdAt: begun + MINUTE, seenAt: begun + MINUTE, current: false },
      { key, label: 'a laptop', createdAt: begun, seenAt: begun, current: true },
    ])
    for (const browser of [laptop, phone]) expect(text).not.toContain(browser.cookies.get('session_id'))
  })

  it('are a hundred at most, the latest seen first, however often a user logs in', async () => {
    for (let login = 0; login < 120; login += 1) await service.sessions.create({ user: { id: 42n, name: 'ada' } })
    service.at.later = MINUTE
    const laptop = await loggedIn('a laptop')
    const { body } = await laptop.send('GET', '/sessions')
    expect(body).toHaveLength(100)
    expect(body[0]).toMatchObject({ label: 'a laptop', current: true })
  })

  it('end one by one, remember token and all, and the own one as by a logout', async () => {
    const [laptop, phone] = [await loggedIn('laptop'), await loggedIn('phone', true)]
    const { body } = await laptop.send('GET', '/sessions')
    const keyOf = (device: string) => body.find(({ label }: { label: string }) => label === device).key
    expect((await laptop.send('DELETE', `/sessions/${keyOf('phone')}`)).status).toBe(200)
    expect([await phone.whoami(), await laptop.whoami()]).toEqual([null, 'ada'])
    expect((await laptop.send('DELETE', `/sessions/${keyOf('phone')}`)).status).toBe(404)
    expect((await laptop.send('DELETE', `/sessions/${keyOf('laptop')}`)).status).toBe(200)
    expect(laptop.cookie).toBe('')
  })

  it('of other users cannot be ended, nor seen from the answer whether they exist', async () => {
    const [ada, max] = [await loggedIn(), await loggedIn('test', false, 'max')]
    const { key } = (await max.send('GET', '/sessions')).body[0]
    const answers = await Promise.all(
      [key, 'A'.repeat(46), 'x', '__proto__', max.cookies.get('session_id')].map(each =>
        ada.send('DELETE', `/sessions/${each}`),
      ),
    )
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(answers[0]!.status).toBe(404)
    expect(await max.whoami()).toBe('max')
  })

  it('end all at once', async () => {
    const [laptop, phone] = [await loggedIn('laptop', true), await loggedIn()]
    expect((await laptop.send('DELETE', '/sessions')).body).toBe('Logged out everywhere.')
    expect([laptop.cookie, await laptop.whoami(), await phone.whoami()]).toEqual(['', null, null])
  })

  it('have labels of at most 256 characters, without control characters', async () => {
    const body = JSON.stringify({ username: 'ada', password: PASSWORD })
    const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
    const agent = Buffer.from(`tab\there C1\x85\x9b end ${'x'.repeat(300)}`, 'latin1')
    socket.write('POST /login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n')
    socket.write(Buffer.concat([Buffer.from('User-Agent: '), agent]))
    socket.write(`\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    await once(socket.resume(), 'end')
    const { body: list } = await (await loggedIn()).send('GET', '/sessions')
    const label = list.map((session: { label: string }) => session.label).find((text: string) => text !== 'test')
    expect(label).toMatch(/^tabhere C1 end x+$/)
    expect(label).toHaveLength(256)
  })
})

describe('a session', () => {
  it('tells its times without being extended, and when it got a new ID, of which it gets 32 in a few minutes', async () => {
    const ada = client()
    expect((await ada.send('GET', '/session')).body).toBeNull()
    await ada.login()
    const begun = service.now()
    service.at.later = 20 * MINUTE
    const times = {
      createdAt: begun,
      seenAt: begun,
      expiresAt: begun + 30 * MINUTE,
      absoluteExpiresAt: begun + DAY / 2,
    }
    for (let polls = 0; polls < 2; polls += 1)
      expect((await ada.send('GET', '/session')).body).toEqual({
        ...times,
        now: expect.any(Number),
        remembered: false,
        rotatedAt: null,
        boundAt: null,
      })
    const before = ada.cookies.get('session_id')
    expect((await ada.send('POST', '/session/rotate')).body).toBe('The session has a new ID.')
    expect(ada.cookies.get('session_id')).not.toBe(before)
    expect((await ada.send('GET', '/session')).body).toMatchObject({ createdAt: begun, rotatedAt: expect.any(Number) })
    for (let ids = 1; ids < 32; ids += 1) await ada.send('POST', '/session/rotate')
    expect(await ada.send('POST', '/session/rotate')).toMatchObject({ status: 409, body: { error: 'conflict' } })
  })
})

describe('a store that fails', () => {
  const requests: [string, string, unknown][] = [
    ['GET', '/profile', undefined],
    ['POST', '/logout', undefined],
    ['POST', '/login', { username: 'ada', password: PASSWORD }],
    ['POST', '/password', { oldPassword: PASSWORD, newPassword: 'long enough' }],
    ['GET', '/sessions', undefined],
    ['DELETE', `/sessions/${'A'.repeat(46)}`, undefined],
  ]
  it('is a 503 for each endpoint, no cookie is touched, and the session goes on afterwards', async () => {
    const ada = await loggedIn('test', true)
    for (const [method, path, body] of requests) {
      service.at.fault = down
      const answer = await ada.send(method, path, body)
      expect([path, answer.status, answer.body.error]).toEqual([path, 503, 'store_unavailable'])
      expect(answer.headers.getSetCookie()).toEqual([])
      service.at.fault = null
      expect(await ada.whoami()).toBe('ada')
    }
  })
})
