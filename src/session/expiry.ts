import { refuse } from '../text/check-options.ts'
import { type Duration, milliseconds } from '../text/duration.ts'

/** Both clocks of a session, in ms. */
export interface Lifetimes {
  readonly idle: number
  readonly absolute: number
  readonly touchInterval: number
}

/** A session expires when it was idle too long or is too old, whichever comes first (OWASP ASVS 5.0, 7.3.1 and 7.3.2). */
export const expiryOf = (seenAt: number, absoluteExpiresAt: number, idle: number): number =>
  Math.min(seenAt + idle, absoluteExpiresAt)

/**
 * How long a session of this login may live: what the login asks for, within what the manager allows.
 * @throws TypeError that quotes the value
 */
export function lifetimeOf(
  login: { idleTimeout?: Duration | undefined; absoluteTimeout?: Duration | undefined },
  { idle, absolute, touchInterval }: Lifetimes,
): Pick<Lifetimes, 'idle' | 'absolute'> {
  const own = {
    idle: login.idleTimeout === undefined ? idle : milliseconds(login.idleTimeout, 'idleTimeout'),
    absolute: login.absoluteTimeout === undefined ? absolute : milliseconds(login.absoluteTimeout, 'absoluteTimeout'),
  }
  if (own.idle > idle) refuse('idleTimeout', `at most the manager's idleTimeout (${idle} ms)`, login.idleTimeout)
  if (own.idle < 2 * touchInterval)
    refuse(
      'idleTimeout',
      `at least twice the touchInterval (${touchInterval} ms), else a session in use would expire`,
      login.idleTimeout,
    )
  if (own.absolute > absolute)
    refuse('absoluteTimeout', `at most the manager's absoluteTimeout (${absolute} ms)`, login.absoluteTimeout)
  return own
}

/** Whether the store should hear of this visit: `seenAt` is written at most once per interval, and never set back. */
export const isTouchDue = (seenAt: number, now: number, { touchInterval }: Lifetimes): boolean =>
  now - seenAt >= touchInterval

/**
 * Whether the touch that sets `seenAt` asks for the cookie to be sent again: the first one, and the one that crosses half of
 * the idle time. From then on the cookie lasts for what is left of the absolute time, and the server alone decides.
 */
export function isCookieDueAt(
  seenAt: number,
  before: { readonly seenAt: number; readonly createdAt: number },
  idle: number,
): boolean {
  const half = before.createdAt + idle / 2
  return before.seenAt <= before.createdAt || (before.seenAt < half && seenAt >= half)
}

/**
 * Whether a session that a remember token started was not used yet: it is stored as seen before it was created. Only a
 * visit changes that, not a write in the request that started it, since the response to that request may be lost.
 */
export const isUnvisited = ({ seenAt, createdAt }: { seenAt: number; createdAt: number }): boolean => seenAt < createdAt
