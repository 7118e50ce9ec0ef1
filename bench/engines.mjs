// @ts-check
// The databases of the table: how each is started, and what it tells of itself while it is asked.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ENGINES } from '../test/support/services/engine-list.mjs'
import { mysqlPool, nodeRedis, pgPool } from './clients.mjs'
import { sqliteDrivers } from './sqlite.mjs'

/**
 * @typedef {object} Engine
 * @property {string} version
 * @property {number} [pid] of its first process
 * @property {(at: number) => Record<string, string>} env what the server of a row is told
 * @property {(work: () => Promise<number>) => Promise<number>} [commands] how many it got per request of the work
 * @property {() => Promise<void>} stop
 */

/** A private server of the tests. @param {'redis' | 'postgres' | 'mariadb'} name @param {Record<string, string>} [settings] @returns {Promise<any>} */
async function start(name, settings) {
  await import('./typescript.mjs')
  const service = await import(`../test/support/services/${name}.ts`)
  return service[`start${name[0]?.toUpperCase()}${name.slice(1)}`](settings)
}

/** @param {number} pid */
const parentOf = pid =>
  Number(
    readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) \S /s, '')
      .split(' ')[0],
  )

/** @param {() => Promise<number>} count statements so far @returns {(work: () => Promise<number>) => Promise<number>} */
const difference = count => async work => {
  const before = await count()
  const sent = await work()
  return ((await count()) - before) / sent
}

/** @returns {Promise<Engine & { url: string }>} */
export async function redisEngine() {
  const server = await start('redis')
  const client = await nodeRedis(server.url)
  const info = async (/** @type {string} */ name) =>
    new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(String(await client.info()))?.[1] ?? ''
  const pid = Number(await info('process_id'))
  return {
    url: server.url,
    pid,
    version: `Redis ${await info('redis_version')}`,
    env: () => ({ REDIS_URL: server.url }),
    // MONITOR tells what clients send apart from what scripts do; the statistics of commands count both.
    async commands(work) {
      const monitor = connect(server.port, '127.0.0.1')
      let seen = ''
      monitor.setEncoding('latin1').on('data', chunk => {
        seen += chunk
      })
      const until = async (/** @type {string} */ text) => {
        while (!seen.includes(text)) await new Promise(resolve => setTimeout(resolve, 1))
      }
      monitor.write('MONITOR\r\n')
      await until('+OK')
      const sent = await work()
      await client.echo('the end')
      await until('"the end"')
      monitor.destroy()
      return [...seen.matchAll(/^\+[\d.]+ \[\d+ (?!lua)/gm)].length / sent - 1 / sent
    },
    async stop() {
      client.destroy()
      await server.stop()
    },
  }
}

/** @returns {Promise<Engine & { url: string, query: (text: string, values?: unknown[]) => Promise<any[]> }>} */
export async function postgresEngine() {
  const settings = { shared_buffers: '512MB', shared_preload_libraries: 'pg_stat_statements' }
  const server = await start('postgres', settings)
  const pool = await pgPool(server.url(), { max: 1 })
  const query = async (/** @type {string} */ text, /** @type {any} */ values) => (await pool.query(text, values)).rows
  await query('CREATE EXTENSION pg_stat_statements')
  const [{ pid }] = await query('SELECT pg_backend_pid() AS pid')
  const postmaster = parentOf(pid)
  return {
    url: server.url(),
    query,
    pid: postmaster,
    version: `PostgreSQL ${(await query('SHOW server_version'))[0].server_version.split(' ')[0]}`,
    env: () => ({ SQL_URL: server.url() }),
    commands: difference(async () => {
      const own = 'SELECT sum(calls)::int AS calls FROM pg_stat_statements WHERE query NOT LIKE $1'
      return (await query(own, ['%pg_stat_statements%']))[0].calls
    }),
    async stop() {
      await pool.end()
      await server.stop()
    },
  }
}

/** @returns {Promise<Engine>} */
export async function mariadbEngine() {
  const server = await start('mariadb', { 'innodb-buffer-pool-size': '512M' })
  const pool = await mysqlPool(server.url())
  const [[{ version }]] = await pool.query('SELECT version() AS version')
  await pool.end()
  return {
    version: `MariaDB ${version.split('-')[0]}`,
    env: () => ({ SQL_URL: server.url() }),
    stop: () => server.stop(),
  }
}

/** @returns {Promise<Engine>} a file for each row, so that no row waits for another's lock */
export async function sqliteEngine() {
  const [driver] = await sqliteDrivers()
  if (driver === undefined) throw new Error('no SQLite driver can be loaded')
  const folder = mkdtempSync(join(tmpdir(), 'coatcheck-bench-sqlite-'))
  const file = (/** @type {number} */ at) => join(folder, `${at}.db`)
  return {
    version: `SQLite (${driver}, a file in WAL mode)`,
    env: at => ({ SQLITE_DRIVER: driver, SQLITE_FILE: file(at) }),
    async stop() {
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** What is missing for an engine, or `null`. @param {keyof typeof ENGINES} name */
export const missing = name => ENGINES[name].missing()
