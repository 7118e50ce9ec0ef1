// @ts-check
// What grows with the work: `npm run bench -- growth`.
import { writeBlocks } from './blocks.mjs'
import { measure } from './measure/run.mjs'
import { TABLES } from './stores.mjs'
import { fixed, table, whole } from './table.mjs'

/** @typedef {import('./measure/growth.mjs').Row} Row */

/** The tables: what there is more and more of. @type {Record<Row['part'], string>} */
const PARTS = {
  user: 'sessions of one user',
  others: 'sessions of others',
  expired: 'expired sessions',
  writers: 'writers to one session',
  ids: 'new IDs',
}

const FOOTPRINTS = ['coatcheck', 'a Map of the same records', 'express-session']

/**
 * How a cost grows from the last size but one to the last: flat if ten times as many cost less than the root of that, more
 * if they cost twenty times as much. In between caches that end and garbage that is collected make a difference.
 * @param {readonly number[]} sizes
 * @param {readonly number[]} costs
 */
export function growthOf(sizes, costs) {
  const ratio = (/** @type {readonly number[]} */ of) => Number(of.at(-1)) / Number(of.at(-2))
  const power = Math.log(ratio(costs)) / Math.log(ratio(sizes))
  return power < 0.5 ? 'flat' : power < 1.3 ? 'linear' : '**more**'
}

const cost = (/** @type {number} */ value) => (value < 10 ? fixed(value, 1) : whole(value))

/** A row for each kind of work, a column for each store: the cost at the first size and at the last. @param {readonly { store: string, row: Row }[]} all */
function pageTable(all) {
  const stores = [...new Set(all.map(({ store }) => store))]
  const works = Object.entries(PARTS).flatMap(([part, what]) =>
    [...new Set(all.filter(({ row }) => row.part === part).map(({ row }) => row.title))].sort().map(title => {
      const of = all.filter(({ row }) => row.part === part && row.title === title)
      const cells = stores.map(name => {
        const row = of.find(({ store }) => store === name)?.row
        if (row === undefined) return '–'
        const ends = `${cost(Number(row.costs[0]))} → ${cost(Number(row.costs.at(-1)))}`
        return growthOf(row.sizes, row.costs) === '**more**' ? `**${ends}**` : ends
      })
      const [{ sizes = [] } = {}] = of.map(({ row }) => row)
      const words = new Set(of.map(({ row }) => growthOf(row.sizes, row.costs).replaceAll('*', '')))
      const word = ['more', 'linear', 'flat'].find(each => words.has(/** @type {'flat'} */ (each))) ?? ''
      return [`${title}, ${whole(Number(sizes[0]))} → ${whole(Number(sizes.at(-1)))} ${what}`, ...cells, word]
    }),
  )
  return table(['', ...stores, 'grows'], works)
}

/** @param {boolean} isQuick @param {boolean} isWritten @param {readonly string[]} heading */
export async function benchGrowth(isQuick, isWritten, heading) {
  /** @type {{ store: string, row: Row }[]} */
  const all = []
  for (const [name, { title, missing }] of Object.entries(TABLES)) {
    const why = missing()
    if (why !== null && isWritten) throw new Error(`${title}: ${why}; nothing was written`)
    const rows = why === null ? await measure('growth.mjs', name, isQuick ? 'quick' : '') : []
    if (why !== null) console.log(`\n${title}: left out, ${why}`)
    for (const row of rows) all.push({ store: String(title.split(' ')[0]), row })
  }
  /** @type {Record<string, string>} */
  const blocks = { run: heading.slice(0, 2).join(' '), table: pageTable(all) }
  console.log(`\n### Microseconds a call, at the smallest number and at the largest\n\n${blocks.table}`)
  const bytes = []
  for (const who of FOOTPRINTS)
    bytes.push(`${who} ${whole((await measure('footprint.mjs', who, isQuick ? '10000' : '1000000')).bytes)}`)
  blocks.memory = `A session of a user in memory takes, in bytes and of a million: ${bytes.join(', ')}.`
  console.log(`\n${blocks.memory}`)
  if (isWritten) writeBlocks('growth', ['docs/performance.md'], blocks)
}
