// What visitors do at a recipe that is measured: each test then compares what its SDK has counted.
import { once } from 'node:events'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect } from 'vitest'
import { Client, PASSWORD } from '../support/example-service.ts'
import type { RunningRecipe } from './recipe.ts'

const credentials = { username: 'ada', password: PASSWORD }
const EVIL = { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' }
/** As a proxy adds it that the recipe was not told of. */
const PROXIED = { 'X-Forwarded-For': '203.0.113.9', 'X-Forwarded-Proto': 'https' }
const MINUTE = 60_000

/** The trace that the request of the conflict belongs to, so that its spans are found. */
export const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'

async function logIn(url: string, remember = false): Promise<Client> {
  const client = new Client(url)
  const { status } = await client.send('POST', '/login', { ...credentials, remember })
  expect(status).toBe(200)
  return client
}

/** Writes a session while another request, which has read it, still waits for its body: that one meets a conflict. */
async function conflict(running: RunningRecipe, hasRead: () => Promise<unknown>): Promise<void> {
  const ada = await logIn(running.url)
  const body = JSON.stringify({ theme: 'dark' })
  const late = request(`${running.url}/theme`, {
    method: 'PUT',
    headers: {
      Cookie: ada.cookie,
      'Content-Type': 'application/json',
      'Content-Length': body.length,
      traceparent: `00-${TRACE}-00f067aa0ba902b7-01`,
    },
  })
  late.flushHeaders()
  await hasRead()
  expect((await ada.send('PUT', '/theme', { theme: 'light' })).body).toBe('light')
  late.end(body)
  const [response] = await once(late, 'response')
  expect([response.statusCode, await text(response)]).toEqual([200, '"dark"'])
}

/**
 * 3 logins with a password, one of them remembered, and 1 by its token; 3 refusals of another origin and 1 without HTTPS;
 * a conflict, a touch, a theft, a logout, an outage. `hasRead` waits until the request that belongs to `TRACE` has read
 * its session.
 */
export async function visitEverything(running: RunningRecipe, hasRead: () => Promise<unknown>): Promise<void> {
  const { url } = running
  const anonymous = new Client(url)
  expect((await anonymous.send('GET', '/profile')).status).toBe(401)
  expect((await anonymous.send('GET', '/.env')).status).toBe(404)
  for (const attempt of [1, 2, 3])
    expect([attempt, (await anonymous.send('POST', '/login', credentials, EVIL)).status]).toEqual([attempt, 403])
  expect((await anonymous.send('POST', '/login', credentials, PROXIED)).status).toBe(403)

  await conflict(running, hasRead)

  const ada = await logIn(url)
  running.control({ ahead: 16 * MINUTE })
  expect((await ada.send('GET', '/profile')).status).toBe(200) // touches
  running.control({ isDown: true, ahead: 16 * MINUTE })
  expect((await ada.send('GET', '/profile')).status).toBe(503)
  running.control({ ahead: 16 * MINUTE })
  expect((await ada.send('POST', '/logout')).status).toBe(200)

  const max = await logIn(url, true)
  max.cookies.delete('session_id') // the browser was closed
  const [selector, verifier] = max.cookies.get('remember_token')!.split('.')
  expect((await max.send('GET', '/profile')).status).toBe(200)
  const thief = new Client(url)
  thief.cookies.set('remember_token', `${selector}.${[...verifier!].reverse().join('')}`)
  expect((await thief.send('GET', '/profile')).status).toBe(401)
  expect((await max.send('GET', '/profile')).status).toBe(401)
}

/** What the store is asked meanwhile, and what comes of it. */
export const COUNTED = {
  // 3 sessions of a password, one of a token, and the series of that token.
  create: { created: 5 },
  // The 2 of the conflict, and again after it; the touch; at the logout; the series, by its user and by the thief.
  // Nothing: after the theft this session and the series.
  read: { found: 7, none: 2, error: 1 },
  update: { updated: 3, conflict: 1 },
  touch: { touched: 1 },
  delete: { done: 3 },
  // The sessions of the stolen series, before it ends and afterwards.
  listUser: { done: 2 },
}

/** As many visitors as that log in, and then all come at once. */
export async function crowd(url: string, size: number): Promise<void> {
  const visitors = await Promise.all(Array.from({ length: size }, () => logIn(url)))
  const answers = await Promise.all(visitors.map(visitor => visitor.send('GET', '/profile')))
  expect(answers.map(({ status }) => status)).toEqual(visitors.map(() => 200))
}
