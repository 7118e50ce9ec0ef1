import { setImmediate } from 'node:timers'
import { CLEANING_UP, Connections, type Fault, Late } from '../connections.ts'
import { notBegun, Refusal } from '../retry.ts'
import type { Outcome, Statement } from '../statement.ts'
import { BEGIN, faultOf, GREETING, NOT_PREPARED, sqlState } from './server.ts'

// biome-ignore-start lint/suspicious/noExplicitAny: postgres types them more narrowly, by the types that the application adds
/** A query of `postgres` that has not been awaited yet. */
export interface PostgresJsQuery {
  raw(): PromiseLike<any> & { cancel(): unknown }
}
/** What the store uses of the `sql` of `postgres`, and of that of a transaction. */
export interface PostgresJsScope {
  unsafe(text: string, values?: any[], options?: { prepare?: boolean }): PostgresJsQuery
}
/** The `sql` that `postgres()` gives: its pool of connections. */
export interface PostgresJs extends PostgresJsScope {
  begin(options: string, work: (sql: any) => Promise<any>): Promise<any>
  readonly options: any
}
// biome-ignore-end lint/suspicious/noExplicitAny: postgres types them more narrowly, by the types that the application adds

/** What `begin` is told, which puts the word itself before it. */
const ISOLATION = BEGIN.replace('BEGIN ', '').toLowerCase()
const NOTHING: Outcome = { rows: [], changed: 0 }
/** query_canceled */
const CANCELED = '57014'
/** What ends a transaction that is rolled back. */
const ROLLED_BACK = Symbol('rolled back')
/** What postgres says of a pool that the application has closed. */
const CLOSED: ReadonlySet<unknown> = new Set(['CONNECTION_ENDED', 'CONNECTION_DESTROYED'])
const ignore = () => {}

/** A transaction under way: postgres ends it as the promise ends that its work gave. */
interface Transaction {
  readonly sql: PostgresJsScope
  commit(): void
  rollBack(): void
}

/**
 * A place in the pool. postgres chooses the connection of each statement by itself, and keeps one for a transaction only:
 * `reserve()` loses connections where the server is away for a moment.
 */
class Place {
  readonly #sql: PostgresJs
  #transaction: Transaction | null = null
  /** Fulfilled or rejected with the transaction. */
  #over: Promise<unknown> = Promise.resolve()
  #isOver = true
  #query: ReturnType<PostgresJsQuery['raw']> | null = null
  #committing = false

  constructor(sql: PostgresJs) {
    this.#sql = sql
  }

  /** Whether the server may have been asked; not where the statement, or the BEGIN, waits for a connection. */
  get isSent(): boolean {
    return this.#committing || (this.#query !== null && (this.#query as { state?: unknown }).state !== null)
  }

  begin(): Promise<Outcome> {
    this.#query = null
    this.#isOver = false
    return new Promise((resolve, reject) => {
      const work = (sql: PostgresJsScope) =>
        new Promise<void>((commit, rollBack) => {
          this.#transaction = { sql, commit, rollBack: () => rollBack(ROLLED_BACK) }
          resolve(NOTHING)
        })
      const ended = () => {
        this.#isOver = true
      }
      this.#over = this.#sql.begin(ISOLATION, work)
      this.#over.then(ended, error => {
        ended()
        reject(error)
      })
    })
  }

  async commit(): Promise<Outcome> {
    this.#committing = true
    // A statement on a connection that is gone would end the process: postgres writes to a socket that it has no more.
    if (!this.#isOver) this.#transaction?.commit()
    await this.#over
    this.#settled()
    return NOTHING
  }

  async rollBack(): Promise<Outcome> {
    if (!this.#isOver) this.#transaction?.rollBack()
    await this.#over.catch(error => {
      if (error !== ROLLED_BACK) throw error
    })
    this.#settled()
    return NOTHING
  }

  /** What comes now is no part of the transaction. */
  #settled(): void {
    this.#transaction = null
    this.#committing = false
  }

  async run(text: string, values: readonly unknown[], prepare: boolean): Promise<Outcome> {
    const transaction = this.#transaction
    if (transaction !== null && this.#isOver) {
      await this.#over
      throw notBegun('the transaction is over')
    }
    const cells = values.map(value => (Array.isArray(value) ? `{${value.join()}}` : value))
    // Raw, because an application may have told postgres to parse numbers, which would round user IDs.
    const query = (transaction?.sql ?? this.#sql).unsafe(text, cells, { prepare }).raw()
    this.#query = query
    const rows: (Uint8Array | null)[][] & { readonly count: number | null } = await query
    return { rows: rows.map(row => row.map(asText)), changed: rows.count ?? 0 }
  }

  /** Asks the server to end what it runs here. One that waits for a connection stays: postgres would lose that connection. */
  async cancel(): Promise<void> {
    if (this.isSent) await (this.#query?.cancel() as Promise<unknown> | undefined)?.catch(ignore)
  }

  /** Ends a transaction that is still open, unless its connection is gone. */
  leave(): void {
    setImmediate(() => {
      if (!this.#isOver) this.#transaction?.rollBack()
    })
  }
}

const asText = (cell: Uint8Array | null) => (cell === null ? null : (cell as Buffer).toString('utf8'))

/** The connections of `postgres`, as many statements and transactions at once as its pool has places. */
export class PostgresJsConnections extends Connections<Place> {
  protected readonly begin = [BEGIN]
  protected readonly greeting = GREETING
  readonly #sql: PostgresJs
  readonly #waiting: ((error: unknown, place?: Place) => void)[] = []
  #free: number
  #prepare: boolean
  /** All connections reach the servers of one clock, until one of them is lost: another server may have taken over. */
  #server = {}

  constructor(sql: PostgresJs, prepare: boolean) {
    super()
    this.#sql = sql
    this.#prepare = prepare
    const max = Number(sql.options?.max)
    this.#free = max >= 1 ? max : 10
  }

  protected override identity(): object {
    return this.#server
  }

  protected connect(answer: (error: unknown, place?: Place) => void): void {
    if (this.#free === 0) {
      this.#waiting.push(answer)
      return
    }
    this.#free -= 1
    answer(null, new Place(this.#sql))
  }

  protected giveBack(place: Place, sound: boolean): void {
    if (!sound) {
      this.#server = {}
      place.leave()
    }
    this.#free += 1
    const next = this.#waiting.shift()
    if (next !== undefined) this.connect(next)
  }

  protected async send(place: Place, { name, text }: Statement, values: unknown[]): Promise<Outcome> {
    if (text === BEGIN)
      return place.begin().catch(error => {
        throw withoutConnection(error)
      })
    if (text === 'COMMIT') return place.commit()
    if (text === 'ROLLBACK') return place.rollBack()
    const prepare = this.#prepare && name !== ''
    try {
      return await place.run(text, values, prepare)
    } catch (error) {
      if (!place.isSent) throw withoutConnection(error)
      if (!prepare || !NOT_PREPARED.has(sqlState(error) ?? '')) throw error
      this.#prepare = false
      throw new Refusal('prepared statements do not work here', { outcome: 'not-applied', retry: true }, error)
    }
  }

  // A cancel request names a connection and no statement: where the network held it up, it ends what runs there by then.
  protected faultOf(error: unknown): Fault {
    return sqlState(error) === CANCELED ? 'busy' : faultOf(error)
  }

  // What waits for a connection is sent once there is one, and then refused by the deadline that each write carries.
  protected override late(place: Place, pending: Promise<unknown>): Late {
    return new Late(pending, place.isSent ? 'unknown' : 'not-applied')
  }

  // postgres closes no single connection: the place is kept until the server has said that the statement is over, or the
  // connection is lost.
  protected async abandon(place: Place, { pending }: Late, rollBack?: () => Promise<unknown>): Promise<void> {
    const canceled = place.cancel()
    const over = pending
      .then(
        () => true,
        error => error instanceof Refusal || this.faultOf(error) !== 'lost',
      )
      .then(sound => (sound && rollBack !== undefined ? rollBack().then(() => true) : sound))
      .catch(() => false)
    const sound = await this.#settled(over)
    const end = performance.now() + CLEANING_UP
    await this.deadlines.within(end, canceled, () => notBegun('no answer to a cancel request')).catch(ignore)
    this.giveBack(place, sound)
  }

  /**
   * Whether the connection is sound, once what was given up is over. Where connections end under traffic postgres never
   * settles some statements: one that is not settled where a later one was answered counts as lost.
   */
  async #settled(over: Promise<boolean>): Promise<boolean> {
    for (;;) {
      const end = performance.now() + CLEANING_UP
      const inTime = await this.deadlines.within(end, over, () => null).catch(() => null)
      if (inTime !== null) return inTime
      const later = this.#sql
        .unsafe('SELECT 1', [], { prepare: false })
        .raw()
        .then(
          () => false,
          error => (CLOSED.has((error as { code?: unknown }).code) ? over : null),
        )
      const first = await Promise.race([over, later])
      if (first !== null) return first
    }
  }
}

// postgres gives the error that ended a connection once more, to what comes first on its successor.
function withoutConnection(error: unknown): Refusal {
  const retry = sqlState(error)?.startsWith('57P') === true
  return new Refusal('no connection to the database', { outcome: 'not-applied', retry }, error)
}

/** Whether it is the `sql` of `postgres`, rather than a pool of `pg`. */
export const isPostgresJs = (given: unknown): given is PostgresJs =>
  typeof given === 'function' && typeof (given as { unsafe?: unknown }).unsafe === 'function'

/** What the store sends, by the number of its type: text, a list of text, times, and user IDs that are numbers. */
const SENT: readonly (readonly [type: number, value: string | number])[] = [
  [25, 'a '],
  [1009, '{a,b}'],
  [20, 1_700_000_000_000],
]
const SENT_NUMBERS = [...SENT, [1700, '9007199254740993']] as const

/** Whether something else would be sent than the value as text. */
function isChanged(serialize: unknown, value: string | number): boolean {
  if (typeof serialize !== 'function') return false
  try {
    return serialize(value) !== String(value)
  } catch {
    return true
  }
}

/** Refuses a `sql` that is not the whole pool, or changes what is sent or what comes back. */
export function checkPostgresJs(sql: PostgresJs, userIds: 'bigint' | 'string'): PostgresJs {
  if (typeof sql.begin !== 'function')
    throw new TypeError(
      'PostgresStore expects the sql that postgres() gives, not that of a transaction or of reserve()',
    )
  if (typeof sql.options?.transform?.row?.from === 'function')
    throw new TypeError('PostgresStore cannot use a client with transform.row: give it one of its own')
  // A key that is changed on its way finds nothing, and by a user ID that is rounded two users are one.
  const { serializers } = sql.options ?? {}
  if ((userIds === 'string' ? SENT : SENT_NUMBERS).some(([type, value]) => isChanged(serializers?.[type], value)))
    throw new TypeError(
      'PostgresStore cannot use a client whose types change text or numbers on their way: give it one of its own',
    )
  return sql
}
