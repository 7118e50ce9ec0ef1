import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import { startMariadb } from '../../../support/services/mariadb.ts'
import { startPostgres } from '../../../support/services/postgres.ts'
import { until } from '../../../support/services/process.ts'
import { startProxy } from '../../../support/services/proxy.ts'
import { openSqlite, sqliteFile } from '../../../support/services/sqlite.ts'
import {
  between,
  type Chance,
  type Fault,
  type Faults,
  killing,
  ofConnections,
  one,
  pausing,
  wait,
} from '../nemesis.ts'
import type { Engine } from './engine.ts'

const PROCESSES = 3
const TABLES = ['coatcheck_sessions', 'coatcheck_sessions_users']

/** A fault that is done over a connection of its own, which the fault before may have taken: then it comes to nothing. */
const overConnection =
  (fault: (chance: Chance) => Promise<unknown>): Fault =>
  async chance => {
    await fault(chance).catch(() => {})
  }

interface Server {
  readonly port: number
  url(): string
  kill(): Promise<void>
  restart(): Promise<void>
  stop(): Promise<void>
}

/** A server, which each process reaches through a proxy of its own. */
const onServer = <S extends Server>(
  name: 'postgresql' | 'mariadb',
  grace: number,
  start: () => Promise<S>,
  /** What only this server has: its process, and more faults. */
  open: (server: S) => Promise<{ pid(): Promise<number>; faults: Faults }>,
): Engine => ({
  name,
  needs: name,
  clients: 3,
  hasProcesses: true,
  async start() {
    const server = await start()
    const proxies = await Promise.all(Array.from({ length: PROCESSES }, () => startProxy(server.port)))
    const { pid, faults } = await open(server)
    return {
      openings: proxies.map(({ port }) => ({
        kind: name,
        url: server.url().replace(String(server.port), String(port)),
      })),
      faults: {
        ...ofConnections(proxies),
        'engine killed': killing(server, 200),
        'engine paused': pausing(pid),
        ...faults,
      },
      rules: { deletesInSteps: true },
      grace,
      lateEndings: true,
      async stop() {
        await Promise.all(proxies.map(proxy => proxy.stop()))
        await server.stop()
      },
    }
  },
})

export const postgresql = onServer('postgresql', 1500, startPostgres, async server => {
  const admin = server.pool({ max: 2 })
  await new PostgresStore(admin).migrate()
  const folder = String((await admin.query('SHOW data_directory')).rows[0].data_directory)
  return {
    pid: async () => Number(readFileSync(join(folder, 'postmaster.pid'), 'utf8').split('\n')[0]),
    faults: {
      'table locked': overConnection(async chance => {
        const client = await admin.connect()
        try {
          await client.query(`BEGIN; LOCK TABLE ${one(chance, TABLES)} IN ACCESS EXCLUSIVE MODE`)
          await wait(between(chance, 50, 900))
        } finally {
          await client.query('ROLLBACK').catch(() => {})
          client.release()
        }
      }),
      'connections ended by the server': overConnection(() =>
        admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()'),
      ),
    },
  }
})

// The server's own time for a COMMIT that does not come is counted in whole seconds.
export const mariadb = onServer('mariadb', 2500, startMariadb, async server => {
  const admin = server.pool({ connectionLimit: 2 })
  await new MysqlStore(admin).migrate()
  const [[found]] = (await admin.query('SELECT @@datadir AS folder, @@pid_file AS file')) as any
  return {
    pid: async () => Number(readFileSync(join(found.folder, found.file.replace(found.folder, '')), 'utf8')),
    faults: {
      'table locked': overConnection(async chance => {
        const connection = await admin.getConnection()
        try {
          await connection.query(`LOCK TABLES ${one(chance, TABLES)} WRITE`)
          await wait(between(chance, 50, 900))
        } finally {
          await connection.query('UNLOCK TABLES').catch(() => {})
          connection.release()
        }
      }),
      'connections ended by the server': overConnection(async () => {
        const [rows] = (await admin.query('SHOW PROCESSLIST')) as any
        const [[own]] = (await admin.query('SELECT CONNECTION_ID() AS id')) as any
        for (const { Id, User } of rows)
          if (Id !== own.id && User === 'root') await admin.query(`KILL ${Id}`).catch(() => {})
      }),
    },
  }
})

/** Several processes on one file: they are the engine, and what harms them harms it. */
export const sqlite: Engine = {
  name: 'sqlite',
  needs: 'libsql',
  clients: 2,
  hasProcesses: true,
  async start() {
    const { file, remove } = sqliteFile()
    const driver = 'libsql'
    const mode = 'WAL'
    const own = openSqlite(driver, file, mode)
    await new SqliteStore(own).migrate()
    const lock = async (chance: Chance) => {
      await until('the lock', () => void own.exec('BEGIN EXCLUSIVE'))
      await wait(between(chance, 20, 700))
      own.exec('ROLLBACK')
    }
    return {
      openings: Array.from({ length: PROCESSES }, () => ({ kind: 'sqlite' as const, driver, file, mode })),
      faults: {
        'table locked': lock,
        'log written back': async () => {
          await until('the checkpoint', () => void own.exec('PRAGMA wal_checkpoint(TRUNCATE)')).catch(() => {})
        },
      },
      rules: {},
      grace: 500,
      async stop() {
        own.close()
        remove()
      },
    }
  },
}
