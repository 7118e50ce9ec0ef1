// The program of docs/device-bound.md, as it stands there, and requests that nobody should send.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { BOUND_COOKIE, challengeIn, REFRESH, REGISTER } from '../support/device-client.ts'
import { newDevice, refreshProof, registrationProof } from '../support/device-key.ts'
import { cookiesOf, send, served } from '../support/device-wire.ts'

it('the program of the page answers hostile requests of each kind, and goes on', async () => {
  const [, code] = /```js\n([\s\S]*?)```/.exec(readFileSync('docs/device-bound.md', 'utf8'))!
  mkdirSync('.tmp', { recursive: true })
  const file = `${process.cwd()}/.tmp/device-bound-${process.pid}.mjs`
  writeFileSync(file, code!)
  const { server } = await import(/* @vite-ignore */ file).finally(() => rmSync(file))
  const origin = await served((request, response) => server.emit('request', request, response))
  const device = newDevice()
  const login = await send(`${origin}/login`, 'POST', {})
  const [session, first] = cookiesOf(login) as [string, string]
  const proof = registrationProof(device, challengeIn(login)!)
  const cookie = `${session}; ${first}`
  const registered = await send(origin + REGISTER, 'POST', { cookie, 'secure-session-response': proof })
  const { session_identifier: name } = (await registered.json()) as { session_identifier: string }
  const [value] = cookiesOf(registered)
  const own = { cookie: `${session}; ${value}` }
  const page = async () => (await send(origin, 'GET', own)).text()
  expect(await page()).toBe('bound to this device')

  const named = { ...own, 'sec-secure-session-id': name }
  const proofOf = (text: string) => ({ 'secure-session-response': text })
  const hostile: [path: string, method: string, headers: Record<string, string>, status: number][] = [
    ['/login', 'POST', { origin: 'https://evil.example' }, 403],
    ['/login', 'POST', { 'sec-fetch-site': 'cross-site' }, 403],
    ['/', 'PUT', { ...own, origin: 'null' }, 403],
    ['/', 'GET', { cookie: `${session}; ${BOUND_COOKIE}=${'x'.repeat(4000)}` }, 200],
    ['/', 'GET', { cookie: `${session}; ${BOUND_COOKIE}=..; ${BOUND_COOKIE}=-1.zz.` }, 200],
    ['/', 'GET', { cookie: Array.from({ length: 9 }, (_, at) => session.slice(0, -1) + at).join('; ') }, 200],
    [REGISTER, 'POST', {}, 400],
    [REGISTER, 'POST', proofOf('x'.repeat(9000)), 401],
    [REGISTER, 'POST', { ...own, ...proofOf(proof.slice(0, -4)) }, 400],
    [REGISTER, 'POST', { ...own, ...proofOf(registrationProof(newDevice(), 'x')) }, 400],
    [REFRESH, 'POST', own, 400],
    [REFRESH, 'POST', { ...own, 'sec-secure-session-id': '__proto__' }, 200],
    [REFRESH, 'POST', { ...named, ...proofOf('"') }, 400],
    [REFRESH, 'POST', { ...named, ...proofOf('.'.repeat(8192)) }, 400],
    [REFRESH, 'POST', { ...named, ...proofOf(refreshProof(device, '')) }, 400],
    [REFRESH, 'POST', { ...named, ...proofOf(refreshProof(device, '.')) }, 403],
    [`${REFRESH}/%`, 'POST', own, 200],
    ['//[/', 'GET', own, 200],
  ]
  for (const [path, method, headers, status] of hostile) {
    const answer = await send(origin + path, method, headers)
    expect([path, headers, answer.status]).toEqual([path, headers, status])
    expect(await page()).toBe('bound to this device')
  }
})
