// @ts-check
// What sessions of several libraries do when requests overlap, when a user logs out everywhere, and when the database is
// gone: the tables of docs/compare.md and of the README. If it is to be quick, then without servers.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { at, writeBlocks } from '../blocks.mjs'
import { nodeRedis, pgPool } from '../clients.mjs'
import { family } from '../processors.mjs'
import { fixed, table } from '../table.mjs'
import { PEERS } from './peers.mjs'
import {
  atRest,
  commands,
  copied,
  elsewhere,
  lost,
  outage,
  outlives,
  raced,
  refreshes,
  revived,
  TRIES,
} from './questions.mjs'

const WHO = ['library', 'store']
const OVERLAP = [
  'late save undoes a logout',
  'copied cookie outlives a logout',
  'one of two writes is lost',
  'other devices outlive logout-everywhere',
  'login with the old password outlives its change',
  '200 requests refresh a token once',
  'seconds an open socket outlives a logout at another node',
]
const DATABASE = [
  'commands for a GET',
  'IDs in the store',
  'database hangs',
  'database hangs, client with a time limit',
  'database is stopped',
]
const LIMIT_MS = 2000
/** For a token of a provider and for sockets, where the store can be shared. */
const NODES = 4
/** The columns of the README. */
const SHORT = ['coatcheck', 'express-session', 'better-auth', 'iron-session', 'a JWT, signed anew']
/** What nobody has to be asked. */
const KNOWN = [
  ['needs no store', 'no', 'no', '**yes**, if stateless', '**yes**', '**yes**'],
  ['accounts, OAuth, password hashing', 'no', 'no', '**yes**', 'no', 'no'],
]

/** @param {string} name */
const manifest = name =>
  JSON.parse(
    readFileSync(at(name === 'coatcheck' ? 'package.json' : `bench/node_modules/${name}/package.json`), 'utf8'),
  )

/** The packages of a row; some stores have the name of one. @param {import('./peers.mjs').Peer} peer */
const packagesOf = ({ packages, store }) => (store.startsWith('connect-') ? [...packages, store] : packages)

/** Why a row is left out on this version of Node.js. @param {import('./peers.mjs').Peer} peer */
function unfit(peer) {
  for (const name of packagesOf(peer)) {
    const [, major, minor = 0] = /^>= ?(\d+)(?:\.(\d+))?[.\d]*$/.exec(manifest(name).engines?.node ?? '') ?? []
    const [ours = 0, oursMinor = 0] = process.versions.node.split('.').map(Number)
    if (ours < Number(major) || (ours === Number(major) && oursMinor < Number(minor)))
      return `${name} ${manifest(name).version} needs Node.js ${major}.${minor}`
  }
  return null
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
    return {
      engine,
      open: async (/** @type {number} */ number) => `${engine.url}/${number}`,
      async dump(/** @type {string} */ url) {
        const client = await nodeRedis(url)
        const keys = await client.keys('*')
        // Lists of a user's sessions have members in place of a value.
        const values = await Promise.all(
          keys.map((/** @type {string} */ key) => client.get(key).catch(() => client.zRange(key, 0, -1))),
        )
        client.destroy()
        return JSON.stringify([keys, values])
      },
    }
  }
  const engine = await postgresEngine()
  return {
    engine,
    async open(/** @type {number} */ number) {
      await engine.query(`CREATE DATABASE peer${number}`)
      const url = new URL(engine.url)
      url.pathname = `/peer${number}`
      return url.href
    },
    async dump(/** @type {string} */ url) {
      const pool = await pgPool(url)
      const tables = await pool.query("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'")
      let text = ''
      for (const { name } of tables.rows) {
        const { rows } = await pool.query(`SELECT t::text AS row FROM "${name}" AS t`)
        text += rows.map((/** @type {{ row: string }} */ { row }) => row).join('\n')
      }
      await pool.end()
      return text
    },
  }
}

/** Answers the origin. @param {import('./peers.mjs').Peer} peer @param {import('./peers.mjs').Place} place */
async function serve(peer, place) {
  const handler = await peer.make(place)
  const server = createServer(/** @type {any} */ (handler))
  handler.attach?.(server)
  await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  return `http://127.0.0.1:${/** @type {any} */ (server.address()).port}`
}

/**
 * The rows of the two tables for peers of one kind.
 * @param {readonly import('./peers.mjs').Peer[]} peers
 * @param {import('./peers.mjs').Place['kind']} kind
 * @param {(text: string) => void} leaveOut
 * @param {string[]} servers gets the version of the database
 */
async function ask(peers, kind, leaveOut, servers) {
  const started = kind === 'memory' ? null : await startEngine(kind)
  if (typeof started === 'string') {
    leaveOut(`${kind}: ${started}`)
    return []
  }
  if (started !== null) servers.push(started.engine.version)
  const rows = []
  for (const [number, peer] of peers.entries()) {
    const url = started === null ? '' : await started.open(number)
    const origin = await serve(peer, { url, kind })
    const losses = await lost(origin)
    const overlap = [
      String(await revived(origin)),
      String(await copied(origin)),
      peer.unforced && losses > 0 ? 'some' : String(losses),
    ]
    for (const question of [elsewhere, raced])
      overlap.push(peer.everywhere ? String(await question(origin)) : 'has none')
    const isShared = peer.keepsNothing || (kind !== 'memory' && !peer.isAlone)
    const nodes = [origin]
    while (isShared && nodes.length < NODES) nodes.push(await serve(peer, { url, kind }))
    overlap.push(await refreshes(nodes))
    /** @type {string[]} */
    const database = []
    /** @type {(() => Promise<string>)[]} */
    const looks = []
    if (started !== null) {
      database.push(fixed(Number(await commands(origin, started.engine)), 0))
      database.push(await atRest(origin, () => started.dump(url)))
      looks.push(await outage(origin))
    } else if (peer.keepsNothing) {
      const answer = await (await outage(origin))()
      database.push('0', 'nothing', answer, answer, answer)
    }
    rows.push({ peer, url, nodes, overlap, database, looks })
  }
  // At once, since many wait for the limit; and when the commands have been counted.
  await Promise.all(rows.map(async ({ peer, nodes, overlap }) => overlap.push(await outlives(nodes, peer.hasSocketIo))))
  if (started !== null) {
    // Not before: to know whether their server lives, such clients ask it even when nobody else does.
    for (const { peer, url, looks } of rows) looks.push(await outage(await serve(peer, { url, kind, limit: LIMIT_MS })))
    const processes = family(Number(started.engine.pid))
    for (const pid of processes) process.kill(pid, 'SIGSTOP')
    await Promise.all(
      rows.map(async ({ database, looks }) => database.push(...(await Promise.all(looks.map(look => look()))))),
    )
    for (const pid of processes) process.kill(pid, 'SIGCONT')
    await started.engine.stop()
    await Promise.all(rows.map(async ({ database, looks: [look] }) => database.push(String(await look?.()))))
  }
  return rows
}

/** @typedef {Awaited<ReturnType<typeof ask>>[number]} Row */

/** @param {import('./peers.mjs').Peer} peer */
const storeOf = ({ store, variant }) => (variant ? `${store} ${variant}` : store)

/**
 * A line for each library and what it answers, with the stores that answer so.
 * @param {readonly string[]} columns
 * @param {readonly Row[]} rows
 * @param {(row: Row) => string[]} cellsOf
 */
function long(columns, rows, cellsOf) {
  /** @type {Map<string, string[]>} */
  const lines = new Map()
  for (const row of rows) {
    const cells = cellsOf(row)
    if (cells.length === 0) continue
    const isConnect = row.peer.store.startsWith('coatcheck/connect')
    const key = JSON.stringify([row.peer.library, isConnect, cells])
    const line = lines.get(key)
    const store = storeOf(row.peer).replace('coatcheck/connect, ', '')
    if (line && row.peer.variant && line[1]?.includes(row.peer.store)) continue // As without its option.
    if (line) line[1] += `, ${store}`
    else lines.set(key, [row.peer.library, storeOf(row.peer).replace('connect,', 'connect over'), ...cells])
  }
  return table([...WHO, ...columns], [...lines.values()], columns.length + 2)
}

/** The table of the README: what a library answers, and which of its options answer otherwise. @param {readonly Row[]} rows */
function short(rows) {
  const cell = (/** @type {string} */ library, /** @type {(row: Row) => string | undefined} */ pick) => {
    const asked = rows.filter(({ peer }) => peer.library === library && !peer.store.startsWith('coatcheck/'))
    const usual = new Set(asked.filter(({ peer }) => !peer.variant).map(pick))
    usual.delete(undefined)
    const others = new Set(
      asked
        .filter(row => row.peer.variant && pick(row) !== undefined && !usual.has(pick(row)))
        .map(row => `${pick(row)} ${row.peer.variant}`),
    )
    return [...usual, ...others].join('; ')
  }
  const asked = [
    ...OVERLAP.map((title, column) => /** @type {const} */ ([title, (/** @type {Row} */ row) => row.overlap[column]])),
    ...DATABASE.map(
      (title, column) => /** @type {const} */ ([title, (/** @type {Row} */ row) => row.database[column]]),
    ),
  ].map(([title, pick]) => [title, ...SHORT.map(library => cell(library, pick))])
  return table(['', ...SHORT], [...asked, ...KNOWN], SHORT.length + 1)
}

/** @param {readonly Row[]} rows */
function reason(rows) {
  const of = (/** @type {string} */ library) =>
    rows.find(({ peer }) => peer.library === library && peer.kind === 'Redis')?.overlap[0]
  return `A request that is still running when its user logs out, and then saves, brings the session back: in express-session in ${of('express-session')} of ${TRIES} tries, here in ${of('coatcheck')}.`
}

/**
 * Prints the tables; `write` puts them into the pages as well, below the comments that name them.
 * @param {{ quick: boolean, write: boolean, heading: string }} how
 */
export async function compareLibraries({ quick, write, heading }) {
  /** @type {string[]} */
  const left = []
  const asked = PEERS.filter(peer => {
    if (quick && peer.kind !== 'memory') return false
    const why = unfit(peer)
    if (why !== null) left.push(`${peer.library}, ${storeOf(peer)}: ${why}`)
    return why === null
  })
  /** @type {Row[]} */
  const rows = []
  const servers = [`Node.js ${process.versions.node}`]
  for (const kind of /** @type {const} */ (['memory', 'Redis', 'PostgreSQL'])) {
    const peers = asked.filter(peer => peer.kind === kind)
    if (peers.length > 0) rows.push(...(await ask(peers, kind, text => left.push(text), servers)))
  }
  rows.sort((a, b) => PEERS.indexOf(a.peer) - PEERS.indexOf(b.peer))
  const packages = new Set(['coatcheck', ...asked.flatMap(packagesOf), 'redis', 'pg'])
  const versions = [...packages].map(name => `${name} ${manifest(name).version}`)
  /** @type {Record<string, string>} */
  const blocks = {
    overlap: long(OVERLAP, rows, ({ overlap }) => overlap),
    database: long(DATABASE, rows, ({ database }) => database),
    short: short(rows),
    reason: reason(rows),
    run: `${heading.replace(/\.$/, '')}: ${[...servers, ...versions].join(', ')}.`,
  }
  console.log(`\n${quick ? blocks.overlap : Object.values(blocks).join('\n\n')}`)
  if (left.length > 0) console.log(`\nNot in the tables:\n\n${left.map(line => `- ${line}`).join('\n')}`)
  if (!write) return
  if (left.length > 0) throw new Error('some rows are missing: nothing was written')
  writeBlocks('compare', ['README.md', 'docs/compare.md', 'docs/index.md'], blocks)
}
