// An engine over a pool of connections. Each call takes one, and gives it back or destroys it.
import type { Dialect, Engine, Mode, Outcome, Row, Steps, Values } from './engine.ts'
import { follow } from './engine.ts'
import { type Ask, answerBy, type Failure, Refusal, TooLate } from './retry.ts'

/** How long a connection may take to end a statement that was given up, and how often the server is asked to, in ms. */
const ENDING = 2000
const ASK_AGAIN = 250
/** A replica's connection that was met this long ago is destroyed: the address may lead to the primary by now, in ms. */
const LEAVE_AGAIN = 3000
/** The longest time of a timer, in ms. */
export const NEVER = 2 ** 31 - 1

/** The driver of one client, for the engine. */
export interface Driver<C extends object> {
  readonly dialect: Dialect
  /** Asks the pool for a connection. */
  connect(answer: (error: unknown, connection?: C) => void): void
  /** Gives a connection back, or destroys it. */
  release(connection: C, destroy: boolean): void
  /** Sends one statement. The answer comes once, in a later turn; without an outcome it is an error. */
  send(connection: C, sql: string, values: Values, answer: (error: unknown, outcome?: Outcome) => void): void
  /** Asks the server to end the statement of this connection. Called again every 250 ms until that is over, for 2 s at most. */
  cancel(connection: C): void
  /** The statements that begin a READ COMMITTED transaction. The server rolls it back by itself after `ms`. */
  begin(ms: number): readonly string[]
  readonly commit: string
  readonly rollBack: string
  /** Whether a transaction was open after the last answer, by the driver's public status. */
  isOpen(connection: C): boolean
  failureOf(error: unknown): Failure
  /** Asks whether the server of a connection is a replica (`replica` = 1). Absent if the client keeps its connections to itself. */
  readonly isReplica?: string
}

/** What is known of a connection, on the scale of `performance.now()`. */
interface Known {
  readonly metAt: number
  askedAt: number
  /** When the server was asked that answered as a primary. */
  primaryAt: number
}

// The application left a transaction open. Destroying the connection rolls it back, with our statements in it; they run again
// on another connection.
const leftOpen = (cause?: unknown) =>
  new Refusal('a connection came back to the pool with a transaction open', { retry: true, destroy: true }, cause)

type Send = (sql: string, values: Values) => Promise<Outcome>

export class PoolEngine<C extends object> implements Engine {
  readonly dialect: Dialect
  readonly #driver: Driver<C>
  /** Called when a statement that was given up is answered after all. */
  readonly #givenUp = new Map<C, () => void>()
  readonly #known = new WeakMap<C, Known>()
  /** When a server last refused a write as read-only. What a connection of before answers may be out of date: a logged-out session. */
  #refusedAt = Number.NEGATIVE_INFINITY

  constructor(driver: Driver<C>) {
    this.dialect = driver.dialect
    this.#driver = driver
  }

  readonly failureOf = (error: unknown): Failure => this.#driver.failureOf(error)

  run<T>(mode: Mode, end: number, steps: () => Steps<T>): Promise<T> {
    return this.#on(mode, end, ask => follow(steps(), ask))
  }

  async select(text: string, values: Values, end: number): Promise<readonly Row[]> {
    return (await this.#on('read', end, ask => ask(text, values))).rows
  }

  /** Lets `work` ask on a connection of its own. */
  async #on<T>(mode: Mode, end: number, work: (ask: Send) => Promise<T>): Promise<T> {
    const driver = this.#driver
    const connection = await this.#take(end)
    const ask = (sql: string, values: Values) => this.#ask(connection, sql, values, end)
    const isTogether = mode === 'together'
    let committing = false
    try {
      await this.#believe(connection, ask)
      if (isTogether) {
        // In an open transaction BEGIN is only a warning, and our COMMIT would commit the application's work. Its own COMMIT
        // may be on its way, so ask once: the answer to that comes first.
        if (driver.isOpen(connection)) await ask('SELECT 1', {})
        if (driver.isOpen(connection)) throw leftOpen()
        for (const text of driver.begin(leftUntil(end))) await ask(text, {})
      }
      const answer = await work(ask)
      // Steps may ignore a statement that was given up. Its connection is about to be destroyed.
      if (this.#givenUp.has(connection)) return answer
      committing = isTogether
      if (isTogether) await ask(driver.commit, {})
      if (driver.isOpen(connection)) throw leftOpen()
      driver.release(connection, false)
      return answer
    } catch (error) {
      const reason = error instanceof Refusal || !driver.isOpen(connection) || isTogether ? error : leftOpen(error)
      const failure = reason instanceof Refusal ? reason.failure : driver.failureOf(reason)
      if (failure.isReadOnly) this.#refusedAt = performance.now()
      if (this.#givenUp.has(connection)) throw isTogether && !committing ? rolledBack(reason, failure) : reason
      if (failure.destroy) driver.release(connection, true)
      else if (isTogether && !committing) this.#rollBack(connection)
      else driver.release(connection, isTogether)
      throw isTogether && !committing ? rolledBack(reason, failure) : reason
    }
  }

  /** After a write was refused as read-only: each connection has to show that it leads to a primary before it is used again. */
  async #believe(connection: C, ask: Send): Promise<void> {
    const { isReplica } = this.#driver
    if (isReplica === undefined) return
    const now = performance.now()
    const never = Number.NEGATIVE_INFINITY
    const known = this.#known.get(connection) ?? { metAt: now, askedAt: never, primaryAt: never }
    this.#known.set(connection, known)
    if (known.primaryAt < this.#refusedAt && now - known.askedAt > ASK_AGAIN) {
      known.askedAt = now
      const { rows } = await ask(isReplica, {}).catch(error => {
        throw new Refusal((error as Error).message, { retry: true, destroy: true }, error)
      })
      if (Number(rows[0]?.replica) === 0) known.primaryAt = now
    }
    if (known.primaryAt >= this.#refusedAt) return
    throw new Refusal('read-only: this server became a replica, which may not have the last logouts', {
      retry: true,
      destroy: now - known.metAt > LEAVE_AGAIN,
    })
  }

  /** Takes a connection before `end`. One that comes later goes back at once. */
  #take(end: number): Promise<C> {
    let isLate = false
    const take: Ask<C> = (resolve, reject) => {
      const answer = (error: unknown, connection?: C) => {
        if (error instanceof Refusal) reject(error)
        else if (connection === undefined) reject(new Refusal('no connection to the database', {}, error))
        else if (isLate) this.#driver.release(connection, false)
        else resolve(connection)
      }
      try {
        this.#driver.connect(answer)
      } catch (error) {
        answer(error)
      }
    }
    const late = () => {
      isLate = true
      return new Refusal('no connection of the pool became free in time')
    }
    return answerBy(end, take, late)
  }

  #ask(connection: C, sql: string, values: Values, end: number): Promise<Outcome> {
    if (performance.now() >= end) throw new TooLate()
    const send: Ask<Outcome> = (resolve, reject) =>
      this.#driver.send(connection, sql, values, (error, outcome) => {
        this.#givenUp.get(connection)?.()
        if (outcome === undefined) reject(error)
        else resolve(outcome)
      })
    const late = () => {
      this.#giveUp(connection)
      return new Refusal('the database did not answer in time', { outcome: 'unknown' })
    }
    return answerBy(end, send, late)
  }

  // A statement that waits for a lock outlives its connection, so it must be cancelled. The connection is kept until the
  // server has answered, then destroyed: a late cancel would hit the next caller's statement. We ask again and again, since a
  // cancel request that overtakes its statement cancels nothing.
  #giveUp(connection: C): void {
    const over = () => {
      clearInterval(again)
      clearTimeout(last)
      this.#givenUp.delete(connection)
      this.#driver.release(connection, true)
    }
    const again = setInterval(() => this.#driver.cancel(connection), ASK_AGAIN)
    const last = setTimeout(over, ENDING)
    this.#givenUp.set(connection, over)
    this.#driver.cancel(connection)
  }

  // The caller does not wait for it.
  #rollBack(connection: C): void {
    this.#ask(connection, this.#driver.rollBack, {}, performance.now() + ENDING).then(
      () => this.#driver.release(connection, false),
      () => {
        if (!this.#givenUp.has(connection)) this.#driver.release(connection, true)
      },
    )
  }
}

/** Whatever went wrong: before its COMMIT a transaction has written nothing. */
const rolledBack = (error: unknown, failure: Failure) =>
  new Refusal((error as Error).message, { ...failure, outcome: 'not-applied' }, error)

const leftUntil = (end: number) => Math.min(NEVER, Math.max(1, Math.ceil(end - performance.now())))
