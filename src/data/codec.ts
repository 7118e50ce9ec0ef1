import { SessionError } from '../errors.ts'
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

/** Throws where JSON would change a value without a word; names the path. */
function check(value: unknown, path: string, ancestors: object[]): void {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return
    case 'number':
      if (!Number.isFinite(value)) refuse(path, `JSON has no ${value}`)
      return
    case 'bigint':
      refuse(path, 'JSON has no bigint: store its decimal text')
      return
    case 'object':
      break
    default:
      refuse(path, `JSON has no ${typeof value}`)
  }
  if (value === null) return
  const object = value as object
  if (ancestors.includes(object)) refuse(path, 'is a cycle')
  if (ancestors.length >= MAX_DEPTH) refuse(path, `is nested deeper than ${MAX_DEPTH} levels`)
  ancestors.push(object)
  if (!Array.isArray(object) && !isPlain(object)) refuse(path, describeObject(object))
  if (typeof (object as { toJSON?: unknown }).toJSON === 'function') refuse(path, 'has a toJSON method')
  if (Array.isArray(object)) {
    if (Object.keys(object).length !== object.length) refuse(path, 'is an array with holes or with names')
    for (let index = 0; index < object.length; index += 1) check(object[index], `${path}[${index}]`, ancestors)
  } else {
    if (Object.getOwnPropertySymbols(object).length > 0) refuse(path, 'has a symbol for a key')
    const keys = Object.keys(object)
    if (Object.getOwnPropertyNames(object).length > keys.length) refuse(path, 'has a key that JSON does not see')
    for (const key of keys) {
      if (FORBIDDEN_KEYS.has(key)) refuse(step(path, key), 'this key is not accepted (prototype pollution)')
      const member = (object as Record<string, unknown>)[key]
      // An optional property that is undefined is an absent one, as in TypeScript and in JSON.
      if (member !== undefined) check(member, step(path, key), ancestors)
    }
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
