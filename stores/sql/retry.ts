import { isReading, SessionStoreError, type StoreOperation } from '../../src/contract/errors.ts'
import { withoutValues } from './causes.ts'

/** How long a call without a deadline waits and retries, in ms. */
const NO_DEADLINE = 10_000
/** So much before the deadline the store itself gives up, in ms: it knows more of the outcome than the caller's timer. */
const HEADSTART = 10

/** What a driver's error means: was anything written, and is the same call worth another try. */
export interface Failure {
  readonly outcome: 'not-applied' | 'unknown'
  readonly retry: boolean
}

/** Thrown inside the stores with what is known already. */
export class Refusal extends Error {
  readonly failure: Failure
  constructor(message: string, failure: Failure, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.failure = failure
  }
}

/** The call never reached the database. */
export const notBegun = (message: string, cause?: unknown) =>
  new Refusal(message, { outcome: 'not-applied', retry: false }, cause)

/** The input cannot be stored, or the driver is not what the store expects. */
export const unusable = (message: string) => notBegun(message, new TypeError(message))

/** The statement came to the database when its time was over, and was refused there. */
export const cameLate = (cause: unknown) =>
  new Refusal('the statement came to the database after its deadline', { outcome: 'not-applied', retry: true }, cause)

/** When a call with this deadline has to be over, on the scale of `performance.now()`. */
export const endOf = (deadline: number | undefined): number =>
  deadline === undefined ? performance.now() + NO_DEADLINE : deadline - HEADSTART

/** What the caller gets: neutral words, for they may reach a client; what the driver said is the cause. */
export function storeError(operation: StoreOperation, failure: Failure, error: unknown): SessionStoreError {
  // Nothing is lost by a read that failed.
  const outcome = isReading(operation) ? 'not-applied' : failure.outcome
  return new SessionStoreError(operation, outcome, `the session store failed in ${operation}`, {
    // Ours of a wrong input or driver says all there is to say.
    cause: error instanceof Refusal && error.cause instanceof TypeError ? error.cause : withoutValues(error),
  })
}

/** What the caller gets for input that the tables cannot keep. */
export function inputError(operation: StoreOperation, fault: string): SessionStoreError {
  const refusal = unusable(fault)
  return storeError(operation, refusal.failure, refusal)
}

export const tooLate = (operation: StoreOperation): SessionStoreError => {
  const late = notBegun('the deadline passed before the database was asked')
  return storeError(operation, late.failure, late)
}

/**
 * Runs `attempt` until it succeeds, fails for good, or `end` is near; between attempts it waits with full jitter, so that
 * two calls that met once do not meet again. Every failure becomes a `SessionStoreError`.
 */
export async function retry<T>(
  operation: StoreOperation,
  end: number,
  failureOf: (error: unknown) => Failure,
  attempt: () => Promise<T>,
): Promise<T> {
  for (let pause = 2; ; pause = Math.min(pause * 2, 50)) {
    if (performance.now() >= end) throw tooLate(operation)
    try {
      return await attempt()
    } catch (error) {
      const failure = error instanceof Refusal ? error.failure : failureOf(error)
      const wait = Math.random() * pause
      if (!failure.retry || performance.now() + wait >= end) throw storeError(operation, failure, error)
      await new Promise(resolve => setTimeout(resolve, wait))
    }
  }
}
