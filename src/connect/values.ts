// A session as a middleware gives it to its store, and as it wants it back.
import { isDeepStrictEqual } from 'node:util'
import { SessionError } from '../contract/errors.ts'
import { copyPlain } from '../data/plain.ts'
import { isObject, membersOf } from '../import/from.ts'
import { quote } from '../text/quote.ts'

export type Values = Record<string, unknown>

/**
 * What other stores of express-session keep: JSON of each value, which asks a `toJSON` method first and leaves out functions.
 * Defined, not assigned: a key named `__proto__` stays a key, which the codec refuses.
 * @throws SessionError ERR_SESSION_DATA for a cycle, a bigint, or a value that is not an object; it names the key
 */
export function valuesOf(session: unknown): Values {
  if (!isObject(session))
    throw new SessionError('ERR_SESSION_DATA', `session: expected an object, got ${quote(session)}`)
  const entries = Object.entries(session).map(([key, value]) => {
    try {
      const text: string | undefined = JSON.stringify(value)
      return [key, text === undefined ? undefined : JSON.parse(text)] as const
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw new SessionError('ERR_SESSION_DATA', `session.${key}: ${reason} (store text in its place)`, { cause })
    }
  })
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined))
}

/** The keys that changed, also deep inside of a value: their new values, `undefined` for those that were removed; `null` if none did. */
export function changeOf(now: Values, before: Values): Values | null {
  const changed = Object.keys({ ...before, ...now }).filter(key => !isDeepStrictEqual(now[key], before[key]))
  return changed.length === 0 ? null : Object.fromEntries(changed.map(key => [key, now[key]]))
}

/** Whether the middleware wants a session to be over, by its own clock. */
export function hasExpired({ cookie }: Values): boolean {
  const { expires } = membersOf(cookie)
  return typeof expires === 'string' && Date.parse(expires) <= Date.now()
}

/** How long the cookie lasts, in ms; koa-session keeps that beside the data. Infinite if it ends with the browser. */
export function maxAgeOf({ cookie, _maxAge }: Values): number {
  const maxAge = isObject(cookie) ? cookie.originalMaxAge : _maxAge
  return typeof maxAge === 'number' ? Math.ceil(maxAge) : Number.POSITIVE_INFINITY
}

/** A session of which another store says that it lives: `expires` may be of its last save, and it was in use since. */
export const asLive = (values: Values): Values =>
  hasExpired(values) ? { ...values, cookie: { ...membersOf(values.cookie), expires: null } } : values

/**
 * A cookie with a `maxAge` expires that long after each request: its stored part stays the same. In whole seconds, since
 * express-session takes a millisecond off it whenever the clock goes on between its two looks at it.
 */
export function toStore(values: Values): Values {
  const { expires, originalExpires, originalMaxAge, ...cookie } = membersOf(values.cookie)
  if (typeof originalMaxAge !== 'number') return values
  return { ...values, cookie: { originalMaxAge: Math.ceil(originalMaxAge / 1000) * 1000, ...cookie } }
}

/** A copy for the middleware, which writes into it. */
export function fromStore(stored: Values): Values {
  const values = copyPlain(stored) as Values
  const cookie = membersOf(values.cookie)
  const { originalMaxAge } = cookie
  if (typeof originalMaxAge === 'number') cookie.expires = new Date(Date.now() + originalMaxAge).toJSON()
  return values
}
