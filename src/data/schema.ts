import { isDeepStrictEqual } from 'node:util'
import { SessionError } from '../contract/errors.ts'
import { quote } from '../text/quote.ts'
import { isThenable } from '../time/within.ts'
import { type Codec, jsonCodec } from './codec.ts'
import { copyPlain, isPlain } from './plain.ts'

/** https://standardschema.dev: zod, valibot, arktype and others have it. */
export interface StandardSchemaV1<Input = unknown, Out = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Out> | Promise<SchemaResult<Out>>
    readonly types?: { readonly input: Input; readonly output: Out } | undefined
  }
}
/** The answer of a schema: the checked value, or its issues. */
export type SchemaResult<Out = unknown> =
  | { readonly value: Out; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        readonly message: string
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
      }[]
    }

/** Read-only, all the way down; at run time `Object.freeze` says the same. */
export type Frozen<T> = T extends readonly (infer E)[]
  ? readonly Frozen<E>[]
  : T extends object
    ? { readonly [N in keyof T]: Frozen<T[N]> }
    : T

export interface DataOptions<Data, Input> {
  readonly schema?: StandardSchemaV1<Input, Data> | undefined
  readonly initial?: (() => Data) | undefined
  readonly codec?: Codec | undefined
  readonly maxDataBytes: number
}

type Keys = Record<string, unknown>
/** Looser than plain: an application's schema or codec may return an instance of a class. */
const isKeyed = (value: unknown): value is Keys => typeof value === 'object' && value !== null && !Array.isArray(value)

export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const member of Object.values(value)) deepFreeze(member)
  }
  return value
}

/** The text in whose place other data goes, and the keys that the application named. */
export interface Over {
  readonly text: string
  readonly named: object
}

const EMPTY = Object.freeze({})

/** The session data of an application: its start value, validation and text form. */
export class DataShape<Data extends object, Input extends object = Data> {
  readonly #schema: StandardSchemaV1<Input, Data>['~standard'] | null
  readonly #initial: (() => Data) | null
  readonly #codec: Codec
  readonly #maxBytes: number
  readonly #isFree: boolean

  constructor({ schema, initial, codec, maxDataBytes }: DataOptions<Data, Input>) {
    this.#schema = schema?.['~standard'] ?? null
    this.#initial = initial ?? null
    this.#codec = codec ?? jsonCodec
    this.#maxBytes = maxDataBytes
    this.#isFree = !schema && !initial && !codec
    // Found out at once, not at the first anonymous visitor.
    if (this.#schema) {
      try {
        this.#validated(this.start())
      } catch (cause) {
        if (cause instanceof TypeError) throw cause
        throw new TypeError(
          'schema: it must accept the start value (initial(), else {}) and its own output: give its keys defaults or pass `initial`',
          { cause },
        )
      }
    }
  }

  /** A fresh start value: a default that the application keeps is neither frozen nor edited. */
  start(): Data {
    const value = this.#initialData()
    return copyPlain(this.#schema ? this.#validated(value) : (value as Data))
  }

  #initialData(): object {
    const value: unknown = this.#initial ? this.#initial() : EMPTY
    if (!isKeyed(value) || isThenable(value))
      throw new TypeError(`initial: expected it to return an object, got ${quote(value)}`)
    return value
  }

  /** First data of a session: the start value with some keys set. @throws SessionError ERR_SESSION_DATA */
  encodeInitial(keys: object | undefined, over?: Over): string {
    if (keys === undefined) return this.#isFree ? '{}' : this.encode(this.start())
    if (!isPlain(keys)) throw new SessionError('ERR_SESSION_DATA', `data: expected an object, got ${quote(keys)}`)
    // Spread defines keys and does not assign them: a key named `__proto__` stays a key, and the codec refuses it.
    return this.encode({ ...this.#initialData(), ...keys }, over)
  }

  /**
   * Text of valid data. `over`: what is stored, of which only that changes which the data changes or which is named.
   * @throws SessionError ERR_SESSION_DATA that names the path, or the size
   */
  encode(data: object, over?: Over): string {
    const text = this.#codec.encode(this.#schema ? this.#storable(data as Keys, over) : data)
    if (typeof text !== 'string' || !text.isWellFormed() || text.includes('\0'))
      throw new SessionError('ERR_SESSION_DATA', 'codec: encode must return well-formed text without NUL')
    // A character has at most three bytes for each UTF-16 unit: most data is never counted.
    const bytes = text.length * 3 > this.#maxBytes ? Buffer.byteLength(text) : 0
    if (bytes > this.#maxBytes)
      throw new SessionError(
        'ERR_SESSION_DATA',
        `data: ${bytes} bytes, at most ${this.#maxBytes} are allowed (maxDataBytes): keep large values in your database`,
      )
    return text
  }

  /** Data to edit, and why it had to be started anew (stored data that cannot be read or no longer fits), or null. */
  decode(text: string): { data: Data; reset: Error | null } {
    let stored: unknown
    try {
      stored = this.#codec.decode(text)
    } catch (error) {
      return { data: this.start(), reset: new Error('stored data cannot be decoded', { cause: error }) }
    }
    if (!isKeyed(stored)) return { data: this.start(), reset: new Error('stored data is not an object') }
    if (!this.#schema) return { data: (this.#initial ? { ...this.start(), ...stored } : stored) as Data, reset: null }
    try {
      return { data: copyPlain(this.#validated(stored)), reset: null }
    } catch {
      const start = this.start()
      try {
        return { data: copyPlain(this.#validated({ ...start, ...stored })), reset: null }
      } catch (error) {
        return { data: start, reset: new Error('stored data does not fit the schema', { cause: error }) }
      }
    }
  }

  /** The data of a text that needs no decoding, since nothing is in it; `null` for any other. */
  known(text: string): Frozen<Data> | null {
    return text === '{}' && this.#isFree ? (EMPTY as Frozen<Data>) : null
  }

  /** Valid data that will be valid again when it is read: else it would be lost then, without a word. */
  #storable(data: Keys, over: Over | undefined): object {
    const valid = this.#validated(data)
    const merged = over && isPlain(valid) ? this.#merged(data, valid, over) : null
    if (merged !== null) return merged
    try {
      this.#validated(valid)
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw new TypeError(`schema: it must accept its own output: ${reason}`, { cause })
    }
    return valid
  }

  /**
   * The stored data with what was changed in it: another version of the application may know more keys, or other values.
   * `null` if a read would not show the changes then, as with a schema that gives a key another name.
   */
  #merged(data: Keys, valid: Keys, { text, named }: Over): object | null {
    const { data: before, reset } = this.decode(text) as { data: Keys; reset: Error | null }
    if (reset) return null
    const changed = Object.keys({ ...before, ...valid }).filter(
      key => Object.hasOwn(named, key) || !isDeepStrictEqual(before[key], data[key]),
    )
    const stored = Object.entries(this.#codec.decode(text) as Keys).filter(([key]) => !changed.includes(key))
    const merged = { ...valid, ...Object.fromEntries(stored) }
    try {
      const read = this.#validated(merged) as Keys
      return changed.every(key => isDeepStrictEqual(read[key], valid[key])) ? merged : null
    } catch {
      return null
    }
  }

  #validated(value: unknown): Data {
    const result = this.#schema!.validate(value)
    if (isThenable(result))
      throw new TypeError('schema: validates asynchronously; session data needs a synchronous schema')
    const { issues, value: valid } = result as { issues?: readonly Issue[]; value: Data }
    if (issues) throw new SessionError('ERR_SESSION_DATA', issues.map(describeIssue).join('; '))
    if (!isKeyed(valid)) throw new TypeError(`schema: expected it to describe an object, got ${quote(valid)}`)
    return valid
  }
}

type Issue = Extract<SchemaResult<unknown>, { issues: readonly unknown[] }>['issues'][number]

function describeIssue({ message, path = [] }: Issue): string {
  const keys = path.map(part => (typeof part === 'object' ? part.key : part))
  return `${['data', ...keys.map(String)].join('.')}: ${message}`
}
