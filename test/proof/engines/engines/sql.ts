import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import { startMariadb } from '../../../support/services/mariadb.ts'
import { startPostgres } from '../../../support/services/postgres.ts'
import { until } from '../../../support/services/process.ts'
import { startProxy } from '../../../support/services/proxy.ts'
import { openSqlite } from '../../../support/services/sqlite.ts'
import { type Disk, smallDisk } from '../disk.ts'
import { between, type Chance, type Fault, type Faults, ofConnections, one, pausing, wait } from '../nemesis.ts'
import type { Engine } from './engine.ts'

const PROCESSES = 3
const TABLES = ['coatcheck_sessions', 'coatcheck_sessions_users']

/** A fault that is done over a connection of its own, which the fault before may have taken: then it comes to nothing. */
const overConnection =
  (fault: (chance: Chance) => Promise<unknown>): Fault =>
  async chance => {
    await fault(chance).catch(() => {})
  }

/** Fills the disk for a moment; `revive` starts a server again that ended for it. */
const filling =
  (disk: Disk, revive: () => Promise<void>): Fault =>
  async chance => {
    disk.fill()
    await wait(between(chance, 50, 500))
    disk.free()
    await revive()
  }

const onDisk = (disk: Disk | string, fault: (disk: Disk) => Fault) =>
  typeof disk === 'string'
    ? { faults: {}, impossible: { 'disk full': disk } }
    : { faults: { 'disk full': fault(disk) }, impossible: {} }

export const postgresql: Engine = {
  name: 'postgresql',
  needs: 'postgresql',
  clients: 3,
  hasProcesses: true,
  async start() {
    const disk = smallDisk(400)
    const start = () => startPostgres({ max_wal_size: '64MB', min_wal_size: '32MB' })
    const server = await (typeof disk === 'string' ? start() : disk.use(start))
    const proxies = await Promise.all(Array.from({ length: PROCESSES }, () => startProxy(server.port)))
    const admin = server.pool({ max: 2 })
    await new PostgresStore(admin).migrate()
    const folder = String((await admin.query('SHOW data_directory')).rows[0].data_directory)
    const pid = async () => Number(readFileSync(join(folder, 'postmaster.pid'), 'utf8').split('\n')[0])
    const revive = async () => {
      const answers = () => admin.query('CREATE TEMP TABLE IF NOT EXISTS t (); DROP TABLE t')
      await until('PostgreSQL answering', answers, { timeout: 3000 }).catch(async () => {
        await server.kill()
        await server.restart()
      })
    }
    const full = onDisk(disk, each => filling(each, revive))
    const faults: Faults = {
      ...ofConnections(proxies),
      'engine killed': async chance => {
        await server.kill()
        await wait(between(chance, 0, 200))
        await server.restart()
      },
      'engine paused': pausing(pid),
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
      ...full.faults,
    }
    return {
      openings: proxies.map(({ port }) => ({
        kind: 'postgresql' as const,
        url: server.url().replace(String(server.port), String(port)),
      })),
      faults,
      impossible: full.impossible,
      rules: { deletesInSteps: true },
      grace: 1500,
      lateEndings: true,
      async stop() {
        await Promise.all(proxies.map(proxy => proxy.stop()))
        await server.stop()
        if (typeof disk !== 'string') disk.remove()
      },
    }
  },
}

export const mariadb: Engine = {
  name: 'mariadb',
  needs: 'mariadb',
  clients: 3,
  hasProcesses: true,
  async start() {
    const disk = smallDisk(400)
    const start = () => startMariadb({ 'innodb-log-file-size': '16M' })
    const server = await (typeof disk === 'string' ? start() : disk.use(start))
    const proxies = await Promise.all(Array.from({ length: PROCESSES }, () => startProxy(server.port)))
    const admin = server.pool({ connectionLimit: 2 })
    await new MysqlStore(admin).migrate()
    const [[found]] = (await admin.query('SELECT @@datadir AS folder, @@pid_file AS file')) as any
    const pid = async () => Number(readFileSync(join(found.folder, found.file.replace(found.folder, '')), 'utf8'))
    const restart = async (pause = 0) => {
      await server.kill()
      await wait(pause)
      await server.restart()
    }
    const revive = async () => {
      const answers = () => admin.query('CREATE TABLE filled (n INT)').then(() => admin.query('DROP TABLE filled'))
      await until('MariaDB answering', answers, { timeout: 5000 }).catch(() => restart())
      await admin.query('DROP TABLE IF EXISTS filled')
    }
    const full = onDisk(disk, each => filling(each, revive))
    const faults: Faults = {
      ...ofConnections(proxies),
      'engine killed': chance => restart(between(chance, 0, 200)),
      'engine paused': pausing(pid),
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
      ...full.faults,
    }
    return {
      openings: proxies.map(({ port }) => ({
        kind: 'mariadb' as const,
        url: server.url().replace(String(server.port), String(port)),
      })),
      faults,
      impossible: full.impossible,
      rules: { deletesInSteps: true },
      // The server's own time for a COMMIT that does not come is counted in whole seconds.
      grace: 2500,
      lateEndings: true,
      async stop() {
        await Promise.all(proxies.map(proxy => proxy.stop()))
        await server.stop()
        if (typeof disk !== 'string') disk.remove()
      },
    }
  },
}

/** Several processes on one file: they are the engine, and what harms them harms it. */
export const sqlite: Engine = {
  name: 'sqlite',
  needs: 'libsql',
  clients: 2,
  hasProcesses: true,
  async start() {
    const disk = smallDisk(64)
    const folder = typeof disk === 'string' ? null : disk.folder
    const { file, remove } = sqliteIn(folder)
    const driver = 'libsql'
    const mode = 'WAL'
    const own = openSqlite(driver, file, mode)
    await new SqliteStore(own).migrate()
    const full = onDisk(disk, each => filling(each, async () => {}))
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
        ...full.faults,
      },
      impossible: full.impossible,
      rules: {},
      grace: 500,
      async stop() {
        own.close()
        remove()
        if (typeof disk !== 'string') disk.remove()
      },
    }
  },
}

function sqliteIn(folder: string | null) {
  const parent = mkdtempSync(join(folder ?? tmpdir(), 'coatcheck-lite-'))
  return { file: join(parent, 'sessions.db'), remove: () => rmSync(parent, { recursive: true, force: true }) }
}
