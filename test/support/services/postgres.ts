// A private PostgreSQL for tests: its own folder and port, as the user postgres, since the server refuses root.
import { execFile, execFileSync } from 'node:child_process'
import { chownSync, rmSync } from 'node:fs'
import { userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import postgres from 'postgres'
import { memoryFolder } from './memory-folder.ts'
import { findBinary, freePort, type Running, start, startGuarded, until } from './process.ts'
import { fromTemplate } from './template.ts'

/** The account that servers run as: the caller's, or `name` where the caller is root. */
export function account(name: string): { uid?: number; gid?: number } {
  if (userInfo().uid !== 0) return {}
  const id = (flag: string) => Number(execFileSync('id', [flag, name], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

type PostgresJsOptions = postgres.Options<Record<string, postgres.PostgresType>>

/** A database for one test file. */
export interface PostgresDatabase {
  readonly port: number
  url(options?: { user?: string; database?: string }): string
  /** A pool of the superuser, or as told; closed with the database. */
  pool(config?: pg.PoolConfig): pg.Pool
  /** The same with `postgres`: its `sql`, closed with the database. */
  postgresJs(options?: PostgresJsOptions): postgres.Sql
  stop(): Promise<void>
}

/** A server of its own: it may be killed. */
export interface PostgresServer extends PostgresDatabase {
  /** Ends the server at once, as a crash does; with SIGINT as an operator does. */
  kill(signal?: NodeJS.Signals): Promise<void>
  /** Starts it again on the same folder and port. */
  restart(): Promise<void>
  output(): string
}

/** A version of PostgreSQL that is not installed: `place` makes its programs usable by everyone, in a folder. */
export interface PostgresPrograms {
  place(folder: string): { readonly initdb: string; readonly postgres: string }
}

let shared: Promise<PostgresServer> | undefined
let databases = 0

/** A new database on the one server that the files of this process share. */
export async function sharedPostgres(): Promise<PostgresDatabase> {
  shared ??= startPostgres({}, { guarded: true })
  const { port, url: urlOf } = await shared
  const admin = new pg.Client(urlOf())
  await admin.connect()
  databases += 1
  const name = `file_${databases}`
  await admin.query(`CREATE DATABASE ${name}`)
  const url: PostgresDatabase['url'] = options => urlOf({ database: name, ...options })
  const { close, ...clients } = clientsOf(url)
  return {
    port,
    url,
    ...clients,
    async stop() {
      await close()
      // It waits five seconds for connections that are about to close: forced, each would tell of an error that nobody awaits.
      await admin.query(`DROP DATABASE ${name}`).catch(() => admin.query(`DROP DATABASE ${name} WITH (FORCE)`))
      await admin.end()
    },
  }
}

function clientsOf(url: () => string) {
  const pools: pg.Pool[] = []
  const clients: postgres.Sql[] = []
  return {
    pool(config: pg.PoolConfig = {}) {
      const pool = new pg.Pool({ connectionString: url(), ...config })
      pool.on('error', () => {})
      pools.push(pool)
      return pool
    },
    postgresJs(options: PostgresJsOptions = {}) {
      const sql = postgres(url(), { onnotice: () => {}, ...options })
      clients.push(sql)
      return sql
    },
    async close() {
      await Promise.all(pools.map(pool => pool.end().catch(() => {})))
      await Promise.all(clients.map(sql => sql.end({ timeout: 0 }).catch(() => {})))
    },
  }
}

/**
 * Starts a server; `settings` are lines of postgresql.conf such as `{ timezone: 'Asia/Tokyo' }`. With `programs` it is
 * another version than the installed one; a `guarded` one ends with this process. With `standbyOf` it is a hot standby of
 * the server on that port.
 */
export async function startPostgres(
  settings: Readonly<Record<string, string>> = {},
  { programs, guarded = false, standbyOf }: { programs?: PostgresPrograms; guarded?: boolean; standbyOf?: number } = {},
): Promise<PostgresServer> {
  const folder = memoryFolder('pg')
  const as = account('postgres')
  if (as.uid !== undefined) chownSync(folder, as.uid, as.gid!)
  const data = join(folder, 'data')
  const installed = () => ({ initdb: findBinary('initdb')!, postgres: findBinary('postgres')! })
  const { initdb, postgres: program } = programs?.place(join(folder, 'programs')) ?? installed()
  const choices = ['-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '-N']
  const make = () => void execFileSync(initdb, ['-D', data, ...choices], { stdio: 'pipe', cwd: folder, ...as })
  const copy = ['-D', data, '-h', '127.0.0.1', '-p', String(standbyOf), '-U', 'postgres', '-R', '-c', 'fast', '-N']
  if (standbyOf !== undefined)
    await promisify(execFile)(join(dirname(initdb), 'pg_basebackup'), copy, { cwd: folder, ...as })
  // Programs that were placed for this server alone are a version of their own.
  else if (programs === undefined) fromTemplate(initdb, data, make)
  else make()
  const port = await freePort()
  const all = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: folder,
    max_connections: '200',
    // A killed server keeps what the system's cache has: only a power cut would lose it.
    fsync: 'off',
    shared_buffers: '32MB',
    ...settings,
  }
  let server: Running
  const url = ({ user = 'postgres', database = 'postgres' } = {}) => `postgres://${user}@127.0.0.1:${port}/${database}`
  const boot = async () => {
    const args = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const launch = guarded ? startGuarded.bind(null, folder) : start
    server = launch(program, ['-D', data, '-p', String(port), ...args], { cwd: folder, ...as })
    const answers = async () => {
      const client = new pg.Client(url())
      await client.connect()
      await client.end()
    }
    await until('PostgreSQL answering', answers, { server })
  }
  await boot()
  const { close, ...clients } = clientsOf(url)
  return {
    port,
    url,
    output: () => server.output(),
    ...clients,
    kill: (signal = 'SIGKILL') => server.stop(signal),
    async restart() {
      // A killed server's children let go of the folder a moment later.
      await until('a free folder', async () => {
        rmSync(join(data, 'postmaster.pid'), { force: true })
        await boot()
      })
    },
    async stop() {
      await close()
      await server.stop('SIGINT')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
