import { Connections, type Fault, type Late } from '../connections.ts'
import { Refusal, unusable } from '../retry.ts'
import type { Outcome, Statement } from '../statement.ts'
import { cancelStatement } from './cancel.ts'
import type { PgClient, PgPool, PgQuery } from './driver.ts'
import { BEGIN, faultOf, GREETING, NOT_PREPARED, sqlState } from './server.ts'

// Cells as the server wrote them: an application may have told pg to parse numbers, which would round user IDs.
const asText = (text: string) => text
const TYPES = { getTypeParser: () => asText }
// Without a listener the loss of a connection in use ends the process; the query's own promise tells us.
const ignore = () => {}
/** Pools that have our listener: several stores may share one. */
const LISTENED = new WeakSet<PgPool>()

/** What is used of a connection of `pg` that its types do not tell. */
interface Inside {
  /** False while the server is at work for the connection's last user. */
  readonly readyForQuery?: unknown
  /** Whether cells come otherwise than as text. */
  readonly binary?: unknown
  readonly connectionParameters?: { readonly query_timeout?: unknown }
  readonly connection?: { on?(event: 'readyForQuery', listener: (message: { status?: unknown }) => void): void }
}
/** The longest time of a timer, in ms. */
const NEVER = 2 ** 31 - 1
/**
 * What the server said last on connections of a pg before 8.23, which does not keep it; `null` before we heard it. By what is
 * below the client, which a pool of the application's may wrap anew each time.
 */
const STATUS = new WeakMap<object, unknown>()

function listenForStatus(client: PgClient): void {
  const { connection } = client as Inside
  if (typeof client.getTransactionStatus === 'function' || typeof connection?.on !== 'function') return
  if (STATUS.has(connection)) return
  STATUS.set(connection, null)
  connection.on('readyForQuery', ({ status }) => STATUS.set(connection, status))
}

/** The status of the connection's transaction by the last ReadyForQuery; `undefined` where the driver does not tell. */
function statusOf(client: PgClient): unknown {
  const { connection } = client as Inside
  if (typeof client.getTransactionStatus !== 'function') return connection && STATUS.get(connection)
  try {
    return client.getTransactionStatus()
  } catch {
    // pg asks a pg-native that knows no such thing (3.7, for one).
    return undefined
  }
}

/** How long a connection whose statement was given up is kept for the server's word, in ms. */
const CANCELLING = 2000
/** After how long the server is asked again to cancel a statement, in ms. */
const SETTLING = 250

/** Connections of a `pg.Pool`. */
export class PgConnections extends Connections<PgClient> {
  protected readonly begin = [BEGIN]
  protected readonly greeting = GREETING
  readonly #pool: PgPool
  #prepare: boolean

  constructor(pool: PgPool, prepare: boolean) {
    super()
    this.#pool = pool
    this.#prepare = prepare
    // The pool emits the error of a connection that is lost while nothing uses it, as when an administrator ends it.
    const { on } = pool as { on?: unknown }
    if (typeof on === 'function' && !LISTENED.has(pool)) {
      LISTENED.add(pool)
      on.call(pool, 'error', ignore)
    }
  }

  // With a callback, because the pool takes its own listener away in the moment in which it hands the connection out: the
  // server may have ended it by then, and after a promise's turn the error would have met no listener.
  protected connect(answer: (error: unknown, client?: PgClient) => void): void {
    const taken = (error: unknown, client?: PgClient) => {
      if (typeof client?.on === 'function') client.on('error', ignore)
      if (client) listenForStatus(client)
      if (error || (typeof client?.query === 'function' && typeof client.release === 'function')) answer(error, client)
      else
        answer(
          new TypeError('PostgresStore expects a pg.Pool, whose connect() gives a client with query() and release()'),
        )
    }
    const given = (this.#pool.connect as (callback: typeof taken) => Promise<PgClient> | undefined).call(
      this.#pool,
      taken,
    )
    if (typeof given?.then === 'function') given.then(client => taken(null, client), taken)
  }

  protected giveBack(client: PgClient, sound: boolean): void {
    // A connection that is closed keeps it: it may still have something to say.
    if (sound) client.removeListener('error', ignore)
    client.release(!sound)
  }

  protected async send(client: PgClient, { name, text }: Statement, values: unknown[]): Promise<Outcome> {
    // Nothing would be found in the rows, and no session be listed.
    if ((client as Inside).binary) throw unusable('pg was told to read values as binary: the store needs them as text')
    const query: PgQuery = { text, values, rowMode: 'array', types: TYPES }
    if (this.#prepare && name !== '') query.name = name
    // The application's own would leave the statement at the server; ours are ended there at the end of their call.
    if ((client as Inside).connectionParameters?.query_timeout) query.query_timeout = NEVER
    try {
      const { rows, rowCount } = await client.query(query)
      const status = statusOf(client)
      return { rows, changed: rowCount ?? 0, open: status === 'T' || status === 'E' ? 'begun' : undefined }
    } catch (error) {
      // Behind pgbouncer in transaction mode another server connection may answer, which knows no such statement.
      if (query.name === undefined || !NOT_PREPARED.has(sqlState(error) ?? '')) throw error
      this.#prepare = false
      throw new Refusal('prepared statements do not work here', { outcome: 'not-applied', retry: true }, error)
    }
  }

  protected override mayBeOpen(client: PgClient): boolean {
    const status = statusOf(client)
    return status !== undefined && (status !== 'I' || (client as Inside).readyForQuery === false)
  }

  protected faultOf(error: unknown): Fault {
    return faultOf(error)
  }

  // A statement that waits for a lock outlives its connection: closed at once, a connection would leave its process at
  // the server and free its place in the pool for the next to wait. So the statement is cancelled, and the connection
  // kept until it has said so. A server that cannot be asked to cancel cannot be asked for new connections either.
  protected async abandon(client: PgClient, { pending }: Late, rollBack?: () => Promise<unknown>): Promise<void> {
    const over = pending
      .then(
        () => true,
        error => error instanceof Refusal || this.faultOf(error) !== 'lost',
      )
      .then(sound => (sound && rollBack !== undefined ? rollBack().then(() => true) : sound))
      .catch(() => false)
    const { options } = this.#pool as { options?: { stream?: unknown } }
    const end = performance.now() + CANCELLING
    const settling = () => new Promise<null>(resolve => setTimeout(resolve, SETTLING, null))
    let sound: boolean | null = null
    // Again where nothing came of it: a request that overtakes its statement cancels nothing.
    while (sound === null && performance.now() < end) {
      const asked = cancelStatement(client, options?.stream, end - performance.now())
      if (asked !== null && !(await asked)) break
      sound = await Promise.race([over, settling()])
    }
    this.giveBack(client, sound === true)
  }
}

/** Refuses what is no pool of `pg`, saying what is expected. */
export function checkPgPool(pool: PgPool): PgPool {
  const given = pool as unknown as Record<string, unknown> | null | undefined
  // mysql2 has getConnection(), a single pg.Client has no pool to take a second connection from.
  if (typeof given?.connect !== 'function' || 'getConnection' in given || 'processID' in given)
    throw new TypeError(
      'PostgresStore expects a pg.Pool: an object whose connect() resolves to a client; or the sql of postgres',
    )
  return pool
}
