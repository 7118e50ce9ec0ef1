// @ts-check
// Defects that this library once had, which no order of requests shows: each as a change of a line, and the test that has
// to fail with it.
import { CLOCKS_OUTAGES_GROWTH } from './clocks-outages-growth.mjs'
import { WAYS_IN } from './ways-in.mjs'

/**
 * @typedef {object} Defect
 * @property {string} name
 * @property {string} file
 * @property {string} from text that is in the file once
 * @property {string} to
 * @property {string} test the file of the test
 * @property {string} [only] of its tests those whose name has this (a regular expression)
 * @property {boolean} [isBuilt] the test asks what was built
 * @property {readonly string[]} [engines] that the test needs
 */

/** @param {Pick<Defect, 'file' | 'from' | 'to'>} defect @param {string} source @returns {string} */
export function patched({ file, from, to }, source) {
  if (source.split(from).length !== 2) throw new Error(`${file}: expected once: ${from}`)
  return source.replace(from, () => to)
}

/** @type {readonly Defect[]} */
export const DEFECTS = [...WAYS_IN, ...CLOCKS_OUTAGES_GROWTH]
