import { SessionStoreError } from '../contract/errors.ts'

/**
 * A later step of a verb that has written already. 'not-applied' says that certainly nothing was written, which is not so
 * for the verb, where it is so for the step.
 */
export async function afterWrite<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (error) {
    if (!(error instanceof SessionStoreError) || error.outcome !== 'not-applied') throw error
    throw new SessionStoreError(error.operation, 'unknown', error.message, { cause: error })
  }
}
