// @ts-check
import { betterAuthServer } from './better-auth.mjs'
import { expressSessionServer, fastifySessionServer } from './frameworks.mjs'
import { byHand, coatcheckHandler } from './handlers.mjs'
import { coatcheck, serve } from './serve.mjs'

const url = process.env.SQL_URL ?? ''
// As many as one event loop keeps busy: all servers get the same. They stay open while the others have their turn: a round
// that began with connecting would measure that.
const CONNECTIONS = 10

async function pgPool() {
  const { default: pg } = await import('pg')
  return new pg.Pool({ connectionString: url, max: CONNECTIONS, idleTimeoutMillis: 0 })
}
async function mysqlPool() {
  const { default: mysql } = await import('mysql2/promise')
  return mysql.createPool({ uri: url, connectionLimit: CONNECTIONS, idleTimeout: 3_600_000 })
}
/** @returns {Promise<any>} */
async function sqlite() {
  const { openSqlite } = await import('../sqlite.mjs')
  return openSqlite(process.env.SQLITE_DRIVER ?? '', process.env.SQLITE_FILE ?? ':memory:')
}
const stores = async () => ({
  ...(await coatcheck('stores/postgres.js')),
  ...(await coatcheck('stores/mysql.js')),
  ...(await coatcheck('stores/sqlite.js')),
})
async function postgres() {
  const store = new (await stores()).PostgresStore(await pgPool())
  await store.migrate()
  return store
}
async function mariadb() {
  const store = new (await stores()).MysqlStore(await mysqlPool())
  await store.migrate()
  return store
}

/** What connect-pg-simple, express-mysql-session and better-sqlite3-session-store make of a pool or a file. */
async function pgStore() {
  const [{ default: connect }, { default: expressSession }, pool] = await Promise.all([
    import('connect-pg-simple'),
    import('express-session'),
    pgPool(),
  ])
  return new (connect(expressSession))({
    pool,
    // better-auth has a table of the usual name.
    tableName: 'connect_session',
    createTableIfMissing: true,
    pruneSessionInterval: false,
  })
}
async function mysqlStore() {
  const [{ default: connect }, { default: expressSession }, pool] = await Promise.all([
    import('express-mysql-session'),
    import('express-session'),
    mysqlPool(),
  ])
  const store = new /** @type {any} */ (connect(/** @type {any} */ (expressSession)))({ clearExpired: false }, pool)
  await store.onReady()
  return store
}
async function sqliteStore() {
  const [{ default: connect }, { default: expressSession }, client] = await Promise.all([
    import('better-sqlite3-session-store'),
    import('express-session'),
    sqlite(),
  ])
  return new (connect(expressSession))({ client })
}

const TABLE = `CREATE TABLE IF NOT EXISTS floor (id VARCHAR(64) PRIMARY KEY, user_id BIGINT NOT NULL, name VARCHAR(256) NOT NULL,
  expires BIGINT NOT NULL, value BIGINT)`
const INDEX = 'CREATE INDEX IF NOT EXISTS floor_user ON floor (user_id)'
const inHalfAnHour = () => Date.now() + 1_800_000
/** @param {any} row */
const userIn = row => (row ? { id: Number(row.user_id), name: row.name } : null)

/**
 * One prepared statement by hand for each request.
 * @param {(name: keyof typeof STATEMENTS, values: unknown[]) => unknown} run answers the first row
 * @returns {import('./handlers.mjs').ByHand}
 */
const statements = run => ({
  get: async id => userIn(await run('select', [id, Date.now()])),
  create: (id, user) => run('insert', [id, user.id, user.name, inHalfAnHour()]),
  write: (id, value) => run('update', [value, id, Date.now()]),
  end: id => run('delete', [id]),
  invalidateAll: id => run('deleteAll', [id]),
})
const STATEMENTS = {
  select: 'SELECT user_id, name FROM floor WHERE id = ? AND expires > ?',
  insert: 'INSERT INTO floor (id, user_id, name, expires) VALUES (?, ?, ?, ?)',
  update: 'UPDATE floor SET value = ? WHERE id = ? AND expires > ?',
  delete: 'DELETE FROM floor WHERE id = ?',
  // The derived table lets MySQL read the table that it deletes from.
  deleteAll: 'DELETE FROM floor WHERE user_id = (SELECT user_id FROM (SELECT user_id FROM floor WHERE id = ?) AS own)',
}

const numbered = (/** @type {string} */ text) => {
  let count = 0
  return text.replace(/\?/g, () => `$${++count}`)
}

async function pgByHand() {
  const pool = await pgPool()
  await pool.query(TABLE)
  await pool.query(INDEX)
  const texts = Object.fromEntries(Object.entries(STATEMENTS).map(([name, text]) => [name, numbered(text)]))
  return statements(
    async (name, values) =>
      (await pool.query({ name, text: /** @type {string} */ (texts[name]), values: /** @type {any[]} */ (values) }))
        .rows[0],
  )
}

async function mysqlByHand() {
  const pool = await mysqlPool()
  await pool.query(TABLE)
  await pool.query(INDEX)
  const run = async (/** @type {string} */ text, /** @type {any[]} */ values) =>
    /** @type {any} */ ((await pool.execute(text, values))[0])
  return statements(async (name, values) => (await run(STATEMENTS[name], values))[0])
}

await serve({
  'PostgreSQL: prepared SELECT': async () => byHand(await pgByHand()),
  'PostgreSQL: coatcheck': async () => coatcheckHandler(await postgres()),
  'PostgreSQL: express-session, connect-pg-simple': async () => expressSessionServer(await pgStore()),
  'PostgreSQL: @fastify/session, connect-pg-simple': async () => fastifySessionServer(await pgStore()),
  'PostgreSQL: better-auth': async () => betterAuthServer({ database: await pgPool() }, { migrate: true }),

  'MariaDB: prepared SELECT': async () => byHand(await mysqlByHand()),
  'MariaDB: coatcheck': async () => coatcheckHandler(await mariadb()),
  'MariaDB: express-session, express-mysql-session': async () => expressSessionServer(await mysqlStore()),
  'MariaDB: @fastify/session, express-mysql-session': async () => fastifySessionServer(await mysqlStore()),
  'MariaDB: better-auth': async () => betterAuthServer({ database: await mysqlPool() }, { migrate: true }),

  async 'SQLite: prepared SELECT'() {
    const database = await sqlite()
    database.exec(`${TABLE}; ${INDEX}`)
    const prepared = Object.fromEntries(
      Object.entries(STATEMENTS).map(([name, text]) => [name, database.prepare(text)]),
    )
    return byHand(
      statements((name, values) => (name === 'select' ? prepared[name].get(...values) : prepared[name].run(...values))),
    )
  },
  async 'SQLite: coatcheck'() {
    const store = new (await stores()).SqliteStore(await sqlite())
    await store.migrate()
    return coatcheckHandler(store)
  },
  'SQLite: express-session, better-sqlite3-session-store': async () => expressSessionServer(await sqliteStore()),
  'SQLite: @fastify/session, better-sqlite3-session-store': async () => fastifySessionServer(await sqliteStore()),
  'SQLite: better-auth': async () => betterAuthServer({ database: await sqlite() }, { migrate: true }),
})
