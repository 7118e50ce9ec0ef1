// Sessions that are bound to a device, on each kind of database.
import { RedisStore } from 'coatcheck/stores/redis'
import { MysqlStore, PostgresStore, SqliteStore } from 'coatcheck/stores/sql'
import { afterAll, beforeAll } from 'vitest'
import type { Store } from '../../src/contract/store.ts'
import { describeEngine, type EngineName } from '../services/engines.ts'
import { startMariadb } from '../services/mariadb.ts'
import { startPostgres } from '../services/postgres.ts'
import { startRedis, startRedisCluster } from '../services/redis.ts'
import { openSqlite, sqliteFile } from '../services/sqlite.ts'
import { testDevices } from '../support/device-walks.ts'
import { CLUSTER, STANDALONE } from '../support/redis/clients.ts'

type Opened = { store: Store & { migrate?(): Promise<void> }; close(): unknown }

const ENGINES: Record<string, { engine: EngineName; open(): Promise<Opened> }> = {
  Redis: {
    engine: 'redis',
    async open() {
      const server = await startRedis()
      const { client, close } = await STANDALONE['node-redis 6']!(server.url)
      return { store: new RedisStore(client), close: async () => [await close(), await server.stop()] }
    },
  },
  'Redis Cluster': {
    engine: 'redis',
    async open() {
      const cluster = await startRedisCluster()
      const { client, close } = await CLUSTER['node-redis 6 cluster']!(cluster.addresses)
      return { store: new RedisStore(client), close: async () => [await close(), await cluster.stop()] }
    },
  },
  PostgreSQL: {
    engine: 'postgresql',
    async open() {
      const server = await startPostgres()
      return { store: new PostgresStore(server.pool()), close: server.stop }
    },
  },
  MariaDB: {
    engine: 'mariadb',
    async open() {
      const server = await startMariadb()
      return { store: new MysqlStore(server.pool()), close: server.stop }
    },
  },
  SQLite: {
    engine: 'libsql',
    async open() {
      const { file, remove } = sqliteFile()
      const database = openSqlite('libsql', file)
      return { store: new SqliteStore(database), close: () => [database.close(), remove()] }
    },
  },
}

for (const [name, { engine, open }] of Object.entries(ENGINES))
  describeEngine(engine, `bound sessions on ${name}`, () => {
    let opened: Opened
    beforeAll(async () => {
      opened = await open()
      await opened.store.migrate?.()
    })
    afterAll(() => opened?.close())
    testDevices(() => opened.store)
  })
