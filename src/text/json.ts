import { randomUUID } from 'node:crypto'
import { types } from 'node:util'
import { quote } from './quote.ts'

/** Around a large bigint in the text; nobody else can write it. Drawn at the first one, as Workers draw nothing while they load. */
let nonce: string | undefined

/**
 * JSON text as `JSON.stringify` gives it, but a bigint becomes an exact JSON integer: `2n ** 64n - 1n` is
 * `18446744073709551615`, which `JSON.parse` of a browser rounds. Like `JSON.stringify`, it gives `undefined` for
 * `undefined`, a function and a symbol.
 * @throws TypeError for a value that contains itself
 */
export function stringify(value: unknown): string {
  const text = JSON.stringify(value, wrapBigint)
  if (nonce === undefined || !text?.includes(nonce)) return text
  return text.replaceAll(`"${nonce}`, '').replaceAll(`${nonce}"`, '')
}

function wrapBigint(this: unknown, key: string, value: unknown): unknown {
  return exactly(this, key, value, integer => {
    nonce ??= randomUUID()
    return nonce + integer + nonce
  })
}

/** The value, for JSON: a bigint as a number if that is exact, otherwise as `large` gives it. */
function exactly(holder: unknown, key: string, value: unknown, large: (integer: bigint) => unknown): unknown {
  // BigInt.prototype.toJSON, a common patch, has already been called: the holder still has the bigint.
  const own = 'toJSON' in BigInt.prototype ? ((holder as Record<string, unknown> | undefined)?.[key] ?? value) : value
  if (typeof own !== 'bigint' && !(typeof own === 'object' && types.isBigIntObject(own))) return value
  const integer = BigInt.prototype.valueOf.call(own)
  const number = Number(integer)
  return Number.isSafeInteger(number) ? number : large(integer)
}

// Node 22 and later have JSON.rawJSON.
const raw = (integer: bigint) => (JSON as { rawJSON?: (text: string) => unknown }).rawJSON?.(integer.toString())

/** The method `toJSON` of a user whose ID is a bigint, at which JSON.stringify would throw. (On Node.js 20 it still does, above 2^53.) */
export function userToJson(this: { readonly id: unknown }) {
  return { ...this, id: exactly(this, 'id', this.id, integer => raw(integer) ?? integer) }
}

/**
 * For `JSON.stringify(value, bigintReplacer)`, and whatever takes a replacer: `app.set('json replacer', bigintReplacer)` of Express.
 * A bigint becomes an exact JSON integer, on Node.js 20 (which has no `JSON.rawJSON`) a safe one only.
 * @throws TypeError for a bigint that this Node.js cannot write exactly here, though `stringify` can
 */
export function bigintReplacer(this: unknown, key: string, value: unknown): unknown {
  return exactly(this, key, value, integer => {
    const written = raw(integer)
    if (written !== undefined) return written
    throw new TypeError(
      `JSON.stringify cannot write the bigint at ${quote(key)} exactly without JSON.rawJSON (Node.js 22): use stringify(value) of coatcheck`,
    )
  })
}
