import type { StoreOperation } from '../../../src/contract/errors.ts'
import { Deadlines } from '../../../src/time/deadlines.ts'
import { Clocks } from '../clocks.ts'
import { cameLate, type Failure, notBegun, Refusal, retry } from '../retry.ts'
import { bind, follow, type Outcome, type Statement, type Steps, type Value, type Values } from '../statement.ts'
import type { Database } from '../store.ts'
import { GREETING, IN_TIME, LATE } from './statements.ts'

/** One statement as a client sends it. */
export interface Query {
  readonly sql: string
  readonly values: readonly Value[]
}

/** A SQLite database on a network, by what its client can do. */
export interface RemoteSqlite {
  /** One statement that only reads. */
  read(query: Query): Promise<Outcome>
  /** Statements that are committed together or not at all, an outcome for each. */
  batch(queries: readonly Query[]): Promise<readonly Outcome[]>
  /** What an error of the client says about what it sent. */
  failureOf(error: unknown): Failure
}

export type Step = readonly [statement: Statement, values: Values]

/** How many calls that were given up may still be without an answer. A client keeps each until it has one. */
const MOST_UNANSWERED = 256

/** Sends each statement, or several that belong together, as a transaction of its own: none waits for an answer in the middle. */
export class Batches implements Database {
  readonly #remote: RemoteSqlite
  readonly #clocks = new Clocks()
  readonly #deadlines = new Deadlines()
  #unanswered = 0

  constructor(remote: RemoteSqlite) {
    this.#remote = remote
  }

  /** What `taken` makes of one statement that only reads. */
  select<T>(step: Step, end: number, taken: (outcome: Outcome) => T): Promise<T> {
    return this.#retry('read', end, async () => taken(await this.#ask(step, end)))
  }

  read<T>(operation: StoreOperation, end: number, steps: () => Steps<T>): Promise<T> {
    return this.#retry(operation, end, () =>
      follow(steps(), (statement, values) => this.#ask([statement, values], end)),
    )
  }

  write<T>(operation: StoreOperation, end: number, steps: () => Steps<T>): Promise<T> {
    return this.#retry(operation, end, () =>
      follow(steps(), async (...step) => (await this.#sendInTime([step], end))[0]!),
    )
  }

  /** What `taken` makes of the outcomes of statements that are committed together, and never after `end`. */
  together<T>(
    operation: StoreOperation,
    end: number,
    steps: readonly Step[],
    taken: (outcomes: readonly Outcome[]) => T,
  ): Promise<T> {
    return this.#retry(operation, end, async () => taken(await this.#sendInTime(steps, end)))
  }

  #retry<T>(operation: StoreOperation, end: number, attempt: () => Promise<T>): Promise<T> {
    return retry(operation, end, error => this.#remote.failureOf(error), attempt)
  }

  // What was given up may still be on its way: it carries its deadline on the database's clock.
  async #sendInTime(steps: readonly Step[], end: number): Promise<readonly Outcome[]> {
    let deadline = this.#clocks.until(this, end)
    if (deadline === null) {
      this.#learn(await this.#ask([GREETING, {}], end))
      deadline = this.#clocks.until(this, end) as number
    }
    const queries = [[IN_TIME, { deadline }] as const, ...steps].map(queryOf)
    try {
      const outcomes = await this.#answer(end, () => this.#remote.batch(queries))
      if (outcomes.length !== queries.length) throw unfit('has not answered each statement of a batch')
      this.#learn(outcomes[0]!)
      return outcomes.slice(1)
    } catch (error) {
      if (!LATE.test((error as Error).message)) throw error
      this.#clocks.forget(this)
      throw cameLate(error)
    }
  }

  #ask(step: Step, end: number): Promise<Outcome> {
    return this.#answer(end, () => this.#remote.read(queryOf(step)))
  }

  #learn({ rows }: Outcome): void {
    const clock = Number(rows[0]?.[0])
    if (!Number.isSafeInteger(clock)) throw unfit('does not tell the clock of the database')
    this.#clocks.learn(this, clock)
  }

  async #answer<T>(end: number, send: () => Promise<T>): Promise<T> {
    if (performance.now() >= end) throw notBegun('the deadline passed before the database was asked')
    if (this.#unanswered >= MOST_UNANSWERED)
      throw notBegun(`the database has not answered ${MOST_UNANSWERED} calls that were given up`)
    let isGivenUp = false
    const work = Promise.resolve(send())
    const settled = () => {
      if (isGivenUp) this.#unanswered -= 1
    }
    work.then(settled, settled)
    return this.#deadlines.within(end, work, () => {
      isGivenUp = true
      this.#unanswered += 1
      return new Refusal('the database did not answer in time', { outcome: 'unknown', retry: false })
    })
  }
}

const queryOf = ([statement, values]: Step): Query => ({ sql: statement.text, values: bind(statement, values) })

/** The client is not what the store expects. It may have written. */
export const unfit = (what: string) =>
  new Refusal(`the driver ${what}`, { outcome: 'unknown', retry: false }, new TypeError(`the driver ${what}`))
