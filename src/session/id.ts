// As a whole, because Node.js before 20.12 has no `hash`: a name that is missing would keep the package from loading.
import * as crypto from 'node:crypto'
import { isRecordKey } from '../contract/record.ts'

// Brands by name, not by symbol: the declarations for ESM and for CommonJS would each have a symbol of their own.
/** Public handle of a session: safe to log, list, compare, join rooms with. Finds nothing when sent as a cookie. */
export type SessionKey = string & { readonly 'coatcheck.brand': 'key' }
/** The value of the session cookie, checked or not: `session.secret`, `sessionId(text)`. */
export type SessionId = string & { readonly 'made by sessionId(text)': true }

/** Characters that say on which shard a session lives; the ID and the key begin with them. */
const SHARD_LENGTH = 3
const NOT_OF_IDS = /[^A-Za-z0-9_-]/

/** Whether a string has the shape of a session ID: 43 characters of base64url (RFC 4648, section 5). */
export const isId = (value: string): value is SessionId => value.length === 43 && !NOT_OF_IDS.test(value)
export const isKey = (value: unknown): value is SessionKey => isRecordKey(value)

/**
 * A session ID that you read from a cookie jar of your own: the value of the cookie, not a Cookie header. `null` for
 * anything that is not an ID.
 */
export const sessionId = (value: string | null | undefined): SessionId | null =>
  typeof value === 'string' && isId(value) ? value : null

const digest: (algorithm: 'sha256' | 'sha512', text: string) => string =
  typeof crypto.hash === 'function' // from Node 20.12
    ? (algorithm, text) => crypto.hash(algorithm, text, 'base64url')
    : (algorithm, text) => crypto.createHash(algorithm).update(text).digest('base64url')

/**
 * At most 85 characters. They come from two UUIDs, which have 122 random bits each and which Node.js draws from a pool, in
 * less time than `randomBytes` takes. The time is hashed with them: a restored snapshot of a virtual machine is a second
 * copy of this process, with the same pool and the same generator. SHA-512, because the last of the 43 characters of a
 * SHA-256 is one of 16 only.
 */
const draw = (length: number): string =>
  digest('sha512', `${crypto.randomUUID()}${crypto.randomUUID()}${performance.now()} ${Date.now()}`).slice(0, length)

export const hmac = (key: string, text: string): string =>
  crypto.createHmac('sha256', key).update(text).digest('base64url')
export const hashOf = (text: string): string => digest('sha256', text)

/** A new session ID: the shard (random unless given) and 240 random bits. @throws what the generator throws */
export const newId = (shard = ''): string => shard + draw(43 - shard.length)

/** A random salt of 96 bits: not secret, never used twice. */
export const newSalt = (): string => draw(16)

/**
 * The ID that the holders of `secret` derive with the stored `salt`, for a `purpose`. A reader of the store has the salt,
 * but not the secret.
 */
export const deriveId = (shard: string, secret: string, purpose: string, salt: string): string =>
  shard + hmac(secret, `${purpose}\0${salt}`).slice(0, 40)

/** The key under which a secret's record is stored. `keySpace` keeps kinds and namespaces apart ('' for plain sessions). */
export const keyOf = (id: string, keySpace: string): SessionKey =>
  (id.slice(0, SHARD_LENGTH) + hashOf(keySpace === '' ? id : `${keySpace}\0${id}`)) as SessionKey

export const shardOf = (idOrKey: string): string => idOrKey.slice(0, SHARD_LENGTH)

const CLOCK_LENGTH = 8
const CLOCK_RANGE = 36 ** CLOCK_LENGTH
let writer = ''
let last = 0
/**
 * Different for each write of each process, and of each copy of a process: 4 random characters, then the time in
 * nanoseconds, which only rises. 12 characters, because every record keeps one, and because V8 keeps a longer text that
 * was put together in its pieces, which cost a record in memory 80 bytes.
 */
export function newWriteId(): string {
  if (writer === '') writer = draw(4)
  last = Math.max(last + 1, Math.floor(Date.now() + performance.now() * 1e6))
  return writer + (last % CLOCK_RANGE).toString(36).padStart(CLOCK_LENGTH, '0')
}
