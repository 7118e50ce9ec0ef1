// A session as a middleware gives it to its store, and as it wants it back.
import { SessionError } from '../contract/errors.ts'
import { dataOf, textsOf as jsonOf, type Texts } from '../express-session/values.ts'
import { isObject } from '../import/from.ts'
import { quote } from '../text/quote.ts'

export type Values = Record<string, unknown>

/**
 * The JSON text of each key, as the stores of express-session keep it.
 * @throws SessionError ERR_SESSION_DATA for a cycle, a bigint, or a value that is not an object
 */
export function textsOf(session: unknown): Texts {
  if (isObject(session)) return jsonOf(session, new Set())
  throw new SessionError('ERR_SESSION_DATA', `session: expected an object, got ${quote(session)}`)
}

function cookieIn(texts: Texts): Values {
  const cookie: unknown = JSON.parse(texts.get('cookie') ?? 'null')
  return isObject(cookie) ? cookie : {}
}

/** Whether the middleware wants a session to be over, by its own clock. */
export function hasExpired(texts: Texts): boolean {
  const { expires } = cookieIn(texts)
  return typeof expires === 'string' && Date.parse(expires) <= Date.now()
}

/** A session of which another store says that it lives: `expires` may be of its last save, and it was in use since. */
export const asLive = (texts: Texts): Texts =>
  hasExpired(texts) ? withCookie(texts, { ...cookieIn(texts), expires: null }) : texts

/**
 * A cookie with a `maxAge` expires that long after each request: its stored part stays the same. In whole seconds, since
 * express-session takes a millisecond off it whenever the clock goes on between its two looks at it.
 */
export function toStore(texts: Texts): Texts {
  const { expires, originalExpires, originalMaxAge, ...cookie } = cookieIn(texts)
  if (typeof originalMaxAge !== 'number') return texts
  return withCookie(texts, { originalMaxAge: Math.ceil(originalMaxAge / 1000) * 1000, ...cookie })
}

export function fromStore(texts: Texts): Values {
  const cookie = cookieIn(texts)
  const { originalMaxAge } = cookie
  if (typeof originalMaxAge !== 'number') return dataOf(texts)
  return dataOf(withCookie(texts, { ...cookie, expires: new Date(Date.now() + originalMaxAge) }))
}

export const withCookie = (texts: Texts, cookie: unknown): Texts => new Map([...texts, ...textsOf({ cookie })])
