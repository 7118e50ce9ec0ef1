// The `sql` of `postgres`. It chooses the connection of each statement by itself, and keeps one for a transaction only:
// `reserve()` of version 3.4 loses connections while the server is away for a moment.
import { setImmediate } from 'node:timers'
import { warnOnce } from '../../../src/text/warn-once.ts'
import { bind, type Outcome, type Value, type Values } from '../base/engine.ts'
import type { Driver } from '../base/pool.ts'
import type { Failure } from '../base/retry.ts'
import { Refusal } from '../base/retry.ts'
import { bounds, DIALECT, failureOf, ISOLATION, Statements, sqlState } from './dialect.ts'

// biome-ignore-start lint/suspicious/noExplicitAny: postgres types them more narrowly, by the types that the application adds
/** A query of `postgres` that has not been awaited yet. */
export interface PostgresJsQuery {
  raw(): PromiseLike<any>
}
/** The part of the `sql` of `postgres` that the store uses, also in a transaction. */
export interface PostgresJsScope {
  unsafe(text: string, values?: any[], options?: { prepare?: boolean }): PostgresJsQuery
}
/** The `sql` that `postgres()` gives: its pool of connections. */
export interface PostgresJs extends PostgresJsScope {
  begin(options: string, work: (sql: any) => Promise<any>): Promise<any>
  readonly options: any
}
// biome-ignore-end lint/suspicious/noExplicitAny: postgres types them more narrowly, by the types that the application adds

type Answer = (error: unknown, outcome?: Outcome) => void
/** The part of a sent query that the store uses. */
interface Sent {
  /** The connection that it was sent on. */
  readonly state?: unknown
  canceller?: ((query: unknown) => Promise<unknown>) | null
}
interface Rows extends Array<(Buffer | null)[]> {
  readonly count: number | null
  readonly columns?: readonly { readonly name: string }[]
}
interface Transaction {
  readonly sql: PostgresJsScope
  readonly commit: () => void
  readonly rollBack: () => void
}

const NOTHING: Outcome = { rows: [], changed: 0 }
const ROLLED_BACK = Symbol('rolled back')
const ignore = () => {}

/** The use of one connection for one statement or transaction. There are as many as the pool has connections. */
class Lease {
  readonly #sql: PostgresJs
  /** `null` before the BEGIN was answered, and once the transaction is over. */
  #transaction: Transaction | null = null
  #over: Promise<unknown> | null = null
  #isLeft = false
  #query: Sent = {}
  #values: (Value | null)[] = []
  /** Of the call that is under way. */
  #answer: Answer = ignore

  constructor(sql: PostgresJs) {
    this.#sql = sql
  }

  begin(answer: Answer): void {
    this.#answer = answer
    const work = (sql: PostgresJsScope) =>
      new Promise<void>((resolve, reject) => {
        this.#transaction = { sql, commit: resolve, rollBack: () => reject(ROLLED_BACK) }
        if (this.#isLeft) this.#transaction.rollBack()
        else this.#settle(null, NOTHING)
      })
    this.#over = this.#sql.begin(ISOLATION.toLowerCase(), work).then(
      () => this.#ended(null, NOTHING),
      error => (error === ROLLED_BACK ? this.#ended(null, NOTHING) : this.#ended(error)),
    )
  }

  /** Ends the transaction. If its connection was lost, it has ended already. */
  end(how: 'commit' | 'rollBack', answer: Answer): void {
    this.#answer = answer
    if (this.#transaction === null) setImmediate(() => this.#settle(new Refusal('the transaction is over')))
    else this.#transaction[how]()
  }

  send(
    text: string,
    values: Value[],
    prepare: boolean,
    nameOf: (column: string, text: string) => string,
    answer: Answer,
  ) {
    this.#answer = answer
    // A statement on a lost connection would end the process: postgres writes to a socket that is null by then.
    if (this.#over !== null && this.#transaction === null) return this.end('rollBack', answer)
    this.#values = values
    // Raw, because the application may have told postgres to parse numbers, which would round them.
    const query = (this.#transaction?.sql ?? this.#sql).unsafe(text, values, { prepare }).raw()
    this.#query = query as Sent
    query.then(
      (rows: Rows) => {
        const names = rows.columns?.map(({ name }) => nameOf(name, text)) ?? []
        const object = (cells: Rows[0]) => {
          const row: Record<string, string | null> = {}
          for (let at = 0; at < cells.length; at++) row[names[at]!] = cells[at]?.toString() ?? null
          return row
        }
        this.#settle(null, { rows: rows.map(object), changed: rows.count ?? 0 })
      },
      (error: unknown) => this.#settle((query as Sent).state === null ? withoutConnection(error) : error),
    )
  }

  cancel(): void {
    const { state, canceller } = this.#query
    // A query that still waits for a connection cannot be withdrawn. With NULL for each value it finds nothing.
    if (state === null) this.#values.fill(null)
    if (state === null || typeof canceller !== 'function') return
    // Not `cancel()`: if its request meets no server, that is an unhandled rejection.
    canceller(this.#query).catch(ignore)
  }

  /** Rolls back the open transaction. */
  leave(): void {
    this.#isLeft = true
    setImmediate(() => this.#transaction?.rollBack())
  }

  #ended(error: unknown, outcome?: Outcome): void {
    this.#transaction = null
    this.#settle(error, outcome)
  }

  // If postgres forgets a statement whose connection was lost within a transaction, the end of the transaction settles it.
  #settle(error: unknown, outcome?: Outcome): void {
    const answer = this.#answer
    this.#answer = ignore
    answer(error, outcome)
  }
}

export function postgresJsDriver(sql: PostgresJs, prepare: boolean): Driver<Lease> {
  const statements = new Statements(prepare)
  const max = Number(sql.options?.max)
  const waiting: ((error: unknown, lease: Lease) => void)[] = []
  let free = max >= 1 ? max : 10
  let isServing = false
  const serve = () => {
    // A caller that waited for too long gives its lease back at once, which calls this again.
    if (isServing) return
    isServing = true
    for (; free > 0 && waiting.length > 0; ) {
      free -= 1
      waiting.shift()!(null, new Lease(sql))
    }
    isServing = false
  }
  // The application may have told postgres to rename columns.
  const from: unknown = sql.options?.transform?.column?.from
  const names = new Map<string, string>()
  const nameOf = (column: string, text: string) => {
    if (typeof from !== 'function') return column
    const name = names.get(column) ?? text.match(/\w+/g)!.find(word => from(word) === column) ?? column
    names.set(column, name)
    return name
  }
  return {
    dialect: DIALECT,
    commit: 'COMMIT',
    rollBack: 'ROLLBACK',
    begin: ms => ['BEGIN', bounds(ms)],
    connect(answer) {
      waiting.push(answer)
      serve()
    },
    release(lease, destroy) {
      if (destroy) lease.leave()
      free += 1
      serve()
    },
    send(lease, text, values: Values, answer) {
      if (text === 'BEGIN')
        return lease.begin((error, outcome) => answer(outcome ? null : withoutConnection(error), outcome))
      if (text === 'COMMIT' || text === 'ROLLBACK') return lease.end(text === 'COMMIT' ? 'commit' : 'rollBack', answer)
      const compiled = statements.compile(text)
      lease.send(compiled.text, bind(compiled, values), compiled.name !== '', nameOf, (error, outcome) => {
        statements.learn(error)
        answer(error, outcome)
      })
    },
    cancel: lease => lease.cancel(),
    // postgres does not tell.
    isOpen: () => false,
    // A cancel request names a connection and no statement. If the network held it up, it ends a later statement.
    failureOf: error => (sqlState(error) === '57014' ? { outcome: 'not-applied', retry: true } : failureOf(error)),
  }
}

// postgres reports the error that ended a connection again, to the first statement on the next connection.
function withoutConnection(error: unknown): Refusal {
  const failure: Partial<Failure> = { retry: sqlState(error)?.startsWith('57P') === true, destroy: true }
  return new Refusal('no connection to the database', failure, error)
}

/** Whether it is the `sql` of `postgres`, rather than a pool of `pg`. */
export const isPostgresJs = (given: unknown): given is PostgresJs =>
  typeof given === 'function' && typeof (given as { unsafe?: unknown }).unsafe === 'function'

/** Refuses a `sql` that is not the whole pool, or changes the rows that come back. @throws TypeError */
export function checkPostgresJs(sql: PostgresJs): PostgresJs {
  if (typeof sql.begin !== 'function')
    throw new TypeError(
      'PostgresStore expects the sql that postgres() gives, not that of a transaction or of reserve()',
    )
  if (typeof sql.options?.transform?.row?.from === 'function')
    throw new TypeError('PostgresStore cannot use a client with transform.row: give it one of its own')
  if (sql.options?.fetch_types !== false)
    warnOnce(
      'COATCHECK_FETCH_TYPES',
      'PostgresStore: give postgres() `fetch_types: false`, else a connection that is cut while it begins ends the process',
    )
  return sql
}
