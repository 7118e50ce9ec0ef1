import { types } from 'node:util'
import { quote } from './quote.ts'

// Text without characters that JSON.stringify escapes (ECMA-262, 25.5.2.3 QuoteJSONString): controls, quotes, backslashes, surrogates.
const PLAIN = /^[ !#-[\]-\ud7ff\ue000-\uffff]*$/

// Node 22 and later have JSON.rawJSON; a value made by it is already text.
const isRawJson = (JSON as { isRawJSON?: (value: unknown) => boolean }).isRawJSON

const text = (value: string): string => (PLAIN.test(value) ? `"${value}"` : JSON.stringify(value))

/**
 * JSON text as `JSON.stringify` gives it, but a bigint becomes an exact JSON integer: `2n ** 64n - 1n` is
 * `18446744073709551615`, which `JSON.parse` of a browser rounds. Like `JSON.stringify`, it gives `undefined` for
 * `undefined`, a function and a symbol.
 * @throws TypeError for a value that contains itself
 */
export function stringify(value: unknown): string {
  return write(value, '', []) as string
}

/** Marks a `toJSON` that `stringify` skips, in any copy of the package: it writes a bigint exactly anyway. */
const INEXACT = Symbol.for('coatcheck.inexact-json')

/** The method `toJSON` of a user whose ID is a bigint, at which JSON.stringify would throw. */
export const userToJson = Object.assign(
  function toJSON(this: { readonly id: unknown }) {
    return { ...this, id: bigintReplacer.call(this, 'id', this.id) }
  },
  { [INEXACT]: true },
)

/**
 * For `JSON.stringify(value, bigintReplacer)`, and whatever takes a replacer: `app.set('json replacer', bigintReplacer)` of Express.
 * A bigint becomes an exact JSON integer, on Node.js 20 (which has no `JSON.rawJSON`) a safe one only.
 * @throws TypeError for a bigint that this Node.js cannot write exactly here, though `stringify` can
 */
export function bigintReplacer(this: unknown, key: string, value: unknown): unknown {
  // BigInt.prototype.toJSON, a common patch, has already been called: the holder still has the bigint.
  const own = 'toJSON' in BigInt.prototype ? ((this as Record<string, unknown> | undefined)?.[key] ?? value) : value
  const integer = types.isBigIntObject(own) ? BigInt.prototype.valueOf.call(own) : own
  if (typeof integer !== 'bigint') return value
  const number = Number(integer)
  if (Number.isSafeInteger(number)) return number
  const { rawJSON } = JSON as { rawJSON?: (text: string) => unknown }
  if (rawJSON) return rawJSON(integer.toString())
  throw new TypeError(
    `JSON.stringify cannot write the bigint at ${quote(key)} exactly without JSON.rawJSON (Node.js 22): use stringify(value) of coatcheck`,
  )
}

function write(input: unknown, key: string, parents: object[]): string | undefined {
  let value = input
  // BigInt.prototype.toJSON, a common patch that returns a string, is not called: bigints are the purpose of this function.
  if ((typeof input === 'object' && input !== null) || typeof input === 'function') {
    const { toJSON } = input as { toJSON?: unknown }
    if (typeof toJSON === 'function' && !(INEXACT in toJSON)) value = toJSON.call(input, key)
  }
  switch (typeof value) {
    case 'string':
      return text(value)
    case 'bigint':
      return value.toString()
    case 'number':
      return Number.isFinite(value) ? String(value) : 'null'
    case 'boolean':
      return value ? 'true' : 'false'
    case 'object':
      return value === null ? 'null' : writeObject(value, parents)
    default:
      return undefined
  }
}

function writeObject(value: object, parents: object[]): string | undefined {
  if (types.isBoxedPrimitive(value) && !types.isSymbolObject(value)) return write(value.valueOf(), '', parents)
  if (isRawJson?.(value)) return JSON.stringify(value)
  if (parents.includes(value)) throw new TypeError('stringify: the value contains itself')
  parents.push(value)
  let json = ''
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++)
      json += `${index === 0 ? '' : ','}${write(value[index], String(index), parents) ?? 'null'}`
    json = `[${json}]`
  } else {
    for (const key of Object.keys(value)) {
      const item = write((value as Record<string, unknown>)[key], key, parents)
      if (item !== undefined) json += `${json === '' ? '' : ','}${text(key)}:${item}`
    }
    json = `{${json}}`
  }
  parents.pop()
  return json
}
