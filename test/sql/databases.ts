// One database for each dialect of SQL, through one driver: what a statement says is asked of each dialect once.
import { type D1Client, D1Store } from 'coatcheck/stores/d1'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { type SqliteDatabase, SqliteStore } from 'coatcheck/stores/sqlite'
import type mysql from 'mysql2/promise'
import type pg from 'pg'
import { afterAll, beforeAll } from 'vitest'
import { inTurn } from '../../src/custom-store/connections.ts'
import { describeEngine, type EngineName } from '../support/services/engines.ts'
import { type MariadbDatabase, sharedMariadb } from '../support/services/mariadb.ts'
import { type PostgresDatabase, sharedPostgres } from '../support/services/postgres.ts'
import { openSqlite, type SqliteDriver, sqliteFile } from '../support/services/sqlite.ts'
import { started } from '../support/started.ts'
import { startD1 } from './d1.ts'
import { type Locks, locksOfMariadb, locksOfPostgres } from './locks.ts'
import { NOW } from './records.ts'

export type SqlStore = PostgresStore | MysqlStore | SqliteStore | D1Store

/** Sessions that one statement makes. */
interface Rows {
  readonly table?: string
  readonly count: number
  /** How their keys begin; what follows is their number. */
  readonly prefix?: string
  /** SQL, in which `n` is the number of the session. */
  readonly user?: string
  readonly expiresAt: string
}
export const keyOf = (number: number, prefix = '') => prefix + String(number).padStart(46 - prefix.length, '0')

export interface SqlDatabase {
  /** A store whose calls have time; its tables are yet to be made. */
  open(options?: { table?: string; schema?: string }): SqlStore
  /** The schema as the store prints it. */
  ddl(options: { table: string }): string
  run(sql: string): Promise<unknown>
  /** The first cell of the first row. */
  number(sql: string): Promise<number>
  fill(rows: Rows): Promise<unknown>
  /** Rows with an `n` from 1 to so many. */
  numbers(count: number): string
  /** How another process finds it. */
  readonly url: string
  /** Of other connections, at a server. */
  readonly locks: Locks
  readonly pool: unknown
  stop(): unknown
}

/** The differences between the databases. */
interface Parts extends Pick<SqlDatabase, 'open' | 'ddl' | 'run' | 'number' | 'numbers' | 'stop'> {
  readonly url?: string
  readonly pool?: unknown
  readonly locks?: Locks
  /** The type of text, and a number of so many digits as text. */
  readonly text: string
  digits(many: number): string
  readonly joined?: (first: string, second: string) => string
}

const COLUMNS = `id, kind, namespace, user_id, user_name, password_version, data, version, write_id, created_at, seen_at,
  expires_at, absolute_expires_at`
const NONE = undefined as never

function database(parts: Parts): SqlDatabase {
  const { text, digits, joined = (first, second) => `${first} || ${second}` } = parts
  return {
    url: '',
    locks: NONE,
    pool: NONE,
    ...parts,
    open: options => inTurn([parts.open(options)]),
    fill({ table = 'coatcheck_sessions', count, prefix = '', user, expiresAt }) {
      const who = user === undefined ? 'NULL, NULL' : `CAST(${user} AS ${text}), 'ada'`
      const key = joined(`'${prefix}'`, digits(46 - prefix.length))
      return parts.run(`INSERT INTO ${table} (${COLUMNS})
        SELECT ${key}, 'session', '', ${who}, NULL, '{}', 1, 'writeId0', ${NOW}, ${NOW}, ${expiresAt},
          (${expiresAt}) + 90000000
          FROM ${parts.numbers(count)}`)
    },
  }
}

const first = (row: unknown) => Number(Object.values(row as object)[0])

export async function openPostgres() {
  const server = await sharedPostgres()
  const pool = server.pool({ max: 20 })
  return postgresOn(pool, { url: server.url(), stop: server.stop })
}

export const postgresOn = (pool: pg.Pool, more: { url?: string; stop(): unknown }) =>
  database({
    ...more,
    pool,
    open: options => new PostgresStore(pool, options),
    ddl: PostgresStore.ddl,
    run: sql => pool.query(sql),
    number: async sql => first((await pool.query(sql)).rows[0]),
    numbers: count => `generate_series(1, ${count}) AS n`,
    text: 'text',
    digits: many => `lpad(n::text, ${many}, '0')`,
    locks: locksOfPostgres(pool),
  })

export async function openMariadb() {
  const server = await sharedMariadb()
  const pool: mysql.Pool = server.pool({ connectionLimit: 20 })
  return database({
    url: server.url(),
    pool,
    open: options => new MysqlStore(pool, options),
    ddl: MysqlStore.ddl,
    run: sql => pool.query(sql),
    number: async sql => first(((await pool.query(sql)) as any)[0][0]),
    numbers: count => `(SELECT seq AS n FROM seq_1_to_${count}) AS numbers`,
    text: 'char',
    digits: many => `lpad(n, ${many}, '0')`,
    joined: (one, other) => `concat(${one}, ${other})`,
    locks: locksOfMariadb(pool),
    stop: server.stop,
  })
}

const SQLITE = {
  numbers: (count: number) =>
    `(WITH RECURSIVE m(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM m WHERE n < ${count}) SELECT n FROM m)`,
  text: 'text',
  digits: (many: number) => `printf('%0${many}d', n)`,
}

type Through<T> = (given: T) => T
const asItIs = <T>(given: T) => given

/** `through`: what the store gets in place of the connection. */
export async function openFile(driver: SqliteDriver = 'libsql', through: Through<SqliteDatabase> = asItIs) {
  const { file, remove } = sqliteFile()
  const connection = openSqlite(driver, file)
  return database({
    ...SQLITE,
    url: file,
    pool: connection,
    open: options => new SqliteStore(through(connection), options),
    ddl: SqliteStore.ddl,
    run: async sql => connection.exec(sql),
    number: async sql => first(connection.prepare(sql).get()),
    stop: () => [connection.close(), remove()],
  })
}

export async function openD1(through: Through<D1Client> = asItIs) {
  const { database: binding, run, stop } = await startD1()
  return database({
    ...SQLITE,
    pool: binding,
    open: options => new D1Store(through(binding), options),
    ddl: D1Store.ddl,
    run,
    number: async sql => first((await binding.batch([binding.prepare(sql).bind()]))[0]!.results[0]),
    stop,
  })
}

const DATABASES = {
  PostgreSQL: { engine: 'postgresql', open: openPostgres },
  MariaDB: { engine: 'mariadb', open: openMariadb },
  SQLite: { engine: 'libsql', open: openFile },
  D1: { engine: 'd1', open: openD1 },
} satisfies Record<string, { engine: EngineName; open(): Promise<SqlDatabase> }>
export type DatabaseName = keyof typeof DATABASES

export const SERVERS = ['PostgreSQL', 'MariaDB'] as const
/** One of each dialect; that of D1 is SQLite's. */
export const DIALECTS = [...SERVERS, 'SQLite'] as const
export const ALL = [...DIALECTS, 'D1'] as const

/** Declares the tests once for each of these databases; each has tables, unless they are made by the tests. */
export function onEach(
  names: readonly DatabaseName[],
  title: string,
  tests: (get: () => SqlDatabase, name: DatabaseName) => void,
): void {
  for (const name of names)
    describeEngine(DATABASES[name].engine, `${title} ${name}`, () => {
      const opened = started(async () => {
        const database = await DATABASES[name].open()
        await database.open().migrate()
        return database
      })
      tests(opened, name)
    })
}

/** A server of a test file, whose tables are made, and a pool of its superuser. */
interface Served<Server, Pool> {
  readonly server: Server
  readonly admin: Pool
  readonly locks: Locks
}

function served<Pool, Server extends { pool(): Pool; stop(): Promise<void> }>(
  start: () => Promise<Server>,
  storeOf: (pool: Pool) => SqlStore,
  locksOf: (pool: Pool) => Locks,
) {
  const own = {} as Served<Server, Pool>
  beforeAll(async () => {
    const server = await start()
    const admin = server.pool()
    Object.assign(own, { server, admin, locks: locksOf(admin) })
    await storeOf(admin).migrate()
  })
  afterAll(() => own.server?.stop())
  return own
}

/** For the tests of a block: it is there once they run. */
export const postgresOf = <Server extends PostgresDatabase>(start: () => Promise<Server>): Served<Server, pg.Pool> =>
  served(start, pool => new PostgresStore(pool), locksOfPostgres)
export const mariadbOf = <Server extends MariadbDatabase>(start: () => Promise<Server>): Served<Server, mysql.Pool> =>
  served(start, pool => new MysqlStore(pool), locksOfMariadb)
