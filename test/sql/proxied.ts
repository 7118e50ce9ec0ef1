// A server of its own behind a proxy that fails as networks do, for each client.
import type { Store } from 'coatcheck'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import type mysql from 'mysql2/promise'
import { describeEngine, type EngineName } from '../support/services/engines.ts'
import { startMariadb } from '../support/services/mariadb.ts'
import { startPostgres } from '../support/services/postgres.ts'
import { type FaultProxy, startProxy } from '../support/services/proxy.ts'
import { started } from '../support/started.ts'
import { type Locks, locksOfMariadb, locksOfPostgres } from './locks.ts'

/** Besides the server, `proxiedUrl` leads to it through its proxy. */
async function behindProxy<
  Server extends { port: number; url(options?: { user?: string }): string; stop(): Promise<void> },
>(start: () => Promise<Server>) {
  const server = await start()
  const proxy = await startProxy(server.port)
  return {
    ...server,
    proxy,
    proxiedUrl: (options?: { user?: string }) => server.url(options).replace(`${server.port}`, `${proxy.port}`),
    async stop() {
      await proxy.stop()
      await server.stop()
    },
  }
}
export const proxiedPostgres = () => behindProxy(startPostgres)
export const proxiedMariadb = () => behindProxy(startMariadb)

interface Opened {
  readonly store: Store
  /** Takes a connection of the store's pool; gives what gives it back. */
  take(): Promise<() => void>
}

export interface Proxied {
  readonly server: { readonly port: number; kill(): Promise<void>; restart(): Promise<void>; stop(): Promise<void> }
  readonly proxy: FaultProxy
  /** The database as it is, without the proxy. */
  readonly direct: Store
  /** A store that reaches the database through the proxy, or without it, as the user `name`. */
  open(options?: { max?: number; direct?: boolean; name?: 'crowd' }): Opened
  /** How many connections of that user the server has; a pool of 5 may have so many, since the destroyed go a moment later. */
  connections(name: 'crowd'): Promise<number>
  readonly atMost: number
  readonly locks: Locks
  inTransaction(): Promise<number>
  /** What a COMMIT looks like on the wire, unlike READ COMMITTED. */
  readonly commit: string
}

async function postgresql() {
  const server = await proxiedPostgres()
  const admin = server.pool()
  await new PostgresStore(admin).migrate()
  await admin.query('CREATE ROLE crowd SUPERUSER LOGIN')
  const count = async (where: string) =>
    Number((await admin.query(`SELECT count(*) FROM pg_stat_activity WHERE ${where}`)).rows[0].count)
  return {
    server,
    proxy: server.proxy,
    direct: new PostgresStore(admin),
    connections: (name: string) => count(`usename = '${name}'`),
    atMost: 10,
    locks: locksOfPostgres(admin),
    inTransaction: () => count("state LIKE 'idle in transaction%'"),
  }
}

const CLIENTS = {
  async pg() {
    const parts = await postgresql()
    const { server } = parts
    const open: Proxied['open'] = ({ max = 3, direct = false, name = 'postgres' } = {}) => {
      const connectionString = server[direct ? 'url' : 'proxiedUrl']({ user: name })
      const pool = server.pool({ connectionString, max })
      return { store: new PostgresStore(pool), take: async () => (await pool.connect()).release }
    }
    return { ...parts, open, commit: 'COMMIT\0' }
  },
  async 'Postgres.js'() {
    const parts = await postgresql()
    const { server, proxy } = parts
    const open: Proxied['open'] = ({ max = 3, direct = false, name = 'postgres' } = {}) => {
      const port = direct ? server.port : proxy.port
      const sql = server.postgresJs({ port, max, username: name, fetch_types: false, backoff: () => 0.05 })
      const take = async () => {
        const reserved = await sql.reserve()
        return () => reserved.release()
      }
      return { store: new PostgresStore(sql), take }
    }
    return { ...parts, open, commit: 'commit\0' }
  },
  async mysql2() {
    const server = await proxiedMariadb()
    const admin = server.pool()
    await new MysqlStore(admin).migrate()
    await admin.query("CREATE USER crowd@'127.0.0.1'")
    await admin.query("GRANT ALL ON test.* TO crowd@'127.0.0.1'")
    const count = async (from: string) => {
      const [rows] = await admin.query<mysql.RowDataPacket[]>(`SELECT count(*) AS n FROM information_schema.${from}`)
      return Number(rows[0]!.n)
    }
    const open: Proxied['open'] = ({ max = 3, direct = false, name = 'root' } = {}) => {
      const uri = server[direct ? 'url' : 'proxiedUrl']({ user: name })
      const pool = server.pool({ uri, connectionLimit: max })
      const take = async () => {
        const connection = await pool.getConnection()
        return () => connection.release()
      }
      return { store: new MysqlStore(pool), take }
    }
    return {
      server,
      proxy: server.proxy,
      direct: new MysqlStore(admin),
      open,
      connections: (name: string) => count(`processlist WHERE user = '${name}'`),
      atMost: 15,
      locks: locksOfMariadb(admin),
      // The table innodb_trx stays as it is while it is asked more often than each 100 ms.
      async inTransaction() {
        const [rows] = await admin.query<mysql.RowDataPacket[]>('SHOW ENGINE INNODB STATUS')
        return rows[0]!.Status.match(/, ACTIVE /g)?.length ?? 0
      },
      commit: '\x03COMMIT',
    }
  },
} satisfies Record<string, () => Promise<Proxied>>
export type ClientName = keyof typeof CLIENTS

/** Declares the tests once for each client. */
export function onClients(title: string, tests: (get: () => Proxied, name: ClientName) => void): void {
  for (const name of Object.keys(CLIENTS) as ClientName[]) {
    const engine: EngineName = name === 'mysql2' ? 'mariadb' : 'postgresql'
    describeEngine(engine, `${title} ${name}`, () => {
      const opened = started(async () => {
        const proxied: Proxied = await CLIENTS[name]()
        return { ...proxied, stop: proxied.server.stop }
      })
      tests(opened, name)
    })
  }
}
