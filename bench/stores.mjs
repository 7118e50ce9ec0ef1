// @ts-check
// The tables: one for each store, and the rows of each. The first row is the floor.
import { mariadbEngine, missing, postgresEngine, redisEngine, sqliteEngine } from './engines.mjs'

/**
 * @typedef {object} Row
 * @property {string} label also what the server is called in its file
 * @property {string} file
 * @property {boolean} [keepsNothing] all is in the cookie: nothing can be ended at the server
 * @property {boolean} [everywhere] it has a logout-everywhere
 * @property {boolean} [isSlow] no part of the short run
 *
 * @typedef {object} Table
 * @property {string} title
 * @property {string} floor what the first row is
 * @property {() => string | null} missing
 * @property {(() => Promise<import('./engines.mjs').Engine>) | null} engine
 * @property {readonly Row[]} rows
 */

const everywhere = { everywhere: true }

/** Like beside like: who has a framework stands beside ours in that framework. @param {string} file @param {readonly Row[]} more @returns {readonly Row[]} */
const rowsOf = (file, more) => [
  { label: 'by hand', file, ...everywhere },
  { label: 'coatcheck', file, ...everywhere },
  { label: 'coatcheck in Express', file },
  { label: 'express-session', file },
  { label: 'coatcheck in Fastify', file },
  { label: '@fastify/session', file },
  { label: 'JWT, jose', file: 'tokens.mjs', keepsNothing: true },
  ...more,
]
const koa = (/** @type {string} */ file) => ({ label: 'koa-session', file, isSlow: true })
const betterAuth = (/** @type {string} */ file) => ({ label: 'better-auth', file, ...everywhere, isSlow: true })

/** @param {string} title @param {Table['engine']} engine @param {Table['missing']} missing @returns {Table} */
const sqlTable = (title, engine, missing) => ({
  ...{ title, engine, missing, floor: 'a prepared SELECT' },
  rows: rowsOf('sql.mjs', [betterAuth('sql.mjs')]),
})

/** @type {Record<string, Table>} */
export const TABLES = {
  memory: {
    title: 'memory of the process',
    floor: 'a Map',
    missing: () => null,
    engine: null,
    rows: rowsOf('memory.mjs', [
      { label: 'Express alone', file: 'memory.mjs' },
      koa('memory.mjs'),
      { label: 'iron-session', file: 'memory.mjs', keepsNothing: true, isSlow: true },
    ]),
  },
  redis: {
    title: 'Redis (node-redis)',
    floor: 'a GET',
    missing: () => missing('redis'),
    engine: redisEngine,
    rows: rowsOf('redis.mjs', [koa('redis.mjs'), betterAuth('redis.mjs')]),
  },
  postgresql: sqlTable('PostgreSQL (pg)', postgresEngine, () => missing('postgresql')),
  mariadb: sqlTable('MariaDB (mysql2)', mariadbEngine, () => missing('mariadb')),
  sqlite: sqlTable('SQLite', sqliteEngine, () => null),
}
