// What is promised to an application, and remember-me, on each kind of database.
import { RedisStore } from 'coatcheck/stores/redis'
import { MysqlStore, PostgresStore, SqliteStore } from 'coatcheck/stores/sql'
import { afterAll, beforeAll, it } from 'vitest'
import type { Store } from '../../src/contract/store.ts'
import { describeEngine, type EngineName } from '../services/engines.ts'
import { startMariadb } from '../services/mariadb.ts'
import { startPostgres } from '../services/postgres.ts'
import { startRedis, startRedisCluster } from '../services/redis.ts'
import { openSqlite, sqliteFile } from '../services/sqlite.ts'
import { testParallel } from '../support/parallel.ts'
import { CLUSTER, STANDALONE } from '../support/redis/clients.ts'
import { checkRemember } from '../support/remember-model.ts'
import { testGuarantees } from './all.ts'

interface Opened {
  readonly store: Store
  /** All that the backend holds, as text. */
  dump(): Promise<string>
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
    testGuarantees(store, () => opened.dump())
    testParallel(store)
    it('remember-me answers as its reference does', () => checkRemember(store, 40), 120_000)
  })
}

const DUMP = `local all = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  if kind == 'string' then all[#all + 1] = key .. ' ' .. redis.call('GET', key)
  elseif kind == 'zset' then all[#all + 1] = key .. ' ' .. table.concat(redis.call('ZRANGE', key, 0, -1, 'WITHSCORES'), ' ')
  else error('no dump of a ' .. kind) end
end
table.sort(all)
return table.concat(all, ' ')`
const TABLES = ['coatcheck_sessions', 'coatcheck_sessions_users'] as const

onEngine('redis', 'Redis', async () => {
  const server = await startRedis()
  const { client, close } = await STANDALONE['node-redis 6']!(server.url)
  return {
    store: new RedisStore(client),
    dump: () => server.cli('EVAL', DUMP, '0'),
    close: async () => [await close(), await server.stop()],
  }
})

onEngine('redis', 'Redis Cluster', async () => {
  const cluster = await startRedisCluster()
  const { client, close } = await CLUSTER['ioredis 6 cluster']!(cluster.addresses)
  return {
    store: new RedisStore(client),
    dump: async () => (await Promise.all(cluster.masters.map(node => node.cli('EVAL', DUMP, '0')))).join('\n'),
    close: async () => [await close(), await cluster.stop()],
  }
})

onEngine('postgresql', 'PostgreSQL', async () => {
  const server = await startPostgres()
  const pool = server.pool({ max: 10 })
  const store = new PostgresStore(pool)
  await store.migrate()
  const dump = async () =>
    JSON.stringify(await Promise.all(TABLES.map(async name => (await pool.query(`TABLE ${name} ORDER BY 1, 2`)).rows)))
  return { store, dump, close: () => server.stop() }
})

onEngine('mariadb', 'MariaDB', async () => {
  const server = await startMariadb()
  const pool = server.pool({ connectionLimit: 10 })
  const store = new MysqlStore(pool)
  await store.migrate()
  const dump = async () =>
    JSON.stringify(
      await Promise.all(TABLES.map(async name => (await pool.query(`SELECT * FROM ${name} ORDER BY 1, 2`))[0])),
    )
  return { store, dump, close: () => server.stop() }
})

onEngine('libsql', 'SQLite', async () => {
  const { file, remove } = sqliteFile()
  const database = openSqlite('libsql', file)
  const store = new SqliteStore(database)
  await store.migrate()
  const dump = async () =>
    JSON.stringify(TABLES.map(name => (database.prepare(`SELECT * FROM ${name} ORDER BY 1, 2`) as any).all()))
  return { store, dump, close: () => [database.close(), remove()] }
})
