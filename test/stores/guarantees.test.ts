// What is promised to an application, and remember-me, on each kind of database.
import { RedisStore } from 'coatcheck/stores/redis'
import { MysqlStore, PostgresStore, SqliteStore } from 'coatcheck/stores/sql'
import { afterAll, beforeAll, it } from 'vitest'
import type { Store } from '../../src/store.ts'
import { testGuarantees } from '../guarantees.ts'
import { checkRemember } from '../remember-model.ts'
import { describeEngine, type EngineName } from '../services/engines.ts'
import { startMariadb } from '../services/mariadb.ts'
import { startPostgres } from '../services/postgres.ts'
import { startRedis, startRedisCluster } from '../services/redis.ts'
import { CLUSTER, STANDALONE } from '../services/redis-clients.ts'
import { openSqlite, sqliteFile } from '../services/sqlite.ts'

interface Opened {
  readonly store: Store
  close(): unknown
}

function onEngine(engine: EngineName, name: string, open: () => Promise<Opened>): void {
  describeEngine(engine, `the guarantees on ${name}`, () => {
    let opened: Opened
    beforeAll(async () => {
      opened = await open()
    })
    afterAll(() => opened?.close())
    const store = () => opened.store
    testGuarantees(store)
    it('remember-me answers as its reference does', () => checkRemember(store, 40), 120_000)
  })
}

onEngine('redis', 'Redis', async () => {
  const server = await startRedis()
  const { client, close } = await STANDALONE['node-redis 6']!(server.url)
  return { store: new RedisStore(client), close: async () => [await close(), await server.stop()] }
})

onEngine('redis', 'Redis Cluster', async () => {
  const cluster = await startRedisCluster()
  const { client, close } = await CLUSTER['ioredis 6 cluster']!(cluster.addresses)
  return { store: new RedisStore(client), close: async () => [await close(), await cluster.stop()] }
})

onEngine('postgresql', 'PostgreSQL', async () => {
  const server = await startPostgres()
  const store = new PostgresStore(server.pool({ max: 10 }))
  await store.migrate()
  return { store, close: () => server.stop() }
})

onEngine('mariadb', 'MariaDB', async () => {
  const server = await startMariadb()
  const store = new MysqlStore(server.pool({ connectionLimit: 10 }))
  await store.migrate()
  return { store, close: () => server.stop() }
})

onEngine('libsql', 'SQLite', async () => {
  const { file, remove } = sqliteFile()
  const database = openSqlite('libsql', file)
  const store = new SqliteStore(database)
  await store.migrate()
  return { store, close: () => [database.close(), remove()] }
})
