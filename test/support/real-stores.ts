// One store of each kind of database, on a private server or a file of its own, with its tables made.

import type { Store } from 'coatcheck'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { RedisStore, type RedisStoreOptions } from 'coatcheck/stores/redis'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import { CLUSTER, STANDALONE } from './redis/clients.ts'
import { describeEngine, type EngineName } from './services/engines.ts'
import { sharedMariadb } from './services/mariadb.ts'
import { sharedPostgres } from './services/postgres.ts'
import { sharedRedisCluster, startRedis } from './services/redis.ts'
import { openSqlite, sqliteFile } from './services/sqlite.ts'
import { started } from './started.ts'

interface Opened {
  readonly store: Store
  close(): unknown
}

const STORES: Record<string, { engine: EngineName; open(redis: RedisStoreOptions): Promise<Opened> }> = {
  Redis: {
    engine: 'redis',
    async open(options) {
      const server = await startRedis()
      const { client, close } = await STANDALONE['node-redis 6']!(server.url)
      return { store: new RedisStore(client, options), close: async () => [await close(), await server.stop()] }
    },
  },
  'Redis Cluster': {
    engine: 'redis',
    async open(options) {
      const cluster = await sharedRedisCluster()
      const { client, close } = await CLUSTER['node-redis 6 cluster']!(cluster.addresses)
      return { store: new RedisStore(client, options), close: async () => [await close(), await cluster.stop()] }
    },
  },
  PostgreSQL: {
    engine: 'postgresql',
    async open() {
      const server = await sharedPostgres()
      const store = new PostgresStore(server.pool({ max: 10 }))
      await store.migrate()
      return { store, close: () => server.stop() }
    },
  },
  MariaDB: {
    engine: 'mariadb',
    async open() {
      const server = await sharedMariadb()
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

/** Declares the tests once for each kind of database; one that this machine lacks is skipped by name. */
export function onRealStores(
  name: (store: string) => string,
  tests: (open: () => Store) => void,
  redis: RedisStoreOptions = {},
): void {
  for (const [store, { engine, open }] of Object.entries(STORES))
    describeEngine(engine, name(store), () => {
      const opened = started(() => open(redis))
      tests(() => opened().store)
    })
}
