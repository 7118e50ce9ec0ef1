// @ts-check
// Channels for examples/watch.mjs. What one of them loses, `every` finds.
/** @import { Channel } from './watch.mjs' */

/**
 * Of node-redis, whose client connects and subscribes again by itself.
 * @param {{ publish(name: string, text: string): Promise<unknown>, duplicate(): any }} client @returns {Channel}
 */
export const redisChannel = (client, name = 'ended_sessions') => ({
  publish: text => client.publish(name, text),
  async subscribe(listener) {
    const own = client.duplicate().on('error', () => {})
    await own.connect()
    await own.subscribe(name, listener)
  },
})

/**
 * Of a pool of pg. One of its connections listens; another takes its place a second after it broke.
 * @param {{ query(sql: string, values: string[]): Promise<unknown>, connect(): Promise<any> }} pool @returns {Channel}
 */
export const postgresChannel = (pool, name = 'ended_sessions') => ({
  publish: text => pool.query('SELECT pg_notify($1, $2)', [name, text]),
  async subscribe(listener) {
    const again = () => setTimeout(() => this.subscribe(listener).catch(again), 1000).unref()
    const own = await pool.connect()
    own.on('notification', (/** @type {{ payload: string }} */ { payload }) => listener(payload))
    const broken = new Promise(resolve => own.on('error', resolve))
    broken.then(error => own.release(error))
    await own.query(`LISTEN ${name}`).catch((/** @type {Error} */ error) => {
      own.emit('error', error) // a standby takes no LISTEN: each try would keep a connection of the pool
      throw error
    })
    broken.then(again)
  },
})

/**
 * A table that each node reads every 250 ms: for SQLite
 * `CREATE TABLE ended_sessions (id INTEGER PRIMARY KEY AUTOINCREMENT, hints TEXT NOT NULL)`, for MariaDB with
 * `BIGINT` and `AUTO_INCREMENT`.
 * @param {(sql: string, values: unknown[]) => Promise<any>} query answers rows @returns {Channel}
 */
export const tableChannel = (query, every = 250) => ({
  publish: text => query('INSERT INTO ended_sessions (hints) VALUES (?)', [text]),
  async subscribe(listener) {
    const [{ newest }] = await query('SELECT COALESCE(MAX(id), 0) AS newest FROM ended_sessions', [])
    let seen = new Set([Number(newest)])
    // The last hundred are read again: one with a lower number may be committed after one with a higher.
    const from = () => Math.max(Number(newest), Math.max(...seen) - 100)
    const read = async () => {
      const rows = await query('SELECT id, hints FROM ended_sessions WHERE id > ?', [from()])
      for (const { id, hints } of rows) if (!seen.has(Number(id))) listener(hints)
      if (rows.length > 0) seen = new Set(rows.map((/** @type {{ id: unknown }} */ { id }) => Number(id)))
    }
    const again = () => setTimeout(() => read().then(again, again), every).unref()
    again()
    setInterval(() => query('DELETE FROM ended_sessions WHERE id <= ?', [from()]).catch(() => {}), 60_000).unref()
  },
})
