import { Clocks } from '../clocks.ts'
import { Lender } from '../lending.ts'
import { cameLate, type Failure, notBegun, Refusal, timeLeft, unusable, within } from '../patience.ts'
import { bind, compile, type Outcome, type Run, type Statement, type Values } from '../statement.ts'

/** What the store uses of a connection of `mysql2/promise`. */
export interface MysqlConnection {
  execute(options: { sql: string; values: any; rowsAsArray: boolean; typeCast: any }): Promise<[any, ...unknown[]]>
  query(options: { sql: string; rowsAsArray?: boolean; typeCast?: any }): Promise<[any, ...unknown[]]>
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
const OUT_OF_RANGE = 1690 // what a statement makes of a deadline that is over
// Unknown table, column, database; a column without default; NULL where none may be; wrong or too long values.
const FOREIGN = new Set([1146, 1054, 1049, 1364, 1048, 1366, 1406, 1265])
/** How long ending what was given up may take, in ms. */
const ENDING = 2000
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

/** The connection is of no use any more. `outlives`: a statement may still run at the server. */
class Broken extends Refusal {
  readonly outlives: boolean
  constructor(message: string, failure: Failure, outlives: boolean, cause?: unknown) {
    super(message, failure, cause)
    this.outlives = outlives
  }
}
const tooLate = () => new Broken('the database did not answer in time', { outcome: 'unknown', retry: false }, true)
const breaks = (error: unknown) =>
  error instanceof Broken || (!(error instanceof Refusal) && isLost(errorNumber(error)))
const ignore = () => {}

// SYSDATE is the time now, not that of the statement's begin, which may have waited for a lock since.
const MEET = compile(
  '?',
  `SELECT UNIX_TIMESTAMP(SYSDATE(6)) * 1000, CONNECTION_ID(), SUBSTRING_INDEX(USER(), '@', 1),
     CONCAT_WS('|', @@hostname, @@port, @@server_id, @@datadir, @@version)`,
)
/** How long the server lets this connection be idle, in seconds. */
const IDLE = compile('?', 'SELECT @@SESSION.wait_timeout')

/** Whom a connection reaches. */
interface Met {
  readonly id: number
  readonly user: string
  /** What tells one server from another behind the same address. */
  readonly server: string
  readonly at: number
}

/** Takes connections from the pool, each for one statement or one transaction. */
export class MysqlConnections {
  readonly #pool: MysqlPromisePool
  readonly #lender: Lender<MysqlConnection>
  readonly #clocks = new Clocks()
  readonly #met = new WeakMap<object, Met>()
  readonly #outliving = new Set<Met>()
  readonly #table: string
  /** Parameters that are compared as bytes, whatever the connection's character set. */
  readonly #bytes: ReadonlySet<string>

  /** `table`: what all of the statements name. */
  constructor(pool: MysqlPool, bytes: readonly string[], table: string) {
    this.#bytes = new Set(bytes)
    this.#table = table
    this.#pool = 'promise' in pool && typeof pool.promise === 'function' ? pool.promise() : (pool as MysqlPromisePool)
    this.#lender = new Lender(answer => this.#connect(answer), giveBack)
  }

  /** One statement by itself: rows as arrays, or the header of a write. */
  run(statement: Statement, values: Values, end: number): Promise<Outcome> {
    return this.#using(end, async connection => {
      const { outcome, status } = await this.#execute(connection, statement, values, end)
      if ((status & IN_TRANSACTION) === IN_TRANSACTION)
        throw new Broken(
          'autocommit is off on the connections of this pool: a write would never be committed',
          { outcome: 'not-applied', retry: false },
          false,
        )
      return outcome
    })
  }

  /**
   * Statements in one READ COMMITTED transaction, which locks no gaps between other users' rows. `brief`: its COMMIT must
   * not take place late, so that the server is told to roll it back where nothing more comes in time.
   */
  transaction<T>(end: number, work: (run: Run) => Promise<T>, brief = false): Promise<T> {
    return this.#using(end, async connection => {
      const simple = async (sql: string) => within(end, connection.query({ sql }), tooLate)
      let committing = false
      try {
        await simple('SET TRANSACTION ISOLATION LEVEL READ COMMITTED')
        await simple('START TRANSACTION')
        const value = await work(
          async (statement, values) => (await this.#execute(connection, statement, values, end)).outcome,
        )
        const core = coreOf(connection)
        let idle = 0
        if (brief) {
          // Asked each time: the application may have set it since.
          idle = Number((await this.#send(connection, IDLE, {}, end)).outcome.rows[0]![0])
          CHANGED.add(core)
          await simple(`SET SESSION wait_timeout = ${Math.ceil(timeLeft(end) / 1000)}`)
        }
        committing = true
        await simple('COMMIT')
        if (CHANGED.has(core))
          await simple(`SET SESSION wait_timeout = ${idle}`).then(() => CHANGED.delete(core), ignore)
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
        const failure: Failure = { outcome: 'not-applied', retry }
        const { message } = error as Error
        if (!broken) throw new Refusal(message, failure, named(error))
        throw new Broken(message, failure, error instanceof Broken && error.outlives, named(error))
      }
    })
  }

  async #execute(connection: MysqlConnection, statement: Statement, values: Values, end: number) {
    const all = { ...values, deadline: await this.#deadline(connection, statement.timed === true, end) }
    try {
      return await this.#send(connection, statement, all, end)
    } catch (error) {
      if (statement.timed !== true || errorNumber(error) !== OUT_OF_RANGE) throw error
      this.#clocks.forget(coreOf(connection))
      throw cameLate(error)
    }
  }

  async #send(connection: MysqlConnection, statement: Statement, values: Values, end: number) {
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

  // A statement is only sent where its server is known: whoever gives it up must be able to end it there.
  async #deadline(connection: MysqlConnection, timed: boolean, end: number): Promise<number> {
    const core = coreOf(connection)
    const known = this.#clocks.until(core, end)
    if (known !== null) return known
    if (!timed && this.#met.has(core)) return 0
    await this.#meet(connection, end)
    return this.#clocks.until(core, end) as number
  }

  async #meet(connection: MysqlConnection, end: number): Promise<Met> {
    const core = coreOf(connection)
    const { rows } = (await this.#send(connection, MEET, {}, end)).outcome
    const [clock, id, user, server] = rows[0]!
    this.#clocks.learn(core, Number(clock))
    const at = performance.now()
    const met = { id: Number(id), user: String(user), server: String(server), at }
    if (!this.#met.has(core)) this.#met.set(core, met)
    return met
  }

  async #using<T>(end: number, work: (connection: MysqlConnection) => Promise<T>): Promise<T> {
    const connection = await this.#take(end)
    try {
      const value = await work(connection)
      this.#done(connection)
      return value
    } catch (error) {
      if (!breaks(error)) giveBack(connection)
      else {
        const met = this.#met.get(coreOf(connection))
        // Behind a proxy that shares connections, the number in the handshake is not the server's.
        if (error instanceof Broken && error.outlives && met?.id === connection.threadId) this.#end(met)
        connection.destroy()
      }
      throw named(error)
    }
  }

  #done(connection: MysqlConnection): void {
    const core = coreOf(connection)
    if (this.#clocks.isOld(core) && !CHANGED.has(core))
      this.#meet(connection, performance.now() + ENDING).then(
        () => giveBack(connection),
        error => {
          if (breaks(error)) connection.destroy()
          else giveBack(connection)
        },
      )
    else giveBack(connection)
  }

  // A statement that waits for a lock outlives its connection. The place in the pool that its connection leaves goes to
  // the one that ends it, before all others that wait: no more statements are left behind than the pool has places.
  #end(met: Met): void {
    this.#outliving.add(met)
    if (this.#outliving.size === 1) void this.#endAll().catch(ignore)
  }

  async #endAll(): Promise<void> {
    const end = performance.now() + ENDING
    try {
      const connection = await this.#lender.take(end, true)
      try {
        const here = await this.#meet(connection, end)
        for (const met of this.#outliving) {
          this.#outliving.delete(met)
          if (met.server === here.server && (await this.#stillRuns(connection, met, end)))
            await within(end, connection.query({ sql: `KILL ${met.id}` }), tooLate).catch(error => {
              if (breaks(error)) throw error
            })
        }
        giveBack(connection)
      } catch {
        connection.destroy()
      }
    } finally {
      // Whoever cannot be reached cannot be told; innodb_lock_wait_timeout remains, and the deadline in each write.
      this.#outliving.clear()
    }
  }

  /** Whether this server was already running when we met it, and whether the number still is one of our statements. */
  async #stillRuns(connection: MysqlConnection, met: Met, end: number): Promise<boolean> {
    const ask = async (sql: string) => {
      const [rows] = await within(end, connection.query({ sql, rowsAsArray: true, typeCast: asItIs }), tooLate)
      return rows as unknown[][]
    }
    const age = performance.now() - met.at
    const uptime = Number((await ask("SHOW GLOBAL STATUS LIKE 'Uptime'"))[0]?.[1])
    // A server that has been started since counts its connections from the beginning: the number is a stranger's.
    if (!(uptime * 1000 >= age)) return false
    return (await ask('SHOW FULL PROCESSLIST')).some(
      ([id, user, , , , , , statement]) =>
        Number(id) === met.id && String(user) === met.user && String(statement).includes(this.#table),
    )
  }

  async #take(end: number): Promise<MysqlConnection> {
    const connection = await this.#lender.take(end)
    if (typeof connection?.execute !== 'function' || typeof connection.release !== 'function')
      throw unusable('MysqlStore expects a pool of mysql2, whose getConnection() gives a connection with execute()')
    if (performance.now() < end) return connection
    giveBack(connection)
    throw notBegun('a connection became free too late')
  }

  #connect(answer: (error: unknown, connection?: MysqlConnection) => void): void {
    const given = this.#pool.getConnection()
    // The older `mysql` package has callbacks only.
    if (typeof given?.then !== 'function') throw new TypeError('getConnection() gives no promise: use mysql2')
    given.then(
      connection => {
        // mysql2 takes its own listener away with the first error; a second would end the process.
        const core = coreOf(connection) as { on?: unknown }
        if (typeof core?.on === 'function' && !LISTENED.has(core)) {
          LISTENED.add(core)
          core.on('error', ignore)
        }
        answer(null, connection)
      },
      error => answer(error),
    )
  }
}

/** Connections that have our listener. */
const LISTENED = new WeakSet<object>()

/** mysql2 wraps a connection anew each time it hands it out. */
const coreOf = (connection: MysqlConnection): object =>
  (connection as { connection?: object } | null)?.connection ?? connection

/** Connections with a setting that is not the application's: they are closed, not given back. */
const CHANGED = new WeakSet<object>()

function giveBack(connection: MysqlConnection): void {
  if (CHANGED.has(coreOf(connection))) connection.destroy()
  else connection.release()
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
