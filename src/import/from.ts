// What a reader of another library's sessions is: how its cookie names a session, and how that is read and removed.

/** The cookie of the other library, with the attributes by which a browser finds it again to remove it. */
export interface OldCookie {
  /** Its name, with its prefix if it has one. */
  readonly name: string
  /** @default '/' */
  readonly path?: string
  /** @default the host alone */
  readonly domain?: string
}

/** What a cookie of the other library names. */
export interface OldSessionId {
  /** What the session is called in the old store. */
  readonly id: string
  /**
   * What only the browser has, and no reader of the old store: the ID of the new session is derived from it. The first
   * is used; by the others a session is found that was taken over by a node which had another first one, such as during
   * the rotation of a secret.
   * @default the value of the cookie
   */
  readonly secrets?: readonly [string, ...string[]]
}

/** A session of the other library. Instants are epoch ms; where the library does not know one, it is absent or `null`. */
export interface OldSession<T = Record<string, unknown>> {
  /** What the application kept in it. */
  readonly data: T
  /** When the user logged in. */
  readonly createdAt?: number | null
  /** When it was last used: the session is at least as old. */
  readonly seenAt?: number | null
  /** When it ends by itself. */
  readonly expiresAt?: number | null
}

/** A reader of another library's sessions: `fromExpressSession(…)`, `fromFastifySession(…)`, `fromKoaSession(…)`, or one of your own. */
export interface OldSessions<T = Record<string, unknown>> {
  /** The cookie that names the session. */
  readonly cookie: string | OldCookie
  /** Names of cookies that go with it, such as one with its signature: they are removed with it. @default none */
  readonly alsoClear?: readonly string[]
  /**
   * What the value of the cookie names, as it came: not decoded, not checked. `null` for a value that is not genuine: then
   * no store is asked. Synchronous.
   * @default the value itself
   */
  parse?(value: string, cookie: (name: string) => string | null): OldSessionId | null
  /** The live session, or `null`. A rejection is an outage of the old store: the request gets a 503 and keeps its cookie. */
  read(id: string): OldSession<T> | null | Promise<OldSession<T> | null>
  /** Removes the session, if there is one. Absent: there is nothing that could be removed, the cookie holds it all. */
  destroy?(id: string): unknown
}

/** An instant as libraries write it: a Date, its text, or epoch ms. `null` for anything else. */
export function instant(value: unknown): number | null {
  const ms = value instanceof Date ? value.getTime() : typeof value === 'number' ? value : Date.parse(String(value))
  return Number.isFinite(ms) ? Math.floor(ms) : null
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
