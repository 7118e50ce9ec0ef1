import { inspect } from 'node:util'
import type { SessionRecord } from '../contract/store.ts'
import type { Frozen } from '../data/schema.ts'
import { userToJson } from '../text/json.ts'
import { csrfTokenOf } from './csrf.ts'
import type { SessionId, SessionKey } from './id.ts'
import type { UserId, UserIds } from './users.ts'

/**
 * Who is logged in. JSON shows `id` and `name`, the body of GET /profile. `JSON.stringify` of a `bigint` ID above 2^53 needs
 * Node.js 22; `stringify` writes all.
 */
export interface User<Ids extends UserIds = 'bigint'> {
  readonly id: UserId<Ids>
  readonly name: string
  /** Not enumerable: only the server sees it. */
  readonly passwordVersion: number | null
}

/** The public part of a session. Instants are epoch ms. */
export interface SessionInfo<Data = Record<string, unknown>, Ids extends UserIds = 'bigint'> {
  /** Public name of the session, safe to log and list; worth nothing as a cookie. Changes with each new ID. */
  readonly key: SessionKey
  /** Who is logged in; `null` for a visitor. */
  readonly user: User<Ids> | null
  /** Frozen; write with `update`. Decoded when it is first read. */
  readonly data: Frozen<Data>
  /** When the session began: for a user, when the credentials were verified. */
  readonly createdAt: number
  readonly seenAt: number
  readonly expiresAt: number
  readonly absoluteExpiresAt: number
  /** Started by a remember token, so no password was typed. */
  readonly remembered: boolean
}

/** A session as a walk over all of them shows it. */
export interface StoredSession<Data = Record<string, unknown>, Ids extends UserIds = 'bigint'>
  extends SessionInfo<Data, Ids> {
  /** The namespace of its user; `null` if there is none, and in each anonymous session: only its browser knows. */
  readonly namespace: string | null
}

/** A session with any data and user ID, for code that looks at neither. */
// biome-ignore lint/suspicious/noExplicitAny: unknown data and ID would fit no session of an application
export type AnySession = Session<any, any>

/** A snapshot. `secret` and `csrfToken` are getters that JSON, spread and inspect do not see. */
export interface Session<Data = Record<string, unknown>, Ids extends UserIds = 'bigint'>
  extends SessionInfo<Data, Ids> {
  /** The session ID, for the cookie alone. Hidden from JSON, spread and console.log. */
  readonly secret: SessionId
  /** Survives a new ID of the same session, dies at a login and at the logout; costs no store write. */
  readonly csrfToken: string
}

/** A session in which a user is logged in. */
export type UserSession<Data = Record<string, unknown>, Ids extends UserIds = 'bigint'> = Session<Data, Ids> & {
  readonly user: User<Ids>
}
/** A session, or the value of its cookie: `sessionId(value)`. `null` finds nothing. */
export type SessionRef<Data = Record<string, unknown>, Ids extends UserIds = 'bigint'> =
  | Session<Data, Ids>
  | SessionId
  | null
  | undefined

/** The input for a snapshot. */
export interface SessionParts<Data, Ids extends UserIds> {
  readonly record: SessionRecord
  readonly userId: UserId<Ids> | null
  /** Found under its old ID, within the grace of the new one. */
  readonly isByOldId: boolean
  /** A touch that was just written asks for the cookie to be sent again. */
  readonly isCookieDue: boolean
  /** The data, if it is known without decoding. */
  readonly data: Frozen<Data> | null
  /** The manager that it belongs to. */
  readonly manager: { readonly keySpace: string; decode(record: SessionRecord): Frozen<Data> }
}

const TO_JSON = { value: userToJson }

/** A plain object: frameworks look at the prototype, and send only plain objects to browsers. */
function makeUser<Ids extends UserIds>(id: UserId<Ids>, name: string, passwordVersion: number | null): User<Ids> {
  const user = { id, name }
  // Defined, not assigned: neither JSON nor spread nor a serialiser sees it.
  Object.defineProperty(user, 'passwordVersion', { value: passwordVersion })
  if (typeof id === 'bigint') Object.defineProperty(user, 'toJSON', TO_JSON)
  return Object.freeze(user) as User<Ids>
}

// Registered, because a session of one copy of this package may meet the manager of another; a getter of the class, so
// that JSON, spread and inspect do not see it. The number rises when the parts change.
const PARTS = Symbol.for('coatcheck.session.1')

const partsOf = (session: object): SessionParts<unknown, UserIds> | null =>
  (session as { [PARTS]?: SessionParts<unknown, UserIds> })[PARTS] ?? null

class SessionSnapshot<Data, Ids extends UserIds> implements SessionInfo<Data, Ids> {
  declare readonly data: Frozen<Data>
  readonly key: SessionKey
  readonly user: User<Ids> | null
  readonly createdAt: number
  readonly seenAt: number
  readonly expiresAt: number
  readonly absoluteExpiresAt: number
  readonly remembered: boolean
  readonly #parts: SessionParts<Data, Ids>
  #data: Frozen<Data> | undefined

  // An own property, because spread and JSON must see the data; an accessor, because most requests never look at it.
  // Defining one costs as much as all other fields together, so data that is already known is a plain value.
  static readonly #DATA: PropertyDescriptor = {
    enumerable: true,
    get(this: SessionSnapshot<unknown, UserIds>) {
      this.#data ??= this.#parts.manager.decode(this.#parts.record)
      return this.#data
    },
  }

  /** `undefined` for a proxy, or for an object that only inherits from a session. */
  get [PARTS](): SessionParts<Data, Ids> | undefined {
    return #parts in this ? this.#parts : undefined
  }

  constructor(parts: SessionParts<Data, Ids>) {
    const { record, userId } = parts
    this.#parts = parts
    this.key = record.key as SessionKey
    this.user = userId === null ? null : makeUser<Ids>(userId, record.userName ?? '', record.passwordVersion)
    this.createdAt = record.createdAt
    // A remembered session is stored as not yet seen, see remember.ts.
    this.seenAt = Math.max(record.seenAt, record.createdAt)
    this.expiresAt = record.expiresAt
    this.absoluteExpiresAt = record.absoluteExpiresAt
    this.remembered = record.parent !== null
    if (parts.data === null) Object.defineProperty(this, 'data', SessionSnapshot.#DATA)
    else this.data = parts.data
  }

  [inspect.custom](_depth: number, options: object): string {
    return `${this.constructor.name} ${inspect({ ...this }, options)}`
  }
}

class SecretSession<Data, Ids extends UserIds> extends SessionSnapshot<Data, Ids> implements Session<Data, Ids> {
  readonly #secret: string

  constructor(parts: SessionParts<Data, Ids>, secret: string) {
    super(parts)
    this.#secret = secret
    Object.freeze(this)
  }

  get secret(): SessionId {
    return this.#secret as SessionId
  }

  get csrfToken(): string {
    return csrfTokenOf(this.#secret, recordOf(this)!.data)
  }
}
Object.defineProperty(SecretSession, 'name', { value: 'Session' })
Object.defineProperty(SessionSnapshot, 'name', { value: 'SessionInfo' })

export const makeSession = <Data, Ids extends UserIds>(
  parts: SessionParts<Data, Ids>,
  secret: string,
): Session<Data, Ids> => new SecretSession(parts, secret)

/** Without the secret; `more` is what a listing adds. */
export const makeInfo = <Data, Ids extends UserIds, More extends object>(
  parts: SessionParts<Data, Ids>,
  more: More,
): SessionInfo<Data, Ids> & More => Object.freeze(Object.assign(new SessionSnapshot(parts), more))

export const wasFoundByOldId = (session: object): boolean => partsOf(session)?.isByOldId ?? false
export const isCookieDue = (session: object): boolean => partsOf(session)?.isCookieDue ?? false

export const keySpaceOf = (session: object): string | undefined => partsOf(session)?.manager.keySpace

/** The record behind a session that a manager made; `null` for a copy or anything else. */
export const recordOf = (session: object): SessionRecord | null => partsOf(session)?.record ?? null
