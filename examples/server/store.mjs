// @ts-check
// STORE_URL names the store. The application owns the connection to the database: it opens it here and closes it in
// `close`. Drivers are imported when they are needed, so that only the one in use has to be installed.

/**
 * @typedef {object} OpenStore
 * @property {import('coatcheck').Store} store
 * @property {string} name for people, without credentials
 * @property {() => Promise<unknown>} close
 */

/** A mistake of the operator: the message is enough, a stack trace would only hide it. */
export class ConfigurationError extends Error {}

/** How long a database may take to answer at the start, in ms. */
const CONNECT_TIMEOUT = 5000

/** How long a database may take to answer at the end, in ms. */
const CLOSE_TIMEOUT = 2000

/**
 * @template T
 * @param {string} name the npm package
 * @param {() => Promise<T>} load
 * @returns {Promise<T>}
 */
async function driver(name, load) {
  try {
    return await load()
  } catch (error) {
    const { code } = /** @type {{ code?: string }} */ (error)
    if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') throw error
    throw new ConfigurationError(`This STORE_URL needs a driver that is not installed: npm i ${name}`)
  }
}

/**
 * @template T
 * @param {string} where
 * @param {Promise<T>} opening
 * @param {() => unknown} giveUp
 * @returns {Promise<T>}
 */
async function reach(where, opening, giveUp) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${CONNECT_TIMEOUT} ms`)), CONNECT_TIMEOUT)
  })
  try {
    return await /** @type {Promise<T>} */ (Promise.race([opening, late]))
  } catch (error) {
    await Promise.allSettled([giveUp()])
    const { message, code } = /** @type {{ message?: string, code?: string }} */ (error)
    throw new ConfigurationError(`${where} cannot be used: ${message || code}`)
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Waits for the answers that are under way, but not for a server that is away: a command in the queue of its client would
 * keep this process until the server is back.
 * @param {{ close(): Promise<unknown>, destroy(): unknown }} client
 */
function closeRedis(client) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      client.destroy()
      resolve(undefined)
    }, CLOSE_TIMEOUT)
    client
      .close()
      .finally(() => clearTimeout(timer))
      .then(resolve, reject)
  })
}

/** @param {string} text */
const hostOf = text => {
  try {
    return new URL(text).host
  } catch {
    throw new ConfigurationError('STORE_URL: this is not a URL')
  }
}

/** @type {Record<string, (url: string) => Promise<OpenStore>>} */
const OPENERS = {
  async memory() {
    const { MemoryStore } = await import('coatcheck/stores/memory')
    return { store: new MemoryStore(), name: 'memory', close: async () => {} }
  },

  async redis(url) {
    const name = `Redis at ${hostOf(url)}`
    const { createClient } = await driver('redis', () => import('redis'))
    const { RedisStore } = await import('coatcheck/stores/redis')
    const client = createClient({ url })
    // It reconnects by itself; the requests meanwhile are answered with 503.
    client.on('error', error => console.error(`${name}: ${error.message || error.code}`))
    await reach(name, client.connect(), () => client.destroy())
    return { store: new RedisStore(client), name, close: () => closeRedis(client) }
  },

  async 'redis+cluster'(url) {
    const [, credentials, hosts = ''] = /^redis\+cluster:\/\/(?:([^@/]*)@)?([^/]+)\/?$/.exec(url) ?? []
    const rootNodes = hosts.split(',').map(host => ({ url: `redis://${host}` }))
    if (!hosts) throw new ConfigurationError('STORE_URL: expected redis+cluster://host:port,host:port')
    const name = `Redis Cluster at ${hosts}`
    const [username = '', password = ''] = (credentials ?? '').split(':').map(decodeURIComponent)
    const { createCluster } = await driver('redis', () => import('redis'))
    const { RedisStore } = await import('coatcheck/stores/redis')
    const client = createCluster({
      rootNodes,
      defaults: { ...(username && { username }), ...(password && { password }) },
    })
    client.on('error', error => console.error(`${name}: ${error.message || error.code}`))
    await reach(name, client.connect(), () => client.destroy())
    return { store: new RedisStore(client), name, close: () => closeRedis(client) }
  },

  async postgres(url) {
    const name = `PostgreSQL at ${hostOf(url)}`
    const { default: pg } = await driver('pg', () => import('pg'))
    const { PostgresStore } = await import('coatcheck/stores/postgres')
    const pool = new pg.Pool({ connectionString: url, connectionTimeoutMillis: CONNECT_TIMEOUT })
    // An idle connection that the server closes is replaced; without a listener it would end the process.
    pool.on('error', error => console.error(`${name}: ${error.message}`))
    const store = new PostgresStore(pool)
    await reach(name, store.migrate(), () => pool.end())
    return { store, name, close: () => pool.end() }
  },

  async mysql(url) {
    const name = `MySQL at ${hostOf(url)}`
    const { createPool } = await driver('mysql2', () => import('mysql2/promise'))
    const { MysqlStore } = await import('coatcheck/stores/mysql')
    const pool = createPool({ uri: url, connectTimeout: CONNECT_TIMEOUT })
    const store = new MysqlStore(pool)
    await reach(name, store.migrate(), () => pool.end())
    return { store, name, close: () => pool.end() }
  },

  async sqlite(url) {
    const file = decodeURIComponent(url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, ''))
    if (!file) throw new ConfigurationError('STORE_URL: expected sqlite:FILE')
    const name = `SQLite in ${file}`
    const { SqliteStore } = await import('coatcheck/stores/sqlite')
    const database = await openSqlite(file).catch(error => {
      throw error instanceof ConfigurationError
        ? error
        : new ConfigurationError(`${name} cannot be used: ${error.message}`)
    })
    const store = new SqliteStore(database)
    await reach(name, store.migrate(), () => database.close())
    return { store, name, close: async () => database.close() }
  },
}
Object.assign(OPENERS, { rediss: OPENERS.redis, postgresql: OPENERS.postgres, mariadb: OPENERS.mysql })

/**
 * Node's own SQLite (from Node 22.5), else better-sqlite3, else libsql: whichever is there.
 * @param {string} file
 */
async function openSqlite(file) {
  // By variable names: the types of Node 20 know no node:sqlite, and none of the others has to be installed.
  /** @param {string} name */
  const load = name => import(name).catch(() => null)
  const node = await load('node:sqlite')
  if (node) return new node.DatabaseSync(file)
  const other = (await load('better-sqlite3')) ?? (await driver('better-sqlite3', () => import('libsql')))
  return new other.default(file)
}

/**
 * @param {string} url
 * @returns {Promise<OpenStore>}
 */
export async function openStore(url) {
  const scheme = /^([a-z+]+):/.exec(url)?.[1] ?? ''
  const open = Object.hasOwn(OPENERS, scheme) ? OPENERS[scheme] : undefined
  if (!open)
    throw new ConfigurationError(
      'STORE_URL: expected memory:, redis://, rediss://, redis+cluster://, postgres://, mysql:// or sqlite:FILE',
    )
  return open(url)
}
