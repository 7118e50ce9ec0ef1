// A private MariaDB for tests: its own folder and port, as the user mysql, since the server refuses root.
import { execFileSync } from 'node:child_process'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import mysql from 'mysql2/promise'
import { account } from './postgres.ts'
import { findBinary, freePort, type Running, start, until } from './process.ts'
import { fromTemplate } from './template.ts'

export interface MariadbServer {
  readonly port: number
  url(options?: { user?: string; database?: string }): string
  /** A pool of the superuser on the database `test`, or as told; closed with the server. */
  pool(options?: mysql.PoolOptions): mysql.Pool
  /** Ends the server at once, as a crash does. */
  kill(): Promise<void>
  /** Starts it again on the same folder and port. */
  restart(): Promise<void>
  stop(): Promise<void>
  output(): string
  readonly folder: string
}

/** Starts a server; `settings` are options of mariadbd such as `{ 'default-time-zone': '+09:00' }`. */
export async function startMariadb(settings: Readonly<Record<string, string>> = {}): Promise<MariadbServer> {
  const folder = mkdtempSync(join(tmpdir(), 'coatcheck-my-'))
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
  const pools: mysql.Pool[] = []
  const url = ({ user = 'root', database = 'test' } = {}) => `mysql://${user}@127.0.0.1:${port}/${database}`
  let server: Running
  let expected = false
  const boot = async () => {
    server = start(
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
  return {
    port,
    url,
    folder,
    output: () => server.output(),
    pool(options = {}) {
      const pool = mysql.createPool({ uri: url(), connectionLimit: 10, ...options })
      pools.push(pool)
      return pool
    },
    kill() {
      expected = true
      return server.stop('SIGKILL')
    },
    restart: () => boot(),
    async stop() {
      await Promise.all(pools.map(pool => pool.end().catch(() => {})))
      expected = true
      await server.stop('SIGTERM')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
