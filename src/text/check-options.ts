import { quote } from './quote.ts'

/** How many letters two names may differ by to be taken for each other: a third of the longer name. */
const isNear = (distance: number, length: number) => distance <= Math.floor(length / 3)

/** Letters to insert, remove or replace until one name is the other (Levenshtein), in lower case. */
function distanceOf(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let i = 0; i < one.length; i += 1) {
    const next = [i + 1]
    for (let j = 0; j < other.length; j += 1)
      next.push(Math.min(next[j]! + 1, row[j + 1]! + 1, row[j]! + (one[i] === other[j] ? 0 : 1)))
    row = next
  }
  return row[other.length]!
}

/** The one of the known names that was meant, as far as the spelling shows; `null` where none is near. */
export function nearest(name: string, known: readonly string[]): string | null {
  let best: string | null = null
  let least = Number.POSITIVE_INFINITY
  for (const each of known) {
    const distance = distanceOf(name.toLowerCase(), each.toLowerCase())
    if (distance < least && isNear(distance, Math.max(name.length, each.length))) {
      best = each
      least = distance
    }
  }
  return best
}

/** Throws a TypeError where a value is not what the option `name` takes. */
export type Rule = (value: unknown, name: string) => void

/** What to do instead of an option that a place does not have, by its name. */
export type Hints = Readonly<Record<string, string>>

/** Where options are given, and what each may be. */
export interface OptionPlace<O extends object> {
  /** The class or function that takes them, or the option that they are members of. */
  readonly where: string
  /** By name, in the order in which messages list them; the compiler notices one that is missing. */
  readonly rules: Readonly<Record<keyof O, Rule>>
  /** Of all others `undefined` means the default. @default none */
  readonly required?: readonly (keyof O & string)[]
  /** Put before the name in messages about values, such as 'cookie.'. @default '' */
  readonly prefix?: string
  /** @default none */
  readonly hints?: Hints
}

/** The one sentence about a wrong value. @throws TypeError always */
export function refuse(name: string, expected: string, value: unknown): never {
  throw new TypeError(`${name}: expected ${expected}, got ${quote(value)}`)
}

export const rule =
  (expected: string, accepts: (value: unknown) => boolean): Rule =>
  (value, name) => {
    if (!accepts(value)) refuse(name, expected, value)
  }

/** `'a'`, `'b' or 'c'` */
const choiceOf = (choices: readonly string[]): string =>
  choices
    .map(choice => `'${choice}'`)
    .join(', ')
    .replace(/, ([^,]*)$/, ' or $1')

export const aBoolean: Rule = rule('true or false', value => typeof value === 'boolean')
export const aFunction: Rule = rule('a function', value => typeof value === 'function')
export const oneOf = (...choices: string[]): Rule =>
  rule(choiceOf(choices), value => choices.some(choice => choice === value))
export const wholeNumber = (min: number, max?: number): Rule =>
  rule(
    `a whole number from ${min}${max === undefined ? '' : ` to ${max}`}`,
    value => Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= (max ?? Number.MAX_VALUE),
  )
/** An array whose entries keep one rule; `entries` says what they are. */
export const listOf =
  (entries: string, each: Rule): Rule =>
  (value, name) => {
    if (!Array.isArray(value)) refuse(name, `an array of ${entries}`, value)
    for (const entry of value) each(entry, name)
  }

/**
 * Refuses what is not an object, and each name that is not an option: a name that is misspelt, or that belongs to
 * another library, would otherwise be ignored.
 * @throws TypeError that names the option, the nearest one, and all that there are
 */
export function checkOptionNames(
  where: string,
  options: unknown,
  known: readonly string[],
  hints: Hints = {},
): asserts options is object {
  const there = `(there are: ${known.join(', ')})`
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw new TypeError(`${where}: expected an object of options, got ${quote(options)} ${there}`)
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue
    const near = nearest(name, known)
    const hint = Object.hasOwn(hints, name) ? `; ${hints[name]}` : near === null ? '' : `; did you mean ${near}?`
    throw new TypeError(`${where}: ${quote(name)} is not an option${hint} ${there}`)
  }
}

/**
 * Checks the names of options, then their values.
 * @throws TypeError that names the option, quotes what was given and says what would be right
 */
export function checkOptions<O extends object>(place: OptionPlace<O>, options: unknown): asserts options is O {
  const { where, rules, required = [], prefix = '', hints } = place
  checkOptionNames(where, options, Object.keys(rules), hints)
  for (const [name, check] of Object.entries<Rule>(rules)) {
    const value = (options as Record<string, unknown>)[name]
    if (value !== undefined || required.some(each => each === name)) check(value, prefix + name)
  }
}
