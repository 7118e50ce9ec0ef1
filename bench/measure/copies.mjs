// @ts-check
// The stores whose growth is measured, each with its own way to hold a million sessions: a login for each would take an
// hour.
import { randomBytes } from 'node:crypto'
import { mysqlPool, nodeRedis, pgPool, storeOver } from '../clients.mjs'
import { mariadbEngine, postgresEngine, redisEngine, sqliteEngine } from '../engines.mjs'
import { openSqlite } from '../sqlite.mjs'

/**
 * What is copied: a session that the library itself wrote, `count` times. With `first` the copies are of as many other
 * users from that ID on, otherwise all of its own user.
 * @typedef {{ sessions: any, like: any, count: number, first?: number }} Copies
 *
 * @typedef {object} Filled
 * @property {any} store
 * @property {(copies: Copies) => Promise<void>} copy
 * @property {() => Promise<void>} settle does what the server does by itself within a minute
 * @property {() => Promise<void>} stop
 */

const nothing = async () => {}

/** @returns {Promise<Filled>} */
async function memory() {
  return {
    store: await storeOver('Memory', { maxRecords: 10_000_000 }),
    async copy({ sessions, like, count, first }) {
      for (let n = 0; n < count; n += 1) {
        const id = first === undefined ? like.user.id : first + n
        await sessions.create({ user: { id, name: `user ${id}` } })
      }
    },
    settle: nothing,
    stop: nothing,
  }
}

/** How many sessions one script copies. */
const CHUNK = 1000
const COPY = `
local head, data = string.match(redis.call('GET', KEYS[1]), '^([^\\n]*) %S+ %S+(\\n.*)$')
local life = redis.call('PTTL', KEYS[1])
for i = 1, #ARGV, 3 do
  local keys, member, user = 'coatcheck:{' .. ARGV[i] .. '}:', ARGV[i + 1], ARGV[i + 2]
  redis.call('SET', keys .. member, head .. ' ' .. user .. ' user%20' .. user .. data, 'PX', life)
  redis.call('ZADD', keys .. 'u:' .. user, redis.call('TIME')[1] * 1000 + 43200000, member)
  redis.call('PEXPIRE', keys .. 'u:' .. user, 86400000)
end`

/** @returns {Promise<Filled>} */
async function redis() {
  const { url, stop } = await redisEngine()
  const client = await nodeRedis(url)
  const store = await storeOver('Redis', client)
  return {
    store,
    async copy({ like, count, first }) {
      const from = `coatcheck:{${like.key.slice(0, 3)}}:${like.key.slice(3)}`
      for (let n = 0; n < count; n += CHUNK) {
        const users = Array.from({ length: Math.min(CHUNK, count - n) }, (_, at) =>
          String(first === undefined ? like.user.id : first + n + at),
        )
        const copies = users.flatMap(user => [store.shard(user), randomBytes(32).toString('base64url'), user])
        await client.eval(COPY, { keys: [from], arguments: copies })
      }
    },
    settle: nothing,
    async stop() {
      client.destroy()
      await stop()
    },
  }
}

/**
 * @param {(text: string) => Promise<any[]>} query
 * @param {(from: number, to: number) => string} numbers a table with a column n
 * @param {string} key a new key
 * @returns {Filled['copy']}
 */
const copyRows =
  (query, numbers, key) =>
  async ({ like, count, first }) => {
    if (count === 0) return
    /** @type {(table: string, where: string, cells: Record<string, string>) => Promise<void>} */
    const copy = async (table, where, cells) => {
      const [row] = await query(`SELECT * FROM ${table} WHERE ${where}`)
      // SQLite has a row for a user only after a password change.
      if (row === undefined) return
      const columns = Object.keys(row)
      const values = columns.map(column => cells[column] ?? column)
      const from = `${table} CROSS JOIN ${numbers(first ?? 1, (first ?? 1) + count - 1)}`
      await query(
        `INSERT INTO ${table} (${columns.join(', ')}) SELECT ${values.join(', ')} FROM ${from} WHERE ${where}`,
      )
    }
    const spread = { expires_at: 'expires_at + n % 100000' }
    const ofOther = first === undefined ? {} : { user_id: 'n' }
    await copy('coatcheck_sessions', `id = '${like.key}'`, { id: key, ...ofOther, ...spread })
    if (first !== undefined)
      await copy('coatcheck_sessions_users', `user_id = '${like.user.id}'`, { ...ofOther, ...spread })
  }

/** @returns {Promise<Filled>} */
async function postgresql() {
  const { url, query, stop } = await postgresEngine()
  const pool = await pgPool(url)
  return {
    store: await storeOver('Postgres', pool),
    copy: copyRows(
      query,
      (from, to) => `generate_series(${from}, ${to}) AS n`,
      `'AAA' || md5(random()::text || n) || substr(md5(random()::text), 1, 11)`,
    ),
    settle: async () => void (await query('VACUUM ANALYZE')),
    async stop() {
      await pool.end()
      await stop()
    },
  }
}

/** @returns {Promise<Filled>} */
async function mariadb() {
  const { env, stop } = await mariadbEngine()
  const url = String(env(0).SQL_URL)
  const pool = await mysqlPool(url)
  const query = async (/** @type {string} */ text) => (await pool.query(text))[0]
  return {
    store: await storeOver('Mysql', pool),
    copy: copyRows(
      query,
      (from, to) => `(SELECT seq AS n FROM seq_${from}_to_${to}) AS numbers`,
      `concat('AAA', md5(concat(rand(), n)), substr(md5(rand()), 1, 11))`,
    ),
    settle: async () => void (await query('ANALYZE TABLE coatcheck_sessions, coatcheck_sessions_users')),
    async stop() {
      await pool.end()
      await stop()
    },
  }
}

/** @returns {Promise<Filled>} */
async function sqlite() {
  const { env, stop } = await sqliteEngine()
  const { SQLITE_DRIVER, SQLITE_FILE } = env(0)
  const database = await openSqlite(String(SQLITE_DRIVER), String(SQLITE_FILE))
  const store = await storeOver('Sqlite', database)
  const query = async (/** @type {string} */ text) => {
    const statement = database.prepare(text)
    return text.startsWith('SELECT') ? statement.all() : statement.run()
  }
  const copy = copyRows(
    query,
    (from, to) =>
      `(WITH RECURSIVE numbers (n) AS (SELECT ${from} UNION ALL SELECT n + 1 FROM numbers WHERE n < ${to}) SELECT n FROM numbers)`,
    'hex(randomblob(23))',
  )
  return {
    store,
    async copy(copies) {
      // With the usual 2 MB a million rows in the order of random keys would be written many times over.
      database.exec('PRAGMA cache_size = -500000')
      await copy(copies)
      database.exec('PRAGMA cache_size = -2000; PRAGMA wal_checkpoint(TRUNCATE)')
    },
    settle: nothing,
    async stop() {
      database.close()
      await stop()
    },
  }
}

/** By the names of `TABLES`. @type {Record<string, () => Promise<Filled>>} */
export const FILLED = { memory, redis, postgresql, mariadb, sqlite }
