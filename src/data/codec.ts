import { SessionError } from '../contract/errors.ts'
import { isPlain } from './plain.ts'

/** How session data becomes text and back. `encode` gets a plain object, `decode` a text that `encode` returned. */
export interface Codec {
  encode(data: unknown): string
  decode(text: string): unknown
}

const MAX_DEPTH = 100
// `__proto__` would set a prototype when copied, `constructor` leads to one: both are how prototype pollution travels.
const FORBIDDEN_KEYS = new Set(['__proto__', 'constructor'])
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/

const step = (path: string, key: string) =>
  IDENTIFIER.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`

function refuse(path: string, what: string): never {
  throw new SessionError('ERR_SESSION_DATA', `${path}: ${what}`)
}

function describeObject(value: object): string {
  if (value instanceof Date) return 'a Date would come back as text: store its ISO string or its milliseconds'
  if (value instanceof Map || value instanceof Set)
    return 'a Map or Set would come back empty: store an array or object'
  const name = Object.getPrototypeOf(value)?.constructor?.name
  return `only plain objects and arrays come back as they were, this is ${typeof name === 'string' && name ? name : 'something else'}`
}

/** An array as a literal makes it, also in another realm: the prototype of an `Array.prototype` inherits nothing. */
function isPlainArray(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return (
    prototype === Array.prototype ||
    (Array.isArray(prototype) && Object.getPrototypeOf(Object.getPrototypeOf(prototype)) === null)
  )
}

/** Enumerable properties only, which are the elements only: names come after them. */
function isDense(list: readonly unknown[], keys: readonly string[]): boolean {
  return keys.length === list.length && (keys.length === 0 || keys[keys.length - 1] === String(keys.length - 1))
}

/** Throws if JSON would change a value silently, and names the path. (It writes -0 as 0.) */
function check(value: unknown, path: string, ancestors: object[]): void {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return
  if (typeof value === 'bigint') refuse(path, 'JSON has no bigint: store its decimal text')
  if (typeof value === 'number' ? !Number.isFinite(value) : typeof value !== 'object')
    refuse(path, `JSON has no ${typeof value === 'number' ? value : typeof value}`)
  if (typeof value !== 'object') return
  const object = value as object
  if (ancestors.includes(object)) refuse(path, 'is a cycle')
  if (ancestors.length >= MAX_DEPTH) refuse(path, `is nested deeper than ${MAX_DEPTH} levels`)
  ancestors.push(object)
  const isArray = Array.isArray(object)
  if (typeof (object as { toJSON?: unknown }).toJSON === 'function' && (isArray || isPlain(object)))
    refuse(path, 'has a toJSON method')
  if (!(isArray ? isPlainArray(object) : isPlain(object))) refuse(path, describeObject(object))
  if (Object.getOwnPropertySymbols(object).length > 0) refuse(path, 'has a symbol for a key')
  const keys = Object.keys(object)
  if (isArray && !isDense(object, keys)) refuse(path, 'is an array with holes or with names')
  if (Object.getOwnPropertyNames(object).length > keys.length + (isArray ? 1 : 0))
    refuse(path, 'has a key that JSON does not see')
  for (const key of keys) {
    const at = isArray ? `${path}[${key}]` : step(path, key)
    if (FORBIDDEN_KEYS.has(key)) refuse(at, 'this key is not accepted (prototype pollution)')
    const member = (object as Record<string, unknown>)[key]
    // An optional property that is undefined is an absent one, as in TypeScript and in JSON.
    if (isArray || member !== undefined) check(member, at, ancestors)
  }
  ancestors.pop()
}

/** JSON that refuses what JSON would silently change: bigint, Date, NaN, functions, cycles, class instances, `__proto__`. */
export const jsonCodec: Codec = {
  encode(data) {
    check(data, 'data', [])
    return JSON.stringify(data)
  },
  decode: text => JSON.parse(text),
}
