import { type Failure, notBegun, Refusal, unusable, within } from './patience.ts'
import { bind, type Outcome, type Run, type Statement, type Values } from './statement.ts'

/** What the store uses of a connection of `mysql2/promise`. */
export interface MysqlConnection {
  execute(options: { sql: string; values: any; rowsAsArray: boolean; typeCast: any }): Promise<[any, ...unknown[]]>
  query(options: { sql: string }): Promise<[any, ...unknown[]]>
  release(): void
  destroy(): void
  readonly threadId: number | null
  readonly config?: any
}
/** A pool of `mysql2/promise`. */
export interface MysqlPromisePool {
  getConnection(): Promise<MysqlConnection>
}
/** A pool of `mysql2/promise`, or one of `mysql2` (with callbacks), which has `promise()`. */
export type MysqlPool = MysqlPromisePool | { promise(): MysqlPromisePool }

const DEADLOCK = 1213
const LOCK_WAIT_TIMEOUT = 1205
const CHANGED_SINCE_READ = 1020 // MariaDB with innodb_snapshot_isolation
const RETRIED = new Set([DEADLOCK, LOCK_WAIT_TIMEOUT, CHANGED_SINCE_READ])
// After these the connection is gone: shutdown, killed, closed as idle, network errors.
const ENDED = new Set([1053, 1152, 1158, 1159, 1160, 1161, 1927, 4031])
const DUPLICATE = 1062
// Unknown table, column, database; a column without default; NULL where none may be; wrong or too long values.
const FOREIGN = new Set([1146, 1054, 1049, 1364, 1048, 1366, 1406, 1265])
const IN_TRANSACTION = 1 // SERVER_STATUS_IN_TRANS of the protocol's OK packet

/** The server's error number; `null` if the error is not the server's. */
const errorNumber = (error: unknown): number | null => {
  const { errno, sqlState } = (error ?? {}) as { errno?: unknown; sqlState?: unknown }
  return typeof errno === 'number' && errno > 0 && typeof sqlState === 'string' ? errno : null
}
const isLost = (errno: number | null) => errno === null || ENDED.has(errno)

/** What an error of mysql2 says about the statement. */
export function mysqlFailure(error: unknown): Failure {
  const errno = errorNumber(error)
  if (isLost(errno)) return { outcome: 'unknown', retry: false }
  return { outcome: 'not-applied', retry: RETRIED.has(errno as number) }
}

export const isDuplicate = (error: unknown) => errorNumber(error) === DUPLICATE

const asItIs = (_: unknown, next: () => unknown) => next()

class Late extends Refusal {}
const tooLate = () => new Late('the database did not answer in time', { outcome: 'unknown', retry: false })
const breaks = (error: unknown) => error instanceof Late || (!(error instanceof Refusal) && isLost(errorNumber(error)))

/** Takes connections from the pool, each for one statement or one transaction. */
export class MysqlConnections {
  readonly #pool: MysqlPromisePool
  /** Parameters that are compared as bytes, whatever the connection's character set. */
  readonly #bytes: ReadonlySet<string>

  constructor(pool: MysqlPool, bytes: readonly string[]) {
    this.#bytes = new Set(bytes)
    this.#pool = 'promise' in pool && typeof pool.promise === 'function' ? pool.promise() : (pool as MysqlPromisePool)
  }

  /** One statement by itself: rows as arrays, or the header of a write. */
  run(statement: Statement, values: Values, end: number): Promise<Outcome> {
    return this.#using(end, async connection => {
      const { outcome, status } = await this.#execute(connection, statement, values, end)
      if ((status & IN_TRANSACTION) === IN_TRANSACTION)
        throw new Late('autocommit is off on the connections of this pool: a write would never be committed', {
          outcome: 'not-applied',
          retry: false,
        })
      return outcome
    })
  }

  /** Statements in one READ COMMITTED transaction, which locks no gaps between other users' rows. */
  transaction<T>(end: number, work: (run: Run) => Promise<T>): Promise<T> {
    return this.#using(end, async connection => {
      const simple = async (sql: string) => within(end, connection.query({ sql }), tooLate)
      let committing = false
      try {
        await simple('SET TRANSACTION ISOLATION LEVEL READ COMMITTED')
        await simple('START TRANSACTION')
        const value = await work(
          async (statement, values) => (await this.#execute(connection, statement, values, end)).outcome,
        )
        committing = true
        await simple('COMMIT')
        return value
      } catch (error) {
        if (committing && breaks(error)) throw error
        // A connection that may be inside a transaction is closed, never given back.
        const broken =
          breaks(error) ||
          !(await simple('ROLLBACK').then(
            () => true,
            () => false,
          ))
        // Before COMMIT was sent, a lost connection means a rollback.
        const { retry } = error instanceof Refusal ? error.failure : mysqlFailure(error)
        throw new (broken ? Late : Refusal)((error as Error).message, { outcome: 'not-applied', retry }, named(error))
      }
    })
  }

  async #execute(connection: MysqlConnection, statement: Statement, values: Values, end: number) {
    const bound = bind(statement, values).map((value, i) =>
      typeof value === 'string' && this.#bytes.has(statement.order[i] as string) ? Buffer.from(value) : value,
    )
    // An application's own casts are not for our columns; a function is overruled only by a function.
    const typeCast = typeof connection.config?.typeCast === 'function' ? asItIs : true
    const [result] = await within(
      end,
      connection.execute({ sql: statement.text, values: bound, rowsAsArray: true, typeCast }),
      tooLate,
    )
    const outcome: Outcome = Array.isArray(result)
      ? { rows: result, changed: result.length }
      : { rows: [], changed: result.affectedRows }
    return { outcome, status: (result.serverStatus as number | undefined) ?? 0 }
  }

  async #using<T>(end: number, work: (connection: MysqlConnection) => Promise<T>): Promise<T> {
    const connection = await this.#take(end)
    let sound = false
    try {
      const value = await work(connection)
      sound = true
      return value
    } catch (error) {
      sound = !breaks(error)
      if (error instanceof Late) this.#kill(connection.threadId)
      throw named(error)
    } finally {
      if (sound) connection.release()
      else connection.destroy()
    }
  }

  // A statement that waits for a lock outlives its connection and would run when the lock is free.
  #kill(threadId: number | null): void {
    if (typeof threadId !== 'number') return
    // After this turn, in which the late connection is destroyed and its place in the pool becomes free.
    setImmediate(async () => {
      try {
        const connection = await this.#take(performance.now() + 1000)
        try {
          await within(performance.now() + 1000, connection.query({ sql: `KILL ${threadId}` }), tooLate)
          connection.release()
        } catch (error) {
          if (breaks(error)) connection.destroy()
          else connection.release()
        }
      } catch {
        // No connection: whoever cannot be reached cannot be told. innodb_lock_wait_timeout remains.
      }
    })
  }

  async #take(end: number): Promise<MysqlConnection> {
    let late = false
    let connection: MysqlConnection
    try {
      const given = this.#pool.getConnection()
      // The older `mysql` package has callbacks only.
      if (typeof given?.then !== 'function') throw new TypeError('getConnection() gives no promise: use mysql2')
      const pending = given.then(taken => {
        // Whoever waited has gone: what they wanted must not run any more.
        if (late) taken.release()
        return taken
      })
      connection = await within(end, pending, () => {
        late = true
        return new Error('no connection of the pool became free in time')
      })
    } catch (error) {
      throw notBegun((error as Error).message, error)
    }
    if (typeof connection?.execute !== 'function' || typeof connection.release !== 'function')
      throw unusable('MysqlStore expects a pool of mysql2, whose getConnection() gives a connection with execute()')
    if (performance.now() >= end) {
      connection.release()
      throw notBegun('a connection became free too late')
    }
    return connection
  }
}

function named(error: unknown): unknown {
  if (FOREIGN.has(errorNumber(error) ?? 0) && error instanceof Error)
    return new Refusal(
      `${error.message} (is the table of another schema? migrate() creates it, or names the difference)`,
      { outcome: 'not-applied', retry: false },
      error,
    )
  return error
}

/** Refuses what is no pool of mysql2, saying what is expected. */
export function checkMysqlPool(pool: MysqlPool): MysqlPool {
  const given = pool as unknown as Record<string, unknown> | null | undefined
  if (typeof given?.promise !== 'function' && typeof given?.getConnection !== 'function')
    throw new TypeError('MysqlStore expects a pool of mysql2 or mysql2/promise: an object with getConnection()')
  // A single connection of mysql2 has promise() as well, but no second connection to give.
  if (typeof given.getConnection !== 'function')
    throw new TypeError('MysqlStore expects a pool, got a single connection: use createPool() of mysql2')
  return pool
}
