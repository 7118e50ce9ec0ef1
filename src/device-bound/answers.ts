// The answers to browsers. Statuses matter: at 400, 401, 403 without a challenge and 429 Chromium forgets the session that it
// keeps for the device, at 503 it tries again.
import type { AnySession } from '../session/session.ts'
import { type Binding, nameOf, refreshChallenge, valueFor } from './binding.ts'
import type { Setup } from './options.ts'

const answer = (status: number, body: object, headers: Readonly<Record<string, string>> = {}): Response =>
  Response.json(body, { status, headers: { 'Cache-Control': 'no-store', ...headers } })

/** The request proves nothing, and changes nothing. */
export const refused = (status: 400 | 401 | 403, error: string): Response => answer(status, { error })

/** Try again: the store is out, or nobody can tell which cookie counts. */
export const busy = (): Response => answer(503, { error: 'busy' }, { 'Retry-After': '5' })

/** The browser forgets its session: the user has logged out, or has another one. */
export const over = (): Response => answer(200, { continue: false })

/** The header with the challenge of the next proof. */
export const challenge = ({ now }: Setup, session: AnySession, binding: Binding) => ({
  'Secure-Session-Challenge': `"${refreshChallenge(session, binding, now())}";id="${nameOf(binding)}"`,
})

/** The proof has to be made anew, for this challenge. */
export const challenged = (setup: Setup, session: AnySession, binding: Binding): Response =>
  answer(403, { error: 'challenge' }, challenge(setup, session, binding))

/** The browser's instructions for its session, with the next value of the bound cookie, and the challenge of the next proof. */
export function instructed(setup: Setup, session: AnySession, binding: Binding): Response {
  const { cookie, maxAge, attributes, refreshPath, exclude, now } = setup
  const body = {
    session_identifier: nameOf(binding),
    refresh_url: refreshPath,
    scope: { include_site: false, scope_specification: exclude.map(path => ({ type: 'exclude', path })) },
    credentials: [{ type: 'cookie', name: cookie.name, attributes }],
  }
  const value = cookie.serializeValue(valueFor(session, binding, binding.device, now()), maxAge)
  return answer(200, body, { 'Set-Cookie': value, ...challenge(setup, session, binding) })
}
