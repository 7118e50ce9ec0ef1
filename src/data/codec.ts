import { SessionError } from '../contract/errors.ts'
import { isPlain } from './plain.ts'

/** How session data becomes text and back. `encode` is called with a plain object, `decode` with what `encode` gave. */
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

/** An array as a literal makes it, also one of another realm: what `Array.prototype` inherits from inherits nothing. */
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

/**
 * Throws if JSON would change a value without a word, and names the path. Answers whether there is a -0 in it, which JSON
 * has, and `JSON.stringify` writes as 0.
 */
function check(value: unknown, path: string, ancestors: object[]): boolean {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return false
    case 'number':
      if (!Number.isFinite(value)) refuse(path, `JSON has no ${value}`)
      return Object.is(value, -0)
    case 'bigint':
      return refuse(path, 'JSON has no bigint: store its decimal text')
    case 'object':
      break
    default:
      refuse(path, `JSON has no ${typeof value}`)
  }
  if (value === null) return false
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
  let hasMinusZero = false
  if (isArray) {
    for (let index = 0; index < object.length; index += 1)
      hasMinusZero = check(object[index], `${path}[${index}]`, ancestors) || hasMinusZero
  } else {
    for (const key of keys) {
      if (FORBIDDEN_KEYS.has(key)) refuse(step(path, key), 'this key is not accepted (prototype pollution)')
      const member = (object as Record<string, unknown>)[key]
      // An optional property that is undefined is an absent one, as in TypeScript and in JSON.
      if (member !== undefined) hasMinusZero = check(member, step(path, key), ancestors) || hasMinusZero
    }
  }
  ancestors.pop()
  return hasMinusZero
}

/** JSON of what `check` let through, with -0. */
function write(value: unknown): string {
  if (Object.is(value, -0)) return '-0'
  if (Array.isArray(value)) return `[${value.map(write).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${write(member)}`).join(',')}}`
}

/** JSON that refuses what JSON would silently change: bigint, Date, NaN, functions, cycles, class instances, `__proto__`. */
export const jsonCodec: Codec = {
  encode: data => (check(data, 'data', []) ? write(data) : JSON.stringify(data)),
  decode: text => JSON.parse(text),
}
