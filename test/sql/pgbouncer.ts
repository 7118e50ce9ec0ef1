// A private pgbouncer in transaction mode in front of a PostgreSQL server: its own folder and port, as the user postgres,
// since it refuses root.
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { account, type PostgresServer } from '../support/services/postgres.ts'
import { findBinary, freePort, start, until } from '../support/services/process.ts'

export interface PgbouncerServer {
  url(): string
  /** A pool of connections to pgbouncer; closed with it. */
  pool(config?: pg.PoolConfig): pg.Pool
  stop(): Promise<void>
}

/** Starts one whose clients share `servers` connections, each for the length of a transaction. */
export async function startPgbouncer(server: PostgresServer, servers: number): Promise<PgbouncerServer> {
  const folder = mkdtempSync(join(tmpdir(), 'coatcheck-pgbouncer-'))
  const as = account('postgres')
  const port = await freePort()
  const settings = join(folder, 'pgbouncer.ini')
  writeFileSync(
    settings,
    `[databases]
postgres = host=127.0.0.1 port=${server.port} dbname=postgres user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${servers}
max_client_conn = 500
`,
  )
  if (as.uid !== undefined) for (const path of [folder, settings]) chownSync(path, as.uid, as.gid!)
  const running = start(findBinary('pgbouncer')!, [settings], { cwd: folder, ...as })
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  const pools: pg.Pool[] = []
  await until(
    'pgbouncer answering',
    async () => {
      const client = new pg.Client(url)
      await client.connect()
      await client.query('SELECT 1')
      await client.end()
    },
    { server: running },
  )
  return {
    url: () => url,
    pool(config = {}) {
      const pool = new pg.Pool({ connectionString: url, ...config })
      pool.on('error', () => {})
      pools.push(pool)
      return pool
    },
    async stop() {
      await Promise.all(pools.map(pool => pool.end().catch(() => {})))
      await running.stop('SIGTERM')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
