// @ts-check
import { betterAuthServer } from './better-auth.mjs'
import { expressSessionServer, fastifySessionServer } from './frameworks.mjs'
import { byHand, coatcheckHandler, hashed, withHeaders } from './handlers.mjs'
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

/**
 * The same, with one SELECT for all that is read in a turn of the event loop.
 * @param {import('./handlers.mjs').ByHand} service
 * @param {(ids: string[]) => Promise<any[]>} select rows with id, user_id and name
 * @returns {import('./handlers.mjs').ByHand}
 */
function together(service, select) {
  /** @type {{ id: string, resolve: (user: unknown) => void, reject: (error: unknown) => void }[]} */
  let readers = []
  const send = async () => {
    const own = readers
    readers = []
    try {
      const rows = new Map((await select(own.map(({ id }) => id))).map(row => [row.id, row]))
      for (const { id, resolve } of own) resolve(userIn(rows.get(id)))
    } catch (error) {
      for (const { reject } of own) reject(error)
    }
  }
  const get = (/** @type {string} */ id) =>
    new Promise((resolve, reject) => {
      if (readers.push({ id, resolve, reject }) === 1) setImmediate(send)
    })
  return { ...service, get }
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
  const service = statements(
    async (name, values) =>
      (await pool.query({ name, text: /** @type {string} */ (texts[name]), values: /** @type {any[]} */ (values) }))
        .rows[0],
  )
  const text = 'SELECT id, user_id, name FROM floor WHERE id = ANY($1) AND expires > $2'
  const select = async (/** @type {string[]} */ ids) =>
    (await pool.query({ name: 'each', text, values: [ids, Date.now()] })).rows
  return { service, together: () => together(service, select) }
}

async function mysqlByHand() {
  const pool = await mysqlPool()
  await pool.query(TABLE)
  await pool.query(INDEX)
  const run = async (/** @type {string} */ text, /** @type {any[]} */ values) =>
    /** @type {any} */ ((await pool.execute(text, values))[0])
  const service = statements(async (name, values) => (await run(STATEMENTS[name], values))[0])
  // Of fixed sizes, since each is prepared. The last ID fills the places that are left.
  const sizes = [1, 4, 16, 64]
  const select = async (/** @type {string[]} */ ids) => {
    const size = sizes.find(size => size >= ids.length) ?? ids.length
    const places = Array.from({ length: size }, (_, at) => ids[Math.min(at, ids.length - 1)])
    const marks = places.map(() => '?').join(', ')
    return run(`SELECT id, user_id, name FROM floor WHERE id IN (${marks}) AND expires > ?`, [...places, Date.now()])
  }
  return { service, together: () => together(service, select) }
}

await serve({
  'PostgreSQL: prepared SELECT': async () => byHand((await pgByHand()).service),
  'PostgreSQL: same headers': async () => withHeaders(byHand((await pgByHand()).service)),
  'PostgreSQL: hashed': async () => withHeaders(byHand(hashed((await pgByHand()).service))),
  'PostgreSQL: together': async () => withHeaders(byHand(hashed((await pgByHand()).together()))),
  'PostgreSQL: coatcheck': async () => coatcheckHandler(await postgres()),
  'PostgreSQL: coatcheck, no visit': async () => coatcheckHandler(await postgres(), { withoutVisit: true }),
  'PostgreSQL: express-session, connect-pg-simple': async () => expressSessionServer(await pgStore()),
  'PostgreSQL: @fastify/session, connect-pg-simple': async () => fastifySessionServer(await pgStore()),
  'PostgreSQL: better-auth': async () => betterAuthServer({ database: await pgPool() }, { migrate: true }),

  'MariaDB: prepared SELECT': async () => byHand((await mysqlByHand()).service),
  'MariaDB: same headers': async () => withHeaders(byHand((await mysqlByHand()).service)),
  'MariaDB: hashed': async () => withHeaders(byHand(hashed((await mysqlByHand()).service))),
  'MariaDB: together': async () => withHeaders(byHand(hashed((await mysqlByHand()).together()))),
  'MariaDB: coatcheck': async () => coatcheckHandler(await mariadb()),
  'MariaDB: coatcheck, no visit': async () => coatcheckHandler(await mariadb(), { withoutVisit: true }),
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
