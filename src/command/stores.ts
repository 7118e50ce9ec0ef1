// Opens the store that a URL names, with a driver of the operator's.
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
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
import { Failure, messageOf, UsageError } from './errors.ts'
import type { StoreKind, StoreUrl } from './store-url.ts'

export type SqlStore = PostgresStore | MysqlStore | SqliteStore
/** User IDs are text: so a command reads those of every application, and prints them exactly. */
export type Sessions = SessionManager<Record<string, unknown>, 'string'>

export interface OpenStore {
  readonly store: Store
  /** The same if it has tables. */
  readonly sql: SqlStore | null
  facts(): Promise<Facts>
  close(): unknown
}

/** A server's own words about itself. */
export interface Facts {
  readonly product: string
  readonly version: string
  /** Its clock, epoch ms; `null` if it has none of its own. */
  readonly now: number | null
  /** Redis' answer to INFO. */
  readonly info?: string
}

interface Opening {
  readonly url: StoreUrl
  readonly given: Given
  /** How long a connection may take, in ms. */
  readonly timeout: number
  /** Whether a file that is not there may be made. */
  readonly makes: boolean
}

const ignore = () => {}
/** How many calls go out at once: invalidate-all ends several users at a time. */
const CONNECTIONS = 10

/** Runs a constructor of a store; an error about its options becomes one about ours. */
function withOptions<T>(make: () => T): T {
  try {
    return make()
  } catch (error) {
    const [, option, rest] = /^(table|schema|prefix): (.*)$/s.exec((error as Error).message) ?? []
    if (!(error instanceof TypeError) || option === undefined) throw error
    throw new UsageError(`--${option}: ${rest}`)
  }
}

function sqlOptions(given: Given): { table?: string; schema?: string } {
  const [table, schema] = [given.get('table'), given.get('schema')]
  return { ...(table !== undefined && { table }), ...(schema !== undefined && { schema }) }
}

/** The DDL of a store; `null` if none is needed. */
export function ddlOf(kind: StoreKind, given: Given): string | null {
  if (kind === 'redis' || kind === 'redis-cluster') return null
  const Sql = { postgres: PostgresStore, mysql: MysqlStore, sqlite: SqliteStore }[kind]
  return withOptions(() => Sql.ddl(sqlOptions(given)))
}

/** Waits for a connection; one that is not made in time, or not at all, is given up. */
async function reach<T>(opening: Promise<T>, timeout: number, giveUp: () => unknown): Promise<T> {
  const late = wait(timeout, undefined, { ref: false }).then(() => {
    throw new Failure(`no answer within ${timeout} ms`)
  })
  try {
    return await Promise.race([opening, late])
  } catch (error) {
    // Not waited for: a server that does not answer may not say good-bye either.
    Promise.resolve().then(giveUp).catch(ignore)
    throw error
  } finally {
    late.catch(ignore)
  }
}

function redisStore(client: ConstructorParameters<typeof RedisStore>[0], { given }: Opening): Store {
  const prefix = given.get('prefix')
  const options = {
    ...(prefix !== undefined && { prefix }),
    allowEviction: given.has('allow-eviction'),
    singleSlot: given.has('single-slot'),
  }
  return withOptions(() => new RedisStore(client, options))
}

async function factsOfRedis(send: (command: string) => Promise<unknown>): Promise<Facts> {
  const [info, time] = [String(await send('INFO')), (await send('TIME')) as (string | Buffer)[]]
  const [, name, version = ''] = /^(valkey|redis)_version:(\S+)/m.exec(info) ?? []
  const now = Number(time[0]) * 1000 + Number(time[1]) / 1000
  return { product: name === 'valkey' ? 'Valkey' : 'Redis', version, now, info }
}

/** By a statement that asks for `version` and `now`. */
const factsOfSql = ({ version, now }: Record<string, unknown> = {}, product: string): Facts => ({
  product,
  version: String(version),
  now: now == null ? null : Number(now),
})

async function withNodeRedis(driver: typeof redis, opening: Opening): Promise<OpenStore> {
  const { url, timeout } = opening
  const { username, password } = url
  // Nothing reconnects: a command that failed is repeated by its operator, who knows of it.
  const socket = { connectTimeout: timeout, reconnectStrategy: false } as const
  const tls = url.tls && { tls: true as const }
  const client =
    url.kind === 'redis'
      ? driver.createClient({ url: url.url, socket })
      : driver.createCluster({
          rootNodes: url.nodes.map(node => ({ socket: { ...node, ...tls } })),
          defaults: { ...(username && { username }), ...(password && { password }), socket: { ...socket, ...tls } },
        })
  client.on('error', ignore)
  await reach(client.connect() as Promise<unknown>, timeout, () => client.destroy())
  const store = redisStore(client, opening)
  const { sendCommand } = client as { sendCommand(...args: unknown[]): Promise<unknown> }
  const send = (command: string) =>
    sendCommand.apply(client, url.kind === 'redis' ? [[command]] : [undefined, true, [command]])
  const close = () => (client.isOpen ? client.destroy() : undefined)
  return { store, sql: null, facts: () => factsOfRedis(send), close }
}

async function withIoredis(driver: typeof ioredis, opening: Opening): Promise<OpenStore> {
  const { url, timeout } = opening
  const { username, password } = url
  const options = {
    lazyConnect: true,
    connectTimeout: timeout,
    retryStrategy: () => null,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
  }
  const redisOptions = {
    ...options,
    ...(username && { username }),
    ...(password && { password }),
    ...(url.tls && { tls: {} }),
  }
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
  const connecting = client
    .connect()
    .then(() => client.call('PING'))
    .catch((error: unknown) => {
      throw reason ?? error
    })
  await reach(connecting, timeout, () => client.disconnect())
  const facts = () => factsOfRedis(command => client.call(command))
  return { store: redisStore(client, opening), sql: null, facts, close: () => client.disconnect() }
}

async function withPg(driver: typeof pg, { url, given, timeout }: Opening): Promise<OpenStore> {
  const pool = new driver.Pool({
    ...(url.url !== '' && { connectionString: url.url }),
    connectionTimeoutMillis: timeout,
    max: CONNECTIONS,
    fallback_application_name: 'coatcheck',
  } as pg.PoolConfig)
  pool.on('error', ignore)
  const client = await reach(pool.connect(), timeout, () => pool.end())
  client.release()
  const store = withOptions(() => new PostgresStore(pool, sqlOptions(given)))
  const facts = async () => {
    const { rows } = await pool.query(
      `SELECT current_setting('server_version') AS version, extract(epoch FROM clock_timestamp()) * 1000 AS now`,
    )
    return factsOfSql(rows[0], 'PostgreSQL')
  }
  return { store, sql: store, facts, close: () => pool.end() }
}

async function withMysql(driver: typeof mysql, { url, given, timeout }: Opening): Promise<OpenStore> {
  const pool = driver.createPool({ uri: url.url, connectTimeout: timeout, connectionLimit: CONNECTIONS })
  const connection = await reach(pool.getConnection(), timeout, () => pool.end())
  connection.release()
  const store = withOptions(() => new MysqlStore(pool, sqlOptions(given)))
  const facts = async () => {
    const [rows] = await pool.query('SELECT VERSION() AS version, UNIX_TIMESTAMP(NOW(3)) * 1000 AS now')
    return factsOfSql((rows as Record<string, unknown>[])[0], 'MySQL')
  }
  return { store, sql: store, facts, close: () => pool.end() }
}

/** The common part of better-sqlite3, libsql and `DatabaseSync`. */
type Database = ConstructorParameters<typeof SqliteStore>[0] & { close(): unknown }
type DatabaseClass = new (file: string) => Database

function withSqlite(Database: DatabaseClass, { url, given }: Opening): OpenStore {
  const database = new Database(url.url)
  const store = withOptions(() => new SqliteStore(database, sqlOptions(given)))
  const facts = async () =>
    factsOfSql(database.prepare('SELECT sqlite_version() AS version').all()[0] as Record<string, unknown>, 'SQLite')
  return { store, sql: store, facts, close: () => database.close() }
}

/** The same, once it is known that its binary is for this Node.js: that shows only when a database is opened. */
function loaded(Database: DatabaseClass): DatabaseClass {
  new Database(':memory:').close()
  return Database
}

interface Driver {
  readonly name: string
  /** Makes the argument of `open` from the module. @throws if it cannot be used, such as a binary for another Node.js */
  readonly load?: (module: never) => unknown
  readonly open: (driver: never, opening: Opening) => OpenStore | Promise<OpenStore>
}

const REDIS: readonly Driver[] = [
  { name: 'redis', open: withNodeRedis },
  { name: 'ioredis', open: withIoredis },
]
const DRIVERS: Readonly<Record<StoreKind, readonly Driver[]>> = {
  redis: REDIS,
  'redis-cluster': REDIS,
  postgres: [{ name: 'pg', open: withPg }],
  mysql: [{ name: 'mysql2/promise', open: withMysql }],
  sqlite: [
    { name: 'better-sqlite3', load: loaded, open: withSqlite },
    { name: 'libsql', load: loaded, open: withSqlite },
    { name: 'node:sqlite', load: (module: { DatabaseSync: DatabaseClass }) => module.DatabaseSync, open: withSqlite },
  ],
}

// Drivers are the operator's: looked for in the current folder, as an import of the application would be,
// then beside the package itself (npx -p coatcheck -p pg).
const PLACES = [join(process.cwd(), 'from-here.js'), import.meta.url]

/** A module that is installed here, or `null`. One that lacks a package of its own is broken, not missing. */
function load(name: string): unknown {
  for (const place of PLACES)
    try {
      return createRequire(place)(name)
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
  const { kind, url, name: where } = opening.url
  if (kind === 'sqlite' && !opening.makes && !existsSync(url))
    throw new Failure('there is no such file: coatcheck migrate makes one')
  const broken: string[] = []
  for (const { name, load: prepare, open } of DRIVERS[kind]) {
    let driver: unknown
    try {
      driver = load(name)
      if (driver !== null && prepare !== undefined) driver = prepare(driver as never)
    } catch (error) {
      broken.push(`${name} cannot be loaded (${messageOf(error)})`)
      continue
    }
    if (driver !== null) return open(driver as never, opening)
  }
  if (broken.length > 0) throw new Failure(broken.join('; '))
  const [first, ...others] = DRIVERS[kind]
    .map(({ name }) => name.replace('/promise', ''))
    .filter(name => !name.startsWith('node:'))
  const or = others.length === 0 ? '' : ` (or ${others.join(', ')})`
  const product = where.replace(/ (?:at|in) .*/s, '')
  throw new Failure(`${product} needs a driver that is not installed here: npm i ${first}${or}`)
}
