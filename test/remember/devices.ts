// Devices with remember tokens.
import { CLOCK_TOLERANCE } from 'coatcheck/custom-store'
import { setUp, user } from '../support/manager-kit.ts'

export const DAY = 86_400_000
/** How long a used token gives its session again: a minute, and what clocks may differ. */
export const WINDOW = 60_000 + CLOCK_TOLERANCE

export function setUpRemember(options: object = {}) {
  const at = setUp({ rememberFor: '30d', ...options })
  return { ...at, thefts: () => at.events.filter(({ type }) => type === 'remember-theft') }
}
export type At = ReturnType<typeof setUpRemember>

/** A session that asked for a token a day ago. */
export async function device(at: At, owner = user) {
  const session = await at.sessions.create({ user: owner })
  const token = await at.sessions.issueRememberToken(session)
  at.clock.advance(DAY)
  return { session, token }
}

/** A device whose token was used a moment ago: what it began, and the next token. */
export async function redeemed(options: object = {}) {
  const at = setUpRemember(options)
  const { token } = await device(at)
  const first = (await at.sessions.redeemRememberToken(token))!
  return { ...at, token, first, session: first.session, next: first.token }
}
