/** Both clocks of a session, in ms. */
export interface Lifetimes {
  readonly idle: number
  readonly absolute: number
  readonly touchInterval: number
}

/** A session expires when it was idle too long or is too old, whichever comes first (OWASP ASVS 5.0, 7.3.1 and 7.3.2). */
export const expiryOf = (seenAt: number, absoluteExpiresAt: number, { idle }: Lifetimes): number =>
  Math.min(seenAt + idle, absoluteExpiresAt)

/** Whether the store should hear of this visit: `seenAt` is written at most once per interval, and never set back. */
export const isTouchDue = (seenAt: number, now: number, { touchInterval }: Lifetimes): boolean =>
  now - seenAt >= touchInterval

/**
 * Whether a session that a remember token started was not used yet: it is stored as seen before it was created. Only a
 * visit changes that, not a write in the request that started it, since the response to that request may be lost.
 */
export const isUnvisited = ({ seenAt, createdAt }: { seenAt: number; createdAt: number }): boolean => seenAt < createdAt
