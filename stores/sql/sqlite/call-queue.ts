import { setImmediate } from 'node:timers/promises'
import { type Failure, Refusal } from '../base/retry.ts'

/** The longest pause between two tries, in ms. Each try may block the event loop while SQLite itself waits. */
const LONGEST_PAUSE = 25

interface Waiting {
  readonly end: number
  readonly attempt: () => unknown
  // biome-ignore lint/suspicious/noExplicitAny: the answers of different methods wait in one queue
  readonly resolve: (value: any) => void
  readonly reject: (error: unknown) => void
  readonly timer: NodeJS.Timeout
}

/**
 * A queue of calls that may meet a lock of another connection. If no call waits, a call runs at once. If one has to wait,
 * later calls queue behind it, and only the first tries again, so 200 waiting calls cost no more tries than one. A call that
 * is given up leaves the queue.
 */
export class CallQueue {
  readonly #failureOf: (error: unknown) => Failure
  readonly #waiting = new Set<Waiting>()
  /** The error of the last try. */
  #lock: unknown

  constructor(failureOf: (error: unknown) => Failure) {
    this.#failureOf = failureOf
  }

  /** Runs `attempt`, which is synchronous, now or when those before it are done. An answer that comes at once comes without a promise. */
  run<T>(end: number, attempt: () => T): T | Promise<T> {
    if (this.#waiting.size === 0)
      try {
        return attempt()
      } catch (error) {
        if (!this.#meetsLock(error)) throw error
      }
    return new Promise<T>((resolve, reject) => {
      const timer = setTimeout(() => this.#giveUp(waiting), Math.max(1, end - performance.now()))
      const waiting: Waiting = { end, attempt, resolve, reject, timer }
      this.#waiting.add(waiting)
      if (this.#waiting.size === 1) void this.#serve()
    })
  }

  async #serve(): Promise<void> {
    for (let pause = 2; this.#waiting.size > 0; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
      // Timers count from the beginning of this turn, so the time that the last try blocked would be part of the pause.
      await setImmediate()
      // Not the same pause in each process: those that met once would meet again.
      await new Promise(resolve => setTimeout(resolve, pause * (0.5 + Math.random() / 2)))
      for (const waiting of this.#waiting) {
        if (performance.now() >= waiting.end) this.#giveUp(waiting)
        else if (!this.#try(waiting)) break
        else {
          pause = 1
          await setImmediate()
        }
      }
    }
  }

  /** Whether the call is over, one way or the other. */
  #try(waiting: Waiting): boolean {
    try {
      waiting.resolve(waiting.attempt())
    } catch (error) {
      if (this.#meetsLock(error)) return false
      waiting.reject(error)
    }
    this.#leave(waiting)
    return true
  }

  #meetsLock(error: unknown): boolean {
    const failure = error instanceof Refusal ? error.failure : this.#failureOf(error)
    if (failure.retry) this.#lock = error
    return failure.retry
  }

  #giveUp(waiting: Waiting): void {
    this.#leave(waiting)
    waiting.reject(new Refusal('the file was locked until the deadline', {}, this.#lock))
  }

  #leave(waiting: Waiting): void {
    clearTimeout(waiting.timer)
    this.#waiting.delete(waiting)
  }
}
