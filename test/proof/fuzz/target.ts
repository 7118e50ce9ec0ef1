import assert from 'node:assert/strict'

/** Something that reads what others wrote. */
export interface Target {
  readonly name: string
  /** Inputs to begin with: sound ones, and ones that went wrong. */
  readonly corpus: readonly string[]
  /** Words of the grammar that the corpus has not. */
  readonly more: readonly string[]
  /** Compares our answer with that of a reference; throws where they differ. */
  check(input: string): void
}

/** The words that mutations put in. */
export const wordsOf = ({ corpus, more }: Target): readonly string[] => {
  const found = corpus.flatMap(text => text.match(/[\w-]+|[A-Za-z]+|\d+|[^A-Za-z\d]/gu) ?? [])
  return [...new Set([...found, ...more])]
}

const BUILT_IN = [Object.prototype, Array.prototype, String.prototype, Function.prototype, Object]
const OWN = BUILT_IN.map(each => Reflect.ownKeys(each).length)

/** Throws where an input left something on what all objects inherit. */
export function checkNoPollution(): void {
  for (let i = 0; i < BUILT_IN.length; i += 1)
    if (Reflect.ownKeys(BUILT_IN[i]!).length !== OWN[i])
      assert.fail(`an input changed what is built in: ${Reflect.ownKeys(BUILT_IN[i]!).slice(OWN[i]).map(String)}`)
  if (({} as { isAdmin?: unknown }).isAdmin !== undefined) assert.fail('an input changed what objects inherit')
}

/** The answer, or the message of a TypeError, which is the one error that a bad argument may get. */
export function answerOf<T>(call: () => T): { readonly value: T } | { readonly typeError: string } {
  try {
    return { value: call() }
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    return { typeError: error.message }
  }
}

/** Equality that is cheap where both are texts, numbers, booleans or `null`. */
export function same(ours: unknown, reference: unknown, what: string): void {
  if (ours === reference) return
  assert.deepEqual(ours, reference, `${what}: the reference answers otherwise`)
}

export const DIGITS = '0123456789'
export const LETTERS = 'abcdefghijklmnopqrstuvwxyz'
export const BASE64URL = `${LETTERS}${LETTERS.toUpperCase()}${DIGITS}-_`

/** Whether each code unit is one of these, by a loop. */
export function onlyOf(text: string, allowed: string): boolean {
  for (let at = 0; at < text.length; at += 1) if (!allowed.includes(text[at]!)) return false
  return true
}

/** A decimal as `String(integer)` writes it, of at most so many digits. */
export const isDecimal = (text: string, digits: number) =>
  text !== '' && text.length <= digits && onlyOf(text, DIGITS) && (text === '0' || text[0] !== '0')
