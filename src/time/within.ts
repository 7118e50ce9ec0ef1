import { nextTurn } from './next-turn.ts'

/** Also a promise of another realm, or of a library. */
export const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof (value as { then?: unknown } | null | undefined)?.then === 'function'

const asItIs = (value: unknown) => value as never

interface Outcomes<T, R> {
  /** Makes the caller's result from an answer in time. If it throws, that counts as a failure. @default the answer itself */
  readonly accept?: (answer: T) => R
  /** The caller's error if the answer is a failure. @default the failure itself */
  readonly failed?: (cause: unknown) => unknown
  /** The caller's error if there is no answer in time. */
  readonly late: () => unknown
  /** Called once there is an answer, in time or not. */
  readonly settled?: () => void
}

/**
 * The answer by a deadline (on the scale of `performance.now()`). After the deadline nothing refers to the caller any more,
 * because a promise that never settles keeps all that waits for it.
 */
export function within<T, R = T>(
  deadline: number,
  answer: PromiseLike<T>,
  { accept = asItIs, failed = asItIs, late, settled }: Outcomes<T, R>,
): Promise<R> {
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined
    let caller: { resolve(value: R): void; reject(error: unknown): void } | null = { resolve, reject }
    /** Once: whatever comes later has nobody to tell. */
    const takeCaller = () => {
      const waiting = caller
      caller = null
      clearTimeout(timer)
      return waiting
    }
    answer.then(
      value => {
        settled?.()
        const waiting = takeCaller()
        try {
          waiting?.resolve(accept(value))
        } catch (cause) {
          waiting?.reject(failed(cause))
        }
      },
      cause => {
        settled?.()
        takeCaller()?.reject(failed(cause))
      },
    )
    // After a long turn of the event loop timers come before sockets: answers that arrived in time are read first.
    const ring = () => nextTurn(() => takeCaller()?.reject(late()))
    // A timer with a longer delay than 2 ** 31 - 1 ms fires at once.
    if (caller) timer = setTimeout(ring, Math.min(Math.max(1, Math.ceil(deadline - performance.now())), 2 ** 31 - 1))
  })
}
