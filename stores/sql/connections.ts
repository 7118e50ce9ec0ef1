import type { StoreOperation } from '../../src/contract/errors.ts'
import { Deadlines } from '../../src/time/deadlines.ts'
import { Clocks } from './clocks.ts'
import { Lender } from './lending.ts'
import { cameLate, type Failure, Refusal, retry } from './retry.ts'
import { bind, follow, type Outcome, plain, type Statement, type Steps, type Value, type Values } from './statement.ts'
import type { TransactionDatabase } from './transaction-store.ts'

/** How long a connection may take to become usable again once its caller has the answer, in ms. */
export const CLEANING_UP = 2000

/**
 * What an error of a driver means.
 * - `'lost'`: the connection is gone, its statement may have been run;
 * - `'uncertain'`: the statement may have been run;
 * - `'busy'`: nothing was written, the same statement may succeed;
 * - `'unusable'`: nothing was written, the same statement may succeed on another connection;
 * - `'wrong-server'`: nothing was written, the server takes no writes: the address may lead to another one by now;
 * - `'late'`: the statement was refused because its deadline is over;
 * - `'foreign'`: the tables are not those that the statement expects;
 * - `'duplicate'`: the key is taken;
 * - `'refused'`: nothing was written, for another reason.
 */
export type Fault =
  | 'lost'
  | 'uncertain'
  | 'busy'
  | 'unusable'
  | 'wrong-server'
  | 'late'
  | 'foreign'
  | 'duplicate'
  | 'refused'

/** The faults after which a connection is closed. */
const CLOSING: ReadonlySet<Fault> = new Set(['lost', 'unusable', 'wrong-server'])

/** The connection is of no use any more. */
export class Broken extends Refusal {}

/** The answer did not come in time. The statement may still run at the server. */
export class Late extends Broken {
  /** The answer that did not come. */
  readonly pending: Promise<unknown>
  constructor(pending: Promise<unknown>, outcome: 'unknown' | 'not-applied' = 'unknown') {
    super('the database did not answer in time', { outcome, retry: false })
    this.pending = pending
  }
}

/**
 * A statement by itself has to find its connection idle: in a transaction that was left open, a write is undone with it
 * later, and a read may see nothing of what was committed since. Closing the connection undoes the transaction.
 */
const notIdle = (open: 'begun' | 'autocommit off') =>
  open === 'begun'
    ? new Broken('a connection came back to the pool with a transaction open', { outcome: 'not-applied', retry: true })
    : new Broken('autocommit is off on the connections of this pool: no write would be committed, no logout seen', {
        outcome: 'not-applied',
        retry: false,
      })

/** Takes connections from a pool, each for one statement or one transaction, and gives them back sound. */
export abstract class Connections<C extends object> implements TransactionDatabase {
  readonly #clocks = new Clocks()
  protected readonly deadlines = new Deadlines()
  readonly #lender = new Lender<C>(
    this.deadlines,
    answer => this.connect(answer),
    connection => this.giveBack(connection, true),
  )

  /** What opens a READ COMMITTED transaction: each statement sees what was committed before it began. */
  protected abstract readonly begin: readonly string[]
  /** What ends one, and the connection is as it was before. */
  protected readonly commit: string = 'COMMIT'
  protected readonly rollBack: string = 'ROLLBACK'
  /** The first statement on a connection; its first cell is the server's clock, in epoch ms. */
  protected abstract readonly greeting: Statement

  /** Asks the pool for a connection that has our 'error' listener. */
  protected abstract connect(answer: (error: unknown, connection?: C) => void): void
  protected abstract giveBack(connection: C, sound: boolean): void
  protected abstract send(connection: C, statement: Statement, values: unknown[]): Promise<Outcome>
  protected abstract faultOf(error: unknown): Fault
  /** What a caller learns whose time is over before the answer. */
  protected late(_: C, pending: Promise<unknown>): Late {
    return new Late(pending)
  }
  /** Ends a statement that was given up, and gives its connection back; `rollBack` where it is in a transaction. */
  protected abstract abandon(connection: C, late: Late, rollBack?: () => Promise<unknown>): void

  /** The connection itself, where the driver wraps it anew each time. */
  protected identity(connection: C): object {
    return connection
  }
  /** Whether the greeting is due before any statement, not only before one with a deadline. */
  protected isStranger(_: C): boolean {
    return false
  }
  protected greeted(_: C, _cells: readonly unknown[]): void {}
  /** Whether a transaction may be open already: the driver does not know, or its server has one. */
  protected mayBeOpen(_: C): boolean {
    return false
  }
  /** Makes the server roll back by itself where the COMMIT has not come by `end`. */
  protected async boundCommit(_: C, _end: number): Promise<void> {}
  protected async committed(_: C, _end: number): Promise<void> {}

  isDuplicate(error: unknown): boolean {
    return this.faultOf(error) === 'duplicate'
  }

  read<T>(operation: StoreOperation, end: number, steps: () => Steps<T>): Promise<T> {
    return this.write(operation, end, steps)
  }

  write<T>(operation: StoreOperation, end: number, steps: () => Steps<T>): Promise<T> {
    const attempt = () => follow(steps(), (statement, values) => this.run(statement, values, end))
    return retry(operation, end, this.#failureOf, attempt)
  }

  transaction<T>(operation: StoreOperation, end: number, steps: () => Steps<T>, inTime: boolean): Promise<T> {
    return retry(operation, end, this.#failureOf, () => this.#together(end, steps(), inTime))
  }

  /** What `taken` makes of one SELECT by itself, its values bound. Every failure becomes a `SessionStoreError`. */
  select<T>(statement: Statement, values: Value[], end: number, taken: (outcome: Outcome) => T): Promise<T> {
    return retry('read', end, this.#failureOf, () => this.#select(statement, values, end).then(taken))
  }

  // Not by the `query` of the pool: a SELECT that waits for a lock would stay at the server when its readers give up, and
  // the next one would take its place in the pool, to wait beside it. Here it is cancelled or its connection closed.
  #select(statement: Statement, values: Value[], end: number): Promise<Outcome> {
    const send = (connection: C) => this.#sendBound(connection, statement, values, end)
    return this.#alone(end, connection =>
      this.isStranger(connection) ? this.#greet(connection, end).then(() => send(connection)) : send(connection),
    )
  }

  /** One statement by itself. */
  run(statement: Statement, values: Values, end: number): Promise<Outcome> {
    return this.#alone(end, connection => this.#ask(connection, statement, values, end))
  }

  /** One statement by itself, sent by `work` on a connection that it has for itself. */
  async #alone(end: number, work: (connection: C) => Promise<Outcome>): Promise<Outcome> {
    const connection = await this.take(end)
    try {
      const outcome = await work(connection)
      if (outcome.open !== undefined) throw notIdle(outcome.open)
      this.#done(connection)
      return outcome
    } catch (error) {
      const isReadOnly = !(error instanceof Refusal) && this.faultOf(error) === 'wrong-server'
      const reason = isReadOnly ? await this.#unlessOpen(connection, error, end) : error
      this.#release(connection, reason)
      throw this.#explained(reason)
    }
  }

  /** The error, or what says so where not the server but a transaction that was left open takes no writes. */
  async #unlessOpen(connection: C, error: unknown, end: number): Promise<unknown> {
    const open = await this.sendWithin(connection, this.greeting, {}, end).then(
      outcome => outcome.open,
      // PostgreSQL takes nothing in a transaction in which a statement has failed.
      failed => (!(failed instanceof Refusal) && this.faultOf(failed) === 'unusable' ? 'begun' : undefined),
    )
    return open === undefined ? error : notIdle(open)
  }

  /** A connection, before `end`; `urgent`: before all others that wait. */
  protected take(end: number, urgent = false): Promise<C> {
    return this.#lender.take(end, urgent)
  }

  /** Sends one statement as it is. */
  protected sendWithin(connection: C, statement: Statement, values: Values, end: number): Promise<Outcome> {
    return this.#sendBound(connection, statement, bind(statement, values), end)
  }

  #sendBound(connection: C, statement: Statement, values: Value[], end: number): Promise<Outcome> {
    const pending = this.send(connection, statement, values)
    return this.deadlines.within(end, pending, () => this.late(connection, pending))
  }

  async #together<T>(end: number, steps: Steps<T>, inTime: boolean): Promise<T> {
    const connection = await this.take(end)
    const simple = (text: string) => this.sendWithin(connection, plain(text), {}, end)
    let committing = false
    try {
      // Where a BEGIN in a transaction is a warning only, our COMMIT would commit what the application gave up.
      if (this.mayBeOpen(connection)) {
        const { open } = await this.sendWithin(connection, this.greeting, {}, end)
        if (open !== undefined) throw notIdle(open)
      }
      for (const text of this.begin) await simple(text)
      const value = await follow(steps, (statement, values) => this.#ask(connection, statement, values, end))
      if (inTime) await this.boundCommit(connection, end)
      committing = true
      await simple(this.commit)
      await this.committed(connection, end)
      this.#done(connection)
      return value
    } catch (error) {
      this.#release(connection, error, () => this.send(connection, plain(this.rollBack), []))
      const { outcome, retry } = error instanceof Refusal ? error.failure : this.#failureOf(error)
      if (committing && outcome === 'unknown') throw error
      // Before COMMIT was sent, a lost connection means a rollback.
      throw new Refusal((error as Error).message, { outcome: 'not-applied', retry }, this.#explained(error))
    }
  }

  async #ask(connection: C, statement: Statement, values: Values, end: number): Promise<Outcome> {
    const { timed = false } = statement
    if (!timed && !this.isStranger(connection)) return this.sendWithin(connection, statement, values, end)
    const identity = this.identity(connection)
    let deadline = this.#clocks.until(identity, end)
    if (deadline === null) {
      await this.#greet(connection, end)
      deadline = this.#clocks.until(identity, end) as number
    }
    try {
      return await this.sendWithin(connection, statement, { ...values, deadline }, end)
    } catch (error) {
      if (!timed || this.faultOf(error) !== 'late') throw error
      this.#clocks.forget(identity)
      throw cameLate(error)
    }
  }

  async #greet(connection: C, end: number): Promise<void> {
    const cells = (await this.sendWithin(connection, this.greeting, {}, end)).rows[0]!
    this.#clocks.learn(this.identity(connection), Number(cells[0]))
    this.greeted(connection, cells)
  }

  #done(connection: C): void {
    if (this.#clocks.isOld(this.identity(connection)))
      this.#greet(connection, performance.now() + CLEANING_UP).then(
        () => this.giveBack(connection, true),
        error => this.#release(connection, error),
      )
    else this.giveBack(connection, true)
  }

  // A connection that may be inside a transaction is rolled back or closed, never given back as it is. The rollback need
  // not come within the caller's time, which is over where a wait for a lock was: the connection is sound all the same.
  #release(connection: C, error: unknown, rollBack?: () => Promise<unknown>): void {
    if (error instanceof Late) this.abandon(connection, error, rollBack)
    else if (this.#breaks(error)) this.giveBack(connection, false)
    else if (rollBack === undefined) this.giveBack(connection, true)
    else {
      const end = performance.now() + CLEANING_UP
      this.deadlines
        .within(end, rollBack(), () => null)
        .then(
          () => this.giveBack(connection, true),
          () => this.giveBack(connection, false),
        )
    }
  }

  readonly #failureOf = (error: unknown): Failure => {
    const fault = this.faultOf(error)
    const outcome = fault === 'lost' || fault === 'uncertain' ? 'unknown' : 'not-applied'
    return { outcome, retry: fault === 'busy' || fault === 'unusable' }
  }

  /** Whether the connection is of no use after this error. */
  #breaks(error: unknown): boolean {
    return error instanceof Refusal ? error instanceof Broken : CLOSING.has(this.faultOf(error))
  }

  #explained(error: unknown): unknown {
    if (error instanceof Refusal || this.faultOf(error) !== 'foreign') return error
    return new Refusal(
      `${(error as Error).message} (is the table of another schema? migrate() creates it, or names the difference)`,
      { outcome: 'not-applied', retry: false },
      error,
    )
  }
}
