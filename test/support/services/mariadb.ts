// A private MariaDB for tests: its own folder and port, as the user mysql, since the server refuses root.
import { execFileSync } from 'node:child_process'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import mysql from 'mysql2/promise'
import { memoryFolder } from './memory-folder.ts'
import { account } from './postgres.ts'
import { findBinary, freePort, type Running, start, startGuarded, until } from './process.ts'
import { fromTemplate } from './template.ts'

/** A database for one test file. */
export interface MariadbDatabase {
  readonly port: number
  url(options?: { user?: string; database?: string }): string
  /** A pool of the superuser on this database, or as told; closed with it. */
  pool(options?: mysql.PoolOptions): mysql.Pool
  stop(): Promise<void>
}

/** A server of its own with a database `test`: it may be killed. */
export interface MariadbServer extends MariadbDatabase {
  /** Ends the server at once, as a crash does. */
  kill(): Promise<void>
  /** Starts it again on the same folder and port. */
  restart(): Promise<void>
  output(): string
  readonly folder: string
}

let shared: Promise<MariadbServer> | undefined
let databases = 0

/** A new database on the one server that the files of this process share. */
export async function sharedMariadb(): Promise<MariadbDatabase> {
  shared ??= startMariadb({}, { guarded: true })
  const { port, url: urlOf } = await shared
  const admin = await mysql.createConnection(urlOf())
  databases += 1
  const name = `file_${databases}`
  await admin.query(`CREATE DATABASE ${name}`)
  const url: MariadbDatabase['url'] = options => urlOf({ database: name, ...options })
  const { pool, close } = poolsOf(url)
  return {
    port,
    url,
    pool,
    async stop() {
      await close()
      await admin.query(`DROP DATABASE ${name}`)
      await admin.end()
    },
  }
}

function poolsOf(url: () => string) {
  const pools: mysql.Pool[] = []
  return {
    pool(options: mysql.PoolOptions = {}) {
      const pool = mysql.createPool({ uri: url(), connectionLimit: 10, ...options })
      pools.push(pool)
      return pool
    },
    close: () => Promise.all(pools.map(pool => pool.end().catch(() => {}))),
  }
}

/**
 * Starts a server; `settings` are options of mariadbd such as `{ 'default-time-zone': '+09:00' }`. A `guarded` one ends
 * with this process.
 */
export async function startMariadb(
  settings: Readonly<Record<string, string>> = {},
  { guarded = false, onDisk = false }: { guarded?: boolean; onDisk?: boolean } = {},
): Promise<MariadbServer> {
  const folder = onDisk ? mkdtempSync(join(tmpdir(), 'coatcheck-my-')) : memoryFolder('my')
  const as = account('mysql')
  if (as.uid !== undefined) chownSync(folder, as.uid, as.gid!)
  const data = join(folder, 'data')
  // A server that starts clears its temporary folder, also the one that makes the tables of a new data folder: it must
  // not be another server's.
  const install = findBinary('mariadb-install-db')!
  fromTemplate(install, data, () => {
    const tables = ['--auth-root-authentication-method=normal', '--skip-test-db', '--innodb-log-file-size=16M']
    const args = ['--no-defaults', `--datadir=${data}`, `--tmpdir=${folder}`, ...tables]
    execFileSync(install, args, { stdio: 'pipe', cwd: folder, ...as })
  })
  const port = await freePort()
  const all = {
    'bind-address': '127.0.0.1',
    socket: join(folder, 'socket'),
    tmpdir: folder,
    'max-connections': '300',
    // A killed server keeps what the system's cache has: only a power cut would lose it.
    'innodb-flush-log-at-trx-commit': '2',
    'innodb-buffer-pool-size': '32M',
    ...settings,
  }
  const url = ({ user = 'root', database = 'test' } = {}) => `mysql://${user}@127.0.0.1:${port}/${database}`
  let server: Running
  let expected = false
  const boot = async () => {
    const launch = guarded ? startGuarded.bind(null, folder) : start
    server = launch(
      findBinary('mariadbd')!,
      [
        '--no-defaults',
        `--datadir=${data}`,
        `--port=${port}`,
        ...Object.entries(all).map(([name, value]) => `--${name}=${value}`),
      ],
      { cwd: folder, ...as },
    )
    expected = false
    server.child.once('exit', (code, signal) => {
      if (!expected) console.error(`MariaDB ended by itself (${code ?? signal}):\n${server.output().slice(-4000)}`)
    })
    const answers = async () => {
      const connection = await mysql.createConnection(url({ database: '' }))
      await connection.query('CREATE DATABASE IF NOT EXISTS test')
      await connection.end()
    }
    await until('MariaDB answering', answers, { server })
  }
  await boot()
  const { pool, close } = poolsOf(url)
  return {
    port,
    url,
    folder,
    output: () => server.output(),
    pool,
    kill() {
      expected = true
      return server.stop('SIGKILL')
    },
    restart: () => boot(),
    async stop() {
      await close()
      expected = true
      await server.stop('SIGTERM')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
