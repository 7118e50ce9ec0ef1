// Calls that have to fail, and a process that has to survive it.
import { SessionStoreError } from 'coatcheck'
import { expect } from 'vitest'

/** The error of a call that has to fail. */
export const failure = (call: unknown): Promise<SessionStoreError> =>
  Promise.resolve(call).then(
    value => expect.unreachable(`answered ${JSON.stringify(value)}`),
    error => {
      expect(error).toBeInstanceOf(SessionStoreError)
      return error
    },
  )

/** Fails on an uncaught error or an unhandled rejection, which end a process outside of a test runner. */
export async function survive(work: () => Promise<void>): Promise<void> {
  const uncaught: unknown[] = []
  const note = (error: unknown) => uncaught.push(error)
  process.on('uncaughtException', note)
  process.on('unhandledRejection', note)
  try {
    await work()
  } finally {
    process.off('uncaughtException', note)
    process.off('unhandledRejection', note)
  }
  expect(uncaught).toEqual([])
}
