// The short examples, each run as its reader would run it, in one process each.
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { Client, root, startExample } from '../support/example-service.ts'
import { freePort, until } from '../support/services/process.ts'
import { started } from '../support/started.ts'
import { run as runProgram, useAttacks } from './attacks.ts'

const run = promisify(execFile)
useAttacks()
const folder = mkdtempSync(join(tmpdir(), 'coatcheck-examples-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** What is asked of all of them, and then what is special. */
function example(name: string, special: (running: () => { url: string }) => void, env: Record<string, string> = {}) {
  describe(name, () => {
    const service = started(() => runProgram(`examples/${name}`, undefined, env))

    it.each([
      ['the store', 503, { isDown: true }, 'no table "users" at db.internal:5432'],
      ['the handler', 500, { breaks: {} }, 'Incorrect API key sk-live-12 at db.internal:5432'],
    ])('keeps to itself what went wrong in %s, and in its log', async (_, status, broken, told) => {
      service().control(broken)
      const answer = await new Client(service().url).login('ada', 'lovelace')
      service().control({})
      expect([answer.status, JSON.parse(answer.text)]).toEqual([
        status,
        { error: expect.stringMatching(/^something went wrong\.?$/i) },
      ])
      await until('it is in the log', () => expect(service().output()).toContain(told))
    })

    special(service)
  })
}

function takesBodies(running: () => { url: string }) {
  it('reads a body of at most 16 KiB, and none whose length is not said', async () => {
    const { url } = running()
    const post = (body: string | ReadableStream) =>
      fetch(`${url}/login`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body,
        duplex: 'half',
      } as RequestInit)
    const endless = new ReadableStream({
      async pull(controller) {
        // A stream that is never out of data leaves its own process no turn to hear the answer.
        await new Promise(resolve => setImmediate(resolve))
        controller.enqueue(new TextEncoder().encode('[1,'.repeat(1000)))
      },
    })
    expect([400, 401]).toContain((await post(JSON.stringify({ username: 'x'.repeat(16_000) }))).status)
    expect((await post(JSON.stringify({ username: 'x'.repeat(17_000) }))).status).toBe(413)
    expect((await post(endless).catch(error => error)).status ?? 413).toBe(413)
    const withCharset = { 'Content-Type': 'application/json; charset=utf-8' }
    const body = { username: 'ada', password: 'lovelace' }
    expect((await new Client(url).send('POST', '/login', body, withCharset)).status).toBe(200)
  })
}

function walks(running: () => { url: string }) {
  it('logs in, shows the profile and logs out', async () => {
    const ada = new Client(running().url)
    expect(await ada.whoami()).toBeNull()
    const login = await ada.login('ada', 'lovelace')
    expect([login.status, login.text]).toEqual([200, '"Logged in."'])
    expect((await ada.send('GET', '/profile')).text).toBe('{"id":42,"name":"ada"}')
    const before = ada.cookie
    expect((await ada.send('POST', '/logout')).text).toBe('"Logged out."')
    expect(ada.cookie).toBe('')
    expect((await ada.send('GET', '/profile', undefined, { Cookie: before })).body).toBeNull()
    expect((await ada.send('GET', '/nothing')).status).toBe(404)
    const evil = { Origin: 'https://evil.example' }
    expect((await ada.send('POST', '/login', undefined, evil)).status).toBeGreaterThan(399)
  })
}

it('encrypted-store.test.mjs is a test that passes', async () => {
  await run(process.execPath, ['examples/encrypted-store.test.mjs'], { cwd: root })
})

example('fetch.mjs', walks)

example('login.mjs', running => {
  walks(running)
  takesBodies(running)
})

example('logout-everywhere.mjs', running => {
  it('ends every other session and every late login at a password change', async () => {
    const { url } = running()
    const [mine, second, third] = [new Client(url), new Client(url), new Client(url)]
    for (const client of [mine, second, third]) await client.login('ada', 'lovelace')
    const old = mine.cookie
    const change = async (oldPassword: string) =>
      (await mine.send('POST', '/password', { oldPassword, newPassword: 'babbage' })).status
    expect([await change('wrong'), await change('x'.repeat(201))]).toEqual([401, 400])
    const answer = await mine.send('POST', '/password', { oldPassword: 'lovelace', newPassword: 'babbage' })
    expect([answer.status, answer.body]).toEqual([200, { ended: 2 }])
    expect([await mine.whoami(), await second.whoami(), await third.whoami()]).toEqual(['ada', null, null])
    expect((await new Client(url).send('GET', '/profile', undefined, { Cookie: old })).body).toBeNull()
    expect((await second.login('ada', 'lovelace')).status).toBe(401)
    expect((await second.login('ada', 'babbage')).status).toBe(200)
    await second.send('POST', '/password', { oldPassword: 'babbage', newPassword: 'lovelace' })
  })
})

example('cart.mjs', running => {
  takesBodies(running)

  it('keeps a cart from before the login, loses no article, and gives it to no other user', async () => {
    const { url } = running()
    const visitor = new Client(url)
    expect((await visitor.send('GET', '/cart')).body).toEqual({ cart: {}, hint: '' })
    expect(visitor.cookie).toBe('')
    await visitor.send('POST', '/cart', { article: 'hat' })
    await Promise.all(Array.from({ length: 20 }, () => visitor.send('POST', '/cart', { article: 'coat' })))
    expect((await visitor.send('POST', '/cart', { article: '__proto__' })).status).toBe(400)
    const cart = { hat: 1, coat: 20 }
    expect((await visitor.send('GET', '/cart')).body).toEqual({ cart, hint: 'One more coat.' })
    expect((await visitor.send('GET', '/cart')).body).toEqual({ cart, hint: '' })

    const before = visitor.cookie
    expect((await visitor.login('ada')).body).toEqual(cart)
    expect(visitor.cookie).not.toBe(before)
    expect((await visitor.send('GET', '/cart')).body).toEqual({ cart, hint: '' })
    await visitor.send('POST', '/logout')
    expect((await visitor.send('GET', '/cart')).body).toEqual({ cart: {}, hint: '' })
  })
})

example('bearer.mjs', running => {
  takesBodies(running)

  /** An app that keeps its token by the rule in the first lines of the example. */
  function newApp() {
    let token = ''
    const send = async (method: string, path: string, { body = '', ...headers }: Record<string, string> = {}) => {
      const response = await fetch(running().url + path, {
        method,
        headers: {
          ...(token !== '' && { Authorization: `Bearer ${token}` }),
          ...(body !== '' && { 'Content-Type': 'application/json' }),
          ...headers,
        },
        ...(body !== '' && { body }),
      })
      expect(response.headers.getSetCookie()).toEqual([])
      token = response.headers.get('session-token') ?? token
      return { status: response.status, body: await response.json(), cache: response.headers.get('cache-control') }
    }
    const logIn = () => send('POST', '/login', { body: '{"username":"ada","password":"lovelace"}' })
    return { send, logIn, token: () => token }
  }
  const ADA = { id: 42, name: 'ada' }

  it('logs in, goes on under a new token, and logs out, without a cookie', async () => {
    const app = newApp()
    expect((await app.send('GET', '/profile')).body).toBeNull()
    expect(await app.logIn()).toEqual({ status: 200, body: 'Logged in.', cache: 'no-store' })
    const first = app.token()
    expect(first).toMatch(/^[\w-]{43}$/)
    expect((await app.send('GET', '/profile')).body).toEqual(ADA)
    expect(app.token()).toBe(first)

    await app.send('POST', '/rotate')
    expect(app.token()).not.toBe(first)
    expect((await app.send('GET', '/profile')).body).toEqual(ADA)
    const last = app.token()
    expect((await app.send('POST', '/logout')).body).toBe('Logged out.')
    expect(app.token()).toBe('')
    for (const dead of [first, last])
      expect((await app.send('GET', '/profile', { Authorization: `Bearer ${dead}` })).body).toBeNull()
  })

  it('honours no cookie, so that a page of another site can do nothing; and needs no Origin', async () => {
    const app = newApp()
    await app.logIn()
    const token = app.token()
    const cookie = { Cookie: `session_id=${token}`, Authorization: '' }
    expect((await app.send('GET', '/profile', cookie)).body).toBeNull()
    await app.send('POST', '/logout', { ...cookie, Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' })
    // The session lives on; with its token a request may come from wherever it likes.
    const other = { Authorization: `Bearer ${token}`, Origin: 'https://tool.example', 'Sec-Fetch-Site': 'cross-site' }
    expect((await app.send('GET', '/profile', other)).body).toEqual(ADA)
    expect((await app.send('POST', '/rotate', other)).body).toBe('A new token.')
  })

  it('takes what is no token for no session', async () => {
    const app = newApp()
    await app.logIn()
    const token = app.token()
    for (const Authorization of [
      '',
      'Bearer',
      'Bearer x',
      token,
      `Basic ${token}`,
      `Bearer ${token}x`,
      `Bearer ${token.slice(1)}`,
      `Bearer x; session_id=${token}`,
      `Bearer ${token}; session_id=${token}`,
      `Bearer ${token}, Bearer ${token}`,
    ])
      expect([Authorization, (await app.send('GET', '/profile', { Authorization })).body]).toEqual([
        Authorization,
        null,
      ])
    expect((await app.send('GET', '/profile', { Authorization: `bearer  ${token}` })).body).toEqual(ADA)
  })
})

/** The answer to a GET as it stands, whatever is asked for. */
async function rawGet(port: number, target: string, host: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.write(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
  return text(socket)
}

describe('https.mjs', () => {
  it('says the line that makes a certificate; with it redirects from HTTP, demands HTTPS for a year, and prefixes its cookie', async () => {
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    const settings = { KEY: key, CERT: cert, HTTP_PORT: `${await freePort()}` }
    const told = await run(process.execPath, [join(root, 'examples/https.mjs')], {
      env: { ...process.env, ...settings },
    }).catch(error => error)
    expect([told.code, told.stderr]).toEqual([1, expect.stringMatching(/^There is no certificate yet\./)])
    const [, line] = /\n {2}openssl (.*)/.exec(told.stderr) ?? []
    await run('openssl', line!.split(' '))

    const httpPort = Number(settings.HTTP_PORT)
    const service = await startExample('https.mjs', settings)
    const { url } = service
    onTestFinished(() => service.stop())
    // It prints one address for each of its two servers; the second listens a moment after the first.
    await until('the redirect listens', async () => {
      if (!service.output().includes(`http://127.0.0.1:${httpPort}`)) throw new Error(service.output())
    })
    const plain = await new Client(`http://127.0.0.1:${httpPort}`).send('GET', '/profile?a=b')
    expect([plain.status, plain.headers.get('location')]).toEqual([308, `${url}/profile?a=b`])
    const refused = await new Client(`http://127.0.0.1:${httpPort}`).login()
    expect([refused.status, refused.headers.getSetCookie()]).toEqual([403, []])
    const forged = await rawGet(httpPort, '//evil.example/x', 'evil.example')
    expect(forged).toContain(`Location: ${url}//evil.example/x`)
    expect(await rawGet(httpPort, 'http://evil.example/x', 'localhost')).toMatch(/^HTTP\/1\.1 403 /)
    expect([plain.headers.get('strict-transport-security'), forged]).not.toContain('max-age')

    const send = async (method: string, path: string, cookie = '') => {
      const sent = request(url + path, { method, ca: readFileSync(cert), headers: { Cookie: cookie } }).end()
      const [response] = (await once(sent, 'response')) as [IncomingMessage]
      return { headers: response.headers, text: await text(response) }
    }
    const login = await send('POST', '/login')
    expect(login.headers['strict-transport-security']).toBe('max-age=31536000')
    expect(login.headers['set-cookie']).toEqual([
      expect.stringMatching(/^__Host-session_id=[\w-]{43}; Max-Age=1800; Path=\/; HttpOnly; Secure; SameSite=Lax$/),
    ])
    const cookie = login.headers['set-cookie']![0]!.split(';')[0]!
    expect((await send('GET', '/profile', cookie)).text).toBe('{"id":42,"name":"ada"}')
    expect((await send('GET', '/profile', cookie.replace('__Host-', ''))).text).toBe('null')
  })
})

const FRONT = `${await freePort()}`
example(
  'cors.mjs',
  running => {
    it('lets its front end read and send, and no other origin', async () => {
      const origin = { Origin: `http://localhost:${FRONT}`, 'Sec-Fetch-Site': 'same-site' }
      const client = new Client(`http://localhost:${new URL(running().url).port}`)
      const preflight = await client.send('OPTIONS', '/login', undefined, {
        ...origin,
        'Access-Control-Request-Method': 'POST',
      })
      expect(Object.fromEntries(preflight.headers)).toMatchObject({
        'access-control-allow-origin': origin.Origin,
        'access-control-allow-credentials': 'true',
        'access-control-allow-methods': 'PUT, PATCH, DELETE',
        'access-control-allow-headers': 'Content-Type',
        'access-control-max-age': '600',
        vary: 'Origin',
      })
      expect(preflight.status).toBe(204)
      expect((await client.send('POST', '/login', undefined, origin)).status).toBe(200)
      const profile = await client.send('GET', '/profile', undefined, origin)
      expect(profile.headers.get('access-control-allow-origin')).toBe(origin.Origin)
      expect(profile.headers.get('access-control-allow-credentials')).toBe('true')

      const evil = { Origin: 'http://localhost:1', 'Sec-Fetch-Site': 'same-site' }
      expect((await client.send('POST', '/login', undefined, evil)).status).toBe(403)
      // A preflight that is none: the application has no such endpoint.
      expect((await client.send('OPTIONS', '/login', undefined, origin)).status).toBe(404)
      for (const Origin of ['http://localhost:1', `${origin.Origin}0`, 'null', '*', undefined]) {
        const headers: Record<string, string> = Origin === undefined ? {} : { Origin }
        const asked = await client.send('OPTIONS', '/login', undefined, {
          ...headers,
          'Access-Control-Request-Method': 'PUT',
        })
        expect(asked.status).toBe(Origin === undefined ? 404 : 403)
        for (const reply of [asked, await client.send('GET', '/profile', undefined, headers)]) {
          expect([...reply.headers.keys()].filter(name => name.startsWith('access-control-'))).toEqual([])
          // On every response: a cache must not give one origin's answer to another.
          expect(reply.headers.get('vary')).toMatch(/Origin/)
        }
      }
    })
  },
  { FRONT_PORT: FRONT },
)
