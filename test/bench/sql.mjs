// @ts-check
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { measure } from './measure/run.mjs'
import { compare, quantile } from './rounds.mjs'
import { startMariadb, startPostgres } from './services.mjs'
import { sqliteDrivers } from './sqlite.mjs'
import { fixed, scoreTable, table, whole } from './table.mjs'

const ROUNDS = 15
const REQUESTS = 1500
const WARM_UP = 6000

/**
 * @param {string} database
 * @param {string} url
 * @param {readonly string[]} names
 * @param {() => Promise<number>} statements so far, without our own
 */
async function profileTable(database, url, names, statements) {
  /** @type {Map<string, number>} */
  const counts = new Map()
  const scores = await compare(
    names.map(name => ({ name: `${database}: ${name}`, file: 'sql.mjs', env: { SQL_URL: url } })),
    {
      rounds: ROUNDS,
      requests: REQUESTS,
      warmUp: WARM_UP,
      async around(name, load) {
        const before = await statements()
        const sent = await load()
        counts.set(name, (counts.get(name) ?? 0) + ((await statements()) - before) / sent)
        return sent
      },
    },
  )
  const more = new Map([...counts].map(([name, count]) => [name, [fixed(count / ROUNDS)]]))
  console.log(scoreTable(scores, 'prepared SELECT', more, ['statements per request']))
}

async function benchPostgres() {
  const server = await startPostgres()
  const client = new pg.Client(server.url)
  try {
    await client.connect()
    await client.query('CREATE EXTENSION pg_stat_statements')
    const version = (await client.query('SHOW server_version')).rows[0].server_version.split(' ')[0]
    console.log(`\n### GET /profile, sessions in PostgreSQL ${version}\n`)
    const own = 'SELECT sum(calls)::int AS calls FROM pg_stat_statements WHERE query NOT LIKE $1'
    await profileTable(
      'PostgreSQL',
      server.url,
      ['prepared SELECT', 'coatcheck', 'express-session, connect-pg-simple', '@fastify/session, connect-pg-simple'],
      async () => (await client.query(own, ['%pg_stat_statements%'])).rows[0].calls,
    )
  } finally {
    await client.end()
    await server.stop()
  }
}

async function benchMariadb() {
  const server = await startMariadb()
  const client = await mysql.createConnection(server.url)
  try {
    const [[{ version }]] = /** @type {any} */ (await client.query('SELECT version() AS version'))
    console.log(`\n### GET /profile, sessions in MariaDB ${version.split('-')[0]}\n`)
    let own = 0
    await profileTable(
      'MariaDB',
      server.url,
      [
        'prepared SELECT',
        'coatcheck',
        'express-session, express-mysql-session',
        '@fastify/session, express-mysql-session',
      ],
      async () => {
        own += 1
        const [[{ Value }]] = /** @type {any} */ (await client.query("SHOW GLOBAL STATUS LIKE 'Questions'"))
        return Number(Value) - own
      },
    )
  } finally {
    await client.end()
    await server.stop()
  }
}

async function benchSqlite() {
  const drivers = await sqliteDrivers()
  const [driver] = drivers
  if (driver === undefined) throw new Error('no SQLite driver can be loaded')
  console.log(`\n### GET /profile, sessions in SQLite (${driver})\n`)
  const scores = await compare(
    ['prepared SELECT', 'coatcheck'].map(name => ({
      name: `SQLite: ${name}`,
      file: 'sql.mjs',
      env: { SQLITE_DRIVER: driver },
    })),
    { rounds: ROUNDS, requests: REQUESTS, warmUp: WARM_UP },
  )
  console.log(scoreTable(scores, 'prepared SELECT'))

  console.log('\n### One session of SQLite (a file in WAL mode), beside the bare prepared statement on the same row\n')
  const folder = mkdtempSync(join(tmpdir(), 'coatcheck-bench-sqlite-'))
  const rows = []
  for (const each of drivers) {
    const micros = await measure('sqlite.mjs', each, join(folder, `${each.replace(/\W/g, '-')}.db`))
    const ratio = (/** @type {string} */ name) =>
      fixed(
        quantile(micros[name].map((/** @type {number} */ value, /** @type {number} */ at) => value / micros.bare[at])),
      )
    const perSecond = (/** @type {string} */ name) => whole(1e6 / quantile(micros[name]))
    rows.push([each, ratio('read'), ratio('get'), perSecond('get'), perSecond('bare')])
  }
  rmSync(folder, { recursive: true, force: true })
  console.log(
    table(['', 'store.read, CPU, bare = 1', 'sessions.get', 'gets per second of CPU', 'bare statements'], rows),
  )
}

export async function benchSql() {
  console.log('\nThe floor of each is a handler of raw node:http with one prepared SELECT through the same driver.')
  await benchPostgres()
  await benchMariadb()
  await benchSqlite()
}
