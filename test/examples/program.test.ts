// The example service as its own program, `npm start`, in memory.
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { openStore } from '../../examples/server/store.mjs'
import { Client, PASSWORD, runExample, type Service, startExample } from '../support/example-service.ts'
import { build } from '../support/scripts/build.mjs'
import { until } from '../support/services/process.ts'

const UNREACHABLE = { STORE_URL: 'redis://:hunter2@127.0.0.1:1' }
let unreachable: ReturnType<typeof runExample>
beforeAll(async () => {
  await build()
  // The service gives a database five seconds: the other tests run meanwhile.
  unreachable = runExample('server.mjs', { PORT: '0', ...UNREACHABLE })
}, 240_000)

let service: Service | undefined
afterEach(() => service?.stop())
const HINT = /127\.0\.0\.1 logged in, and its next request brought no cookie/g
const hints = () => service!.output().match(HINT)?.length ?? 0

/** As Python requests, http.cookiejar and wget: what is Secure stays in the jar, and is not sent over http, also not to this machine. */
async function logInAsPython() {
  const python = new Client(service!.url)
  expect((await python.login()).status).toBe(200)
  python.cookies.clear()
  expect(await python.whoami()).toBeNull()
}

it('goes on after a body that is cut off, which ends its request and nothing else', async () => {
  service = await startExample('server.mjs')
  const { port } = new URL(service.url)
  for (let round = 0; round < 5; round++) {
    const head = 'POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100'
    const socket = connect(Number(port), '127.0.0.1', () => {
      socket.write(`${head}\r\n\r\n{"user`, () => socket.destroy())
    })
    await once(socket, 'close')
  }
  expect((await new Client(service.url).login()).status).toBe(200)
  expect(service.output()).not.toMatch(/Error|aborted/)

  // Whoever names a port that is taken hears so.
  expect(await runExample('server.mjs', { PORT: port })).toEqual({
    output: `Port ${port} is taken: choose another one, for example PORT=3001\n`,
    code: 1,
  })
})

describe('a client that does not send a Secure cookie over http', () => {
  it('is named when the service starts, and told once in the log, which suspects no other client', async () => {
    service = await startExample('server.mjs')
    await until('the hint is printed', () =>
      expect(service!.output()).toMatch(/Python requests, http\.cookiejar and wget .+ COOKIE_SECURE=off/),
    )
    const ada = new Client(service.url)
    expect((await ada.login('ada', 'wrong')).status).toBe(401)
    expect(await ada.whoami()).toBeNull()
    await ada.login()
    expect(await ada.whoami()).toBe('ada')
    await ada.send('POST', '/logout')
    expect(await ada.whoami()).toBeNull()
    expect(hints()).toBe(0)
    await logInAsPython()
    await until('the hint is printed', () => expect(hints()).toBe(1))
    await logInAsPython()
    await service.stop()
    expect(hints()).toBe(1)
  })

  it('is served by COOKIE_SECURE=off, and hears no hint then', async () => {
    service = await startExample('server.mjs', { COOKIE_SECURE: 'off' })
    const lines = (await new Client(service.url).login('ada', undefined, true)).headers.getSetCookie()
    expect(lines.map(line => line.split('=')[0])).toEqual(['session_id', 'remember_token', 'session_bound'])
    for (const line of lines) expect(line).not.toMatch(/secure/i)
    await logInAsPython()
    await service.stop()
    expect(service.output()).toMatch(/COOKIE_SECURE=off/)
    expect([hints(), service.output().includes('Python')]).toEqual([0, false])
  })
})

it.each(['SIGINT', 'SIGTERM'] as const)('stops at %s after it has answered', async signal => {
  service = await startExample('server.mjs')
  // The service says 100 Continue when it has the head of the request: the answer is still to come then.
  const login = request(`${service.url}/login`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Expect: '100-continue' },
  })
  const answer = once(login, 'response')
  login.on('response', response => response.resume())
  const begun = once(login, 'continue')
  login.flushHeaders()
  await begun
  login.end(JSON.stringify({ username: 'ada', password: PASSWORD }))
  await service.stop(signal)
  expect((await answer)[0].statusCode).toBe(200)
  expect(service.code()).toBe(0)
})

describe('a wrong setting', () => {
  it.concurrent.each([
    [{ PORT: 'http' }, /PORT: expected a number/],
    [{ PORT: '70000' }, /PORT: expected a number/],
    [{ COOKIE_SECURE: 'false' }, /COOKIE_SECURE: expected on or off, got "false"/],
    [{ COOKIE_SECURE: 'off', HOST: '' }, /COOKIE_SECURE=off is for this machine alone, not for HOST=/],
    [UNREACHABLE, /Redis at 127\.0\.0\.1:1 cannot be used/],
  ])('is named in a line, where the program does not start: %j', async (env, message) => {
    const { output, code } = await (env === UNREACHABLE ? unreachable : runExample('server.mjs', { PORT: '0', ...env }))
    expect(output).toMatch(message)
    expect(output).not.toMatch(/hunter2|\n {4}at /)
    expect(code).toBe(1)
  })

  it.each([
    ['', /STORE_URL: expected memory:/],
    ['mongodb://localhost', /STORE_URL: expected memory:/],
    ['__proto__:', /STORE_URL: expected memory:/],
    ['redis+cluster://', /expected redis\+cluster:\/\/host:port,host:port/],
    ['sqlite:', /expected sqlite:FILE/],
    ['sqlite:/nowhere/at/all.db', /SQLite in \/nowhere\/at\/all\.db cannot be used/],
    ['postgres://ada:hunter2@127.0.0.1:1/x', /PostgreSQL at 127\.0\.0\.1:1 cannot be used/],
    ['mysql://ada:hunter2@127.0.0.1:1/x', /MySQL at 127\.0\.0\.1:1 cannot be used/],
  ])('of the store is named, without its password: %s', async (url, message) => {
    const error: Error = await openStore(url).then(
      () => new Error('it opened'),
      reason => reason,
    )
    expect(error.message).toMatch(message)
    expect(error.message).not.toContain('hunter2')
  })
})
