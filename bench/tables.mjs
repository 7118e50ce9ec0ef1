// @ts-check
// The public table: one for each store.
import { contest } from './contest.mjs'
import { OPERATIONS } from './operations.mjs'
import { CHART, PEERS, TABLES } from './stores.mjs'

/** @typedef {Awaited<ReturnType<typeof contest>>} Medians */

/** A quick run is over by then, where nothing else keeps the machine busy. */
const QUICK_SECONDS = 105
/** What starting, filling and stopping take of a table's share. */
const OVERHEAD = 0.45

/** @param {'quick' | 'usual' | 'long'} length @param {() => number} share seconds for the next table of a quick run */
function planOf(length, share) {
  const operations = length === 'quick' ? ['profile', 'one', 'anonymous'] : Object.keys(OPERATIONS)
  const seconds = { usual: [18, 12, 6], long: [60, 40, 20] }
  return {
    operations,
    isQuick: length === 'quick',
    seconds: (/** @type {string} */ name) => {
      if (length === 'quick') return (share() * (1 - OVERHEAD)) / operations.length
      return /** @type {number} */ (seconds[length][name === 'profile' ? 0 : name === 'one' ? 1 : 2])
    },
    rounds: 40,
    leastRounds: length === 'quick' ? 1 : 3,
    warmUp:
      length === 'quick'
        ? { profile: { requests: 6144, seconds: 1 } }
        : {
            profile: { requests: 20_480, seconds: 6 },
            one: { requests: 16_384, seconds: 6 },
            anonymous: { requests: 8192, seconds: 2 },
          },
    sessions: length === 'quick' ? 0 : 2000,
  }
}

const METHOD = `
Processor time (user and system) of the server process per request, as a ratio to the row "by hand" of the same round:
raw node:http with the least that the request needs, no touch, no hash, no race thought of. Medians of interleaved rounds;
half of the rounds lie in the middle half. 64 connections: 64 requests arrive together, the next 64 when all are answered.
"In a stream" is the same ratio where each connection sends its next request as soon as it has an answer; p50 and p99 are
of that, with the load on the same machine. Commands are what the database received, and its processor time is that of all
its processes, per request. A login checks no password; better-auth's is its internal one.`

/** Few rows and one request, so that there is time for many rounds. @param {readonly string[]} labels */
const isOneOf =
  labels =>
  (/** @type {import('./stores.mjs').Row} */ { label }) =>
    labels.some(own => label === own || label.startsWith(`${own}, `))

/**
 * @param {import('./stores.mjs').Table} shown
 * @param {readonly import('./stores.mjs').Row[]} rows
 * @param {{ seconds: number, warmUp: number }} time
 */
const contestOfProfiles = (shown, rows, { seconds, warmUp }) =>
  contest(
    { ...shown, rows, absent: [] },
    {
      operations: ['profile'],
      isQuick: false,
      seconds: () => seconds,
      rounds: 200,
      leastRounds: 20,
      warmUp: { profile: { requests: 30_720, seconds: warmUp } },
      sessions: 0,
    },
  )

/** What the chart shows: like beside like. */
export const benchChart = () =>
  contestOfProfiles(/** @type {import('./stores.mjs').Table} */ (TABLES.memory), CHART, { seconds: 100, warmUp: 10 })

/** What the table of the page shows: all stores, in about five minutes. */
export const benchPage = () =>
  contestOfTables(Object.keys(TABLES), shown =>
    contestOfProfiles(shown, shown.rows.filter(isOneOf(['by hand', 'coatcheck', ...PEERS])), {
      seconds: 32,
      warmUp: 2.5,
    }),
  )

/**
 * @param {readonly string[]} names
 * @param {(shown: import('./stores.mjs').Table, left: number) => Promise<Medians>} run
 */
async function contestOfTables(names, run) {
  console.log(METHOD)
  /** @type {Map<string, Medians>} */
  const all = new Map()
  for (const [at, name] of names.entries()) {
    const shown = /** @type {import('./stores.mjs').Table} */ (TABLES[name])
    const why = shown.missing()
    try {
      if (why !== null) throw new Error(why)
      all.set(name, await run(shown, names.length - at))
    } catch (error) {
      console.log(`\n### ${shown.title}\n\nLeft out: ${error instanceof Error ? error.message : error}.`)
    }
  }
  return all
}

/**
 * Prints the tables, and answers the medians of each.
 * @param {readonly string[]} names
 * @param {'quick' | 'usual' | 'long'} length
 */
export function benchTables(names, length) {
  const end = performance.now() + QUICK_SECONDS * 1000
  if (length === 'quick') console.log('A quick run: fewer requests, rows and rounds.')
  return contestOfTables(names, (shown, left) => {
    const share = Math.max(0, end - performance.now()) / 1000 / left
    return contest(
      shown,
      planOf(length, () => share),
    )
  })
}
