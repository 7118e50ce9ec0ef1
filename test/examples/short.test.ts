// The short examples, each run as its reader would run it.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Client, type Service, startExample } from '../support/example-service.ts'
import { build } from '../support/scripts/build.mjs'
import { openBrowser, profileFolder } from '../support/services/chromium.ts'
import { describeEngine } from '../support/services/engines.ts'
import { freePort, until } from '../support/services/process.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../', import.meta.url))

beforeAll(build, 240_000)

let service: Service | undefined
afterEach(async () => {
  await service?.stop()
  service = undefined
})
async function open(name: string, env: Record<string, string> = {}) {
  service = await startExample(name, env)
  return service.url
}

describe.each(['login.mjs', 'fetch.mjs'])('%s', name => {
  it('logs in, shows the profile and logs out', async () => {
    const ada = new Client(await open(name))
    expect(await ada.whoami()).toBeNull()
    const login = await ada.login('ada', 'lovelace')
    expect([login.status, login.text]).toEqual([200, '"Logged in."'])
    expect((await ada.send('GET', '/profile')).text).toBe('{"id":42,"name":"ada"}')
    const before = ada.cookie
    expect((await ada.send('POST', '/logout')).text).toBe('"Logged out."')
    expect(ada.cookie).toBe('')
    expect((await ada.send('GET', '/profile', undefined, { Cookie: before })).body).toBeNull()
    expect((await ada.send('GET', '/nothing')).status).toBe(404)
    expect((await ada.send('POST', '/login', undefined, { Origin: 'https://evil.example' })).status).toBeGreaterThan(
      399,
    )
  })
})

describe('bearer.mjs', () => {
  /** An app that keeps its token by the rule in the first lines of the example. */
  function appOf(url: string) {
    let token = ''
    const send = async (method: string, path: string, { body = '', ...headers }: Record<string, string> = {}) => {
      const response = await fetch(url + path, {
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
    const app = appOf(await open('bearer.mjs'))
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

  it('gives a login a new token, and ends the session of the old one', async () => {
    const app = appOf(await open('bearer.mjs'))
    await app.logIn()
    const before = app.token()
    await app.logIn()
    expect(app.token()).not.toBe(before)
    expect((await app.send('GET', '/profile', { Authorization: `Bearer ${before}` })).body).toBeNull()
  })

  it('gives 32 new tokens within minutes and no more: the app keeps the one that it has', async () => {
    const app = appOf(await open('bearer.mjs'))
    await app.logIn()
    for (let times = 0; times < 32; times++) await app.send('POST', '/rotate')
    const last = app.token()
    expect((await app.send('POST', '/rotate')).status).toBe(503)
    expect(app.token()).toBe(last)
    expect((await app.send('GET', '/profile')).body).toEqual(ADA)
    await app.send('POST', '/logout')
    expect((await app.send('GET', '/profile', { Authorization: `Bearer ${last}` })).body).toBeNull()
  })

  it('honours no cookie, so that a page of another site can do nothing; and needs no Origin', async () => {
    const app = appOf(await open('bearer.mjs'))
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
    const app = appOf(await open('bearer.mjs'))
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

describe.each(['login.mjs', 'logout-everywhere.mjs', 'cart.mjs', 'bearer.mjs'])('%s', name => {
  it('reads a body of at most 16 KiB, and none whose length is not said', async () => {
    const url = await open(name)
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
    expect((await new Client(url).login('ada', 'lovelace')).status).toBe(200)
    const withCharset = { 'Content-Type': 'application/json; charset=utf-8' }
    const body = { username: 'ada', password: 'lovelace' }
    expect((await new Client(url).send('POST', '/login', body, withCharset)).status).toBe(200)
  })
})

describe.each(['login.mjs', 'logout-everywhere.mjs', 'cart.mjs', 'cors.mjs', 'fetch.mjs'])('%s', name => {
  it('keeps what went wrong inside to itself, and in its log', async () => {
    // The store fails, or the handler does where it looks a thing up.
    const failing = `import { MemoryStore } from 'coatcheck/stores/memory'
      const fail = () => { throw new Error('no table "users" at db.internal:5432') }
      if (process.env.FAILS === 'store') MemoryStore.prototype.create = fail
      else MemoryStore.prototype.shard = fail`
    // Inside the project, where `coatcheck` is the package itself.
    await mkdir(join(root, '.tmp'), { recursive: true })
    const folder = await mkdtemp(join(root, '.tmp/failing-'))
    try {
      const preload = join(folder, 'failing.mjs')
      await writeFile(preload, failing)
      for (const [fails, status] of [
        ['store', 503],
        ['handler', 500],
      ] as const) {
        const url = await open(name, { NODE_OPTIONS: `--import ${preload}`, FAILS: fails })
        const answer = await new Client(url).login('ada', 'lovelace')
        expect([fails, answer.status, JSON.parse(answer.text)]).toEqual([
          fails,
          status,
          { error: expect.stringMatching(/^something went wrong\.?$/i) },
        ])
        expect(service!.output()).toContain('no table "users" at db.internal:5432')
        await service!.stop()
      }
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

describe('login.mjs', () => {
  it('refuses a wrong name or password', async () => {
    const url = await open('login.mjs')
    for (const [name, password] of [
      ['ada', 'wrong'],
      ['ada', ''],
      ['max', 'lovelace'],
    ] as const) {
      const ada = new Client(url)
      expect((await ada.login(name, password)).status).toBe(401)
      expect(ada.cookie).toBe('')
    }
    const type = { 'Content-Type': 'application/json' }
    expect((await new Client(url).send('POST', '/login', '{', type)).status).toBe(400)
    expect((await new Client(url).send('POST', '/login', 'null', type)).status).toBe(401)
    expect((await new Client(url).send('POST', '/login')).status).toBe(401)
  })

  it('is short enough to read at once', () => {
    const lines = readFileSync(join(root, 'examples/login.mjs'), 'utf8').trimEnd().split('\n')
    expect(lines.length).toBeLessThanOrEqual(48)
  })
})

describe('logout-everywhere.mjs', () => {
  it('ends every other session and every late login at a password change', async () => {
    const url = await open('logout-everywhere.mjs')
    const [mine, second, third] = [new Client(url), new Client(url), new Client(url)]
    for (const client of [mine, second, third]) await client.login('ada', 'lovelace')
    const old = mine.cookie
    const wrong = await mine.send('POST', '/password', { oldPassword: 'wrong', newPassword: 'babbage' })
    expect(wrong.status).toBe(401)
    const answer = await mine.send('POST', '/password', { oldPassword: 'lovelace', newPassword: 'babbage' })
    expect([answer.status, answer.body]).toEqual([200, { ended: 2 }])
    expect([await mine.whoami(), await second.whoami(), await third.whoami()]).toEqual(['ada', null, null])
    expect((await new Client(url).send('GET', '/profile', undefined, { Cookie: old })).body).toBeNull()
    expect((await second.login('ada', 'lovelace')).status).toBe(401)
    expect((await second.login('ada', 'babbage')).status).toBe(200)
  })
})

describe('cart.mjs', () => {
  it('keeps a cart from before the login, loses no article, and gives it to no other user', async () => {
    const url = await open('cart.mjs')
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

/** The answer to a GET as it stands, whatever is asked for. */
async function rawGet(port: number, target: string, host: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.write(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
  return text(socket)
}

describe('https.mjs', () => {
  it('says the line that makes a certificate if there is none', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'coatcheck-tls-'))
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    try {
      const env = { ...process.env, KEY: key, CERT: cert }
      const told = await run(process.execPath, [join(root, 'examples/https.mjs')], { env }).catch(error => error)
      expect([told.code, told.stderr]).toEqual([1, expect.stringMatching(/^There is no certificate yet\./)])
      const [, line] = /\n {2}openssl (.*)/.exec(told.stderr) ?? []
      await run('openssl', line!.split(' '))
      expect(readFileSync(cert, 'utf8')).toContain('BEGIN CERTIFICATE')
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  it('redirects from HTTP, demands HTTPS for a year, and prefixes its cookie', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'coatcheck-tls-'))
    try {
      const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
      await run('openssl', [
        ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'],
        ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', cert],
      ])
      const httpPort = await freePort()
      const url = await open('https.mjs', { KEY: key, CERT: cert, HTTP_PORT: `${httpPort}` })
      // It prints one address for each of its two servers; the second listens a moment after the first.
      await until('the redirect listens', async () => {
        if (!service!.output().includes(`http://127.0.0.1:${httpPort}`)) throw new Error(service!.output())
      })
      const plain = await new Client(`http://127.0.0.1:${httpPort}`).send('GET', '/profile?a=b')
      expect([plain.status, plain.headers.get('location')]).toEqual([308, `${url}/profile?a=b`])
      const refused = await new Client(`http://127.0.0.1:${httpPort}`).login()
      expect([refused.status, refused.headers.getSetCookie()]).toEqual([403, []])
      const forged = await rawGet(httpPort, '//evil.example/x', 'evil.example')
      expect(forged).toContain(`Location: ${url}//evil.example/x`)
      expect(await rawGet(httpPort, 'http://evil.example/x', 'localhost')).toMatch(/^HTTP\/1\.1 403 /)
      expect([plain.headers.get('strict-transport-security'), forged]).not.toContain('max-age')

      const send = (method: string, path: string, cookie = '') =>
        new Promise<{ headers: NodeJS.Dict<string | string[]>; text: string }>((resolve, reject) => {
          const options = { method, ca: readFileSync(cert), headers: { Cookie: cookie } }
          const sent = request(url + path, options, response => {
            let text = ''
            response.on('data', chunk => {
              text += chunk
            })
            response.on('end', () => resolve({ headers: response.headers, text }))
          })
          sent.on('error', reject).end()
        })
      const login = await send('POST', '/login')
      expect(login.headers['strict-transport-security']).toBe('max-age=31536000')
      expect(login.headers['set-cookie']).toEqual([
        expect.stringMatching(/^__Host-session_id=[\w-]{43}; Max-Age=1800; Path=\/; HttpOnly; Secure; SameSite=Lax$/),
      ])
      const cookie = login.headers['set-cookie']![0]!.split(';')[0]!
      expect((await send('GET', '/profile', cookie)).text).toBe('{"id":42,"name":"ada"}')
      expect((await send('GET', '/profile', cookie.replace('__Host-', ''))).text).toBe('null')
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

describe('cors.mjs', () => {
  it('lets its front end read and send, and no other origin', async () => {
    const [port, front] = [await freePort(), await freePort()]
    const url = await open('cors.mjs', { PORT: `${port}`, FRONT_PORT: `${front}` })
    const origin = { Origin: `http://localhost:${front}`, 'Sec-Fetch-Site': 'same-site' }
    const client = new Client(`http://localhost:${port}`)
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
    expect(url).toMatch(/^http/)
  })

  describeEngine('chromium', 'in Chromium', () => {
    it('logs in from the front end on its own origin', async () => {
      const [port, front] = [await freePort(), await freePort()]
      await open('cors.mjs', { PORT: `${port}`, FRONT_PORT: `${front}` })
      const profile = await profileFolder()
      const browser = await openBrowser(profile.path)
      try {
        const page = await browser.newPage()
        await page.goto(`http://localhost:${front}`)
        await page.getByRole('button', { name: 'Log in' }).click()
        await page.getByText('{"id":42,"name":"ada"}').waitFor()
      } finally {
        await browser.close()
        await profile.remove()
      }
    })
  })
})
