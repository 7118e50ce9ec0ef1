// @ts-check
// Whether a request costs more where several processes share a database.
import { mariadbEngine, missing, postgresEngine, redisEngine } from './engines.mjs'
import { Load } from './load.mjs'
import { OPERATIONS } from './operations.mjs'
import { quantile, Running } from './rounds.mjs'
import { fixed, table } from './table.mjs'

const COUNTS = [1, 2, 4]
const CONNECTIONS = 64
const REQUESTS = 512
/** Sessions that each process is asked for: no two write to one, and another process began most of them. */
const OWN = 64
/** For a store, but for the least rounds. */
const SECONDS = 40

// By hand as well: more processes than processors cost each of them something, whatever they do.
const PLACES = /** @type {const} */ ([
  ['Redis, node-redis', 'redis', redisEngine, 'redis.mjs', { coatcheck: 'coatcheck', 'by hand': 'raw GET' }],
  [
    'PostgreSQL',
    'postgresql',
    postgresEngine,
    'sql.mjs',
    { coatcheck: 'PostgreSQL: coatcheck', 'by hand': 'PostgreSQL: prepared SELECT' },
  ],
  [
    'MariaDB',
    'mariadb',
    mariadbEngine,
    'sql.mjs',
    { coatcheck: 'MariaDB: coatcheck', 'by hand': 'MariaDB: prepared SELECT' },
  ],
])
const WHAT = /** @type {const} */ (['profile', 'write'])
/** For each process: those that are left out of most rounds would be compiled later than the others. */
const WARM_UP = { profile: 20_480, write: 10_240 }

/** @typedef {{ server: Running, load: Load }} Node */

/** @param {readonly Node[]} nodes */
async function cpuOf(nodes) {
  let micros = 0
  for (const { server } of nodes) {
    const { user, system } = await server.ask('cpu')
    micros += user + system
  }
  return micros
}

/**
 * Loads all nodes at once; answers how many requests they got.
 * @param {readonly Node[]} nodes
 * @param {'profile' | 'write'} what
 * @param {readonly string[]} cookies
 * @param {number} first
 */
async function run(nodes, what, cookies, first) {
  const { requests } = /** @type {import('./operations.mjs').Operation} */ (OPERATIONS[what])
  const all = await Promise.all(
    nodes.map(({ load }, at) => requests(load, cookies.slice(at * OWN, (at + 1) * OWN), REQUESTS, first)),
  )
  await Promise.all(nodes.map(({ load }, at) => load.bursts(all[at] ?? [])))
  return nodes.length * REQUESTS
}

/** @param {() => Promise<import('./engines.mjs').Engine>} start @param {import('./rounds.mjs').Contestant} contestant @param {number} rounds */
async function compareNodes(start, contestant, rounds) {
  const engine = await start()
  /** @type {Node[]} */
  const nodes = []
  try {
    for (let at = 0; at < Math.max(...COUNTS); at += 1) {
      const server = new Running({ ...contestant, env: engine.env(0) })
      nodes.push({ server, load: new Load(await server.ask(), CONNECTIONS) })
    }
    const users = Array.from({ length: OWN * nodes.length }, (_, at) => at + 1)
    const cookies = await /** @type {Node} */ (nodes[0]).load.cookiesOf(users)
    for (const what of WHAT)
      for (let sent = 0; sent < WARM_UP[what]; sent += REQUESTS) await run(nodes, what, cookies, 0)

    const series = WHAT.flatMap(what =>
      COUNTS.map(count => ({ what, count, ours: [0].slice(1), theirs: [0].slice(1), commands: 0 })),
    )
    const end = performance.now() + SECONDS * 1000
    for (let round = 0; round < rounds && (round < 3 || performance.now() < end); round += 1)
      for (const one of series) {
        const some = nodes.slice(0, one.count)
        if (round === 0) one.commands = Number(await engine.commands(() => run(some, one.what, cookies, round)))
        const before = { ours: await cpuOf(some), theirs: Number(engine.cpu()) }
        const sent = await run(some, one.what, cookies, round)
        one.theirs.push((Number(engine.cpu()) - before.theirs) / sent)
        one.ours.push(((await cpuOf(some)) - before.ours) / sent)
      }
    return series.map(({ what, count, ours, theirs, commands }) => {
      const alone = /** @type {typeof series[number]} */ (
        series.find(other => other.what === what && other.count === 1)
      )
      const ratios = (/** @type {number[]} */ values, /** @type {number[]} */ ones) =>
        values.map((value, round) => value / /** @type {number} */ (ones[round]))
      const all = ratios(ours, alone.ours)
      return [
        count === 1 ? (OPERATIONS[what]?.title ?? '') : '',
        `${count}`,
        fixed(commands),
        fixed(commands / alone.commands),
        fixed(quantile(ours), 1),
        fixed(quantile(all)),
        `${fixed(quantile(all, 0.25))} to ${fixed(quantile(all, 0.75))}`,
        fixed(quantile(theirs), 1),
        fixed(quantile(ratios(theirs, alone.theirs))),
      ]
    })
  } finally {
    for (const { server, load } of nodes) {
      load.close()
      server.stop()
    }
    await engine.stop()
  }
}

const HEAD = [
  'who',
  'request',
  'processes',
  'commands',
  '1 process = 1',
  'CPU, µs',
  '1 process = 1',
  'middle half',
  'CPU of the database, µs',
  '1 process = 1',
]

/** @param {boolean} isQuick */
export async function benchNodes(isQuick) {
  console.log('\n### Several processes on one database\n')
  console.log('Sessions that one process began are asked for at all of them, 64 connections to each.')
  console.log('Where there are more processes than processors, each request costs more, by hand as well.')
  for (const [title, name, start, file, servers] of PLACES) {
    const absent = missing(name)
    console.log(`\n#### ${title}\n`)
    if (absent !== null) {
      console.log(`Left out: ${absent}.`)
      continue
    }
    const rows = []
    for (const [who, server] of Object.entries(servers)) {
      const own = await compareNodes(start, { name: server, file }, isQuick ? 3 : 15)
      rows.push(...own.map((cells, at) => [at === 0 ? who : '', ...cells]))
    }
    console.log(table(HEAD, rows, 2))
  }
}
