import { inspect } from 'node:util'
import type { SessionRecord } from '../contract/store.ts'
import type { Frozen } from '../data/schema.ts'
import { csrfTokenOf } from './csrf.ts'
import type { SessionId, SessionKey } from './id.ts'
import type { UserId, UserIds } from './user-id.ts'

/** Who is logged in. JSON shows `id` and `name`, the body of GET /profile (`stringify` writes a bigint exactly). */
export interface User<I extends UserIds = 'bigint'> {
  readonly id: UserId<I>
  readonly name: string
  /** Not enumerable: for the server alone. */
  readonly passwordVersion: number | null
}

/** What may be shown of a session. Instants are epoch ms. */
export interface SessionInfo<D = Record<string, unknown>, I extends UserIds = 'bigint'> {
  readonly key: SessionKey
  /** Both fields or none; `null` in an anonymous session. */
  readonly user: User<I> | null
  /** Frozen at run time too: `update` is the only way to write. Decoded at the first look. */
  readonly data: Frozen<D>
  /** Of a login session: when the credentials were verified. */
  readonly createdAt: number
  readonly seenAt: number
  readonly expiresAt: number
  readonly absoluteExpiresAt: number
  /** Began with a remember token, not with a password. */
  readonly remembered: boolean
}

/** A session as a walk over all of them shows it. */
export interface StoredSession<D = Record<string, unknown>, I extends UserIds = 'bigint'> extends SessionInfo<D, I> {
  /** The tenant of its user; `null` where there is none, and in each anonymous session: only its browser knows. */
  readonly namespace: string | null
}

/** Of whichever data and user ID: for what looks at neither. */
// biome-ignore lint/suspicious/noExplicitAny: unknown data and ID would fit no session of an application
export type AnySession = Session<any, any>

/** A snapshot. `secret` and `csrfToken` are getters that JSON, spread and inspect do not see. */
export interface Session<D = Record<string, unknown>, I extends UserIds = 'bigint'> extends SessionInfo<D, I> {
  /** The session ID, for the cookie alone. */
  readonly secret: SessionId
  /** Survives a new ID of the same session, dies at a login and at the logout; costs no store write. */
  readonly csrfToken: string
}

/** A session in which a user is logged in. */
export type UserSession<D = Record<string, unknown>, I extends UserIds = 'bigint'> = Session<D, I> & {
  readonly user: User<I>
}
/** Whose session: a snapshot, or what the cookie contained. */
export type SessionRef<D = Record<string, unknown>, I extends UserIds = 'bigint'> =
  | Session<D, I>
  | SessionId
  | null
  | undefined

/** What a snapshot is made from. */
export interface SessionParts<D, I extends UserIds> {
  readonly record: SessionRecord
  readonly userId: UserId<I> | null
  /** Found under an ID that a rotation within its grace had replaced. */
  readonly isFollowed: boolean
  /** A touch that was just written asks for the cookie to be sent again. */
  readonly isCookieDue: boolean
  /** The data, where it is known without decoding. */
  readonly data: Frozen<D> | null
  readonly decode: (record: SessionRecord) => Frozen<D>
  /** Of the tenant that it belongs to. */
  readonly space: string
}

/** Plain, because frameworks send to browsers what is plain alone, and compare by the prototype. */
function makeUser<I extends UserIds>(id: UserId<I>, name: string, passwordVersion: number | null): User<I> {
  const user = { id, name }
  // Defined, not assigned: neither JSON nor spread nor a serialiser sees it.
  Object.defineProperty(user, 'passwordVersion', { value: passwordVersion })
  return Object.freeze(user) as User<I>
}

// Registered, because a session of one copy of this package may meet the manager of another; a getter of the class, so
// that JSON, spread and inspect do not see it. The number rises when the parts change.
const PARTS = Symbol.for('coatcheck.session.1')

const partsOf = (session: object): SessionParts<unknown, UserIds> | null =>
  (session as { [PARTS]?: SessionParts<unknown, UserIds> })[PARTS] ?? null

class SessionSnapshot<D, I extends UserIds> implements SessionInfo<D, I> {
  declare readonly data: Frozen<D>
  readonly key: SessionKey
  readonly user: User<I> | null
  readonly createdAt: number
  readonly seenAt: number
  readonly expiresAt: number
  readonly absoluteExpiresAt: number
  readonly remembered: boolean
  readonly #parts: SessionParts<D, I>
  #data: Frozen<D> | undefined

  // An own property, so that spread and JSON see the data; an accessor, because most requests never look at it. To define
  // it costs as much as all other fields together, so that data which is known is a plain value.
  static readonly #DATA: PropertyDescriptor = {
    enumerable: true,
    get(this: SessionSnapshot<unknown, UserIds>) {
      this.#data ??= this.#parts.decode(this.#parts.record)
      return this.#data
    },
  }

  /** Nothing for a proxy, or for what only inherits from a session. */
  get [PARTS](): SessionParts<D, I> | undefined {
    return #parts in this ? this.#parts : undefined
  }

  constructor(parts: SessionParts<D, I>) {
    const { record, userId } = parts
    this.#parts = parts
    this.key = record.key as SessionKey
    this.user = userId === null ? null : makeUser<I>(userId, record.userName ?? '', record.passwordVersion)
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

class SecretSession<D, I extends UserIds> extends SessionSnapshot<D, I> implements Session<D, I> {
  readonly #secret: string

  constructor(parts: SessionParts<D, I>, secret: string) {
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

export const makeSession = <D, I extends UserIds>(parts: SessionParts<D, I>, secret: string): Session<D, I> =>
  new SecretSession(parts, secret)

export const makeInfo = <D, I extends UserIds>(parts: SessionParts<D, I>): SessionInfo<D, I> =>
  Object.freeze(new SessionSnapshot(parts))

class StoredSnapshot<D, I extends UserIds> extends SessionSnapshot<D, I> implements StoredSession<D, I> {
  readonly namespace: string | null

  constructor(parts: SessionParts<D, I>, namespace: string | null) {
    super(parts)
    this.namespace = namespace
    Object.freeze(this)
  }
}
Object.defineProperty(StoredSnapshot, 'name', { value: 'StoredSession' })

export const makeStored = <D, I extends UserIds>(
  parts: SessionParts<D, I>,
  namespace: string | null,
): StoredSession<D, I> => new StoredSnapshot(parts, namespace)

export const wasFollowed = (session: object): boolean => partsOf(session)?.isFollowed ?? false
export const isCookieDue = (session: object): boolean => partsOf(session)?.isCookieDue ?? false

export const spaceOf = (session: object): string | undefined => partsOf(session)?.space

/** The record behind a session that a manager made; `null` for a copy or anything else. */
export const recordOf = (session: object): SessionRecord | null => partsOf(session)?.record ?? null
