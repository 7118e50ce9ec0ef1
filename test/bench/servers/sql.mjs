// @ts-check
import connectPgSimple from 'connect-pg-simple'
import expressMysqlSession from 'express-mysql-session'
import expressSession from 'express-session'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { expressSessionServer, fastifySessionServer } from './frameworks.mjs'
import { coatcheckHandler, newId } from './handlers.mjs'
import { coatcheck, idOf, send, serve, userOf } from './serve.mjs'

const url = process.env.SQL_URL ?? ''
// As many as one event loop keeps busy: all servers get the same.
const CONNECTIONS = 10

const pgPool = () => new pg.Pool({ connectionString: url, max: CONNECTIONS })
const mysqlPool = () => mysql.createPool({ uri: url, connectionLimit: CONNECTIONS })
const stores = () => coatcheck('stores/sql.js')

/** What express-mysql-session and connect-pg-simple make of a pool. */
const pgStore = () =>
  new (connectPgSimple(expressSession))({ pool: pgPool(), createTableIfMissing: true, pruneSessionInterval: false })
const mysqlStore = () =>
  new /** @type {any} */ (expressMysqlSession(expressSession))({ clearExpired: false }, mysqlPool())

/**
 * One prepared SELECT by hand.
 * @param {(id: string | undefined) => unknown} select
 * @param {(id: string, user: { id: number, name: string }) => unknown} insert
 * @returns {import('./serve.mjs').Handler}
 */
const floor = (select, insert) => async (request, response) => {
  if (request.method === 'POST') {
    const id = newId()
    await insert(id, userOf(request.url))
    response.setHeader('Set-Cookie', `session_id=${id}; HttpOnly`)
    return send(response, '"ok"')
  }
  const row = /** @type {any} */ (await select(idOf(request)))
  send(response, JSON.stringify(row ? { id: Number(row.user_id), name: row.name } : null))
}
const TABLE =
  'CREATE TABLE IF NOT EXISTS floor (id VARCHAR(64) PRIMARY KEY, user_id BIGINT NOT NULL, name VARCHAR(256) NOT NULL, expires BIGINT NOT NULL)'
const inHalfAnHour = () => Date.now() + 1_800_000

await serve({
  async 'PostgreSQL: prepared SELECT'() {
    const pool = pgPool()
    await pool.query(TABLE)
    return floor(
      async id => {
        const values = [id, Date.now()]
        const text = 'SELECT user_id, name FROM floor WHERE id = $1 AND expires > $2'
        return (await pool.query({ name: 'floor', text, values })).rows[0]
      },
      (id, user) => pool.query('INSERT INTO floor VALUES ($1, $2, $3, $4)', [id, user.id, user.name, inHalfAnHour()]),
    )
  },
  async 'PostgreSQL: coatcheck'() {
    const store = new (await stores()).PostgresStore(pgPool())
    await store.migrate()
    return coatcheckHandler(store)
  },
  'PostgreSQL: express-session, connect-pg-simple': () => expressSessionServer(pgStore()),
  async 'PostgreSQL: @fastify/session, connect-pg-simple'() {
    return fastifySessionServer(pgStore())
  },
  async 'MariaDB: prepared SELECT'() {
    const pool = mysqlPool()
    await pool.query(TABLE)
    return floor(
      async id => {
        const text = 'SELECT user_id, name FROM floor WHERE id = ? AND expires > ?'
        const [rows] = await pool.execute(text, [id, Date.now()])
        return /** @type {any[]} */ (rows)[0]
      },
      (id, user) => pool.execute('INSERT INTO floor VALUES (?, ?, ?, ?)', [id, user.id, user.name, inHalfAnHour()]),
    )
  },
  async 'MariaDB: coatcheck'() {
    const store = new (await stores()).MysqlStore(mysqlPool())
    await store.migrate()
    return coatcheckHandler(store)
  },
  async 'MariaDB: express-session, express-mysql-session'() {
    const store = mysqlStore()
    await store.onReady()
    return expressSessionServer(store)
  },
  async 'MariaDB: @fastify/session, express-mysql-session'() {
    const store = mysqlStore()
    await store.onReady()
    return fastifySessionServer(store)
  },
  async 'SQLite: prepared SELECT'() {
    const database = await sqlite()
    database.exec(TABLE)
    const insert = database.prepare('INSERT INTO floor VALUES (?, ?, ?, ?)')
    const select = database.prepare('SELECT user_id, name FROM floor WHERE id = ? AND expires > ?')
    return floor(
      id => select.get(id, Date.now()),
      (id, user) => insert.run(id, user.id, user.name, inHalfAnHour()),
    )
  },
  async 'SQLite: coatcheck'() {
    const store = new (await stores()).SqliteStore(await sqlite())
    await store.migrate()
    return coatcheckHandler(store)
  },
})

/** @returns {Promise<any>} */
async function sqlite() {
  const { openSqlite } = await import('../sqlite.mjs')
  return openSqlite(process.env.SQLITE_DRIVER ?? '', ':memory:')
}
