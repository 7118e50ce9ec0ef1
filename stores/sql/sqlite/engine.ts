// A SQLite file and a driver that answers at once: all steps of a method run in one turn of the event loop.
import {
  bind,
  type Compiled,
  compile,
  type Dialect,
  type Engine,
  followNow,
  type Mode,
  type Outcome,
  type Row,
  type Steps,
  type Values,
} from '../base/engine.ts'
import { type Failure, NOT_MIGRATED, Refusal, TooLate } from '../base/retry.ts'
import { rowOf } from '../base/rows.ts'
import { CallQueue } from './call-queue.ts'
import { answersLater, has, type SqliteDatabase, type SqliteStatement } from './driver.ts'

/**
 * How long SQLite itself may wait for another process's lock, in ms: it blocks the event loop meanwhile. A transaction
 * may wait twice, for its beginning and for readers at its end.
 */
const BUSY_TIMEOUT = 5
const BUSY = 5
const LOCKED = 6
const IO_ERROR = 10
const CODES: Readonly<Record<string, number>> = { SQLITE_BUSY: BUSY, SQLITE_LOCKED: LOCKED, SQLITE_IOERR: IO_ERROR }

/** The primary result code (https://sqlite.org/rescode.html), however the driver tells it. */
function resultCode(error: unknown): number | undefined {
  const { code, errcode, rawCode } = (error ?? {}) as { code?: unknown; errcode?: unknown; rawCode?: unknown }
  const number = errcode ?? rawCode
  if (typeof number === 'number') return number & 0xff
  return CODES[String(code).split('_').slice(0, 2).join('_')]
}

/** The meaning of an error of a SQLite driver. */
function failureOf(error: unknown): Failure {
  const code = resultCode(error)
  if (/no such (table|column)|has no column/.test(String((error as Error | null)?.message))) return NOT_MIGRATED
  return { outcome: code === IO_ERROR ? 'unknown' : 'not-applied', retry: code === BUSY || code === LOCKED }
}

/** How SQLite writes statements, wherever it runs. */
export const SQLITE = {
  quote: '"',
  greatest: 'max',
  least: 'min',
  same: 'IS',
  clock: "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
  startClock: "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
  locks: false,
  isRemote: false,
  types: { key: 'TEXT', word: 'TEXT', id: 'TEXT', name: 'TEXT', data: 'TEXT', integer: 'INTEGER' },
  tableOptions: '',
  partialIndexes: true,
  indexesInSchema: true,
  columnsFound: `SELECT name, upper(type) AS type, "notnull" = 1 AND dflt_value IS NULL AS required
    FROM pragma_table_info(:table, COALESCE(:schema, 'main'))`,
  alone: null,
} as const satisfies Dialect

interface Prepared {
  readonly statement: SqliteStatement
  readonly compiled: Compiled
  /** Whether it answers with rows. */
  readonly gives: boolean
}

export class SqliteEngine implements Engine {
  readonly dialect = SQLITE
  readonly failureOf = failureOf
  readonly #database: SqliteDatabase
  readonly #prepared = new Map<string, Prepared>()
  /** Those of `first`, whose rows come as arrays. In libsql get() after all() on one statement answers for the earlier values. */
  readonly #forFirst = new Map<string, Prepared>()
  readonly #unfinished = new Set<Prepared>()
  // Two queues, because in WAL mode no lock stops a reader.
  readonly #reads = new CallQueue(failureOf)
  readonly #writes = new CallQueue(failureOf)
  #isReady = false

  constructor(database: SqliteDatabase) {
    this.#database = database
  }

  run<T>(mode: Mode, end: number, steps: () => Steps<T>): T | Promise<T> {
    if (mode === 'read')
      return this.#reads.run(end, () => {
        this.#begin()
        return followNow(steps(), this.#ask)
      })
    return this.#writes.run(end, () => this.#transaction(steps))
  }

  select(text: string, values: Values, end: number): readonly Row[] | Promise<readonly Row[]> {
    return this.#reads.run(end, () => {
      this.#begin()
      return this.#ask(text, values).rows
    })
  }

  /** The row of the session table that a SELECT of all its columns with one parameter finds. */
  first(sql: string, value: string, end: number): Row | null | Promise<Row | null> {
    if (performance.now() >= end) throw new TooLate()
    return this.#reads.run(end, () => {
      this.#begin()
      const prepared = this.#prepare(sql, this.#forFirst)
      try {
        const found = prepared.statement.get(value)
        return Array.isArray(found) ? rowOf(found) : ((found as Row | undefined) ?? null)
      } catch (error) {
        throw this.#failed(sql, prepared, error, this.#forFirst)
      }
    })
  }

  /** Runs before each call. */
  #begin(): void {
    // libsql ends the process if a closed connection is used.
    if ((this.#database as { open?: unknown }).open === false) throw new Refusal('the connection is closed')
    if (!this.#isReady) {
      const answer = this.#database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT}`)
      if (has(answer, 'then')) {
        ;(answer as Promise<unknown>).then(undefined, () => {})
        throw answersLater('its exec() gives a promise')
      }
      this.#isReady = true
    }
    if (this.#unfinished.size > 0) this.#finish()
  }

  // Only BEGIN and COMMIT can meet a lock of another connection. They run by `exec`, because libsql leaves a prepared statement
  // open that met SQLITE_BUSY. DEFERRED would meet SQLITE_BUSY half-way, and there no timeout waits.
  #transaction<T>(steps: () => Steps<T>): T {
    this.#begin()
    const { inTransaction, isTransaction } = this.#database as { inTransaction?: unknown; isTransaction?: unknown }
    // Our transactions end within a turn. This one is the application's, which may roll back.
    if (inTransaction === true || isTransaction === true)
      throw new Refusal('the connection is inside a transaction of the application', { retry: true })
    this.#database.exec('BEGIN IMMEDIATE')
    try {
      const answer = followNow(steps(), this.#ask)
      this.#database.exec('COMMIT')
      return answer
    } catch (error) {
      try {
        this.#database.exec('ROLLBACK')
      } catch {
        // SQLite rolled back by itself (a full disk, an I/O error).
      }
      throw error
    }
  }

  readonly #ask = (sql: string, values: Values): Outcome => {
    const prepared = this.#prepare(sql)
    const { statement, compiled, gives } = prepared
    const bound = bind(compiled, values)
    try {
      if (gives) {
        const rows = statement.all(...bound) as Row[]
        if (!Array.isArray(rows)) throw answersLater('its all() gives no rows')
        return { rows, changed: rows.length }
      }
      const changed = Number(statement.run(...bound)?.changes)
      if (Number.isNaN(changed)) throw answersLater('its run() does not say how many rows it changed')
      return { rows: [], changed }
    } catch (error) {
      throw this.#failed(sql, prepared, error)
    }
  }

  #prepare(sql: string, known = this.#prepared): Prepared {
    let prepared = known.get(sql)
    if (prepared === undefined) {
      const compiled = compile(sql, '?')
      const statement = this.#database.prepare(compiled.text)
      if (!['run', 'get', 'all'].every(name => has(statement, name)))
        throw answersLater('its prepare() gives no statement with run(), get() and all()')
      prepared = { statement, compiled, gives: /^SELECT|RETURNING/.test(compiled.text) }
      // A driver spends half of a read on making an object of the row. (In bun:sqlite raw() means something else.)
      const { raw, values } = statement as { raw?: (on: boolean) => void; values?: unknown }
      if (known === this.#forFirst && values === undefined) raw?.call(statement, true)
      // A hand-edited row may contain an integer above 2^53: node:sqlite throws there unless told.
      const { setReadBigInts } = statement as { setReadBigInts?: (on: boolean) => void }
      if (prepared.gives) setReadBigInts?.call(statement, true)
      known.set(sql, prepared)
    }
    return prepared
  }

  // In libsql a statement that failed keeps its old values. One that met the lock of a rollback journal stays open: it would
  // keep the next lock that it gets, and this connection would go on reading that state.
  #failed(sql: string, prepared: Prepared, error: unknown, known = this.#prepared): unknown {
    known.delete(sql)
    if (prepared.gives && failureOf(error).retry) this.#unfinished.add(prepared)
    return error
  }

  /** Ends statements that met a lock, by running them with values that match nothing: no key and no user is ''. */
  #finish(): void {
    for (const prepared of this.#unfinished) {
      try {
        prepared.statement.all(...prepared.compiled.order.map(() => ''))
      } catch (error) {
        if (failureOf(error).retry) throw error
      }
      this.#unfinished.delete(prepared)
    }
  }
}
