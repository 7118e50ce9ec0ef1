// @ts-check
// Changes of the code that change nothing that anyone could notice: equivalent/ lists those of each source file, with the
// reasons, in a file of the same path.
import { readdirSync, readFileSync } from 'node:fs'
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

const folder = fileURLToPath(new URL('equivalent/', import.meta.url))

/** @param {string} file a source @returns {string} the path of its list below equivalent/ */
export const listOf = file => file.replace(/\.ts$/, '.json')

/** @returns {Equivalent[]} */
export const equivalents = () =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(path => path.endsWith('.json'))
    .sort()
    .flatMap(path => {
      const file = path.replaceAll('\\', '/').replace(/\.json$/, '.ts')
      return JSON.parse(readFileSync(folder + path, 'utf8')).map((/** @type {object} */ entry) => ({ file, ...entry }))
    })

/**
 * The change as its list writes it, but for the reason, and with its file.
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
