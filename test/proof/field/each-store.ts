// The stores that the regressions are asked of: memory, and one real server or file of each kind.
import { RedisStore } from 'coatcheck/stores/redis'
import { MysqlStore, PostgresStore, SqliteStore } from 'coatcheck/stores/sql'
import { afterAll, beforeAll, describe } from 'vitest'
import type { Store } from '../../../src/contract/store.ts'
import { MemoryStore } from '../../../stores/memory.ts'
import { describeEngine, type EngineName } from '../../services/engines.ts'
import { startMariadb } from '../../services/mariadb.ts'
import { startPostgres } from '../../services/postgres.ts'
import { startRedis } from '../../services/redis.ts'
import { openSqlite, sqliteFile } from '../../services/sqlite.ts'
import { STANDALONE } from '../../support/redis/clients.ts'

interface Opened {
  readonly store: Store
  close(): unknown
}

const SERVERS: Record<string, { engine: EngineName; open(): Promise<Opened> }> = {
  Redis: {
    engine: 'redis',
    async open() {
      const server = await startRedis()
      const { client, close } = await STANDALONE['node-redis 6']!(server.url)
      return { store: new RedisStore(client), close: async () => [await close(), await server.stop()] }
    },
  },
  PostgreSQL: {
    engine: 'postgresql',
    async open() {
      const server = await startPostgres()
      const store = new PostgresStore(server.pool({ max: 10 }))
      await store.migrate()
      return { store, close: () => server.stop() }
    },
  },
  MariaDB: {
    engine: 'mariadb',
    async open() {
      const server = await startMariadb()
      const store = new MysqlStore(server.pool({ connectionLimit: 10 }))
      await store.migrate()
      return { store, close: () => server.stop() }
    },
  },
  SQLite: {
    engine: 'libsql',
    async open() {
      const { file, remove } = sqliteFile()
      const database = openSqlite('libsql', file)
      const store = new SqliteStore(database)
      await store.migrate()
      return { store, close: () => [database.close(), remove()] }
    },
  },
}

/** Runs the tests on memory and on each server; a missing one is skipped by name. */
export function onEachStore(tests: (open: () => Store) => void): void {
  describe('in memory', () => tests(() => new MemoryStore()))
  for (const [name, { engine, open }] of Object.entries(SERVERS))
    describeEngine(engine, `on ${name}`, () => {
      let opened: Opened
      beforeAll(async () => {
        opened = await open()
      })
      afterAll(() => opened?.close())
      tests(() => opened.store)
    })
}
