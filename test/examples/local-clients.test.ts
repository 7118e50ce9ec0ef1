// Clients that keep the Secure cookie of a login and do not send it over http, also not to this machine.
import { afterEach, expect, it } from 'vitest'
import { Client, type Service, startExample } from '../support/example-service.ts'
import { until } from '../support/services/process.ts'

let service: Service
afterEach(() => service?.stop())

const HINT = /127\.0\.0\.1 logged in, and its next request brought no cookie/g
const hints = () => service.output().match(HINT)?.length ?? 0

/** As Python requests, http.cookiejar and wget: what is Secure stays in the jar. */
async function logInAsPython() {
  const python = new Client(service.url)
  expect((await python.login()).status).toBe(200)
  python.cookies.clear()
  expect(await python.whoami()).toBeNull()
}

it('are named when the service starts', async () => {
  service = await startExample('server.mjs')
  await until('the hint is printed', () =>
    expect(service.output()).toMatch(/Python requests, http\.cookiejar and wget .+ COOKIE_SECURE=off/),
  )
})

it('are told once in the log why they are not logged in', async () => {
  service = await startExample('server.mjs')
  await logInAsPython()
  await until('the hint is printed', () => expect(hints()).toBe(1))
  await logInAsPython()
  await service.stop()
  expect(hints()).toBe(1)
})

it('are not suspected in a client that sends its cookie, that logged out, or that never logged in', async () => {
  service = await startExample('server.mjs')
  const ada = new Client(service.url)
  expect((await ada.login('ada', 'wrong')).status).toBe(401)
  expect(await ada.whoami()).toBeNull()
  await ada.login()
  expect(await ada.whoami()).toBe('ada')
  await ada.send('POST', '/logout')
  expect(await ada.whoami()).toBeNull()
  await service.stop()
  expect(hints()).toBe(0)
})

it('are served by COOKIE_SECURE=off, and hear no hint then', async () => {
  service = await startExample('server.mjs', { COOKIE_SECURE: 'off' })
  const login = await new Client(service.url).login('ada', undefined, true)
  const lines = login.headers.getSetCookie()
  expect(lines.map(line => line.split('=')[0])).toEqual(['session_id', 'remember_token', 'session_bound'])
  for (const line of lines) expect(line).not.toMatch(/secure/i)
  await logInAsPython()
  await service.stop()
  expect(service.output()).toMatch(/COOKIE_SECURE=off/)
  expect([hints(), service.output().includes('Python')]).toEqual([0, false])
})
