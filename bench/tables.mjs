// @ts-check
// A table for each store.
import { contest } from './contest.mjs'
import { OPERATIONS } from './operations.mjs'
import { TABLES } from './stores.mjs'

/** @typedef {Awaited<ReturnType<typeof contest>>} Medians */

const METHOD = `
Processor time (user and system) of the server process per request, as a ratio to the row "by hand" of the same round:
raw node:http with the least that the request needs, no touch, no hash, no race thought of. Medians of interleaved rounds;
half of the rounds lie in the middle half. 64 connections: 64 requests arrive together, the next 64 when all are answered.
A login checks no password; better-auth's is its internal one.`

/** @param {string} name @param {boolean} isQuick */
const planOf = (name, isQuick) => ({
  operations: isQuick
    ? ['profile', 'one']
    : name === 'memory'
      ? Object.keys(OPERATIONS)
      : ['profile', 'one', 'login', 'logout', 'everywhere'],
  isQuick,
  seconds: (/** @type {string} */ operation) => (isQuick ? 5 : operation === 'profile' ? 24 : 12),
  rounds: 100,
  leastRounds: isQuick ? 1 : 5,
  warmUp: isQuick
    ? { profile: { requests: 6144, seconds: 1 } }
    : {
        profile: { requests: 20_480, seconds: 4 },
        one: { requests: 16_384, seconds: 3 },
        anonymous: { requests: 8192, seconds: 2 },
      },
})

/**
 * Prints the tables, and answers the medians of each.
 * @param {readonly string[]} names
 * @param {boolean} isQuick
 */
export async function benchTables(names, isQuick) {
  console.log(isQuick ? 'A quick run: fewer requests, rows and rounds.' : METHOD)
  /** @type {Map<string, Medians>} */
  const all = new Map()
  for (const name of names) {
    const shown = /** @type {import('./stores.mjs').Table} */ (TABLES[name])
    const why = shown.missing()
    try {
      if (why !== null) throw new Error(why)
      all.set(name, await contest(shown, planOf(name, isQuick)))
    } catch (error) {
      console.log(`\n### ${shown.title}\n\nLeft out: ${error instanceof Error ? error.message : error}.`)
    }
  }
  return all
}
