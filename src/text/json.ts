import { randomUUID } from 'node:crypto'
import { types } from 'node:util'
import { quote } from './quote.ts'

/** `JSON.rawJSON` of Node.js 22 and later: what it makes is written as it is. Looked up at each call. */
const rawJson = () => (JSON as { rawJSON?: (text: string) => unknown }).rawJSON

/** A value that JSON.stringify writes as this integer; without `JSON.rawJSON` an unsafe one stays a bigint. */
function exact(integer: bigint): unknown {
  const number = Number(integer)
  return Number.isSafeInteger(number) ? number : (rawJson()?.(integer.toString()) ?? integer)
}

/** The bigint that a replacer was called for, if it was. */
function bigintOf(holder: unknown, key: string, value: unknown): bigint | null {
  // A common patch, BigInt.prototype.toJSON, has changed the value by now. The holder still has the bigint.
  const own = 'toJSON' in BigInt.prototype ? ((holder as Record<string, unknown> | undefined)?.[key] ?? value) : value
  const integer = types.isBigIntObject(own) ? BigInt.prototype.valueOf.call(own) : own
  return typeof integer === 'bigint' ? integer : null
}

/** Set while `stringify` runs, for the users of any copy of the package: it writes a bigint exactly by itself. */
const RUNNING = Symbol.for('coatcheck.stringify')
const running = globalThis as { [RUNNING]?: boolean }

/** The method `toJSON` of a user whose ID is a bigint, at which JSON.stringify would throw. */
export function userToJson(this: { readonly id: bigint }) {
  return { ...this, id: running[RUNNING] ? this.id : bigintReplacer.call(this, 'id', this.id) }
}

/**
 * For `JSON.stringify(value, bigintReplacer)`, and whatever takes a replacer: `app.set('json replacer', bigintReplacer)` of Express.
 * A bigint becomes an exact JSON integer, on Node.js 20 (which has no `JSON.rawJSON`) a safe one only.
 * @throws TypeError for a bigint that this Node.js cannot write exactly here, though `stringify` can
 */
export function bigintReplacer(this: unknown, key: string, value: unknown): unknown {
  const integer = bigintOf(this, key, value)
  if (integer === null) return value
  const written = exact(integer)
  if (typeof written !== 'bigint') return written
  throw new TypeError(
    `JSON.stringify cannot write the bigint at ${quote(key)} exactly without JSON.rawJSON (Node.js 22): use stringify(value) of coatcheck`,
  )
}

/**
 * JSON text as `JSON.stringify` gives it, but a bigint becomes an exact JSON integer: `2n ** 64n - 1n` is
 * `18446744073709551615`, which `JSON.parse` of a browser rounds. Like `JSON.stringify`, it gives `undefined` for
 * `undefined`, a function and a symbol.
 * @throws TypeError for a value that contains itself
 */
export function stringify(value: unknown): string {
  if (rawJson() !== undefined) return JSON.stringify(value, bigintReplacer)
  // Node.js 20: integers are written as text with a random mark, which is then taken off with the quotes.
  const mark = randomUUID()
  const marked = function (this: unknown, key: string, each: unknown): unknown {
    const integer = bigintOf(this, key, each)
    return integer === null ? each : mark + integer
  }
  const before = running[RUNNING] === true
  running[RUNNING] = true
  try {
    return JSON.stringify(value, marked)?.replace(new RegExp(`"${mark}(-?\\d+)"`, 'g'), '$1')
  } finally {
    running[RUNNING] = before
  }
}
