// @ts-check
import { parseArgs } from 'node:util'

/**
 * What a command of `npm run proof` was given: numbers above 0, and names of `known`. Anything else ends the process
 * with the usage.
 * @param {string} usage
 * @param {{ numbers?: Readonly<Record<string, number | undefined>>, known?: readonly string[] }} takes
 *   `numbers`: with their defaults
 */
export function readOptions(usage, { numbers = {}, known }) {
  /** @param {string} problem @returns {never} */
  const refuse = problem => {
    console.error(`${problem}\nusage: npm run proof -- ${usage}`)
    process.exit(2)
  }
  const options = Object.fromEntries(
    Object.keys(numbers).map(name => [name, { type: /** @type {const} */ ('string') }]),
  )
  const read = () => {
    try {
      return parseArgs({ options, allowPositionals: true })
    } catch (error) {
      return refuse(error instanceof Error ? error.message : String(error))
    }
  }
  const { values, positionals } = read()
  for (const name of positionals)
    if (known && !known.includes(name)) refuse(`'${name}' is none of: ${known.join(', ')}`)
  const numberOf = (/** @type {string} */ name) => {
    const text = values[name]
    if (text === undefined) return numbers[name]
    return Number(text) > 0 ? Number(text) : refuse(`--${name}: expected a number above 0, got '${text}'`)
  }
  return {
    numbers: Object.fromEntries(Object.keys(numbers).map(name => [name, numberOf(name)])),
    names: positionals,
  }
}
