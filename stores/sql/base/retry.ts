// The retry loop of all methods, and the error that a caller gets.
import { setTimeout } from 'node:timers/promises'
import { isReading, SessionStoreError, type StoreOperation } from '../../../src/contract/errors.ts'
import { within } from '../../../src/time/within.ts'
import { withoutValues } from './causes.ts'

/** How long a call without a deadline waits and retries, in ms. */
const NO_DEADLINE = 10_000
/** The store gives up this many ms before the deadline, because its error tells more than the caller's timer. */
const HEADSTART = 10

/** What closes one connection closes others with it: in this time their pool hears of it, in ms. */
const CLOSING = 50

/** The meaning of an error. */
export interface Failure {
  /** Whether something may have been written. */
  readonly outcome: 'not-applied' | 'unknown'
  /** Whether the same call may succeed if it is tried again. */
  readonly retry: boolean
  /** Whether the connection must be destroyed. Only pools ask. */
  readonly destroy?: boolean
  /** Whether the server takes no writes: it may be a replica by now. Tried once more, on a server that says it is a primary. */
  readonly isReadOnly?: boolean
  /** What the developer can do about it. */
  readonly hint?: string
}

export const NOT_APPLIED: Failure = { outcome: 'not-applied', retry: false }
export const READ_ONLY: Failure = { ...NOT_APPLIED, destroy: true, isReadOnly: true }
/** For an error about a table or a column that is not there. */
export const NOT_MIGRATED: Failure = {
  ...NOT_APPLIED,
  hint: 'call `await store.migrate()`: it creates missing tables, and names the faults of others',
}

/** An error of the store's own, which says what it means. */
export class Refusal extends Error {
  readonly failure: Failure
  constructor(message: string, failure: Partial<Failure> = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.failure = { ...NOT_APPLIED, ...failure }
  }
}

/** Tells less than why it was tried before. */
export class TooLate extends Refusal {
  constructor() {
    super('the deadline passed before the database was asked')
  }
}

/** Another call changed something between two statements: the steps are run again. */
export const changedMeanwhile = () => new Refusal('changed meanwhile', { retry: true })

/** The driver does not do what the store expects of it. */
export const unusable = (message: string) => new Refusal(message, {}, new TypeError(message))

/** When a call has to be over, on the scale of `performance.now()`. */
export const endOf = (deadline: number | undefined): number =>
  deadline === undefined ? performance.now() + NO_DEADLINE : deadline - HEADSTART

/** Asks for what comes by a callback: a promise of its own for each question would cost as much as the question. */
export type Ask<T> = (resolve: (answer: T) => void, reject: (error: unknown) => void) => void
/** The answer by `end`; the error that `late` gives if there is none by then. */
export const answerBy = <T>(end: number, ask: Ask<T>, late: () => Refusal): Promise<T> =>
  // biome-ignore lint/suspicious/noThenProperty: nothing awaits it, `within` calls it once
  within(end, { then: ask } as PromiseLike<T>, { late })

/** The message is neutral, since it may reach a client; the driver's error is the cause. */
export function storeError(operation: StoreOperation, error: unknown, failure: Failure): SessionStoreError {
  const outcome = isReading(operation) ? 'not-applied' : failure.outcome
  return new SessionStoreError(operation, outcome, `${operation}: the store failed`, {
    cause: causeOf(error, failure),
  })
}

function causeOf(error: unknown, { hint }: Failure): unknown {
  if (error instanceof TypeError) return error
  if (error instanceof Refusal && error.cause instanceof TypeError) return error.cause
  return withoutValues(hint === undefined ? error : new Error(`${(error as Error).message}; ${hint}`, { cause: error }))
}

/**
 * Runs `attempt` until it succeeds, fails for good, or `end` is near; once more if a read met a closed connection, since
 * servers close idle ones, or a write a read-only server. Full jitter: two calls must not collide again.
 */
export async function retry<T>(
  operation: StoreOperation,
  end: number,
  failureOf: (error: unknown) => Failure,
  attempt: () => T | Promise<T>,
): Promise<T> {
  let mayRepeat = true
  let last: unknown
  for (let pause = 2; ; pause = Math.min(pause * 2, 50)) {
    try {
      if (performance.now() >= end) throw new TooLate()
      return await attempt()
    } catch (thrown) {
      const error = thrown instanceof TooLate ? (last ?? thrown) : thrown
      last = error
      const failure = error instanceof Refusal ? error.failure : failureOf(error)
      const isRepeated = mayRepeat && failure.destroy === true && (isReading(operation) || failure.isReadOnly === true)
      if (isRepeated) mayRepeat = false
      const wait = isRepeated ? CLOSING : Math.random() * pause
      if (!(failure.retry || isRepeated) || performance.now() + wait >= end) throw storeError(operation, error, failure)
      await setTimeout(wait)
    }
  }
}
