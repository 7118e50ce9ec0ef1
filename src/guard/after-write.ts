// What the failure of a method says that writes more than once: "not applied" is told of one call of the store, and the
// caller asks about the method.
import { SessionStoreError } from '../contract/errors.ts'

/** The same failure, of a method that has written something before. The guard has told it as an event already. */
const asUnknown = (error: unknown): unknown =>
  error instanceof SessionStoreError && error.outcome === 'not-applied'
    ? new SessionStoreError(error.operation, 'unknown', error.message, { cause: error })
    : error

/**
 * Runs a step of a method whose earlier step was written.
 * @throws SessionStoreError with outcome 'unknown', whatever the step itself may have written
 */
export async function afterWrite<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (error) {
    throw asUnknown(error)
  }
}

/** The writes of a method that makes any number of them, also at once. */
export class Writes {
  #areAny = false

  /** Something is written. */
  note(): void {
    this.#areAny = true
  }

  /** @throws SessionStoreError with outcome 'unknown' if an earlier one was written, or may have been */
  async run<T>(write: () => Promise<T>): Promise<T> {
    try {
      const value = await write()
      this.note()
      return value
    } catch (error) {
      const told = this.failure(error)
      if (error instanceof SessionStoreError && error.outcome === 'unknown') this.note()
      throw told
    }
  }

  /** What to throw for a failure, by what was written until now. */
  failure(error: unknown): unknown {
    return this.#areAny ? asUnknown(error) : error
  }
}
