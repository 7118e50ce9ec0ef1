// @ts-check
import mysql from 'mysql2/promise'
import pg from 'pg'
import { coatcheck } from './servers/serve.mjs'

/** @param {string} kind @param {string} url @param {number} connections @returns {Promise<{ store: any, end: () => Promise<void> }>} */
export async function openStore(kind, url, connections) {
  const { PostgresStore } = await coatcheck('stores/postgres.js')
  const { MysqlStore } = await coatcheck('stores/mysql.js')
  const pool = /** @type {any} */ (
    kind === 'PostgreSQL'
      ? new pg.Pool({ connectionString: url, max: connections, idleTimeoutMillis: 0 })
      : mysql.createPool({ uri: url, connectionLimit: connections, idleTimeout: 3_600_000 })
  )
  return { store: kind === 'PostgreSQL' ? new PostgresStore(pool) : new MysqlStore(pool), end: () => pool.end() }
}
