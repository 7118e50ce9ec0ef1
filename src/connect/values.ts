// A session as a middleware gives it to its store, and as it wants it back.
import { SessionError } from '../contract/errors.ts'
import { isObject } from '../import/from.ts'
import { quote } from '../text/quote.ts'

export type Values = Record<string, unknown>

/** The JSON text of each key: comparing them finds every change, also deep inside of a value. A key whose value JSON leaves out is absent. */
export type Texts = ReadonlyMap<string, string>

/**
 * What other stores of express-session keep: `JSON.stringify` of each value, which asks a `toJSON` method first.
 * @throws SessionError ERR_SESSION_DATA for a cycle, a bigint, or a value that is not an object; it names the key
 */
export function textsOf(session: unknown): Texts {
  if (!isObject(session))
    throw new SessionError('ERR_SESSION_DATA', `session: expected an object, got ${quote(session)}`)
  const texts = new Map<string, string>()
  for (const [key, value] of Object.entries(session)) {
    try {
      const text: string | undefined = JSON.stringify(value)
      if (text !== undefined) texts.set(key, text)
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw new SessionError('ERR_SESSION_DATA', `session.${key}: ${reason} (store text in its place)`, { cause })
    }
  }
  return texts
}

/** The data that texts stand for. Defined, not assigned: a key named `__proto__` stays a key, which the codec refuses. */
export const dataOf = (texts: Texts): Values =>
  Object.fromEntries([...texts].map(([key, text]) => [key, JSON.parse(text)]))

/** The keys that changed: their new values, `undefined` for those that were removed; `null` if none did. */
export function changeOf(now: Texts, before: Texts): Values | null {
  const changed = [...now].filter(([key, text]) => before.get(key) !== text)
  const removed = [...before.keys()].filter(key => !now.has(key))
  if (changed.length === 0 && removed.length === 0) return null
  return { ...Object.fromEntries(removed.map(key => [key, undefined])), ...dataOf(new Map(changed)) }
}

export const membersOf = (value: unknown): Values => (isObject(value) ? value : {})
const cookieIn = (texts: Texts): Values => membersOf(JSON.parse(texts.get('cookie') ?? 'null'))

/** Whether the middleware wants a session to be over, by its own clock. */
export function hasExpired(texts: Texts): boolean {
  const { expires } = cookieIn(texts)
  return typeof expires === 'string' && Date.parse(expires) <= Date.now()
}

/** How long the cookie lasts, in ms; koa-session keeps that beside the data. Infinite if it ends with the browser. */
export function maxAgeOf({ cookie, _maxAge }: Values): number {
  const maxAge = isObject(cookie) ? cookie.originalMaxAge : _maxAge
  return typeof maxAge === 'number' ? Math.ceil(maxAge) : Number.POSITIVE_INFINITY
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
  const values = dataOf(texts)
  const cookie = membersOf(values.cookie)
  const { originalMaxAge } = cookie
  if (typeof originalMaxAge === 'number') cookie.expires = new Date(Date.now() + originalMaxAge).toJSON()
  return values
}

export const withCookie = (texts: Texts, cookie: unknown): Texts => new Map([...texts, ...textsOf({ cookie })])
