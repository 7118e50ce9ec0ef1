import { Broken, CLEANING_UP, Connections, type Fault, Late } from '../connections.ts'
import { compile, type Outcome, plain, type Statement } from '../statement.ts'

/** What the store uses of a connection of `mysql2/promise`. */
export interface MysqlConnection {
  // biome-ignore-start lint/suspicious/noExplicitAny: mysql2 types them more narrowly, and differently in each release
  execute(options: {
    sql: string
    values: any
    rowsAsArray: boolean
    nestTables: any
    typeCast: any
  }): Promise<[any, ...unknown[]]>
  execute(sql: string, values: any): Promise<[any, ...unknown[]]>
  query(options: { sql: string; rowsAsArray?: boolean; nestTables?: any; typeCast?: any }): Promise<[any, ...unknown[]]>
  release(): void
  destroy(): void
  readonly threadId: number | null
  readonly config?: any
  // biome-ignore-end lint/suspicious/noExplicitAny: mysql2 types them more narrowly, and differently in each release
}
/** A pool of `mysql2/promise`. */
export interface MysqlPromisePool {
  getConnection(): Promise<MysqlConnection>
}
/** A pool of `mysql2/promise`, or one of `mysql2` (with callbacks), which has `promise()`. */
export type MysqlPool = MysqlPromisePool | { promise(): MysqlPromisePool }

type Callback<T> = (error: unknown, value?: T) => void
/** The pool with callbacks that is behind each pool with promises; its connections have the same methods, with callbacks. */
interface MysqlCore {
  getConnection(answer: Callback<MysqlConnection>): void
  promise(): MysqlPromisePool
}

/**
 * The pool behind one with promises, `null` where anything stands between the two, such as an application's own
 * `getConnection`. For each promise that it gives mysql2 takes a stack trace, and for each connection it makes a wrapper: a
 * request at one connection takes a sixth less of the processor without them.
 */
function coreOfPool(pool: MysqlPromisePool): MysqlCore | null {
  const { pool: core } = pool as { pool?: MysqlCore }
  if (typeof core?.getConnection !== 'function' || typeof core.promise !== 'function') return null
  return core.promise().getConnection === pool.getConnection ? core : null
}

const FAULTS = new Map<number, Fault>([
  // The connection is gone: shutdown, killed, closed as idle, network errors.
  ...[1053, 1152, 1158, 1159, 1160, 1161, 1927, 4031].map(errno => [errno, 'lost'] as const),
  [1213, 'busy'], // deadlock
  [1205, 'busy'], // lock wait timeout
  [1020, 'busy'], // changed since it was read: MariaDB with innodb_snapshot_isolation
  // Read-only: a server that was the primary once.
  ...[1290, 1792, 1836].map(errno => [errno, 'wrong-server'] as const),
  [1568, 'unusable'], // a transaction begins where one is open
  ...[1099, 1100].map(errno => [errno, 'unusable'] as const), // tables are locked on this connection
  [1690, 'late'], // out of range: what a statement makes of a deadline that is over
  [1062, 'duplicate'],
  // Unknown table, column, database; a column without default; NULL where none may be; wrong or too long values.
  ...[1146, 1054, 1049, 1364, 1048, 1366, 1406, 1265].map(errno => [errno, 'foreign'] as const),
])
// Of the status in the protocol's OK and EOF packets.
const SERVER_STATUS_IN_TRANS = 1
const SERVER_STATUS_AUTOCOMMIT = 2

const asItIs = (_: unknown, next: () => unknown) => next()
const ignore = () => {}

// SYSDATE is the time now, not that of the statement's begin, which may have waited for a lock since.
const GREETING = compile(
  '?',
  `SELECT UNIX_TIMESTAMP(SYSDATE(6)) * 1000, CONNECTION_ID(), SUBSTRING_INDEX(USER(), '@', 1),
     CONCAT_WS('|', @@hostname, @@port, @@server_id, @@datadir, @@version), '' IS NULL LIMIT 1`,
)
/** How long the server lets this connection be idle, in seconds. */
const IDLE = compile('?', 'SELECT @@SESSION.wait_timeout LIMIT 1')

/** What a connection reaches. */
interface Met {
  readonly id: number
  readonly user: string
  /** What tells one server from another behind the same address. */
  readonly server: string
  readonly at: number
}
const metFrom = ([, id, user, server]: readonly unknown[]): Met => ({
  id: Number(id),
  user: String(user),
  server: String(server),
  at: performance.now(),
})

/** Connections that have our listener. */
const LISTENED = new WeakSet<object>()
/** Connections whose `wait_timeout` is ours, with the application's: they are closed, not given back. */
const BOUNDED = new WeakMap<object, number>()

/** What the server said of its status at the end of the last rows. */
interface Told {
  status: number
}
const TOLD = new WeakMap<object, Told>()
/** A connection of mysql2 takes each packet by this method. Another driver of the same shape may lack it. */
interface Packets {
  handlePacket?(packet?: { isEOF(): boolean; eofStatusFlags(): number }): unknown
}

// mysql2 gives the status of a write to its caller, and keeps that of rows to itself.
function listenForStatus(core: Packets): void {
  const { handlePacket } = core
  if (typeof handlePacket !== 'function') return
  const told: Told = { status: SERVER_STATUS_AUTOCOMMIT }
  TOLD.set(core, told)
  core.handlePacket = packet => {
    if (packet?.isEOF()) told.status = packet.eofStatusFlags()
    return handlePacket.call(core, packet)
  }
}

const openBy = (status: number): Outcome['open'] => {
  if ((status & SERVER_STATUS_IN_TRANS) === 0) return undefined
  return (status & SERVER_STATUS_AUTOCOMMIT) === 0 ? 'autocommit off' : 'begun'
}

/** mysql2 wraps a connection anew each time it hands it out with promises. */
const coreOf = (connection: MysqlConnection): object => (connection as { connection?: object }).connection ?? connection

/** Whether rows come with the cells that the server sent, unless a statement asks for something else. */
function isUsual({ config }: MysqlConnection): boolean {
  const { typeCast = true, rowsAsArray, nestTables } = config ?? { typeCast: false }
  return typeCast === true && !rowsAsArray && !nestTables
}

/** What gives no rows may be asked for in any way; where columns share a name, an object has one of them. */
const mayBeObjects = ({ text, namesColumns = false }: Statement) => namesColumns || !text.startsWith('SELECT')

/** Rows as arrays of cells as the server sent them. An application's own casts and names are not for our columns. */
function optionsFor({ config }: MysqlConnection, { name, text }: Statement, values: unknown[]) {
  // A function is overruled only by a function.
  const typeCast = typeof config?.typeCast === 'function' ? asItIs : true
  return { sql: text, rowsAsArray: true, nestTables: false, typeCast, ...(name === '' ? null : { values }) }
}

/** Connections of a pool of mysql2. */
export class MysqlConnections extends Connections<MysqlConnection> {
  // READ COMMITTED locks no gaps between other users' rows.
  protected readonly begin = ['SET TRANSACTION ISOLATION LEVEL READ COMMITTED', 'START TRANSACTION']
  // Whatever completion_type says, which would begin another transaction or close the connection.
  protected override readonly commit = 'COMMIT AND NO CHAIN NO RELEASE'
  protected override readonly rollBack = 'ROLLBACK AND NO CHAIN NO RELEASE'
  protected readonly greeting = GREETING
  protected override readonly identity = coreOf
  readonly #pool: MysqlPromisePool
  readonly #core: MysqlCore | null
  /** An application may put its own in the place of this later, too. */
  readonly #getConnection: unknown
  readonly #withCallbacks = new WeakSet<MysqlConnection>()
  readonly #met = new WeakMap<object, Met>()
  readonly #outliving = new Set<Met>()
  readonly #table: string
  /** Parameters that are compared as bytes, whatever the connection's character set. */
  readonly #bytes: ReadonlySet<string>

  /** `table`: what all of the statements name. */
  constructor(pool: MysqlPool, bytes: readonly string[], table: string) {
    super()
    this.#bytes = new Set(bytes)
    this.#table = table
    this.#pool = 'promise' in pool && typeof pool.promise === 'function' ? pool.promise() : (pool as MysqlPromisePool)
    this.#core = coreOfPool(this.#pool)
    this.#getConnection = this.#pool.getConnection
  }

  protected connect(answer: (error: unknown, connection?: MysqlConnection) => void): void {
    const taken = (connection: MysqlConnection | undefined, withCallbacks: boolean) => {
      if (typeof connection?.execute !== 'function' || typeof connection.release !== 'function')
        return answer(
          new TypeError('MysqlStore expects a pool of mysql2, whose getConnection() gives a connection with execute()'),
        )
      // mysql2 takes its own listener away with the first error; a second would end the process.
      const core = coreOf(connection) as Packets & { on?: unknown }
      if (typeof core.on === 'function' && !LISTENED.has(core)) {
        LISTENED.add(core)
        core.on('error', ignore)
        listenForStatus(core)
      }
      if (withCallbacks) this.#withCallbacks.add(connection)
      answer(null, connection)
    }
    if (this.#core !== null && this.#pool.getConnection === this.#getConnection) {
      this.#core.getConnection((error, connection) => {
        if (error) answer(error)
        else taken(connection, true)
      })
      return
    }
    const given = this.#pool.getConnection()
    // The older `mysql` package has callbacks only.
    if (typeof given?.then !== 'function') throw new TypeError('getConnection() gives no promise: use mysql2')
    given.then(connection => taken(connection, false), answer)
  }

  protected giveBack(connection: MysqlConnection, sound: boolean): void {
    if (sound && !BOUNDED.has(coreOf(connection))) connection.release()
    else connection.destroy()
  }

  protected async send(connection: MysqlConnection, statement: Statement, values: unknown[]): Promise<Outcome> {
    const bound = values.map((value, i) =>
      typeof value === 'string' && this.#bytes.has(statement.order[i] as string) ? Buffer.from(value) : value,
    )
    // Without options, which mysql2 copies so that V8 makes a hidden class for each call: that takes longer than all the
    // rest of it, and keeps what the call held until a full collection.
    const asUsual = statement.name !== '' && mayBeObjects(statement) && isUsual(connection)
    const verb = statement.name === '' ? 'query' : 'execute'
    const result = asUsual
      ? await this.#ask(connection, verb, statement.text, bound)
      : await this.#ask(connection, verb, optionsFor(connection, statement, bound))
    if (!Array.isArray(result)) return { rows: [], changed: result.affectedRows, open: openBy(result.serverStatus) }
    const open = openBy(TOLD.get(coreOf(connection))?.status ?? 0)
    return { rows: asUsual ? result.map(Object.values) : result, changed: result.length, open }
  }

  // biome-ignore lint/suspicious/noExplicitAny: rows, or what became of a write
  #ask(connection: MysqlConnection, verb: 'query' | 'execute', ...given: unknown[]): Promise<any> {
    const method = connection[verb] as (...given: unknown[]) => Promise<[unknown]>
    if (!this.#withCallbacks.has(connection)) return method.apply(connection, given).then(([result]) => result)
    return new Promise((resolve, reject) => {
      method.call(connection, ...given, (error: unknown, result: unknown) => (error ? reject(error) : resolve(result)))
    })
  }

  protected faultOf(error: unknown): Fault {
    const { errno, sqlState } = (error ?? {}) as { errno?: unknown; sqlState?: unknown }
    // All others are not the server's.
    if (typeof errno !== 'number' || errno <= 0 || typeof sqlState !== 'string') return 'lost'
    return FAULTS.get(errno) ?? 'refused'
  }

  // A statement is only sent where its server is known: a caller that gives it up must be able to end it there.
  protected override isStranger(connection: MysqlConnection): boolean {
    return !this.#met.has(coreOf(connection))
  }

  protected override greeted(connection: MysqlConnection, cells: readonly unknown[]): void {
    // The tenant '' would be NULL: no login would succeed, and each list of sessions be empty.
    if (Number(cells[4] ?? 0) === 1)
      throw new Broken("sql_mode has EMPTY_STRING_IS_NULL: the store needs '' to be what it is", {
        outcome: 'not-applied',
        retry: false,
      })
    const core = coreOf(connection)
    if (!this.#met.has(core)) this.#met.set(core, metFrom(cells))
  }

  protected override async boundCommit(connection: MysqlConnection, end: number): Promise<void> {
    // Asked each time: the application may have set it since.
    const { rows } = await this.sendWithin(connection, IDLE, {}, end)
    BOUNDED.set(coreOf(connection), Number(rows[0]![0]))
    await this.#setIdle(connection, Math.max(1, Math.ceil((end - performance.now()) / 1000)), end)
  }

  protected override async committed(connection: MysqlConnection, end: number): Promise<void> {
    const core = coreOf(connection)
    const idle = BOUNDED.get(core)
    if (idle !== undefined) await this.#setIdle(connection, idle, end).then(() => BOUNDED.delete(core), ignore)
  }

  #setIdle(connection: MysqlConnection, seconds: number, end: number): Promise<Outcome> {
    return this.sendWithin(connection, plain(`SET SESSION wait_timeout = ${seconds}`), {}, end)
  }

  // A statement that waits for a lock outlives its connection. The place in the pool that its connection leaves goes to
  // the one that ends it, before all others that wait: no more statements are left behind than the pool has places.
  protected abandon(connection: MysqlConnection): void {
    const met = this.#met.get(coreOf(connection))
    // Behind a proxy that shares connections, the number in the handshake is not the server's.
    if (met !== undefined && met.id === connection.threadId) {
      this.#outliving.add(met)
      if (this.#outliving.size === 1) void this.#endOutliving().catch(ignore)
    }
    connection.destroy()
  }

  async #endOutliving(): Promise<void> {
    const end = performance.now() + CLEANING_UP
    try {
      const connection = await this.take(end, true)
      try {
        const here = metFrom((await this.sendWithin(connection, GREETING, {}, end)).rows[0]!)
        for (const met of this.#outliving) {
          this.#outliving.delete(met)
          if (met.server === here.server && (await this.#stillRuns(connection, met, end)))
            await this.sendWithin(connection, plain(`KILL ${met.id}`), {}, end).catch(error => {
              if (error instanceof Late || this.faultOf(error) === 'lost') throw error
            })
        }
        this.giveBack(connection, true)
      } catch {
        this.giveBack(connection, false)
      }
    } finally {
      // A server that cannot be reached cannot be told; innodb_lock_wait_timeout remains, and the deadline in each write.
      this.#outliving.clear()
    }
  }

  /** Whether this server was already running when we met it, and whether the number still is one of our statements. */
  async #stillRuns(connection: MysqlConnection, met: Met, end: number): Promise<boolean> {
    const ask = async (text: string) => (await this.sendWithin(connection, plain(text), {}, end)).rows
    const age = performance.now() - met.at
    const uptime = Number((await ask("SHOW GLOBAL STATUS LIKE 'Uptime'"))[0]?.[1])
    // A server that has been started since counts its connections from the beginning: the number is a stranger's. It
    // counts its life in whole seconds, and says 0 for all of the first one.
    if (!((uptime + 1) * 1000 > age)) return false
    return (await ask('SHOW FULL PROCESSLIST')).some(
      ([id, user, , , , , , statement]) =>
        Number(id) === met.id && String(user) === met.user && String(statement).includes(this.#table),
    )
  }
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
