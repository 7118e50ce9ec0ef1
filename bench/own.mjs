// @ts-check
// What sessions cost a request, without a socket and without a framework: in memory, and above a client of a database.
import { writeBlocks } from './blocks.mjs'
import { measure, measureAllocations } from './measure/run.mjs'
import { onOneProcessor } from './processors.mjs'
import { TABLES } from './stores.mjs'
import { fixed, table, whole } from './table.mjs'

const TITLES = { get: 'GET of a user', anonymous: 'anonymous GET', login: 'login', logout: 'logout' }
const WHO = ['by hand', 'coatcheck', 'express-session', '@fastify/session']
/** The clients of each store. @type {Record<string, Record<string, string>>} */
const CLIENTS = {
  redis: { 'node-redis': 'redis', ioredis: 'redis' },
  sql: { pg: 'postgresql', mysql2: 'mariadb', sqlite: 'sqlite' },
}
const AT_ONCE = [1, 64]

/** @param {(who: string) => Promise<Record<string, number>>} ask @param {(value: number) => string} shown */
async function ofEach(ask, shown) {
  /** @type {Record<string, number>[]} */
  const costs = []
  for (const who of WHO) costs.push(await ask(who))
  const rows = Object.entries(TITLES).map(([name, title]) => [title, ...costs.map(of => shown(Number(of[name])))])
  return table(['', ...WHO], rows)
}
/** @param {string} store */
async function overClients(store) {
  const rows = []
  for (const [client, database] of Object.entries(CLIENTS[store] ?? {})) {
    const { engine, missing } = /** @type {import('./stores.mjs').Table} */ (TABLES[database])
    const started = missing() === null ? await engine?.() : null
    if (!started) throw new Error(`${client}: ${missing()}`)
    Object.assign(process.env, started.env(0))
    /** @type {Record<string, number>} */
    let costs = {}
    await onOneProcessor(async () => {
      costs = await measure('own-stores.mjs', client)
    })
    await started.stop()
    for (const name of ['get', 'login', 'logout'])
      rows.push([
        `${client}: ${name}`,
        ...AT_ONCE.flatMap(atOnce => {
          const [theirs, own] = ['by hand', 'coatcheck'].map(who => Number(costs[`${name} ${atOnce} ${who}`]))
          return [fixed(Number(theirs), 1), fixed(Number(own), 1), fixed(Number(own) / Number(theirs))]
        }),
      ])
  }
  return table(['', 'by hand', 'coatcheck', 'ratio', '64 at once: by hand', 'coatcheck', 'ratio'], rows)
}

/** @param {readonly string[]} stores none: the sessions are in memory @param {boolean} isWritten @param {readonly string[]} heading */
export async function benchOwn(stores, isWritten, heading) {
  for (const store of stores.length > 0 ? stores : ['memory']) {
    const times = (/** @type {string} */ who) => measure('own.mjs', who)
    const shown = store === 'memory' ? await ofEach(times, cost => fixed(cost, 1)) : await overClients(store)
    console.log(`\n### Sessions alone, ${store}: microseconds a request\n\n${shown}`)
    const command = store === 'memory' ? 'own' : `own-${store}`
    const run = `${heading[0]} Node ${process.versions.node}.`
    /** @type {Record<string, string>} */
    const blocks = { table: shown, run }
    if (store === 'memory') {
      blocks.bytes = await ofEach(who => measureAllocations('own.mjs', who, 'bytes'), whole)
      console.log(`\n### The same in bytes of heap\n\n${blocks.bytes}`)
    }
    if (isWritten) writeBlocks(command, ['docs/performance.md'], blocks)
  }
}
