// @ts-check
// Changes of the code that change nothing that anyone could notice: equivalent.json lists each with the reason.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/**
 * @typedef {object} Equivalent
 * @property {string} file
 * @property {string} mutator Stryker's name for this kind of change
 * @property {string} line the line where the change begins, without the spaces around it
 * @property {string} from what is replaced, each run of white space as one space
 * @property {string} to what stands there then, spaced likewise
 * @property {string} reason why no test can notice
 */

/** @typedef {Pick<import('@stryker-mutator/api/core').MutantResult, 'fileName' | 'mutatorName' | 'location' | 'replacement'>} Mutant */

/** @param {string} text */
const spaced = text => text.replace(/\s+/g, ' ').trim()

/** @returns {Equivalent[]} */
export const equivalents = () =>
  JSON.parse(readFileSync(fileURLToPath(new URL('equivalent.json', import.meta.url)), 'utf8'))

/**
 * The change as equivalent.json writes it, but for the reason.
 * @param {Mutant} mutant
 * @param {string} file the path from the root
 * @param {string} source the text of the file
 */
export function describeMutant({ mutatorName, location: { start, end }, replacement }, file, source) {
  // Stryker counts lines and columns from 1.
  const lines = source.split('\n').slice(start.line - 1, end.line)
  const first = lines[0] ?? ''
  lines.push((lines.pop() ?? '').slice(0, end.column - 1))
  lines[0] = (lines[0] ?? '').slice(start.column - 1)
  return { file, mutator: mutatorName, line: first.trim(), from: spaced(lines.join('\n')), to: spaced(replacement) }
}

/**
 * What of an entry the sources no longer have, or null.
 * @param {Equivalent} entry
 * @param {string} source
 */
export function staleness({ line, from, reason }, source) {
  if (!reason) return 'it has no reason'
  if (!source.split('\n').some(each => each.trim() === line)) return `no such line: ${line}`
  return spaced(source).includes(from) ? null : `no such text: ${from}`
}
