import { setImmediate } from 'node:timers'
import type { StoreOperation } from '../../../src/contract/errors.ts'
import { type Failure, Refusal, storeError, tooLate } from '../retry.ts'
import { sqliteFailure } from './client.ts'

/** The longest pause between two tries, in ms. Each try may block the event loop for SQLite's own waiting. */
const LONGEST_PAUSE = 25

interface Waiting {
  readonly operation: StoreOperation
  readonly end: number
  readonly attempt: () => unknown
  // biome-ignore lint/suspicious/noExplicitAny: the answers of different verbs wait in one queue
  readonly resolve: (value: any) => void
  readonly reject: (error: unknown) => void
  readonly timer: NodeJS.Timeout
}

const failureOf = (error: unknown): Failure => (error instanceof Refusal ? error.failure : sqliteFailure(error))

/**
 * Calls that may meet a lock of another connection. While none waits, a call runs at once. As soon as one has to wait,
 * the others queue behind it without a try of their own: 200 waiting calls cost as many tries as one. A call that is given
 * up leaves the queue and is not tried again.
 */
export class Turns {
  readonly #waiting = new Set<Waiting>()
  #trying = false
  #pause = 0
  #refusal: unknown

  /**
   * Runs `attempt`, which is synchronous, now or in its turn. What succeeds at once is answered without a promise. Every
   * failure becomes a `SessionStoreError`.
   */
  run<T>(operation: StoreOperation, end: number, attempt: () => T): T | Promise<T> {
    if (performance.now() >= end) throw tooLate(operation)
    if (!this.#trying)
      try {
        return attempt()
      } catch (error) {
        const failure = failureOf(error)
        if (!failure.retry) throw storeError(operation, failure, error)
        this.#refusal = error
      }
    return new Promise<T>((resolve, reject) => {
      const timer = setTimeout(() => this.#giveUp(waiting), Math.max(1, end - performance.now()))
      const waiting: Waiting = { operation, end, attempt, resolve, reject, timer }
      this.#waiting.add(waiting)
      if (!this.#trying) this.#tryLater()
    })
  }

  /** Whether the call is over, one way or the other. */
  #try({ operation, attempt, resolve, reject }: Waiting): boolean {
    try {
      resolve(attempt())
    } catch (error) {
      const failure = failureOf(error)
      if (failure.retry) {
        this.#refusal = error
        return false
      }
      reject(storeError(operation, failure, error))
    }
    return true
  }

  #tryLater(): void {
    this.#trying = true
    this.#pause = Math.min(Math.max(2, this.#pause * 2), LONGEST_PAUSE)
    // Not the same pause in each process: those that met once would meet again.
    const pause = this.#pause * (0.5 + Math.random() / 2)
    // A timer counts from the beginning of this turn of the event loop: what the try has blocked of it is no pause.
    setImmediate(() => setTimeout(() => this.#tryFirst(), pause))
  }

  #tryFirst(): void {
    for (const waiting of this.#waiting) {
      if (performance.now() >= waiting.end) this.#giveUp(waiting)
      else if (this.#try(waiting)) {
        this.#leave(waiting)
        // The lock is free: the next one needs no pause, but the event loop runs in between.
        this.#pause = 0
        setImmediate(() => this.#tryFirst())
        return
      } else {
        this.#tryLater()
        return
      }
    }
    this.#trying = false
    this.#pause = 0
  }

  #giveUp(waiting: Waiting): void {
    this.#leave(waiting)
    waiting.reject(storeError(waiting.operation, failureOf(this.#refusal), this.#refusal))
  }

  #leave(waiting: Waiting): void {
    clearTimeout(waiting.timer)
    this.#waiting.delete(waiting)
  }
}
