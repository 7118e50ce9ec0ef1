import { quote } from '../../../src/text/quote.ts'
import { type Failure, notBegun, Refusal, unusable } from '../retry.ts'
import { bind, type Outcome, type Statement, type Value, type Values } from '../statement.ts'

/** A prepared statement, by the methods that the store uses. */
export interface SqliteStatement {
  // biome-ignore-start lint/suspicious/noExplicitAny: each driver has its own type of values
  run(...values: any[]): { changes: number | bigint }
  get(...values: any[]): unknown
  all(...values: any[]): unknown[]
  // biome-ignore-end lint/suspicious/noExplicitAny: each driver has its own type of values
}
/** What the store uses of better-sqlite3, libsql, node:sqlite (`DatabaseSync`) and bun:sqlite. */
export interface SqliteDatabase {
  prepare(sql: string): SqliteStatement
  exec(sql: string): unknown
}

/**
 * How long SQLite itself may wait for another process's lock, in ms: it blocks the event loop meanwhile. A transaction
 * may wait twice, for its beginning and for readers at its end.
 */
export const BUSY_TIMEOUT = 5
const BUSY = 5
const LOCKED = 6
const IO_ERROR = 10
const CODES: Readonly<Record<string, number>> = { SQLITE_BUSY: BUSY, SQLITE_LOCKED: LOCKED, SQLITE_IOERR: IO_ERROR }

/** The primary result code (https://sqlite.org/rescode.html), however the driver tells it. */
function resultCode(error: unknown): number | null {
  const { code, errcode, rawCode } = (error ?? {}) as { code?: unknown; errcode?: unknown; rawCode?: unknown }
  const numeric = typeof errcode === 'number' ? errcode : rawCode
  if (typeof numeric === 'number') return numeric & 0xff
  return typeof code === 'string' ? (CODES[code.split('_').slice(0, 2).join('_')] ?? null) : null
}

/** What an error of a SQLite driver says about the statement. */
export function sqliteFailure(error: unknown): Failure {
  const code = resultCode(error)
  return { outcome: code === IO_ERROR ? 'unknown' : 'not-applied', retry: code === BUSY || code === LOCKED }
}

const EXPECTED =
  'SqliteStore expects a connection of better-sqlite3, libsql, node:sqlite or bun:sqlite: an object with prepare() and exec() that answer at once'

/** A driver that calls back, or gives a promise, has the two methods too: it shows itself at the first call. */
const answersLater = (what: string) => unusable(`${EXPECTED}; ${what}`)

/** One connection with its statements, each prepared when it is first needed. */
export class SqliteConnection {
  readonly #database: SqliteDatabase
  readonly #statements = new Map<string, SqliteStatement>()
  readonly #unfinished = new Map<SqliteStatement, number>()
  #ready = false

  constructor(database: SqliteDatabase) {
    this.#database = database
  }

  /** Runs one statement, at once. One that writes belongs into a `transaction`. */
  readonly run = (statement: Statement, values: Values): Outcome => {
    const bound = bind(statement, values)
    return statement.text.startsWith('SELECT') ? this.#read(statement, bound) : this.#write(statement.text, bound)
  }

  /** `work` between BEGIN IMMEDIATE and COMMIT. Synchronous: nothing else gets in between. */
  transaction<T>(work: () => T): T {
    this.#refuseForeignTransaction()
    this.#finish()
    // Only these two can meet a lock of another connection, and `exec` leaves no statement open when it fails: libsql keeps
    // a prepared one that met SQLITE_BUSY running, and refuses every COMMIT meanwhile. DEFERRED would meet SQLITE_BUSY
    // half-way, which no timeout waits for.
    this.#database.exec('BEGIN IMMEDIATE')
    try {
      const value = work()
      this.#database.exec('COMMIT')
      return value
    } catch (error) {
      try {
        this.#database.exec('ROLLBACK')
      } catch {
        // SQLite rolled back by itself (a full disk, an I/O error).
      }
      throw error
    }
  }

  /** The first row that a SELECT finds, at once; `null` where there is none. */
  first({ text }: Statement, ...values: readonly Value[]): unknown[] | null {
    this.#finish()
    const statement = this.#statement(text, true)
    try {
      const row = statement.get(...values)
      return row === undefined || row === null ? null : cells(row)
    } catch (error) {
      throw this.#failed(text, statement, values, error)
    }
  }

  #read(statement: Statement, values: readonly Value[]): Outcome {
    if (statement.single) {
      const row = this.first(statement, ...values)
      return { rows: row === null ? [] : [row], changed: 0 }
    }
    this.#finish()
    const prepared = this.#statement(statement.text, true)
    try {
      const rows = prepared.all(...values)
      if (!Array.isArray(rows)) throw answersLater('its all() gives no rows')
      return { rows: rows.map(cells), changed: 0 }
    } catch (error) {
      throw this.#failed(statement.text, prepared, values, error)
    }
  }

  #write(sql: string, values: readonly Value[]): Outcome {
    const statement = this.#statement(sql, false)
    try {
      const changed = Number(statement.run(...values)?.changes)
      if (Number.isNaN(changed)) throw answersLater('its run() does not say how many rows it changed')
      return { rows: [], changed }
    } catch (error) {
      this.#statements.delete(sql)
      throw error
    }
  }

  // A statement that failed is dropped: in libsql it does not take new values and answers for the old ones. One that met
  // the lock of a rollback journal is not over there: it would keep the lock of the next one that reads, and with it this
  // connection at that state of the file.
  #failed(sql: string, statement: SqliteStatement, values: readonly Value[], error: unknown): unknown {
    this.#statements.delete(sql)
    if (sqliteFailure(error).retry) this.#unfinished.set(statement, values.length)
    return error
  }

  // Runs what was given up to its end, where it finds nothing: no row has '' for a key or a user. (A single NULL would
  // be an object of named parameters to libsql.)
  #finish(): void {
    if (this.#unfinished.size === 0) return
    for (const [statement, parameters] of this.#unfinished) {
      try {
        statement.all(...Array.from({ length: parameters }, () => ''))
      } catch (error) {
        if (sqliteFailure(error).retry) throw error
      }
      this.#unfinished.delete(statement)
    }
  }

  #prepareConnection(): void {
    // libsql ends the process when a closed connection is used.
    if ((this.#database as { open?: unknown }).open === false) throw notBegun('the connection is closed')
    if (this.#ready) return
    const answer = this.#database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT}`)
    if (has(answer, 'then')) {
      ;(answer as Promise<unknown>).then(undefined, () => {})
      throw answersLater('its exec() gives a promise')
    }
    this.#ready = true
  }

  // Our own transactions end before anybody else runs: one that is open belongs to the application, which may roll back.
  #refuseForeignTransaction(): void {
    this.#prepareConnection()
    const { inTransaction, isTransaction } = this.#database as { inTransaction?: unknown; isTransaction?: unknown }
    if (inTransaction === true || isTransaction === true)
      throw new Refusal('the connection is inside a transaction of the application', {
        outcome: 'not-applied',
        retry: true,
      })
  }

  #statement(sql: string, reads: boolean): SqliteStatement {
    this.#prepareConnection()
    let statement = this.#statements.get(sql)
    if (statement === undefined) {
      statement = this.#database.prepare(sql)
      if (!['run', 'get', 'all'].every(name => has(statement, name)))
        throw answersLater('its prepare() gives no statement with run(), get() and all()')
      if (reads) asExactRows(statement)
      this.#statements.set(sql, statement)
    }
    return statement
  }
}

// A hand-edited row may contain an integer above 2^53: node:sqlite throws there unless told, bun:sqlite rounds.
function asExactRows(statement: SqliteStatement): void {
  const special = statement as {
    raw?: (on: boolean) => void
    setReadBigInts?: (on: boolean) => void
    values?: unknown
    safeIntegers?: (on: boolean) => void
  }
  // In bun:sqlite, raw() runs the statement.
  if (typeof special.values === 'function') special.safeIntegers?.(true)
  else special.raw?.(true)
  special.setReadBigInts?.(true)
}

const cells = (row: unknown): unknown[] => (Array.isArray(row) ? row : Object.values(row as object))

const has = (value: unknown, name: string) =>
  typeof (value as Record<string, unknown> | null | undefined)?.[name] === 'function'

/** What is wrong with something that is no SQLite connection, and what to pass instead; `null` for what looks like one. */
// biome-ignore lint/suspicious/noExplicitAny: what an application passed in, looked at member by member
function connectionFault(given: any): string | null {
  if (typeof given === 'string') return `got ${quote(given)}: open it, new Database(path), and pass the connection`
  if (has(given, 'then')) return 'got a promise: await it'
  if (typeof given === 'function') return 'got a function: pass a connection that it opened'
  // A statement of that client which met a lock stays open: what it writes from there on is answered, and not committed.
  if (has(given, 'executeMultiple'))
    return given.protocol === 'file'
      ? "got the client of @libsql/client: open the same file with the package libsql, new Database('sessions.db')"
      : 'got the client of @libsql/client for a database on a network: pass it to LibsqlStore'
  if (has(given, 'batch') && has(given, 'dump')) return 'got a D1 database: pass it to D1Store'
  // sqlite3, and the package `sqlite` around it.
  const late = ['parallelize', 'getDatabaseInstance'].find(name => has(given, name))
  if (late !== undefined) return `got a driver whose answers come later (it has ${late}())`
  const missing = ['prepare', 'exec'].filter(name => !has(given, name))
  if (missing.length === 0) return null
  const inside = ['$client', 'driver', 'db'].find(name => has(given?.[name], 'prepare') && has(given[name], 'exec'))
  if (inside !== undefined) return `got an object around one: pass its ${inside}`
  return `got ${quote(given)}${given === null || typeof given !== 'object' ? '' : ` without ${missing.join('() and ')}()`}`
}

/** Refuses what is no SQLite connection, saying what is missing. @throws TypeError */
export function checkSqlite(database: SqliteDatabase): SqliteDatabase {
  const fault = connectionFault(database)
  if (fault !== null) throw new TypeError(`${EXPECTED}; ${fault}`)
  return database
}
