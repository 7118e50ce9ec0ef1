// A pool of mysql2, for the engine that takes a connection for each call.
import { bind, type Compiled, compile, type Dialect, type Outcome, type Row, type Values } from '../base/engine.ts'
import type { Driver } from '../base/pool.ts'
import { type Ask, answerBy, Refusal } from '../base/retry.ts'
import { failureOf, type MysqlConnection, type MysqlPool, type MysqlPromisePool } from './client.ts'

type Answer = (error: unknown, outcome?: Outcome) => void

/** How long a connection may take to tell who it is, and to end the statements of destroyed ones, in ms. */
const PREPARING = 2000
/** Of the status that the server sends with the answer to a write. */
const IN_TRANSACTION = 1

// SYSDATE is the time now. NOW would be when the statement began, which may have waited for a lock since.
const CLOCK = 'FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000)'
const ascii = (type: string) => `${type} CHARACTER SET ascii COLLATE ascii_bin`
const utf8 = (type: string) => `${type} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`

/** How MySQL and MariaDB write statements. */
export const MYSQL = {
  quote: '`',
  greatest: 'GREATEST',
  least: 'LEAST',
  same: '<=>',
  clock: CLOCK,
  startClock: 'UNIX_TIMESTAMP() * 1000',
  locks: true,
  isRemote: true,
  // Keys are compared by bytes. IDs are VARBINARY: all collations that both servers know take 'bob' and 'bob ' for the same.
  types: {
    key: ascii('char(46)'),
    word: ascii('varchar(64)'),
    id: 'varbinary(800)',
    name: utf8('varchar(256)'),
    data: utf8('mediumtext'),
    integer: 'bigint',
  },
  tableOptions: ' ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin',
  partialIndexes: false,
  // MariaDB, and MySQL before 8.0.19, add a display width to the type, which means nothing.
  columnsFound: `SELECT column_name AS name,
      CONCAT(IF(column_type LIKE 'bigint(%', 'bigint', column_type),
        IFNULL(CONCAT(' CHARACTER SET ', character_set_name, ' COLLATE ', collation_name), '')) AS type,
      is_nullable = 'NO' AND column_default IS NULL AND extra = '' AS required
    FROM information_schema.columns WHERE table_schema = COALESCE(:schema, DATABASE()) AND table_name = :table
    LIMIT 1000`,
  alone: null,
} as const satisfies Dialect

const GREETING = `SELECT CONNECTION_ID() AS id,
    CONCAT_WS('|', @@hostname, @@port, @@server_id, @@datadir, @@version) AS name,
    CONCAT_WS(' ', @@character_set_client, @@character_set_connection, @@character_set_results) AS charsets,
    @@SESSION.autocommit AS autocommit, '' IS NULL AS no_empty_text LIMIT 1`
/** Keeps the application's settings, for UNBOUND to set them again. */
const BOUND = 'SET @coatcheck_idle = @@SESSION.wait_timeout,'
const UNBOUND = 'SET SESSION wait_timeout = @coatcheck_idle'
const UPTIME = "SHOW GLOBAL STATUS LIKE 'Uptime'"

/** The server that a connection reaches. */
interface Server {
  /** The server's number for this connection, which it gives out only once as long as it runs. */
  readonly id: number
  /** Tells one server from another behind the same address. */
  readonly name: string
  readonly metAt: number
}

/** What is known of a connection. */
interface State {
  /** `null` until the server has told who it is, and once the connection is destroyed while a statement runs. */
  server: Server | null
  /** The server's status after the last write. mysql2 does not tell that of a SELECT. */
  status: number
  /** Whether its idle time is that of a transaction. */
  isBounded: boolean
}

const ignore = () => {}
const asItIs = (_: unknown, next: () => unknown) => next()

export class MysqlDriver implements Driver<MysqlConnection> {
  readonly dialect = MYSQL
  readonly failureOf = failureOf
  // MariaDB 12 has a word, not a number.
  readonly isReplica = "SELECT CAST(@@GLOBAL.read_only AS CHAR) NOT IN ('0', 'OFF') AS replica"
  // Overrules completion_type, which would begin another transaction or close the connection.
  readonly commit = 'COMMIT AND NO CHAIN NO RELEASE'
  readonly rollBack = 'ROLLBACK AND NO CHAIN NO RELEASE'
  readonly #pool: MysqlPromisePool
  readonly #compiled = new Map<string, Compiled>()
  readonly #states = new WeakMap<MysqlConnection, State>()
  /** Connections that were destroyed while a statement ran. It may go on waiting for a lock at the server. */
  readonly #abandoned = new Set<Server>()

  constructor(pool: MysqlPool) {
    this.#pool = 'promise' in pool ? pool.promise() : pool
  }

  connect(answer: (error: unknown, connection?: MysqlConnection) => void): void {
    const given = this.#pool.getConnection()
    // The older package `mysql` has callbacks only.
    if (typeof given?.then !== 'function') throw new TypeError('getConnection() gives no promise: use mysql2')
    given.then(taken => this.#met(taken?.connection, answer), answer)
  }

  #met(connection: MysqlConnection | undefined, answer: (error: unknown, connection?: MysqlConnection) => void): void {
    if (typeof connection?.execute !== 'function' || typeof connection.release !== 'function')
      answer(new TypeError('MysqlStore expects a pool of mysql2, whose getConnection() gives one of its connections'))
    else if (this.#states.get(connection)?.server && this.#abandoned.size === 0) answer(null, connection)
    else
      this.#prepare(connection).then(
        () => answer(null, connection),
        error => {
          connection.destroy()
          answer(error)
        },
      )
  }

  release(connection: MysqlConnection, destroy: boolean): void {
    const state = this.#states.get(connection)!
    if (destroy) connection.destroy()
    else if (!state.isBounded) connection.release()
    else {
      state.isBounded = false
      this.#say(connection, UNBOUND).then(
        () => connection.release(),
        () => connection.destroy(),
      )
    }
  }

  send(connection: MysqlConnection, sql: string, values: Values, answer: Answer): void {
    const { text, order } = this.#compile(sql)
    const state = this.#states.get(connection)!
    const { typeCast = true, rowsAsArray, nestTables } = connection.config ?? {}
    const isUsual = typeCast === true && !rowsAsArray && !nestTables
    // The application's casts and names must not change our columns. Only a function overrules a function.
    const changed = { rowsAsArray: false, nestTables: false, typeCast: typeof typeCast === 'function' ? asItIs : true }
    // biome-ignore lint/suspicious/noExplicitAny: rows, or what became of a write
    const answered = (error: unknown, result?: any) => {
      if (error) return answer(error)
      if (Array.isArray(result)) return answer(null, { rows: result.map(withText), changed: result.length })
      state.status = result.serverStatus
      answer(null, { rows: [], changed: result.affectedRows })
    }
    if (sql.startsWith(BOUND)) state.isBounded = true
    if (order.length === 0) return void connection.query({ sql: text, ...(isUsual ? null : changed) }, answered)
    // MySQL takes no DOUBLE for a limit, which is how mysql2 sends a number.
    const bound = bind({ text, order }, values).map((value, i) => (order[i] === 'limit' ? String(value) : value))
    // mysql2 copies options, which takes longer than all the rest of the call.
    connection.execute(isUsual ? text : { sql: text, ...changed }, bound, answered)
  }

  #compile(sql: string): Compiled {
    let compiled = this.#compiled.get(sql)
    if (compiled === undefined) {
      compiled = compile(sql, '?')
      // Those without parameters differ each time.
      if (compiled.order.length > 0) this.#compiled.set(sql, compiled)
    }
    return compiled
  }

  begin(ms: number): readonly string[] {
    return [
      // READ COMMITTED locks no gaps between other users' rows. This fails in a transaction that the application left open,
      // which START TRANSACTION would commit.
      'SET TRANSACTION ISOLATION LEVEL READ COMMITTED',
      'START TRANSACTION',
      // If we are cut off, the server rolls back by itself, so no lock outlives its caller for long.
      `${BOUND} SESSION wait_timeout = ${Math.ceil(ms / 1000)}`,
    ]
  }

  isOpen(connection: MysqlConnection): boolean {
    return (this.#states.get(connection)!.status & IN_TRANSACTION) !== 0
  }

  // A statement that waits for a lock outlives its connection, and only another connection can end it. So destroy this one at
  // once: the connection that the pool makes in its place ends the statement before it does anything else.
  cancel(connection: MysqlConnection): void {
    const state = this.#states.get(connection)!
    const { server } = state
    if (server === null) return
    state.server = null
    connection.destroy()
    // Behind a proxy that shares connections, the number in the handshake is not the server's.
    if (server.id !== connection.threadId) return
    this.#abandoned.add(server)
    this.connect((_, other) => other?.release())
  }

  async #prepare(connection: MysqlConnection): Promise<void> {
    const state = this.#states.get(connection) ?? { server: null, status: 0, isBounded: false }
    this.#states.set(connection, state)
    if (state.server === null) {
      // mysql2 removes its own listener with the first error; a second one would end the process.
      // One that was refused before is greeted again, and has ours already.
      connection.removeListener('error', ignore)
      connection.on('error', ignore)
      const [row] = await this.#say(connection, GREETING)
      const server = { id: Number(row!.id), name: String(row!.name), metAt: performance.now() }
      if (Number(row!.autocommit) === 0)
        throw new Refusal(
          'autocommit is off on the connections of this pool: no write would be committed, no logout seen',
        )
      const charset = String(row!.charsets)
        .split(' ')
        .find(name => name !== 'utf8mb4')
      if (charset !== undefined)
        throw new Refusal(
          `the connections of this pool speak ${charset}, and names would come back changed: createPool({ charset: 'utf8mb4' }), and SET NAMES utf8mb4 where init_connect or the application says another`,
        )
      // The namespace '' would become NULL: no login would succeed, and all lists would be empty.
      if (Number(row!.no_empty_text) === 1)
        throw new Refusal("sql_mode has EMPTY_STRING_IS_NULL: the store needs '' to be what it is")
      state.server = server
    }
    const abandoned = [...this.#abandoned]
    this.#abandoned.clear()
    if (abandoned.length === 0) return
    const [status] = await this.#say(connection, UPTIME)
    // Uptime is in whole seconds. A server that started later has given these connection numbers to others.
    const startedAt = performance.now() - (Number(status?.Value) + 1) * 1000
    for (const { id, name, metAt } of abandoned)
      if (name === state.server.name && metAt >= startedAt)
        await this.#say(connection, `KILL ${id}`).catch(error => {
          // It may be over by now.
          if (failureOf(error).destroy === true) throw error
        })
  }

  #say(connection: MysqlConnection, sql: string): Promise<readonly Row[]> {
    const say: Ask<readonly Row[]> = (resolve, reject) =>
      this.send(connection, sql, {}, (error, outcome) => (outcome ? resolve(outcome.rows) : reject(error)))
    const late = () => new Refusal('the database did not answer in time', { destroy: true })
    return answerBy(performance.now() + PREPARING, say, late)
  }
}

/** VARBINARY comes as bytes. */
function withText(row: Record<string, unknown>): Row {
  for (const name in row) if (Buffer.isBuffer(row[name])) row[name] = row[name].toString()
  return row
}
