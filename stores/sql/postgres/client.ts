import { Clocks } from '../clocks.ts'
import { Lender } from '../lending.ts'
import { cameLate, type Failure, notBegun, Refusal, unusable, within } from '../patience.ts'
import { bind, compile, type Outcome, type Run, type Statement, type Values } from '../statement.ts'
import { cancelStatement } from './cancel.ts'

/** A query as the store gives it to `pg`. */
export interface PgQuery {
  name?: string
  text: string
  values: unknown[]
  rowMode: 'array'
  types: { getTypeParser(): (text: string) => unknown }
}
/** The part of a result of `pg` that the store reads. */
export interface PgResult {
  rows: any[]
  rowCount: number | null
}
/** What the store uses of a connection of `pg`. */
export interface PgClient {
  query(query: PgQuery): Promise<PgResult>
  release(destroy?: boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
}
/** A `pg.Pool`, or anything with the same `connect()`. */
export interface PgPool {
  connect(): Promise<PgClient>
}

// Cells as the server wrote them: an application may have told pg to parse numbers, which would round user IDs.
const asText = (text: string) => text
const TYPES = { getTypeParser: () => asText }
// Without a listener the loss of a connection in use ends the process; the query's own promise tells us.
const ignore = () => {}

const NOT_PREPARED = new Set(['26000', '42P05'])
const RETRIED = new Set(['40001', '40P01', 'CR000'])
// What set_config says to a time that is over: a negative one.
const LATE = '22023'
const FOREIGN = new Set(['42P01', '42703', '42804', '42883', '3F000', '23502', '22001'])

const sqlState = (error: unknown): string | null => {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && 'severity' in (error as object) ? code : null
}
// Classes 08 and 57P end the connection; the statement may have been committed before the answer was lost.
const isLost = (state: string | null) => state === null || state.startsWith('08') || state.startsWith('57P')

/** What an error of `pg` says about the statement. */
export function pgFailure(error: unknown): Failure {
  const state = sqlState(error)
  if (isLost(state) || state === '40003') return { outcome: 'unknown', retry: false }
  return { outcome: 'not-applied', retry: RETRIED.has(state as string) }
}

export const isUniqueViolation = (error: unknown) => sqlState(error) === '23505'

/** How long a connection whose statement was given up is kept for the server's word, in ms. */
const CANCELLING = 2000
/** After how long the server is asked again to cancel a statement, in ms. */
const SETTLING = 250

const CLOCK = compile('$', 'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint')

/** Takes connections from the pool, each for one statement or one transaction. */
export class PgConnections {
  readonly #pool: PgPool
  readonly #lender: Lender<PgClient>
  readonly #clocks = new Clocks()
  #prepare: boolean

  constructor(pool: PgPool, prepare: boolean) {
    this.#pool = pool
    this.#prepare = prepare
    this.#lender = new Lender(
      answer => connect(pool, answer),
      client => giveBack(client, true),
    )
    // The pool emits the error of a connection that is lost while nobody uses it, as when an administrator ends it.
    const { on } = pool as { on?: unknown }
    if (typeof on === 'function' && !LISTENED.has(pool)) {
      LISTENED.add(pool)
      on.call(pool, 'error', ignore)
    }
  }

  /** One statement by itself. */
  async run(statement: Statement, values: Values, end: number): Promise<Outcome> {
    const client = await this.#take(end)
    try {
      const result = await this.#query(client, statement, values, end)
      this.#done(client)
      return result
    } catch (error) {
      if (error instanceof Late) void this.#abandon(client, error.pending)
      else giveBack(client, !breaks(error))
      throw named(error)
    }
  }

  /** Statements in one READ COMMITTED transaction: each sees what was committed before it began, whatever the default. */
  async transaction<T>(end: number, work: (run: Run) => Promise<T>): Promise<T> {
    const client = await this.#take(end)
    const simple = (text: string) => this.#query(client, { name: '', text, order: [] }, {}, end)
    let committing = false
    try {
      await simple('BEGIN ISOLATION LEVEL READ COMMITTED')
      const value = await work((statement, values) => this.#query(client, statement, values, end))
      committing = true
      await simple('COMMIT')
      this.#done(client)
      return value
    } catch (error) {
      const rollBack = () => client.query({ text: 'ROLLBACK', values: [], rowMode: 'array', types: TYPES })
      // A connection that may be inside a transaction is closed, never given back.
      if (error instanceof Late) void this.#abandon(client, error.pending, rollBack)
      else if (breaks(error)) giveBack(client, false)
      // Not within the caller's time, which is over where a wait for a lock was: the connection is sound all the same.
      else
        within(performance.now() + CANCELLING, rollBack(), tooLate).then(
          () => giveBack(client, true),
          () => giveBack(client, false),
        )
      // Before COMMIT was sent, a lost connection means a rollback.
      if (committing && breaks(error)) throw error
      const { retry } = error instanceof Refusal ? error.failure : pgFailure(error)
      throw new Refusal((error as Error).message, { outcome: 'not-applied', retry }, named(error))
    }
  }

  async #take(end: number): Promise<PgClient> {
    const client = await this.#lender.take(end)
    if (typeof client?.query !== 'function' || typeof client.release !== 'function')
      throw unusable('PostgresStore expects a pg.Pool, whose connect() gives a client with query() and release()')
    if (performance.now() < end) return client
    giveBack(client, true)
    throw notBegun('a connection became free too late')
  }

  async #query(client: PgClient, statement: Statement, values: Values, end: number): Promise<Outcome> {
    const { text, name, timed } = statement
    const bound = bind(statement, timed ? { ...values, deadline: await this.#deadline(client, end) } : values)
    const query: PgQuery = { text, values: bound, rowMode: 'array', types: TYPES }
    if (this.#prepare && name !== '') query.name = name
    const pending = client.query(query)
    try {
      const { rows, rowCount } = await within(end, pending, () => new Late(pending))
      return { rows, changed: rowCount ?? 0 }
    } catch (error) {
      const state = sqlState(error)
      if (timed && state === LATE) {
        this.#clocks.forget(client)
        throw cameLate(error)
      }
      // Behind pgbouncer in transaction mode another server connection may answer, which knows no such statement.
      if (query.name === undefined || !NOT_PREPARED.has(state ?? '')) throw error
      this.#prepare = false
      throw new Refusal('prepared statements do not work here', { outcome: 'not-applied', retry: true }, error)
    }
  }

  async #deadline(client: PgClient, end: number): Promise<number> {
    const known = this.#clocks.until(client, end)
    if (known !== null) return known
    await this.#askClock(client, end)
    return this.#clocks.until(client, end) as number
  }

  async #askClock(client: PgClient, end: number): Promise<void> {
    const { rows } = await this.#query(client, CLOCK, {}, end)
    this.#clocks.learn(client, Number(rows[0]![0]))
  }

  #done(client: PgClient): void {
    if (this.#clocks.isOld(client))
      this.#askClock(client, performance.now() + CANCELLING).then(
        () => giveBack(client, true),
        error => {
          if (error instanceof Late) void this.#abandon(client, error.pending)
          else giveBack(client, !breaks(error))
        },
      )
    else giveBack(client, true)
  }

  // A statement that waits for a lock outlives its connection: closed at once, a connection would leave its process at
  // the server and free its place in the pool for the next to wait. So the statement is cancelled, and the connection
  // kept until it has said so. A server that cannot be asked to cancel cannot be asked for new connections either.
  async #abandon(client: PgClient, pending: Promise<unknown>, after?: () => Promise<unknown>): Promise<void> {
    const over = pending
      .then(
        () => true,
        error => !breaks(error),
      )
      .then(sound => (sound && after !== undefined ? after().then(() => true) : sound))
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
    giveBack(client, sound === true)
  }
}

/** Pools that have our listener: several stores may share one. */
const LISTENED = new WeakSet<PgPool>()

// With a callback, because the pool takes its own listener away in the moment in which it hands the connection out: the
// server may have ended it by then, and after a promise's turn the error would have met no listener.
function connect(pool: PgPool, answer: (error: unknown, client?: PgClient) => void): void {
  const taken = (error: unknown, client?: PgClient) => {
    if (typeof client?.on === 'function') client.on('error', ignore)
    answer(error, client)
  }
  const given = (pool.connect as (callback: typeof taken) => Promise<PgClient> | undefined).call(pool, taken)
  if (typeof given?.then === 'function') given.then(client => taken(null, client), taken)
}

function giveBack(client: PgClient, sound: boolean): void {
  // A connection that is closed keeps it: it may still have something to say.
  if (sound) client.removeListener('error', ignore)
  client.release(!sound)
}

class Late extends Refusal {
  /** The answer that did not come. */
  readonly pending: Promise<unknown>
  constructor(pending: Promise<unknown>) {
    super('the database did not answer in time', { outcome: 'unknown', retry: false })
    this.pending = pending
  }
}
const tooLate = () => notBegun('the database did not answer in time')

/** Whether the connection is of no use after this error. */
const breaks = (error: unknown) => error instanceof Late || (!(error instanceof Refusal) && isLost(sqlState(error)))

function named(error: unknown): unknown {
  if (FOREIGN.has(sqlState(error) ?? '') && error instanceof Error)
    return new Refusal(
      `${error.message} (is the table of another schema? migrate() creates it, or names the difference)`,
      { outcome: 'not-applied', retry: false },
      error,
    )
  return error
}

/** Refuses what is no pool of `pg`, saying what is expected. */
export function checkPgPool(pool: PgPool): PgPool {
  const given = pool as unknown as Record<string, unknown> | null | undefined
  // mysql2 has getConnection(), a single pg.Client has no pool to take a second connection from.
  if (typeof given?.connect !== 'function' || 'getConnection' in given || 'processID' in given)
    throw new TypeError('PostgresStore expects a pg.Pool: an object whose connect() resolves to a client')
  return pool
}
