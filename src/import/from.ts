// A reader of another library's sessions: how its cookie names a session, and how that session is read and removed.
import { quote } from '../text/quote.ts'

/** The cookie of the other library, with the attributes by which a browser finds it again to remove it. */
export interface OldCookie {
  /** Its name, with its prefix if it has one. */
  readonly name: string
  /** @default '/' */
  readonly path?: string
  /** @default only the host */
  readonly domain?: string
}

/** The content of a genuine cookie of the other library. */
export interface OldSessionId {
  /** The ID of the session in the old store. */
  readonly id: string
  /** The browser has it, and a reader of the old store has not: it leads to the new session. @default the value of the cookie */
  readonly secret?: string
}

/** A session of the other library. Instants are epoch ms; if the library does not know one, it is absent or `null`. */
export interface OldSession<T = Record<string, unknown>> {
  /** The application's own data in it. */
  readonly data: T
  /** When the user logged in. */
  readonly createdAt?: number | null
  /** When it was last used: the session is at least this old. */
  readonly seenAt?: number | null
  /** When it ends by itself. */
  readonly expiresAt?: number | null
}

/** A reader of another library's sessions: `fromExpressSession(…)`, `fromNextAuth(…)` and the like, or one of your own. */
export interface OldSessions<T = Record<string, unknown>> {
  /** The cookie that names the session. */
  readonly cookie: string | OldCookie
  /** Names of cookies that are removed with it, such as one with its signature. @default none */
  readonly alsoClear?: readonly string[]
  /** Whether a long value comes in pieces: the cookies `NAME.0`, `NAME.1` and so on, which are joined, and removed too. @default false */
  readonly isChunked?: boolean
  /**
   * Checks a value of the cookie, as it came and not decoded, and says which session it names. `null`, or an error, if the
   * value is not genuine: then no store is asked. `cookies` has all values of another cookie. Synchronous.
   * @default the value itself is the ID
   */
  parse?(value: string, cookies: (name: string) => readonly string[]): OldSessionId | null
  /** The live session, or `null`. Reject if the old store fails: the request gets a 503 and keeps its cookie. */
  read(id: string): OldSession<T> | null | Promise<OldSession<T> | null>
  /**
   * Whether a session that `read` answers lives, whatever its `expiresAt`: such a store ends sessions itself, and may prolong
   * one without its text. @default false
   */
  readonly isEndedByStore?: boolean
  /** Removes the session, if there is one. Leave it out if the cookie holds the whole session. */
  destroy?(id: string): unknown
}

/** Text without a zone means another instant on each machine. */
const ZONED = /^\d{4}-\d\d-\d\d[T ][\d:.]+ ?(?:Z|[+-][\d:]{2,5})$|^\w{3}, [\w :]+ GMT$/
const DIGITS = /^\d{1,16}$/

/**
 * An instant as libraries write it: a Date, epoch ms as a number, a BigInt or digits, or text with a zone. `null` if it is absent.
 * @throws TypeError for anything else: it would pass for unknown, and a session that has ended for a live one
 */
export function instant(name: string, value: unknown): number | null {
  if (value === undefined || value === null) return null
  const text = String(value)
  const isNumber = ['number', 'bigint'].includes(typeof value) || value instanceof Date || DIGITS.test(text)
  const ms = isNumber ? Number(value) : ZONED.test(text) ? Date.parse(text) : NaN
  if (Number.isFinite(ms)) return Math.floor(ms)
  throw new TypeError(
    `sessionImporter: ${name}: expected a Date, epoch milliseconds, or text with a time zone, got ${quote(value)}`,
  )
}

/** When a session was last used, if each use sets its end `age` ms ahead; `null` if either is unknown. */
export const lastUse = (expiresAt: number | null, age: unknown): number | null =>
  expiresAt !== null && typeof age === 'number' && age > 0 ? Math.floor(expiresAt - age) : null

/** The name of a cookie. */
export const nameOf = (cookie: string | OldCookie): string => (typeof cookie === 'string' ? cookie : cookie.name)

/**
 * The answer of a store with callbacks. Some stores answer by the callback alone; some return a promise too, and only that
 * rejects. A store of files says of an absent session that there is no such file, and the middleware takes it for that.
 */
export function answerOf(call: (callback: (error: unknown, value?: unknown) => void) => unknown): Promise<unknown> {
  const isAbsent = (error: unknown) => (error as { code?: unknown }).code === 'ENOENT'
  return new Promise((resolve, reject) => {
    const answer = (error: unknown, value?: unknown) => (error && !isAbsent(error) ? reject(error) : resolve(value))
    Promise.resolve(call(answer)).catch(reject)
  })
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Of anything else there are none. */
export const membersOf = (value: unknown): Record<string, unknown> => (isObject(value) ? value : {})
