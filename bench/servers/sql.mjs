// @ts-check
import { mysqlPool, pgPool, storeOver } from '../clients.mjs'
import { betterAuthServer } from './better-auth.mjs'
import { serversOn } from './frameworks.mjs'
import { byHand } from './handlers.mjs'
import { serve } from './serve.mjs'

const url = process.env.SQL_URL ?? ''
/** @returns {Promise<any>} */
async function sqlite(driver = process.env.SQLITE_DRIVER ?? '') {
  const { openSqlite } = await import('../sqlite.mjs')
  return openSqlite(driver, process.env.SQLITE_FILE ?? ':memory:')
}
/** What connect-pg-simple, express-mysql-session and better-sqlite3-session-store make of a pool or a file. */
async function pgStore() {
  const [{ default: connect }, { default: expressSession }, pool] = await Promise.all([
    import('connect-pg-simple'),
    import('express-session'),
    pgPool(url),
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
    mysqlPool(url),
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

/** Statements without a result answer nothing. @param {any} database */
const prepared = database => {
  const all = Object.fromEntries(Object.entries(STATEMENTS).map(([name, text]) => [name, database.prepare(text)]))
  return statements((name, values) => (name === 'select' ? all[name].get(...values) : all[name].run(...values)))
}

/** @param {any} pool @param {Parameters<typeof statements>[0]} ask */
async function byHandOver(pool, ask) {
  await pool.query(TABLE)
  await pool.query(INDEX)
  return byHand(statements(ask))
}

const KINDS = {
  postgres: {
    async byHand() {
      const pool = await pgPool(url)
      const texts = Object.fromEntries(Object.entries(STATEMENTS).map(([name, text]) => [name, numbered(text)]))
      return byHandOver(pool, async (name, values) => {
        const query = { name, text: /** @type {string} */ (texts[name]), values: /** @type {any[]} */ (values) }
        return (await pool.query(query)).rows[0]
      })
    },
    store: async () => storeOver('Postgres', await pgPool(url)),
    peerStore: pgStore,
    'better-auth': async () => betterAuthServer({ database: await pgPool(url) }, { migrate: true }),
  },
  mysql: {
    async byHand() {
      const pool = await mysqlPool(url)
      return byHandOver(pool, async (name, values) => {
        const [rows] = await pool.execute(STATEMENTS[name], /** @type {any[]} */ (values))
        return /** @type {any} */ (rows)[0]
      })
    },
    store: async () => storeOver('Mysql', await mysqlPool(url)),
    peerStore: mysqlStore,
    'better-auth': async () => betterAuthServer({ database: await mysqlPool(url) }, { migrate: true }),
  },
  sqlite: {
    async byHand() {
      const database = await sqlite()
      database.exec(`${TABLE}; ${INDEX}`)
      return byHand(prepared(database))
    },
    store: async () => storeOver('Sqlite', await sqlite()),
    peerStore: sqliteStore,
    // It knows this driver by what it is.
    'better-auth': async () => betterAuthServer({ database: await sqlite('node:sqlite') }, { migrate: true }),
  },
}
const kind = KINDS[url.startsWith('postgres') ? 'postgres' : url === '' ? 'sqlite' : 'mysql']
await serve({ ...serversOn(kind), 'better-auth': kind['better-auth'] })
