import { type Failure, notBegun, Refusal } from './patience.ts'
import type { Value } from './statement.ts'

export interface SqliteStatement {
  run(...values: any[]): { changes: number | bigint }
  get(...values: any[]): unknown
  all(...values: any[]): unknown[]
}
/** What the store uses of better-sqlite3, libsql and node:sqlite (`DatabaseSync`). */
export interface SqliteDatabase {
  prepare(sql: string): SqliteStatement
  exec(sql: string): unknown
}

/** How long SQLite itself may wait for another process's lock, in ms: it blocks the event loop meanwhile. */
export const BUSY_TIMEOUT = 20
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

/** One connection with its statements, each prepared when it is first needed. */
export class SqliteConnection {
  readonly #database: SqliteDatabase
  readonly #statements = new Map<string, SqliteStatement>()
  #ready = false

  constructor(database: SqliteDatabase) {
    this.#database = database
  }

  /** Rows as arrays, in the order of the columns. */
  rows(sql: string, values: readonly Value[]): unknown[][] {
    return this.#statement(sql, true)
      .all(...values)
      .map(cells)
  }

  row(sql: string, values: readonly Value[]): unknown[] | null {
    const row = this.#statement(sql, true).get(...values)
    return row === undefined || row === null ? null : cells(row)
  }

  /** How many rows a write changed. */
  change(sql: string, values: readonly Value[]): number {
    this.#refuseForeignTransaction()
    return this.#change(sql, values)
  }

  /** `work` between BEGIN IMMEDIATE and COMMIT. Synchronous: nobody else gets in between. */
  transaction<T>(work: (change: (sql: string, values: readonly Value[]) => number) => T): T {
    this.#refuseForeignTransaction()
    // DEFERRED would meet SQLITE_BUSY half-way, which no timeout waits for.
    this.#change('BEGIN IMMEDIATE', [])
    try {
      const value = work((sql, values) => this.#change(sql, values))
      this.#change('COMMIT', [])
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

  run(sql: string): void {
    this.#database.exec(sql)
  }

  #change(sql: string, values: readonly Value[]): number {
    return Number(this.#statement(sql, false).run(...values).changes)
  }

  // libsql ends the process when a closed connection is used.
  #refuseClosed(): void {
    if ((this.#database as { open?: unknown }).open === false) throw notBegun('the connection is closed')
  }

  // Our own transactions end before anybody else runs: one that is open belongs to the application, which may roll back.
  #refuseForeignTransaction(): void {
    this.#refuseClosed()
    const { inTransaction, isTransaction } = this.#database as { inTransaction?: unknown; isTransaction?: unknown }
    if (inTransaction === true || isTransaction === true)
      throw new Refusal('the connection is inside a transaction of the application', {
        outcome: 'not-applied',
        retry: true,
      })
  }

  #statement(sql: string, reads: boolean): SqliteStatement {
    this.#refuseClosed()
    let statement = this.#statements.get(sql)
    if (statement === undefined) {
      if (!this.#ready) this.#database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT}`)
      this.#ready = true
      statement = this.#database.prepare(sql)
      const special = statement as { raw?: (on: boolean) => void; setReadBigInts?: (on: boolean) => void }
      if (reads) {
        special.raw?.(true)
        // node:sqlite throws at an integer above 2^53, which a hand-edited row may contain.
        special.setReadBigInts?.(true)
      }
      this.#statements.set(sql, statement)
    }
    return statement
  }
}

const cells = (row: unknown): unknown[] => (Array.isArray(row) ? row : Object.values(row as object))

/** Refuses what is no SQLite connection, saying what is expected. */
export function checkSqlite(database: SqliteDatabase): SqliteDatabase {
  const given = database as unknown as Record<string, unknown> | null | undefined
  if (typeof given?.prepare !== 'function' || typeof given.exec !== 'function')
    throw new TypeError(
      'SqliteStore expects a connection of better-sqlite3, libsql or node:sqlite: an object with prepare() and exec()',
    )
  return database
}
