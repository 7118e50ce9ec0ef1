// @ts-check
// The tables: one for each store and client, and the rows of each. The first row is the floor.
import { mariadbEngine, missing, postgresEngine, redisEngine, sqliteEngine } from './engines.mjs'

/**
 * @typedef {object} Row
 * @property {string} label
 * @property {string} name the entry of the file
 * @property {string} file
 * @property {boolean} [keepsNothing] all is in the cookie: nothing can be ended at the server
 * @property {boolean} [everywhere] it has a logout-everywhere
 * @property {number} [sessions] how many the size of one is taken from, unless those of the table
 * @property {boolean} [own] by hand, or coatcheck: not a peer
 * @property {boolean} [quick] part of the short run
 *
 * @typedef {object} Table
 * @property {string} title
 * @property {string} floor what the first row is
 * @property {() => string | null} missing
 * @property {(() => Promise<import('./engines.mjs').Engine>) | null} engine
 * @property {readonly Row[]} rows
 * @property {readonly string[]} absent who has no row, and why
 */

/** @type {readonly Row[]} */
const TOKENS = [{ label: 'JWT, jose', name: 'JWT, jose', file: 'tokens.mjs', keepsNothing: true, quick: true }]

/** @param {string} file @param {string} prefix @returns {(label: string, name?: string, more?: Partial<Row>) => Row} */
const rowOf =
  (file, prefix = '') =>
  (label, name = label, more = {}) => ({ label, name: prefix + name, file, ...more })
const memory = rowOf('memory.mjs')
const redis = rowOf('redis.mjs')
const postgres = rowOf('sql.mjs', 'PostgreSQL: ')
const mariadb = rowOf('sql.mjs', 'MariaDB: ')
const sqlite = rowOf('sql.mjs', 'SQLite: ')

const ours = { own: true, everywhere: true, quick: true }
const quick = { quick: true }
const inCookie = { keepsNothing: true }

const NO_STORE = 'koa-session: its documentation names no store for it'
const IN_MEMORY_TABLE = 'iron-session asks no store: the table of memory has it'

/** @type {Record<string, Table>} */
export const TABLES = {
  memory: {
    title: 'In the memory of the process',
    floor: 'a Map',
    missing: () => null,
    engine: null,
    rows: [
      memory('by hand', 'floor', ours),
      memory('coatcheck', 'coatcheck', ours),
      memory('Express alone, by hand', 'express alone', { own: true, quick: true }),
      memory('coatcheck in Express', 'express, coatcheck', { own: true, quick: true }),
      memory('express-session', 'express-session', quick),
      memory('@fastify/session', '@fastify/session', quick),
      memory('koa-session', 'koa-session', quick),
      // Its memory is a list that it looks through.
      memory('better-auth', 'better-auth', { everywhere: true, sessions: 200 }),
      memory('iron-session', 'iron-session', inCookie),
      ...TOKENS,
    ],
    absent: [],
  },
  'node-redis': {
    title: 'node-redis',
    floor: 'a GET',
    missing: () => missing('redis'),
    engine: redisEngine,
    rows: [
      redis('by hand', 'raw GET', ours),
      redis('coatcheck', 'coatcheck', ours),
      redis('express-session, connect-redis', undefined, quick),
      redis('@fastify/session, connect-redis'),
      redis('koa-session, store by hand', 'koa-session'),
      redis('better-auth, secondaryStorage', 'better-auth', { everywhere: true }),
      ...TOKENS,
    ],
    absent: [IN_MEMORY_TABLE],
  },
  ioredis: {
    title: 'ioredis',
    floor: 'a GET',
    missing: () => missing('redis'),
    engine: redisEngine,
    rows: [
      redis('by hand', 'raw GET, ioredis', ours),
      redis('coatcheck', 'coatcheck, ioredis', ours),
      redis('koa-session, store by hand', 'koa-session, ioredis', quick),
      ...TOKENS,
    ],
    absent: [
      'express-session and @fastify/session: connect-redis takes node-redis',
      'better-auth: as with node-redis',
      IN_MEMORY_TABLE,
    ],
  },
  postgresql: {
    title: 'PostgreSQL (pg)',
    floor: 'a prepared SELECT',
    missing: () => missing('postgresql'),
    engine: postgresEngine,
    rows: [
      postgres('by hand', 'prepared SELECT', ours),
      postgres('coatcheck', 'coatcheck', ours),
      postgres('express-session, connect-pg-simple', undefined, quick),
      postgres('@fastify/session, connect-pg-simple'),
      postgres('better-auth', 'better-auth', { everywhere: true }),
      ...TOKENS,
    ],
    absent: [NO_STORE, IN_MEMORY_TABLE],
  },
  mariadb: {
    title: 'MariaDB (mysql2)',
    floor: 'a prepared SELECT',
    missing: () => missing('mariadb'),
    engine: mariadbEngine,
    rows: [
      mariadb('by hand', 'prepared SELECT', ours),
      mariadb('coatcheck', 'coatcheck', ours),
      mariadb('express-session, express-mysql-session', undefined, quick),
      mariadb('@fastify/session, express-mysql-session'),
      mariadb('better-auth', 'better-auth', { everywhere: true }),
      ...TOKENS,
    ],
    absent: [NO_STORE, IN_MEMORY_TABLE],
  },
  sqlite: {
    title: 'SQLite',
    floor: 'a prepared SELECT',
    missing: () => null,
    engine: sqliteEngine,
    rows: [
      sqlite('by hand', 'prepared SELECT', ours),
      sqlite('coatcheck', 'coatcheck', ours),
      sqlite('express-session, better-sqlite3-session-store', undefined, quick),
      sqlite('@fastify/session, better-sqlite3-session-store'),
      sqlite('better-auth', 'better-auth', { everywhere: true }),
      ...TOKENS,
    ],
    absent: [NO_STORE, IN_MEMORY_TABLE],
  },
}

/** The peers in the table of the page, by the beginning of their label. */
export const PEERS = ['express-session', '@fastify/session', 'better-auth', 'JWT, jose']

/** The rows of the chart. */
export const CHART = [
  'by hand',
  'coatcheck',
  'Express alone, by hand',
  'coatcheck in Express',
  'express-session',
].flatMap(name => TABLES.memory?.rows.filter(({ label }) => label === name) ?? [])
