// What is promised to an application, and remember-me, on each kind of database.

import type { Store } from 'coatcheck'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { RedisStore } from 'coatcheck/stores/redis'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import { afterAll, beforeAll, it } from 'vitest'
import type { Backend } from '../support/guarantee-kit.ts'
import { testParallel } from '../support/parallel.ts'
import { CLUSTER, STANDALONE } from '../support/redis/clients.ts'
import { checkRemember } from '../support/remember-model.ts'
import { describeEngine, type EngineName } from '../support/services/engines.ts'
import { startMariadb } from '../support/services/mariadb.ts'
import { startPostgres } from '../support/services/postgres.ts'
import { type RedisServer, startRedis, startRedisCluster } from '../support/services/redis.ts'
import { openSqlite, sqliteFile } from '../support/services/sqlite.ts'
import { testGuarantees } from './all.ts'

interface Opened extends Required<Backend> {
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
    testGuarantees(store, {
      dump: () => opened.dump(),
      outage: () => opened.outage(),
      commands: () => opened.commands(),
    })
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
/** Takes the right to read away. */
async function noReading(servers: readonly RedisServer[]) {
  const permit = (rights: string) => Promise.all(servers.map(server => server.cli('ACL', 'SETUSER', 'default', rights)))
  await permit('-@read')
  return () => permit('+@all')
}

async function readingCommands(servers: readonly RedisServer[]) {
  const stats = await Promise.all(servers.map(server => server.commandStats()))
  return stats.reduce((sum, { get = 0, mget = 0 }) => sum + get + mget, 0)
}

const TABLES = ['coatcheck_sessions', 'coatcheck_sessions_users'] as const

/** Takes the table of sessions away: `run` runs a statement. */
async function noTable(run: (sql: string) => unknown) {
  await run(`ALTER TABLE ${TABLES[0]} RENAME TO elsewhere`)
  return async () => run(`ALTER TABLE elsewhere RENAME TO ${TABLES[0]}`)
}

onEngine('redis', 'Redis', async () => {
  const server = await startRedis()
  const { client, close } = await STANDALONE['node-redis 6']!(server.url)
  return {
    store: new RedisStore(client),
    dump: () => server.cli('EVAL', DUMP, '0'),
    outage: () => noReading([server]),
    commands: () => readingCommands([server]),
    close: async () => [await close(), await server.stop()],
  }
})

onEngine('redis', 'Redis Cluster', async () => {
  const cluster = await startRedisCluster()
  const { client, close } = await CLUSTER['ioredis 6 cluster']!(cluster.addresses)
  return {
    store: new RedisStore(client),
    dump: async () => (await Promise.all(cluster.masters.map(node => node.cli('EVAL', DUMP, '0')))).join('\n'),
    outage: () => noReading(cluster.masters),
    commands: () => readingCommands(cluster.masters),
    close: async () => [await close(), await cluster.stop()],
  }
})

onEngine('postgresql', 'PostgreSQL', async () => {
  const server = await startPostgres({ shared_preload_libraries: 'pg_stat_statements' })
  const pool = server.pool({ max: 10 })
  await pool.query('CREATE EXTENSION pg_stat_statements')
  const store = new PostgresStore(pool)
  await store.migrate()
  const dump = async () =>
    JSON.stringify(await Promise.all(TABLES.map(async name => (await pool.query(`TABLE ${name} ORDER BY 1, 2`)).rows)))
  const commands = async () => {
    const sql = `SELECT COALESCE(sum(calls), 0) AS calls FROM pg_stat_statements
      WHERE query ILIKE 'SELECT%coatcheck_sessions%' AND query NOT LIKE '%pg_stat_statements%'`
    return Number((await pool.query(sql)).rows[0].calls)
  }
  return { store, dump, outage: () => noTable(sql => pool.query(sql)), commands, close: () => server.stop() }
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
  const commands = async () => {
    const [rows] = await pool.query("SHOW GLOBAL STATUS LIKE 'Com_select'")
    return Number((rows as { Value: string }[])[0]!.Value)
  }
  return { store, dump, outage: () => noTable(sql => pool.query(sql)), commands, close: () => server.stop() }
})

onEngine('libsql', 'SQLite', async () => {
  const { file, remove } = sqliteFile()
  const database = openSqlite('libsql', file)
  const store = new SqliteStore(database)
  await store.migrate()
  const dump = async () =>
    JSON.stringify(TABLES.map(name => (database.prepare(`SELECT * FROM ${name} ORDER BY 1, 2`) as any).all()))
  const outage = () => noTable(sql => database.exec(sql))
  return { store, dump, outage, commands: async () => null, close: () => [database.close(), remove()] }
})
