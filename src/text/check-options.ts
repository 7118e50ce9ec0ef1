import { quote } from './quote.ts'

/** How many letters two names may differ by to be taken for each other: one in three of the longer name. */
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

function nearest(name: string, known: readonly string[]): string | null {
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

/** Names of options in the order they are shown; from a record, so that the compiler notices one that is missing. */
export const optionNames = <O extends object>(names: Readonly<Record<keyof O, true>>): readonly string[] =>
  Object.keys(names)

/**
 * Refuses what is no object and each name that is no option: one that is misspelt, or belongs to another library, must
 * not be ignored without a word. `hints` say what to do instead of an option that other libraries have.
 * @throws TypeError that names the option, the nearest one, and all that there are
 */
export function checkOptionNames(
  where: string,
  options: unknown,
  known: readonly string[],
  hints: Readonly<Record<string, string>> = {},
): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw new TypeError(`${where}: expected an object of options, got ${quote(options)}`)
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue
    const near = nearest(name, known)
    const hint = Object.hasOwn(hints, name) ? `; ${hints[name]}` : near === null ? '' : `; did you mean ${near}?`
    throw new TypeError(`${where}: ${quote(name)} is not an option${hint} (there are: ${known.join(', ')})`)
  }
}
