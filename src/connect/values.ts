// The data of a session as a middleware gives it to its store, and as it wants it back.
import { SessionError } from '../contract/errors.ts'
import type { Texts } from '../express-session/values.ts'
import { isObject } from '../import/from.ts'
import { quote } from '../text/quote.ts'

export type Values = Record<string, unknown>

/**
 * What `JSON.stringify` makes of a session, as the stores of express-session keep it.
 * @throws SessionError ERR_SESSION_DATA for a cycle, a bigint, or what is no object
 */
export function valuesOf(session: unknown): Values {
  let values: unknown
  try {
    values = JSON.parse(JSON.stringify(session) ?? 'null')
  } catch (cause) {
    throw new SessionError('ERR_SESSION_DATA', `session: ${(cause as Error).message}`, { cause })
  }
  if (!isObject(values))
    throw new SessionError('ERR_SESSION_DATA', `session: expected an object, got ${quote(session)}`)
  return values
}

/** The JSON of each key. */
export const textsOf = (values: Values): Texts =>
  new Map(Object.entries(values).map(([key, value]) => [key, JSON.stringify(value)]))

/** Whether the middleware wants a session to be over, by its own clock. */
export function hasExpired({ cookie }: Values): boolean {
  const { expires } = isObject(cookie) ? cookie : {}
  return typeof expires === 'string' && Date.parse(expires) <= Date.now()
}

/** A cookie with a `maxAge` expires that long after each request: what is stored of it stays the same. */
const isSliding = (cookie: unknown): cookie is { originalMaxAge: number } =>
  isObject(cookie) && typeof cookie.originalMaxAge === 'number'

export function toStore(values: Values): Values {
  if (!isSliding(values.cookie)) return values
  const { expires, originalExpires, ...cookie } = values.cookie as Values
  return { ...values, cookie }
}

export function fromStore(values: Values): Values {
  const { cookie } = values
  if (!isSliding(cookie)) return values
  return { ...values, cookie: { ...cookie, expires: new Date(Date.now() + cookie.originalMaxAge).toJSON() } }
}
