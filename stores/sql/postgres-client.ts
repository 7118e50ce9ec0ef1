import { type Failure, notBegun, Refusal, unusable, within } from './patience.ts'
import { bind, type Outcome, type Run, type Statement, type Value, type Values } from './statement.ts'

export interface PgQuery {
  name?: string
  text: string
  values: unknown[]
  rowMode: 'array'
  types: { getTypeParser(): (text: string) => unknown }
}
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

/** Takes connections from the pool, each for one statement or one transaction. */
export class PgConnections {
  readonly #pool: PgPool
  #prepare: boolean

  constructor(pool: PgPool, prepare: boolean) {
    this.#pool = pool
    this.#prepare = prepare
  }

  /** One statement by itself. */
  async run(statement: Statement, values: Values, end: number): Promise<Outcome> {
    const client = await this.#take(end)
    let sound = false
    try {
      const result = await this.#query(client, statement, bind(statement, values), end)
      sound = true
      return result
    } catch (error) {
      sound = !breaks(error)
      throw named(error)
    } finally {
      client.removeListener('error', ignore)
      client.release(!sound)
    }
  }

  /** Statements in one READ COMMITTED transaction: each sees what was committed before it began, whatever the default. */
  async transaction<T>(end: number, work: (run: Run) => Promise<T>): Promise<T> {
    const client = await this.#take(end)
    const simple = (text: string) => this.#query(client, { name: '', text, order: [] }, [], end)
    let [sound, committing] = [false, false]
    try {
      await simple('BEGIN ISOLATION LEVEL READ COMMITTED')
      const value = await work((statement, values) => this.#query(client, statement, bind(statement, values), end))
      committing = true
      await simple('COMMIT')
      sound = true
      return value
    } catch (error) {
      if (!breaks(error))
        sound = await within(
          end,
          simple('ROLLBACK').then(() => true),
          () => new Error('late'),
        ).catch(() => false)
      // Before COMMIT was sent, a lost connection means a rollback.
      if (committing && breaks(error)) throw error
      const { retry } = error instanceof Refusal ? error.failure : pgFailure(error)
      throw new Refusal((error as Error).message, { outcome: 'not-applied', retry }, named(error))
    } finally {
      client.removeListener('error', ignore)
      // A connection that may be inside a transaction is closed, never given back.
      client.release(!sound)
    }
  }

  async #take(end: number): Promise<PgClient> {
    let late = false
    let client: PgClient
    try {
      const pending = this.#pool.connect().then(client => {
        // Whoever waited has gone: what they wanted must not run any more.
        if (late) client.release()
        return client
      })
      client = await within(end, pending, () => {
        late = true
        return new Error('no connection of the pool became free in time')
      })
    } catch (error) {
      throw notBegun((error as Error).message, error)
    }
    if (typeof client?.query !== 'function' || typeof client.release !== 'function')
      throw unusable('PostgresStore expects a pg.Pool, whose connect() gives a client with query() and release()')
    if (performance.now() >= end) {
      client.release()
      throw notBegun('a connection became free too late')
    }
    client.on('error', ignore)
    return client
  }

  async #query(client: PgClient, statement: Statement, values: Value[], end: number): Promise<Outcome> {
    const query: PgQuery = { text: statement.text, values, rowMode: 'array', types: TYPES }
    if (this.#prepare && statement.name !== '') query.name = statement.name
    try {
      const { rows, rowCount } = await within(end, client.query(query), tooLate)
      return { rows, changed: rowCount ?? 0 }
    } catch (error) {
      // Behind pgbouncer in transaction mode another server connection may answer, which knows no such statement.
      if (query.name === undefined || !NOT_PREPARED.has(sqlState(error) ?? '')) throw error
      this.#prepare = false
      throw new Refusal('prepared statements do not work here', { outcome: 'not-applied', retry: true }, error)
    }
  }
}

class Late extends Refusal {}
const tooLate = () => new Late('the database did not answer in time', { outcome: 'unknown', retry: false })

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
