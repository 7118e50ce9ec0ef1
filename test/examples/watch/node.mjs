// @ts-check
// A node of a service with open streams, one for each request for /open. STORE_URL; EVERY, in ms.
import { createServer } from 'node:http'
import { SessionManager } from 'coatcheck'
import { postgresChannel, redisChannel, tableChannel } from '../../../examples/channels.mjs'
import { openStore } from '../../../examples/server/store.mjs'
import { watchSessions } from '../../../examples/watch.mjs'

const url = process.env.STORE_URL ?? ''
const { store } = await openStore(url)

/** @type {Record<string, () => Promise<import('../../../examples/watch.mjs').Channel>>} */
const CHANNELS = {
  async redis() {
    const { createClient } = await import('redis')
    return redisChannel(await createClient({ url }).connect())
  },
  async postgres() {
    const { default: pg } = await import('pg')
    return postgresChannel(new pg.Pool({ connectionString: url }))
  },
  async mysql() {
    const { createPool } = await import('mysql2/promise')
    const pool = createPool({ uri: url })
    await pool.query(
      'CREATE TABLE IF NOT EXISTS ended_sessions (id BIGINT AUTO_INCREMENT PRIMARY KEY, hints TEXT NOT NULL)',
    )
    return tableChannel(async (sql, values) => (await pool.query(sql, values))[0])
  },
  async sqlite() {
    const { default: Database } = await import('libsql')
    const database = new Database(url.slice('sqlite:'.length))
    database.exec('PRAGMA busy_timeout = 5000')
    database.exec(
      'CREATE TABLE IF NOT EXISTS ended_sessions (id INTEGER PRIMARY KEY AUTOINCREMENT, hints TEXT NOT NULL)',
    )
    return tableChannel(async (sql, values) => {
      const statement = database.prepare(sql)
      return sql.startsWith('SELECT') ? statement.all(...values) : statement.run(...values)
    })
  },
}
const channel = await CHANNELS[url.split(':')[0] ?? '']?.()

const { onEvent, start, watch } = watchSessions({ channel, every: Number(process.env.EVERY) })
const sessions = new SessionManager({ store, onEvent, limit: { max: 2 }, storeTimeout: '1m' })
await start(sessions)

/** @type {Record<string, (secret: any, user: string) => Promise<unknown>>} */
const endpoints = {
  login: async (_, user) => (await sessions.create({ user: { id: BigInt(user), name: 'ada' } })).secret,
  logout: secret => sessions.destroy(secret),
  everywhere: (_, user) => sessions.invalidateUser(BigInt(user)),
  revoke: async (secret, user) => sessions.revoke(BigInt(user), (await sessions.get(secret))?.key ?? ''),
  renew: secret => sessions.regenerate(secret),
}

const server = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://node')
  const { authorization = '' } = request.headers
  try {
    if (pathname !== '/open') {
      response.end(`${await endpoints[pathname.slice(1)]?.(authorization, searchParams.get('user') ?? '')}`)
      return
    }
    const session = await sessions.get(/** @type {any} */ (authorization), { touch: false })
    if (session === null) throw new Error('log in')
    const forget = watch(session, () => response.end())
    response.on('close', forget).flushHeaders()
  } catch (error) {
    response.writeHead(500).end(`${error}`)
  }
}).listen(0, '127.0.0.1', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  console.log(`http://127.0.0.1:${port}`)
})
