import { isInstant, isPasswordVersion } from '../contract/record.ts'
import { CLOCK_TOLERANCE, type SessionRecord, type Store } from '../contract/store.ts'
import { checkOptionNames, type Hints, refuse } from '../text/check-options.ts'
import type { Duration } from '../text/duration.ts'
import { isInSeconds, refuseSeconds } from '../text/epoch.ts'
import { quote } from '../text/quote.ts'

/** A login: whose session begins, and with which data. */
export interface Login<Data = Record<string, unknown>, Ids extends UserIds = 'bigint', Input = Data> {
  /**
   * The user whose credentials you have just checked. `name` is for display: a name, an e-mail address, or ''. With the
   * manager's `getPasswordVersion` a `passwordVersion` is required, `null` for a user who has none.
   */
  user: { id: UserIdInput<Ids>; name: string; passwordVersion?: number | null | undefined }
  /** First data. A function gets the data of the session that ends here, such as a visitor's cart; of another user's, the start value. */
  data?: Partial<Input> | ((before: Data) => Partial<Input>)
  /** When the password was checked, epoch ms (of single sign-on its `auth_time`); `null`: never, so it does not count as fresh. @default now */
  verifiedAt?: number | null | undefined
  /** Shorter than the manager's, for this session, such as '5m' on a shared computer; at least twice its touchInterval. @default the manager's */
  idleTimeout?: Duration | undefined
  /** Shorter than the manager's, for this session. @default the manager's */
  absoluteTimeout?: Duration | undefined
}

/** The options of a login. */
export const LOGIN = ['user', 'data', 'verifiedAt', 'idleTimeout', 'absoluteTimeout']
const LOGIN_HINTS: Hints = {
  remember: 'sessions.issueRememberToken(session) makes the token, and visit.logIn({ user, remember: true }) sends it',
  passwordVersion: 'it belongs to user: { id, name, passwordVersion }',
}
const OF_LOGIN = 'it belongs to a login: { user, … }'
const ANONYMOUS_HINTS: Hints = {
  user: 'a visit starts a session with a user by logIn({ user })',
  verifiedAt: OF_LOGIN,
  idleTimeout: OF_LOGIN,
  absoluteTimeout: OF_LOGIN,
}

/** @throws TypeError if it is not a login, or has options that are neither a login's nor among `others` */
export function checkLogin(method: string, login: object, ...others: string[]): void {
  if (typeof login !== 'object' || login === null || !('user' in login)) refuse(method, '{ user, data }', login)
  checkOptionNames(method, login, [...LOGIN, ...others], LOGIN_HINTS)
}

/** @throws TypeError if these are not the options of an anonymous session */
export const checkAnonymous = (start: object, method = 'create'): void =>
  checkOptionNames(method, start, ['data'], ANONYMOUS_HINTS)

/** The part of a record that says whose it is. */
export type Owner = Pick<SessionRecord, 'userId' | 'userName' | 'passwordVersion'>
export const ANONYMOUS: Owner = { userId: null, userName: null, passwordVersion: null }
const MAX_NAME = 256
const SHARD = /^[A-Za-z0-9_-]{3}$/
const SEPARATOR = '\t' // no user ID contains a control character

/** The namespace that the stored text of a user names; `null` if none. */
export function namespaceOf(text: string): string | null {
  const end = text.indexOf(SEPARATOR)
  return end === -1 ? null : text.slice(0, end)
}

/** @throws TypeError that quotes the value */
export function passwordVersionOf(value: unknown, name: string): number | null {
  if (value === undefined || value === null) return null
  if (!isPasswordVersion(value)) refuse(name, 'a whole number from 0 to 4294967295', value)
  return value
}

/** Clocks of two nodes, or of two companies, differ. @throws TypeError that quotes the value */
function checkVerifiedAt(value: unknown, now: number): void {
  if (value === undefined || value === null) return
  if (!isInstant(value) || value > now + CLOCK_TOLERANCE)
    refuse('verifiedAt', 'epoch milliseconds, not in the future, or null for never', value)
  if (isInSeconds(value) && !isInSeconds(now)) refuseSeconds('verifiedAt', value)
}

/** Translates between an application's users and the canonical text in the store, for one namespace. */
export class Users<Ids extends UserIds> {
  readonly #format: UserIdFormat<Ids>
  readonly #prefix: string
  readonly #store: Store
  /** Whether the application compares the password version at each `get`: a login has to say it then. */
  readonly #hasVersions: boolean
  readonly namespace: string | null
  /** Keeps the keys of namespaces apart. */
  readonly keySpace: string

  constructor(
    { userIds, store, getPasswordVersion }: { userIds: Ids; store: Store; getPasswordVersion?: unknown },
    namespace: string | null,
  ) {
    this.#format = USER_ID_FORMATS[userIds]
    this.#hasVersions = getPasswordVersion !== undefined
    this.namespace = namespace
    this.keySpace = namespace === null ? '' : `namespace\0${namespace}`
    this.#prefix = namespace === null ? '' : namespace + SEPARATOR
    this.#store = store
  }

  /** @throws TypeError that quotes the value */
  toText(id: UserIdInput<Ids>): string {
    return this.#prefix + this.#format.toText(id)
  }

  /** `null` if the text is not one of this namespace's users. */
  fromText(text: string): UserId<Ids> | null {
    return text.startsWith(this.#prefix) ? this.#format.fromText(text.slice(this.#prefix.length)) : null
  }

  /** @throws TypeError that names the field and quotes the value */
  ownerOf({ user, verifiedAt }: Pick<Login<unknown, Ids, unknown>, 'user' | 'verifiedAt'>, now: number): Owner {
    checkVerifiedAt(verifiedAt, now)
    if (typeof user !== 'object' || user === null) refuse('user', '{ id, name, passwordVersion? }', user)
    const { name, passwordVersion } = user
    if (typeof name !== 'string' || name.length > MAX_NAME || !name.isWellFormed() || name.includes('\0'))
      refuse('user.name', `text of at most ${MAX_NAME} characters without NUL`, name)
    // Without one the session would be older than any change, and dead from birth.
    if (passwordVersion === undefined && this.#hasVersions)
      throw new TypeError(
        'user.passwordVersion: expected the version that was read with the password hash, since getPasswordVersion is set, or null for a user who has none, got undefined',
      )
    return {
      userId: this.toText(user.id),
      userName: name,
      passwordVersion: passwordVersionOf(passwordVersion, 'user.passwordVersion'),
    }
  }

  /** The first characters of the IDs of this user's sessions; `undefined` if any will do for the store. */
  shardOf(userId: string | null): string | undefined {
    if (userId === null || !this.#store.shard) return undefined
    const shard = this.#store.shard(userId)
    // An ID of another length would never find its session again.
    if (typeof shard !== 'string' || !SHARD.test(shard))
      refuse('shard', '3 of the characters A-Z a-z 0-9 _ - from the store', shard)
    return shard
  }
}

/** How an application's user IDs look: unsigned 64-bit, safe integers, or text (UUID, ULID, …). */
export type UserIds = 'bigint' | 'number' | 'string'
/** A user ID as it comes out. */
export type UserId<Ids extends UserIds = 'bigint'> = Ids extends 'bigint'
  ? bigint
  : Ids extends 'number'
    ? number
    : string
/** A user ID as it may go in. */
export type UserIdInput<Ids extends UserIds = 'bigint'> = Ids extends 'bigint' ? bigint | number : UserId<Ids>

export interface UserIdFormat<Ids extends UserIds> {
  /** Canonical text. @throws TypeError that quotes the value */
  toText(value: UserIdInput<Ids>): string
  /** The exact value, or `null` if the text cannot be one of these IDs. */
  fromText(text: string): UserId<Ids> | null
}

const MAX_U64 = 2n ** 64n - 1n
const DECIMAL = /^(0|[1-9][0-9]{0,19})$/
// Control characters separate a namespace from the ID; lone surrogates have no byte form.
const CONTROL = /\p{Cc}/u

const isSafeId = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

const isU64 = (value: unknown): value is bigint => typeof value === 'bigint' && value >= 0n && value <= MAX_U64
const isTextId = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= 128 && value.isWellFormed() && !CONTROL.test(value)

/** Which `userIds` would take a value that the manager's does not. */
function hintFor(value: unknown): string {
  if (typeof value === 'string' && DECIMAL.test(value))
    return "; convert it, with BigInt(id) or Number(id), or set userIds: 'string' in the manager's options"
  const kind = isTextId(value) ? 'string' : isU64(value) ? 'bigint' : isSafeId(value) ? 'number' : null
  return kind === null ? '' : `; for such IDs set userIds: '${kind}' in the manager's options`
}

function refuseId(expected: string, value: unknown): never {
  throw new TypeError(`user ID: expected ${expected}, got ${quote(value)}${hintFor(value)}`)
}

// `BigInt()` alone would take '', '0x10' and ' 12' for numbers: the pattern and the range decide.
const bigint: UserIdFormat<'bigint'> = {
  toText: value =>
    isU64(value) || isSafeId(value)
      ? `${value}`
      : refuseId('a bigint from 0n to 18446744073709551615n (or a safe integer)', value),
  fromText(text) {
    if (!DECIMAL.test(text)) return null
    const value = BigInt(text)
    return value <= MAX_U64 ? value : null
  },
}

const number: UserIdFormat<'number'> = {
  toText: value => (isSafeId(value) ? `${value}` : refuseId('a safe integer from 0 (userIds is "number")', value)),
  fromText(text) {
    const value = DECIMAL.test(text) ? Number(text) : Number.NaN
    return Number.isSafeInteger(value) ? value : null
  },
}

const string: UserIdFormat<'string'> = {
  // A copy: V8 would keep the whole text that a short one was cut out of, as long as a store or this process keeps the ID.
  toText: value =>
    isTextId(value)
      ? Buffer.from(value).toString()
      : refuseId('text of 1 to 128 characters without control characters (userIds is "string")', value),
  fromText: value => (isTextId(value) ? value : null),
}

export const USER_ID_FORMATS: { readonly [Ids in UserIds]: UserIdFormat<Ids> } = { bigint, number, string }
