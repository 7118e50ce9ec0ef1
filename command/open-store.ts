// Opens the store that a URL names, with a driver of the operator's.
import { existsSync } from 'node:fs'
import type { Store } from 'coatcheck'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore, type SqlStoreOptions } from 'coatcheck/stores/postgres'
import { RedisStore } from 'coatcheck/stores/redis'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import type ioredis from 'ioredis'
import type mysql from 'mysql2/promise'
import type pg from 'pg'
import type * as redis from 'redis'
import { withDriver } from './drivers.ts'
import { Failure, UsageError } from './exit.ts'
import { type Given, numberOf } from './options.ts'
import type { StoreKind, StoreUrl } from './store-url.ts'

export type SqlStore = PostgresStore | MysqlStore | SqliteStore

export interface OpenStore {
  readonly store: Store
  /** The same where it has tables. */
  readonly sql: SqlStore | null
  close(): unknown
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
/** How many calls go out at once; invalidateAll ends several users at a time. */
const CONNECTIONS = 10

/** Runs a constructor of a store; what it says of its options is told of ours. */
function withOptions<T>(make: () => T): T {
  try {
    return make()
  } catch (error) {
    const [, option, rest] = /^(table|schema|prefix): (.*)$/s.exec((error as Error).message) ?? []
    if (!(error instanceof TypeError) || option === undefined) throw error
    throw new UsageError(`--${option === 'prefix' ? 'key-prefix' : option}: ${rest}`)
  }
}

function sqlOptions(given: Given): SqlStoreOptions {
  const [table, schema] = [given.get('table'), given.get('schema')]
  return {
    ...(table !== undefined && { table }),
    ...(schema !== undefined && { schema }),
  }
}

/** The DDL of a store; `null` where none is needed. */
export function schemaOf(kind: StoreKind, given: Given): string | null {
  if (kind === 'redis' || kind === 'redis-cluster') return null
  const Sql = { postgres: PostgresStore, mysql: MysqlStore, sqlite: SqliteStore }[kind]
  return withOptions(() => Sql.ddl(sqlOptions(given)))
}

/** Waits for a connection; one that is not made in time, or not at all, is given up. */
async function reach<T>(opening: Promise<T>, timeout: number, giveUp: () => unknown): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Failure(`no answer within ${timeout} ms`)), timeout)
  })
  try {
    return await Promise.race([opening, late])
  } catch (error) {
    // Not waited for: what does not answer may not say good-bye either.
    Promise.resolve().then(giveUp).catch(ignore)
    throw error
  } finally {
    clearTimeout(timer)
  }
}

function redisStore(client: ConstructorParameters<typeof RedisStore>[0], { given }: Opening): Store {
  const prefix = given.get('key-prefix')
  return withOptions(
    () =>
      new RedisStore(client, {
        ...(prefix !== undefined && { prefix }),
        allowEviction: given.has('allow-eviction'),
        waitReplicas: numberOf(given, 'wait-replicas', 100) ?? 0,
      }),
  )
}

async function withNodeRedis(driver: typeof redis, opening: Opening): Promise<OpenStore> {
  const { url, timeout } = opening
  // Nothing reconnects: a command that failed is repeated by its operator, who knows of it.
  const socket = { connectTimeout: timeout, reconnectStrategy: false } as const
  const { username, password } = url
  const client =
    url.kind === 'redis'
      ? driver.createClient({ url: url.url, socket })
      : driver.createCluster({
          rootNodes: url.nodes.map(node => ({ socket: { ...node, ...(url.tls && { tls: true as const }) } })),
          defaults: {
            ...(username && { username }),
            ...(password && { password }),
            socket: { ...socket, ...(url.tls && { tls: true as const }) },
          },
        })
  client.on('error', ignore)
  await reach(client.connect() as Promise<unknown>, timeout, () => client.destroy())
  const store = redisStore(client, opening)
  return { store, sql: null, close: () => (client.isOpen ? client.destroy() : undefined) }
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
  // The promise says that the connection is closed; why, this says.
  let reason: unknown
  client.on('error', (error: Error & { lastNodeError?: unknown }) => {
    reason ??= error.lastNodeError ?? error
  })
  const connecting = client.connect().catch((error: unknown) => {
    throw reason ?? error
  })
  await reach(connecting, timeout, () => client.disconnect())
  // A wrong password is told by an event alone, and by each command.
  await reach(client.call('PING') as Promise<unknown>, timeout, () => client.disconnect()).catch(error => {
    throw reason ?? error
  })
  return { store: redisStore(client, opening), sql: null, close: () => client.disconnect() }
}

async function withPg(driver: typeof pg, opening: Opening): Promise<OpenStore> {
  const pool = new driver.Pool({
    ...(opening.url.url !== '' && { connectionString: opening.url.url }),
    connectionTimeoutMillis: opening.timeout,
    max: CONNECTIONS,
    fallback_application_name: 'coatcheck',
  } as pg.PoolConfig)
  pool.on('error', ignore)
  const client = await reach(pool.connect(), opening.timeout, () => pool.end())
  client.release()
  const store = withOptions(() => new PostgresStore(pool, sqlOptions(opening.given)))
  return { store, sql: store, close: () => pool.end() }
}

async function withMysql(driver: typeof mysql, opening: Opening): Promise<OpenStore> {
  const pool = driver.createPool({
    uri: opening.url.url,
    connectTimeout: opening.timeout,
    connectionLimit: CONNECTIONS,
  })
  const connection = await reach(pool.getConnection(), opening.timeout, () => pool.end())
  connection.release()
  const store = withOptions(() => new MysqlStore(pool, sqlOptions(opening.given)))
  return { store, sql: store, close: () => pool.end() }
}

/** What better-sqlite3, libsql and `DatabaseSync` have in common. */
type Database = ConstructorParameters<typeof SqliteStore>[0] & { close(): unknown }
type DatabaseClass = new (file: string) => Database

const withSqlite =
  (classOf: (driver: never) => DatabaseClass) =>
  (driver: unknown, { url, given }: Opening): OpenStore => {
    const Database = classOf(driver as never)
    try {
      // Where the binary was made for another Node.js, it shows now.
      new Database(':memory:').close()
    } catch (cause) {
      throw new Broken('broken', { cause })
    }
    const database = new Database(url.url)
    const store = withOptions(() => new SqliteStore(database, sqlOptions(given)))
    return { store, sql: store, close: () => database.close() }
  }
class Broken extends Error {
  override readonly message = ''
}

const DRIVERS: Readonly<
  Record<StoreKind, readonly (readonly [string, (driver: never, opening: Opening) => OpenStore | Promise<OpenStore>])[]>
> = {
  redis: [
    ['redis', withNodeRedis],
    ['ioredis', withIoredis],
  ],
  'redis-cluster': [
    ['redis', withNodeRedis],
    ['ioredis', withIoredis],
  ],
  postgres: [['pg', withPg]],
  mysql: [['mysql2/promise', withMysql]],
  sqlite: [
    ['better-sqlite3', withSqlite((driver: DatabaseClass) => driver)],
    ['libsql', withSqlite((driver: DatabaseClass) => driver)],
    ['node:sqlite', withSqlite((driver: { DatabaseSync: DatabaseClass }) => driver.DatabaseSync)],
  ],
}

/** @throws Failure or an error of the driver, whose message may contain the password */
export async function openStore(opening: Opening): Promise<OpenStore> {
  const { kind, url } = opening.url
  if (kind === 'sqlite' && !opening.makes && !existsSync(url))
    throw new Failure('there is no such file: coatcheck migrate makes one')
  const drivers = DRIVERS[kind].map(
    ([name, open]) => [name, (driver: unknown) => open(driver as never, opening)] as const,
  )
  return withDriver(opening.url.name.replace(/ (?:at|in) .*/s, ''), drivers, error => error instanceof Broken)
}
