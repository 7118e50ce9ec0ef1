// @ts-check
// What sessions of several libraries do when requests overlap, when a user logs out everywhere, and when the database is
// gone: the tables of docs/compare.md. If it is to be quick, then without servers.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { family } from '../processors.mjs'
import { fixed, table } from '../table.mjs'
import { PEERS } from './peers.mjs'
import { atRest, commands, copied, elsewhere, lost, outage, raced, revived, TRIES } from './questions.mjs'

const WHO = ['library, version', 'store']
const OVERLAP = [
  ...WHO,
  'late request revives a logout',
  'copied cookie outlives a logout',
  'one of two writes is lost',
  'other devices outlive logout-everywhere',
  'old password outlives its change',
]
const DATABASE = [
  ...WHO,
  'commands for a GET',
  'IDs in the store',
  'answer while it hangs',
  'answer when it is stopped',
]
const page = fileURLToPath(new URL('../../docs/compare.md', import.meta.url))

/** The version that is installed here or in the root, or `null`. @param {string} name */
function versionOf(name) {
  for (const path of [`../node_modules/${name}/package.json`, `../../node_modules/${name}/package.json`]) {
    const file = fileURLToPath(new URL(path, import.meta.url))
    if (existsSync(file)) return /** @type {string} */ (JSON.parse(readFileSync(file, 'utf8')).version)
  }
  return null
}

/** @param {import('./peers.mjs').Peer} peer */
function titleOf({ library, packages: [name = ''] }) {
  if (library !== 'coatcheck') return `${library} ${versionOf(name)}`
  const own = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  return `coatcheck ${own.version}`
}

/**
 * A database of its own for each peer: some call their tables alike.
 * @param {'Redis' | 'PostgreSQL'} kind
 */
async function startEngine(kind) {
  const { missing, postgresEngine, redisEngine } = await import('../engines.mjs')
  const absent = missing(kind === 'Redis' ? 'redis' : 'postgresql')
  if (absent !== null) return absent
  if (kind === 'Redis') {
    const engine = await redisEngine()
    const { createClient } = await import('redis')
    return {
      engine,
      open: async (/** @type {number} */ at) => `${engine.url}/${at}`,
      async dump(/** @type {string} */ url) {
        const client = await createClient({ url }).connect()
        const keys = await client.keys('*')
        // Lists of a user's sessions have members in place of a value.
        const values = await Promise.all(keys.map(key => client.get(key).catch(() => client.zRange(key, 0, -1))))
        client.destroy()
        return JSON.stringify([keys, values])
      },
    }
  }
  const engine = await postgresEngine()
  const { default: pg } = await import('pg')
  return {
    engine,
    async open(/** @type {number} */ at) {
      await engine.query(`CREATE DATABASE peer${at}`)
      const url = new URL(engine.url)
      url.pathname = `/peer${at}`
      return url.href
    },
    async dump(/** @type {string} */ url) {
      const client = new pg.Client(url)
      await client.connect()
      const tables = await client.query("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'")
      let text = ''
      for (const { name } of tables.rows) {
        const { rows } = await client.query(`SELECT t::text AS row FROM "${name}" AS t`)
        text += rows.map(({ row }) => row).join('\n')
      }
      await client.end()
      return text
    },
  }
}

const of = (/** @type {number} */ found) => `${found} of ${TRIES}`

/**
 * The rows of the two tables for peers of one kind.
 * @param {readonly import('./peers.mjs').Peer[]} peers
 * @param {import('./peers.mjs').Place['kind']} kind
 * @param {(text: string) => void} leaveOut
 */
async function ask(peers, kind, leaveOut) {
  const started = kind === 'memory' ? null : await startEngine(kind)
  if (typeof started === 'string') {
    leaveOut(`${kind}: ${started}`)
    return []
  }
  const rows = []
  for (const [at, peer] of peers.entries()) {
    const url = started === null ? '' : await started.open(at)
    const server = createServer(/** @type {any} */ (await peer.make({ url, kind })))
    await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
    const origin = `http://127.0.0.1:${/** @type {any} */ (server.address()).port}`
    const who = [titleOf(peer), peer.store]
    const overlap = [
      ...who,
      of(await revived(origin)),
      of(await copied(origin)),
      of(await lost(origin)),
      peer.everywhere ? of(await elsewhere(origin)) : 'has none',
      peer.everywhere ? of(await raced(origin)) : 'has none',
    ]
    if (started === null) rows.push({ peer, overlap, database: null, look: null })
    else {
      const perGet = await commands(origin, started.engine)
      const isPlain = await atRest(origin, () => started.dump(url))
      const database = [...who, fixed(Number(perGet), 0), isPlain ? 'as they are' : 'hashed']
      rows.push({ peer, overlap, database, look: await outage(origin) })
    }
  }
  if (started !== null) {
    const lookAll = () =>
      Promise.all(rows.map(async ({ database, look }) => void database?.push(String(await look?.()))))
    const processes = family(Number(started.engine.pid))
    for (const pid of processes) process.kill(pid, 'SIGSTOP')
    await lookAll()
    for (const pid of processes) process.kill(pid, 'SIGCONT')
    await started.engine.stop()
    await lookAll()
  }
  return rows
}

/**
 * Prints the tables; `write` puts them into docs/compare.md as well.
 * @param {{ quick: boolean, write: boolean }} how
 */
export async function compareLibraries({ quick, write }) {
  /** @type {string[]} */
  const left = []
  const asked = PEERS.filter(({ library, store, kind, packages }) => {
    if (quick && kind !== 'memory') return false
    const absent = packages.find(name => versionOf(name) === null)
    if (absent !== undefined) left.push(`${library}, ${store}: ${absent} is not installed`)
    return absent === undefined
  })
  const rows = []
  for (const kind of /** @type {const} */ (['memory', 'Redis', 'PostgreSQL'])) {
    const peers = asked.filter(peer => peer.kind === kind)
    if (peers.length > 0) rows.push(...(await ask(peers, kind, text => left.push(text))))
  }
  rows.sort((a, b) => PEERS.indexOf(a.peer) - PEERS.indexOf(b.peer))
  const words = OVERLAP.length
  const tables = [
    table(
      OVERLAP,
      rows.map(({ overlap }) => overlap),
      words,
    ),
    table(
      DATABASE,
      rows.flatMap(({ database }) => (database ? [database] : [])),
      words,
    ),
  ]
  console.log(`\n${quick ? tables[0] : tables.join('\n\n')}`)
  if (left.length > 0) console.log(`\nNot in the tables:\n\n${left.map(line => `- ${line}`).join('\n')}`)
  if (!write) return
  const text = readFileSync(page, 'utf8')
  let at = 0
  const written = text.replace(/(<!-- printed by [^\n]*-->\n)(?:\|.*\n)*/g, (_, mark) => `${mark}${tables[at++]}\n`)
  if (at !== tables.length) throw new Error('docs/compare.md has no place for each table')
  writeFileSync(page, written)
}
