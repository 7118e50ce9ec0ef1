// @ts-check
// The clients of the databases and our store over each, as all servers and measurements open them. A driver is loaded where
// it is needed, so that one that is missing costs its row alone.
import { coatcheck } from './servers/serve.mjs'

// As many as one event loop keeps busy: all get the same. They stay open while the others have their turn: a round that
// began with connecting would measure that.
const CONNECTIONS = 10

/** @param {string} url @param {object} [options] @returns {Promise<any>} */
export async function nodeRedis(url, options) {
  const { createClient } = await import('redis')
  const client = createClient({ url, ...options })
  // A client without a listener ends the process when its server goes away.
  client.on('error', () => {})
  await client.connect()
  return client
}
/** @param {string} url @param {object} [options] @returns {Promise<any>} */
export async function pgPool(url, options) {
  const { default: pg } = await import('pg')
  const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS, idleTimeoutMillis: 0, ...options })
  pool.on('error', () => {})
  return pool
}
/** @param {string} url @returns {Promise<any>} */
export async function mysqlPool(url) {
  const { default: mysql } = await import('mysql2/promise')
  return mysql.createPool({ uri: url, connectionLimit: CONNECTIONS, idleTimeout: 3_600_000 })
}

/**
 * A store of ours, with its tables.
 * @param {'Memory' | 'Redis' | 'Postgres' | 'Mysql' | 'Sqlite'} kind @param {unknown} client @param {object} [options]
 * @returns {Promise<any>}
 */
export async function storeOver(kind, client, options) {
  const stores = await coatcheck(`stores/${kind.toLowerCase()}.js`)
  const store = new stores[`${kind}Store`](client, options)
  await store.migrate?.()
  return store
}
