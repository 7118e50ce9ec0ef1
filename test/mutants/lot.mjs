// @ts-check
import { createHash } from 'node:crypto'

/**
 * Files by lot, until they have so many lines together; all files, if they have no more than that. The same seed draws the
 * same files.
 * @param {readonly string[]} files
 * @param {(file: string) => number} linesOf
 * @param {number} enough
 * @param {number} seed
 * @returns {string[]} in the order in which they came
 */
export function draw(files, linesOf, enough, seed) {
  const lot = (/** @type {string} */ file) => createHash('sha256').update(`${seed} ${file}`).digest('hex')
  const drawn = new Set()
  let lines = 0
  for (const file of files.toSorted((one, other) => (lot(one) < lot(other) ? -1 : 1))) {
    if (lines >= enough) break
    drawn.add(file)
    lines += linesOf(file)
  }
  return files.filter(file => drawn.has(file))
}
