// @ts-check
// A reporter for Stryker: prints each mistake that no test noticed as soon as it is known, since a room takes minutes.
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { root } from '../scripts/vitest.mjs'
import { describeMutant, equivalents } from './equivalents.mjs'

/** @typedef {import('@stryker-mutator/api/core').MutantResult} MutantResult */

/** What a run says of a mistake that no test noticed. */
export const UNNOTICED = ['Survived', 'NoCoverage']

const listed = new Set(equivalents().map(({ reason, ...change }) => JSON.stringify(change)))

/** The texts of the files when they were first asked for: they may be edited while the mistakes are tried. */
const sources = new Map()

/** @param {string} path */
export function sourceOf(path) {
  if (!sources.has(path)) sources.set(path, readFileSync(path, 'utf8'))
  return /** @type {string} */ (sources.get(path))
}

/**
 * What became of a mistake, and whether it is listed as equivalent.
 * @param {Readonly<MutantResult>} result
 */
export function outcomeOf(result) {
  const file = relative(root, result.fileName).replaceAll('\\', '/')
  const change = describeMutant(result, file, sourceOf(result.fileName))
  const isUnnoticed = UNNOTICED.includes(result.status)
  const isEquivalent = isUnnoticed && listed.has(JSON.stringify(change))
  return { change, status: result.status, line: result.location.start.line, isEquivalent }
}

const MINUTE = 60_000

class Unnoticed {
  #all = 0
  #tried = 0
  #unnoticed = 0
  #printedAt = performance.now()

  /** @param {import('@stryker-mutator/api/report').MutationTestingPlanReadyEvent} event */
  onMutationTestingPlanReady({ mutantPlans }) {
    this.#all = mutantPlans.length
    for (const { mutant } of mutantPlans) sourceOf(mutant.fileName)
  }

  /** @param {Readonly<MutantResult>} result */
  onMutantTested(result) {
    this.#tried += 1
    const { change, status, line, isEquivalent } = outcomeOf(result)
    if (UNNOTICED.includes(status) && !isEquivalent) {
      this.#unnoticed += 1
      console.log(`${change.file}:${line}  ${change.mutator}${status === 'NoCoverage' ? ', reached by no test' : ''}`)
      console.log(`    - ${change.from}\n    + ${change.to}`)
    }
    if (performance.now() - this.#printedAt < MINUTE) return
    this.#printedAt = performance.now()
    console.log(`${this.#tried} of ${this.#all} tried, ${this.#unnoticed} not noticed`)
  }
}

export const strykerPlugins = [{ kind: 'Reporter', name: 'unnoticed', injectableClass: Unnoticed }]
