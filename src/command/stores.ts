// Opens the store that a URL names, with a driver of the operator's.
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { SessionManager, Store } from 'coatcheck'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { RedisStore } from 'coatcheck/stores/redis'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import type ioredis from 'ioredis'
import type mysql from 'mysql2/promise'
import type pg from 'pg'
import type * as redis from 'redis'
import type { Given } from './arguments.ts'
import { Failure, messageOf } from './errors.ts'
import type { StoreKind, StoreUrl } from './store-url.ts'
import type { TimeLimit } from './time-limit.ts'

export type SqlStore = PostgresStore | MysqlStore | SqliteStore
/** User IDs are text: so a command reads those of every application, and prints them exactly. */
export type Sessions = SessionManager<Record<string, unknown>, 'string'>

/** A server's own words about itself. */
export interface Facts {
  readonly product: string
  readonly version: string
  /** Its clock, epoch ms; `null` if it has none of its own. PostgreSQL and MySQL answer text. */
  readonly now: number | string | null
  /** Redis' answer to INFO. */
  readonly info?: string
}

/** What a driver makes of a URL. */
interface Connection {
  /** What the store takes. */
  readonly client: object
  readonly ready: Promise<unknown>
  readonly facts: () => Promise<Facts>
  readonly close: () => unknown
}

export interface OpenStore extends Pick<Connection, 'facts' | 'close'> {
  readonly store: Store
  /** The same if it has tables. */
  readonly sql: SqlStore | null
}

interface Opening {
  readonly url: StoreUrl
  readonly given: Given
  readonly limit: TimeLimit
  /** Whether a file that is not there may be made. */
  readonly makes: boolean
}

const ignore = () => {}
/** How many calls go out at once: invalidate-all ends several users at a time. */
const CONNECTIONS = 10

const sqlStoreOf = (kind: StoreKind) =>
  kind === 'redis' || kind === 'redis-cluster'
    ? null
    : { postgres: PostgresStore, mysql: MysqlStore, sqlite: SqliteStore }[kind]

/** Those of these options that are given: stores have the same names. */
const optionsOf = (given: Given, ...names: readonly ('table' | 'schema' | 'prefix')[]): Record<string, string> =>
  Object.fromEntries(names.flatMap(name => (given.has(name) ? [[name, given.get(name)!]] : [])))

/** The DDL of a store; `null` if none is needed. */
export const ddlOf = (kind: StoreKind, given: Given): string | null =>
  sqlStoreOf(kind)?.ddl(optionsOf(given, 'table', 'schema')) ?? null

const redisFacts = (send: (command: string) => Promise<unknown>) => async () => {
  const [info, time] = [String(await send('INFO')), (await send('TIME')) as (string | Buffer)[]]
  const [, name, version = ''] = /^(valkey|redis)_version:(\S+)/m.exec(info) ?? []
  const now = Number(time[0]) * 1000 + Number(time[1]) / 1000
  return { product: name === 'valkey' ? 'Valkey' : 'Redis', version, now, info }
}

/** The user and the password, if the URL has them. */
const loginOf = ({ username, password }: StoreUrl) => ({ ...(username && { username }), ...(password && { password }) })

function withNodeRedis(driver: typeof redis, url: StoreUrl, timeout: number): Connection {
  // Nothing reconnects: a command that failed is repeated by its operator, who knows of it.
  const socket = { connectTimeout: timeout, reconnectStrategy: false } as const
  const tls = url.tls && { tls: true as const }
  const client =
    url.kind === 'redis'
      ? driver.createClient({ url: url.url, socket })
      : driver.createCluster({
          rootNodes: url.nodes.map(node => ({ socket: { ...node, ...tls } })),
          defaults: { ...loginOf(url), socket: { ...socket, ...tls } },
        })
  client.on('error', ignore)
  const { sendCommand } = client as { sendCommand(...args: unknown[]): Promise<unknown> }
  const facts = redisFacts(command =>
    sendCommand.apply(client, url.kind === 'redis' ? [[command]] : [undefined, true, [command]]),
  )
  return { client, ready: client.connect(), facts, close: () => client.isOpen && client.destroy() }
}

function withIoredis(driver: typeof ioredis, url: StoreUrl, timeout: number): Connection {
  const options = {
    lazyConnect: true,
    connectTimeout: timeout,
    retryStrategy: () => null,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
  }
  const redisOptions = { ...options, ...loginOf(url), ...(url.tls && { tls: {} }) }
  const client =
    url.kind === 'redis'
      ? new driver.Redis(url.url, options)
      : new driver.Cluster([...url.nodes], { lazyConnect: true, clusterRetryStrategy: () => null, redisOptions })
  // The promise says that the connection is closed; this says why.
  let reason: unknown
  client.on('error', (error: Error & { lastNodeError?: unknown }) => {
    reason ??= error.lastNodeError ?? error
  })
  // A wrong password is told by an event alone, and by each command.
  const ready = client
    .connect()
    .then(() => client.call('PING'))
    .catch((error: unknown) => {
      throw reason ?? error
    })
  return { client, ready, facts: redisFacts(command => client.call(command)), close: () => client.disconnect() }
}

function withPg(driver: typeof pg, { url }: StoreUrl, timeout: number): Connection {
  const client = new driver.Pool({
    ...(url !== '' && { connectionString: url }),
    connectionTimeoutMillis: timeout,
    max: CONNECTIONS,
    fallback_application_name: 'coatcheck',
  } as pg.PoolConfig)
  client.on('error', ignore)
  const facts = async () => {
    const { rows } = await client.query<Facts>(
      `SELECT 'PostgreSQL' AS product, current_setting('server_version') AS version,
         extract(epoch FROM clock_timestamp()) * 1000 AS now`,
    )
    return rows[0]!
  }
  return { client, ready: client.connect().then(one => one.release()), facts, close: () => client.end() }
}

function withMysql(driver: typeof mysql, { url }: StoreUrl, timeout: number): Connection {
  const client = driver.createPool({ uri: url, connectTimeout: timeout, connectionLimit: CONNECTIONS })
  const facts = async () => {
    const [rows] = await client.query(
      `SELECT IF(VERSION() LIKE '%MariaDB%', 'MariaDB', 'MySQL') AS product, VERSION() AS version,
         UNIX_TIMESTAMP(NOW(3)) * 1000 AS now`,
    )
    return (rows as Facts[])[0]!
  }
  return { client, ready: client.getConnection().then(one => one.release()), facts, close: () => client.end() }
}

/** The common part of better-sqlite3, libsql and `DatabaseSync`. */
type Database = ConstructorParameters<typeof SqliteStore>[0] & { close(): unknown }
type DatabaseClass = new (file: string) => Database
type SqliteDriver = DatabaseClass | { DatabaseSync: DatabaseClass }

const open = (driver: SqliteDriver, file: string): Database =>
  new ('DatabaseSync' in driver ? driver.DatabaseSync : driver)(file)

function withSqlite(driver: SqliteDriver, { url }: StoreUrl): Connection {
  const client = open(driver, url)
  const facts = async () =>
    client.prepare("SELECT 'SQLite' AS product, sqlite_version() AS version, NULL AS now").all()[0] as Facts
  return { client, ready: Promise.resolve(), facts, close: () => client.close() }
}

type Connect = (driver: never, url: StoreUrl, timeout: number) => Connection

const REDIS = { redis: withNodeRedis, ioredis: withIoredis }
/** The drivers of each store by the names of their modules, the first choice first. */
const DRIVERS: Readonly<Record<StoreKind, Readonly<Record<string, Connect>>>> = {
  redis: REDIS,
  'redis-cluster': REDIS,
  postgres: { pg: withPg },
  mysql: { 'mysql2/promise': withMysql },
  sqlite: { 'better-sqlite3': withSqlite, libsql: withSqlite, 'node:sqlite': withSqlite },
}

// Drivers are the operator's: looked for in the current folder, as an import of the application would be,
// then beside the package itself (npx -p coatcheck -p pg).
const STARTS = [join(process.cwd(), 'from-here.js'), import.meta.url]

/** A module that is installed here, or `null`. One that lacks a package of its own is broken, not missing. */
function load(name: string): unknown {
  for (const start of STARTS)
    try {
      return createRequire(start)(name)
    } catch (error) {
      const { code, message } = error as { code?: unknown; message?: unknown }
      const isMissing = code === 'MODULE_NOT_FOUND' && String(message).includes(`'${name}'`)
      if (!isMissing && code !== 'ERR_UNKNOWN_BUILTIN_MODULE') throw error
    }
  return null
}

/**
 * Opens the store with the first driver that is installed and can be used.
 * @throws Failure that says what to install, or an error of the driver, whose message may contain the password
 */
export async function openStore(opening: Opening): Promise<OpenStore> {
  const { url, limit } = opening
  if (url.kind === 'sqlite' && !opening.makes && !existsSync(url.url))
    throw new Failure('there is no such file: coatcheck migrate makes one')
  const drivers = Object.entries(DRIVERS[url.kind])
  const broken: string[] = []
  for (const [name, connect] of drivers) {
    let driver: unknown
    try {
      driver = load(name)
      // A binary that is for another Node.js shows only when a database is opened.
      if (driver !== null && url.kind === 'sqlite') open(driver as SqliteDriver, ':memory:').close()
    } catch (error) {
      broken.push(`${name} cannot be loaded (${messageOf(error)})`)
      continue
    }
    if (driver !== null) return storeOver(connect(driver as never, url, limit.left), opening)
  }
  if (broken.length > 0) throw new Failure(broken.join('; '))
  const [first, ...others] = drivers.map(([name]) => name.replace('/promise', '')).filter(name => !/^node:/.test(name))
  const or = others.length === 0 ? '' : ` (or ${others.join(', ')})`
  throw new Failure(`${url.product} needs a driver that is not installed here: npm i ${first}${or}`)
}

/** Waits for a connection; one that is not made in time, or not at all, is given up. */
async function storeOver(
  { client, ready, facts, close }: Connection,
  { url, given, limit }: Opening,
): Promise<OpenStore> {
  try {
    await limit.ask('connection', ready)
    const Sql = sqlStoreOf(url.kind)
    const sql = Sql && new Sql(client as never, optionsOf(given, 'table', 'schema'))
    const inRedis = { allowEviction: given.has('allow-eviction'), singleSlot: given.has('single-slot') }
    const store = sql ?? new RedisStore(client as never, { ...optionsOf(given, 'prefix'), ...inRedis })
    return { store, sql, facts, close }
  } catch (error) {
    // Not waited for: a server that does not answer may not say good-bye either.
    Promise.resolve().then(close).catch(ignore)
    throw error
  }
}
