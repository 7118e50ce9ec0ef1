import { quote } from '../text/quote.ts'

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
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\u0000-\u001f\u007f]/

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

function refuse(expected: string, value: unknown): never {
  throw new TypeError(`user ID: expected ${expected}, got ${quote(value)}${hintFor(value)}`)
}

// `BigInt()` alone would take '', '0x10' and ' 12' for numbers: the pattern and the range decide.
const bigint: UserIdFormat<'bigint'> = {
  toText(value) {
    if (isU64(value)) return value.toString()
    if (isSafeId(value)) return `${value}`
    return refuse('a bigint from 0n to 18446744073709551615n (or a safe integer)', value)
  },
  fromText(text) {
    if (!DECIMAL.test(text)) return null
    const value = BigInt(text)
    return value <= MAX_U64 ? value : null
  },
}

const number: UserIdFormat<'number'> = {
  toText: value => (isSafeId(value) ? `${value}` : refuse('a safe integer from 0 (userIds is "number")', value)),
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
      : refuse('text of 1 to 128 characters without control characters (userIds is "string")', value),
  fromText: value => (isTextId(value) ? value : null),
}

export const USER_ID_FORMATS: { readonly [Ids in UserIds]: UserIdFormat<Ids> } = { bigint, number, string }
