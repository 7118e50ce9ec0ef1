// @ts-check
// What sessions cost a request, without a socket and without a framework.
import { writeBlocks } from './blocks.mjs'
import { measure } from './measure/run.mjs'
import { fixed, table } from './table.mjs'

const TITLES = { get: 'GET of a user', anonymous: 'anonymous GET', login: 'login', logout: 'logout' }
const WHO = ['by hand', 'coatcheck', 'express-session', '@fastify/session']

/** @param {boolean} isWritten @param {readonly string[]} heading */
export async function benchOwn(isWritten, heading) {
  /** @type {Record<string, number>[]} */
  const costs = []
  for (const who of WHO) costs.push(await measure('own.mjs', who))
  const rows = Object.entries(TITLES).map(([name, title]) => [title, ...costs.map(of => fixed(Number(of[name]), 1))])
  const shown = table(['', ...WHO], rows)
  console.log(`\n### Sessions alone, microseconds a request\n\n${shown}`)
  if (isWritten)
    writeBlocks('own', ['docs/performance.md'], { table: shown, run: `${heading[0]} Node ${process.versions.node}.` })
}
