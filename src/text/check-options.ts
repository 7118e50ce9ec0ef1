import { quote } from './quote.ts'

/** Throws a TypeError if the option `name` does not take this value. */
export type Rule = (value: unknown, name: string) => void

/** Advice for options that do not exist here. */
export type Hints = Readonly<Record<string, string>>

/** The options of one class, function or option. */
export interface OptionsOf<O extends object> {
  /** The class or function that takes them, or the option that they are members of. */
  readonly where: string
  /** By name, in the order in which messages list them; the compiler reports a missing one. */
  readonly rules: Readonly<Record<keyof O, Rule>>
  /** The others may be `undefined`, which means the default. @default none */
  readonly required?: readonly (keyof O & string)[]
  /** Put before the name in messages about values, such as 'cookie.'. @default '' */
  readonly prefix?: string
  /** @default none */
  readonly hints?: Hints
}

/** Refuses a wrong value; all messages about values have this form. @throws TypeError always */
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
/** An array whose entries all follow one rule; `entries` names them in messages. */
export const listOf =
  (entries: string, each: Rule): Rule =>
  (value, name) => {
    if (!Array.isArray(value)) refuse(name, `an array of ${entries}`, value)
    for (const entry of value) each(entry, name)
  }

/**
 * Refuses anything but an object, and each name that is not an option: a name that is misspelt, or that belongs to
 * another library, would otherwise be ignored.
 * @throws TypeError that names the option, and lists those that exist
 */
export function checkOptionNames(
  where: string,
  options: unknown,
  known: readonly string[],
  hints: Hints = {},
): asserts options is object {
  const there = () => `(there are: ${known.join(', ')})`
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw new TypeError(`${where}: expected an object of options, got ${quote(options)} ${there()}`)
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue
    const hint = Object.hasOwn(hints, name) ? `; ${hints[name]}` : ''
    throw new TypeError(`${where}: ${quote(name)} is not an option${hint} ${there()}`)
  }
}

/** The options that are given: one that is `undefined` means its default. */
export const givenOf = <O extends object>(options: O): O =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as O

/**
 * Checks the names of options, then their values.
 * @throws TypeError that names the option, quotes what was given and says what would be right
 */
export function checkOptions<O extends object>(of: OptionsOf<O>, options: unknown): asserts options is O {
  const { where, rules, required = [], prefix = '', hints } = of
  checkOptionNames(where, options, Object.keys(rules), hints)
  for (const [name, check] of Object.entries<Rule>(rules)) {
    const value = (options as Record<string, unknown>)[name]
    if (value !== undefined || required.some(each => each === name)) check(value, prefix + name)
  }
}
