// Bound sessions over HTTP as a browser speaks it, for whatever server answers.
import { once } from 'node:events'
import { request as ask, type IncomingMessage, type RequestListener } from 'node:http'
import type { Visit } from 'coatcheck'
import { deviceState } from 'coatcheck/device-bound'
import { expect, onTestFinished } from 'vitest'
import { ADA, BOUND_COOKIE, challengeIn, REFRESH, REGISTER } from './device-client.ts'
import { newDevice, refreshProof, registrationProof } from './device-key.ts'
import { headersOf, listening } from './listening.ts'

/** What the page at this path answers; its name says what it does first. */
export async function pageOf(visit: Visit, path: string): Promise<string> {
  if (path === '/login') await visit.logIn({ user: ADA })
  if (path === '/logout') await visit.logOut()
  return JSON.stringify({ name: (await visit.get())?.user?.name ?? null, state: await deviceState(visit) })
}

export async function served(handler: RequestListener): Promise<string> {
  const { url, close } = await listening(handler)
  onTestFinished(close)
  return url
}

/** As a browser sends it: Node's fetch would add Sec-Fetch-Mode. */
export async function send(url: string, method: string, headers: Record<string, string>): Promise<Response> {
  const [response] = (await once(ask(url, { method, headers }).end(), 'response')) as [IncomingMessage]
  const head = { status: response.statusCode!, headers: headersOf(response) }
  return new Response(Buffer.concat(await response.toArray()), head)
}

export const cookiesOf = (response: Response) => response.headers.getSetCookie().map(line => line.split(';', 1)[0]!)

/**
 * Logs in, registers, refreshes and logs out. The server logs `ada` in at POST /login, out at POST /logout, and answers every
 * path with `{ name, state }`: who is logged in, and the device's state.
 */
export async function walkOver(origin: string): Promise<void> {
  const device = newDevice()
  const logIn = await send(`${origin}/login`, 'POST', {})
  const [session] = cookiesOf(logIn)
  const registered = await send(origin + REGISTER, 'POST', {
    cookie: session!,
    'secure-session-response': `"${registrationProof(device, challengeIn(logIn)!)}"`,
  })
  expect(registered.status).toBe(200)
  const [bound] = cookiesOf(registered)
  const cookie = `${session}; ${bound}`
  const page = await send(`${origin}/`, 'GET', { cookie })
  expect(await page.json()).toEqual({ name: 'ada', state: 'bound' })
  const { session_identifier: name } = (await registered.json()) as { session_identifier: string }
  const refresh = (headers: object) =>
    send(origin + REFRESH, 'POST', { cookie: session!, 'sec-secure-session-id': name, ...headers })
  const asked = await refresh({})
  expect(asked.status).toBe(403)
  const renewed = await refresh({ 'secure-session-response': refreshProof(device, challengeIn(asked)!) })
  expect([renewed.status, cookiesOf(renewed).length]).toEqual([200, 1])
  // Neither path is for anything else than POST, and neither is a page of the application.
  expect(await (await send(origin + REFRESH, 'GET', { cookie })).json()).toMatchObject({ name: 'ada' })
  const out = await send(`${origin}/logout`, 'POST', { cookie })
  expect(cookiesOf(out).sort()).toEqual([`${BOUND_COOKIE}=`, 'session_id='])
  expect(await (await refresh({})).json()).toEqual({ continue: false })
}
