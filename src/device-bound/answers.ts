// The answers to browsers. Statuses matter: at 400, 401, 403 without a challenge and 429 Chromium forgets the session that it
// keeps for the device, at 503 it tries again.
import { type Binding, refreshChallenge } from './binding.ts'
import type { Setup } from './options.ts'

export interface DeviceAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const COMMON = { 'Cache-Control': 'no-store', 'Content-Type': 'application/json' }

const answer = (status: number, body: object, headers: Readonly<Record<string, string>> = {}): DeviceAnswer => ({
  status,
  headers: { ...COMMON, ...headers },
  body: JSON.stringify(body),
})

/** The request proves nothing, and changes nothing. */
export const refused = (status: 400 | 401 | 403, error: string): DeviceAnswer => answer(status, { error })

/** Try again: the store is out, or too much is asked at a time. */
export const busy = (): DeviceAnswer => answer(503, { error: 'busy' }, { 'Retry-After': '5' })

/** The browser forgets its session: the user has logged out, or has another one. */
export const over = (): DeviceAnswer => answer(200, { continue: false })

export const challengeHeader = (id: string, { id: name, challenge }: Binding): string =>
  `"${refreshChallenge(id, challenge.salt)}";id="${name}"`

/** The proof has to be made anew, for this challenge. */
export const challenged = (id: string, binding: Binding): DeviceAnswer =>
  answer(403, { error: 'challenge' }, { 'Secure-Session-Challenge': challengeHeader(id, binding) })

/**
 * The browser's instructions for its session, with the challenge of the next proof. `value` goes into the bound cookie; `null`:
 * the browser has one, or gets it by another response.
 */
export function instructed(setup: Setup, id: string, binding: Binding, value: string | null): DeviceAnswer {
  const { cookie, maxAge, attributes, refreshPath, exclude } = setup
  return answer(
    200,
    {
      session_identifier: binding.id,
      refresh_url: refreshPath,
      scope: {
        include_site: false,
        scope_specification: exclude.map(path => ({ type: 'exclude', path })),
      },
      credentials: [{ type: 'cookie', name: cookie.name, attributes }],
    },
    {
      'Secure-Session-Challenge': challengeHeader(id, binding),
      ...(value !== null && { 'Set-Cookie': cookie.serializeValue(value, maxAge) }),
    },
  )
}
