import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { connect } from 'node:net'
import { type Duration, SessionManager, type Store } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { MemoryStore } from 'coatcheck/stores/memory'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createApp } from '../../examples/server/app.mjs'
import { openUsers } from '../../examples/server/users.mjs'
import { CHEAP, Client, PASSWORD } from '../support/example-service.ts'

// The service's own parts in this process, so that a test can hold the clock and break the store.
const DAY = 86_400_000
let sessions: SessionManager<{ label: string }>
let server: Server
let url: string
let now: number
let store: Store
/** Runs before a store call; what it throws, the store throws. */
let fault: ((verb: string) => void | Promise<void>) | null
/** Runs when a password has been verified, before the service hears of it. */
let verified: (() => Promise<void>) | null
/** The same users serve until a test changes one. */
let users: Awaited<ReturnType<typeof openUsers>> | null = null

const namesOf = ({ headers }: { headers: Headers }) => headers.getSetCookie().map(line => line.split('=')[0])

beforeEach(() => open())
afterEach(() => shut())

/** Starts the service anew. A test machine may stand still for a second: only a store that hangs is given up sooner. */
async function open(storeTimeout: Duration = '30s') {
  now = Date.now()
  fault = null
  verified = null
  users ??= await openUsers(CHEAP)
  const { authenticate, ...rest } = users
  const memory = new MemoryStore()
  store = new Proxy<Store>(memory, {
    get(target, verb: keyof Store) {
      const method = target[verb]
      if (typeof method !== 'function') return method
      if (verb === 'shard' || verb === 'close') return method.bind(target)
      return async (...all: never[]) => {
        await fault?.(verb)
        return (method as (...all: never[]) => unknown).apply(target, all)
      }
    },
  })
  sessions = new SessionManager({
    store,
    initial: () => ({ label: '' }),
    rememberFor: '30d',
    storeTimeout,
    now: () => now,
  })
  const held: typeof users = {
    ...rest,
    async authenticate(...credentials) {
      const user = await authenticate(...credentials)
      await verified?.()
      return user
    },
  }
  server = createServer(createApp({ sessions, users: held })).listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as { port: number }).port}`
}
function shut() {
  server.closeAllConnections()
  server.close()
}

const client = (agent?: string) => new Client(url, agent)
const loggedIn = async (agent?: string, remember?: boolean, name = 'ada') => {
  const browser = client(agent)
  expect((await browser.login(name, PASSWORD, remember)).status).toBe(200)
  return browser
}
const change = (browser: Client, oldPassword = PASSWORD, newPassword = 'a password that is new') =>
  browser.send('POST', '/password', { oldPassword, newPassword })

describe('a password change', () => {
  afterEach(() => {
    users = null
  })

  it('logs every other browser out, gives the caller a new ID, and kills the old one', async () => {
    const [mine, second, third] = [await loggedIn(), await loggedIn(), await loggedIn('phone', true)]
    const max = await loggedIn('test', false, 'max')
    const old = mine.cookie
    const answer = await change(mine)
    expect([answer.status, answer.text.trim()]).toEqual([200, '"Password changed. All other devices are logged out."'])
    expect(mine.cookie).not.toBe(old)
    expect([await mine.whoami(), await second.whoami(), await third.whoami()]).toEqual(['ada', null, null])
    expect((await client().send('GET', '/profile', undefined, { Cookie: old })).body).toBeNull()
    expect(await max.whoami()).toBe('max')
    expect((await client().login()).status).toBe(401)
    expect((await client().login('ada', 'a password that is new')).status).toBe(200)
  })

  it('kills remember tokens too, the one of the caller included', async () => {
    const [mine, phone] = [await loggedIn('laptop', true), await loggedIn('phone', true)]
    await change(mine)
    for (const browser of [mine, phone]) {
      browser.cookies.delete('session_id')
      expect(await browser.whoami()).toBeNull()
    }
  })

  it('refuses a login that verified the old password and finishes after the change', async () => {
    const mine = await loggedIn()
    const late = client()
    let release = () => {}
    const held = new Promise<void>(resolve => {
      release = resolve
    })
    let isWaiting = () => {}
    const waiting = new Promise<void>(resolve => {
      isWaiting = resolve
    })
    verified = () => {
      verified = null
      isWaiting()
      return held
    }
    const login = late.login()
    await waiting
    expect((await change(mine)).status).toBe(200)
    release()
    const answer = await login
    expect([answer.status, answer.body.error, late.cookie]).toEqual([401, 'stale_login', ''])
    expect(await late.whoami()).toBeNull()
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
    fault = verb => {
      if (verb === 'deleteUser') throw new Error('down')
    }
    for (let attempt = 0; attempt < 2; attempt++) {
      const answer = await change(mine)
      expect([answer.status, answer.body.error]).toEqual([503, 'sessions_not_ended'])
    }
    expect([await mine.whoami(), await other.whoami()]).toEqual(['ada', 'ada'])
    fault = null
    expect((await change(mine)).status).toBe(200)
    expect([await mine.whoami(), await other.whoami()]).toEqual(['ada', null])
    // Once it is finished the new password is no old password.
    expect((await change(mine)).status).toBe(401)
  })

  it('is finished by the next login where the caller gave up', async () => {
    const [mine, other] = [await loggedIn(), await loggedIn()]
    fault = verb => {
      if (verb === 'deleteUser') throw new Error('down')
    }
    expect((await change(mine)).status).toBe(503)
    fault = null
    await client().login('ada', 'a password that is new')
    expect([await mine.whoami(), await other.whoami()]).toEqual([null, null])
  })

  it('is refused to a remembered session, and 15 minutes after the login: a new login with the password is needed', async () => {
    const phone = await loggedIn('phone', true)
    const desk = await loggedIn('desk')
    now += 15 * 60_000 + 1
    const late = await change(desk)
    expect([late.status, late.body.error]).toEqual([401, 'not_fresh'])
    now += 60 * 60_000
    expect(await phone.whoami()).toBe('ada')
    const remembered = await change(phone)
    expect([remembered.status, remembered.body.error]).toEqual([401, 'not_fresh'])
    expect((await phone.login('ada', PASSWORD)).status).toBe(200)
    expect((await change(phone)).status).toBe(200)
  })

  it('wants the old password also from a session that is fresh', async () => {
    const mine = await loggedIn()
    const answer = await change(mine, 'not my password')
    expect([answer.status, answer.body.error]).toEqual([401, 'invalid_credentials'])
  })
})

describe('remember me', () => {
  it('sends a second cookie with attributes like the first and 30 days of life', async () => {
    const answer = await client().login('ada', PASSWORD, true)
    expect(answer.headers.getSetCookie()[1]).toMatch(
      /^remember_token=[\w-]{43}\.[\w-]{43}; Max-Age=2592000; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
    )
    expect(namesOf(await client().login())).toEqual(['session_id', '__Host-session_bound'])
  })

  it('brings the user back after the session has expired, for 30 days, and labels the device', async () => {
    const phone = await loggedIn('phone', true)
    for (let day = 0; day < 29; day++) {
      now += DAY
      expect(await phone.whoami()).toBe('ada')
    }
    const { body } = await phone.send('GET', '/sessions')
    expect(body).toHaveLength(1)
    await phone.send('GET', '/sessions')
    expect((await phone.send('GET', '/sessions')).body[0].label).toBe('phone')
    now += 2 * DAY
    expect(await phone.whoami()).toBeNull()
  })

  it('ends with the logout', async () => {
    const phone = await loggedIn('phone', true)
    const before = phone.cookie
    const answer = await phone.send('POST', '/logout')
    expect(namesOf(answer).sort()).toEqual(['__Host-session_bound', 'remember_token', 'session_id'])
    expect(phone.cookie).toBe('')
    expect((await client().send('GET', '/profile', undefined, { Cookie: before })).body).toBeNull()
  })
})

describe('devices', () => {
  it('are listed with label and times, and which one this is', async () => {
    const laptop = await loggedIn('a laptop')
    now += 60_000
    const phone = await loggedIn('a phone')
    await loggedIn('of max', false, 'max')
    const { body, text } = await laptop.send('GET', '/sessions')
    expect(body).toEqual([
      { key: expect.stringMatching(/^[\w-]{46}$/), label: 'a phone', createdAt: now, seenAt: now, current: false },
      {
        key: expect.stringMatching(/^[\w-]{46}$/),
        label: 'a laptop',
        createdAt: now - 60_000,
        seenAt: now - 60_000,
        current: true,
      },
    ])
    for (const browser of [laptop, phone]) expect(text).not.toContain(browser.cookies.get('session_id'))
  })

  it('are a hundred at most, the latest seen first, however often a user logs in', async () => {
    for (let login = 0; login < 120; login += 1) await sessions.create({ user: { id: 42n, name: 'ada' } })
    now += 60_000
    const laptop = await loggedIn('a laptop')
    const { body } = await laptop.send('GET', '/sessions')
    expect(body).toHaveLength(100)
    expect(body[0]).toMatchObject({ label: 'a laptop', current: true })
  })

  it('end one by one, remember token and all', async () => {
    const [laptop, phone] = [await loggedIn('laptop'), await loggedIn('phone', true)]
    const { body } = await laptop.send('GET', '/sessions')
    const { key } = body.find(({ label }: { label: string }) => label === 'phone')
    expect((await laptop.send('DELETE', `/sessions/${key}`)).status).toBe(200)
    expect([await phone.whoami(), await laptop.whoami()]).toEqual([null, 'ada'])
    expect((await laptop.send('DELETE', `/sessions/${key}`)).status).toBe(404)
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

  it('end by their own request as by a logout', async () => {
    const ada = await loggedIn()
    const { key } = (await ada.send('GET', '/sessions')).body[0]
    expect((await ada.send('DELETE', `/sessions/${key}`)).status).toBe(200)
    expect(ada.cookie).toBe('')
  })

  it('have labels of at most 256 characters, without control characters', async () => {
    const body = JSON.stringify({ username: 'ada', password: PASSWORD })
    const { port } = new URL(url)
    const socket = connect(Number(port), '127.0.0.1')
    const agent = Buffer.from(`tab\there C1\x85\x9b end ${'x'.repeat(300)}`, 'latin1')
    socket.write('POST /login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n')
    socket.write(Buffer.concat([Buffer.from('User-Agent: '), agent]))
    socket.write(`\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    await once(socket.resume(), 'end')
    const ada = await loggedIn()
    const { body: list } = await ada.send('GET', '/sessions')
    const label = list.map((session: { label: string }) => session.label).find((text: string) => text !== 'test')
    expect(label).toMatch(/^tabhere C1 end x+$/)
    expect(label).toHaveLength(256)
  })
})

describe('a session', () => {
  it('expires after 30 minutes without a request, and not before', async () => {
    const ada = await loggedIn()
    now += 29 * 60_000
    expect(await ada.whoami()).toBe('ada')
    now += 29 * 60_000
    expect(await ada.whoami()).toBe('ada')
    now += 31 * 60_000
    expect(await ada.whoami()).toBeNull()
  })
})

describe('a new ID', () => {
  it('is refused after 32 within minutes, as a conflict and no outage; the session goes on, and ends at a logout', async () => {
    const ada = await loggedIn()
    const first = ada.cookie
    const rotate = () => ada.send('POST', '/session/rotate')
    for (let times = 0; times < 32; times++) expect((await rotate()).status).toBe(200)
    const refused = await rotate()
    expect([refused.status, refused.body]).toEqual([409, { error: 'conflict', message: expect.any(String) }])
    expect(refused.headers.getSetCookie()).toEqual([])
    expect(await ada.whoami()).toBe('ada')
    now += 10 * 60_000
    expect((await rotate()).status).toBe(200)

    const last = ada.cookie
    expect((await ada.send('POST', '/logout')).status).toBe(200)
    for (const Cookie of [first, last])
      expect((await client().send('GET', '/profile', undefined, { Cookie })).body).toBeNull()
  })
})

describe('a store that fails', () => {
  const faults: [string, () => unknown][] = [
    ['throws', () => Promise.reject(new Error('down'))],
    ['hangs', () => new Promise(() => {})],
  ]
  const requests: [string, string, unknown][] = [
    ['GET', '/profile', undefined],
    ['POST', '/logout', undefined],
    ['POST', '/login', { username: 'ada', password: PASSWORD }],
    ['POST', '/password', { oldPassword: PASSWORD, newPassword: 'long enough' }],
    ['GET', '/sessions', undefined],
    ['DELETE', `/sessions/${'A'.repeat(46)}`, undefined],
  ]
  it.each(
    faults.flatMap(([how, fail]) => requests.map(request => [how, ...request.slice(0, 2), request[2], fail] as const)),
  )('and %s: %s %s is 503, no cookie is touched, and the session goes on afterwards', async (...all) => {
    const [how, method, path, body, fail] = all as [string, string, string, unknown, () => Promise<void>]
    if (how === 'hangs') {
      shut()
      await open('1s')
    }
    const ada = await loggedIn('test', true)
    fault = () => fail()
    const answer = await ada.send(method, path, body)
    expect([answer.status, answer.body.error]).toEqual([503, 'store_unavailable'])
    expect(answer.headers.getSetCookie()).toEqual([])
    fault = null
    expect(await ada.whoami()).toBe('ada')
  })

  it('leaves those without a session undisturbed', async () => {
    fault = () => Promise.reject(new Error('down'))
    expect(await client().whoami()).toBeNull()
    expect((await client().send('POST', '/logout')).status).toBe(200)
  })

  it('shows people a page that says so', async () => {
    const ada = await loggedIn()
    fault = () => Promise.reject(new Error('down'))
    const answer = await ada.send('GET', '/')
    expect([answer.status, answer.headers.getSetCookie()]).toEqual([503, []])
    expect(answer.text).toMatch(/data-state="unavailable"/)
  })

  it('answers undefined: 503, not a crash', async () => {
    const ada = await loggedIn()
    const read = store.read.bind(store)
    Object.assign(store, { read: async () => undefined as unknown as SessionRecord })
    expect((await ada.send('GET', '/profile')).status).toBe(503)
    Object.assign(store, { read })
    expect(await ada.whoami()).toBe('ada')
  })
})
