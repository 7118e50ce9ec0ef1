import { setImmediate, setTimeout } from 'node:timers/promises'
import { within } from '../../../src/time/within.ts'
import { type Failure, Refusal } from '../base/retry.ts'

/** The longest pause between two tries, in ms. Each try may block the event loop while SQLite itself waits. */
const LONGEST_PAUSE = 25

const asItIs = <T>(answer: T) => answer

/**
 * A queue of calls that may meet a lock of another connection. If no call waits, a call runs at once. If one has to wait,
 * later calls queue behind it, and only the first tries again, so 200 waiting calls cost no more tries than one. A call that
 * was given up does not run when its turn comes.
 */
export class CallQueue {
  readonly #failureOf: (error: unknown) => Failure
  /** Fulfilled when the last call of the queue is over; `null` if none waits. */
  #last: Promise<void> | null = null
  /** The error of the last try. */
  #lock: unknown

  constructor(failureOf: (error: unknown) => Failure) {
    this.#failureOf = failureOf
  }

  /** Runs `attempt`, which is synchronous, now or when those before it are done. An answer that comes at once comes without a promise. */
  run<T>(end: number, attempt: () => T): T | Promise<T> {
    if (this.#last === null)
      try {
        return attempt()
      } catch (error) {
        this.#requireLock(error)
      }
    let isLate = false
    const late = () => {
      isLate = true
      return new Refusal('the file was locked until the deadline', {}, this.#lock)
    }
    const turn = Promise.resolve(this.#last).then(async () => {
      for (let pause = 0; ; pause = Math.min(pause * 2 || 2, LONGEST_PAUSE)) {
        // Timers count from the beginning of this turn, so the time that the last try blocked would be part of the pause.
        await setImmediate()
        // Not the same pause in each process: those that met once would meet again.
        if (pause > 0) await setTimeout(pause * (0.5 + Math.random() / 2))
        if (isLate || performance.now() >= end) throw late()
        try {
          return attempt()
        } catch (error) {
          this.#requireLock(error)
        }
      }
    })
    const over = () => {
      if (this.#last === last) this.#last = null
    }
    const last = turn.then(over, over)
    this.#last = last
    return within(end, turn, { accept: asItIs, failed: asItIs, late })
  }

  /** Throws the error unless it is a lock, for which a call waits. */
  #requireLock(error: unknown): void {
    const failure = error instanceof Refusal ? error.failure : this.#failureOf(error)
    if (!failure.retry) throw error
    this.#lock = error
  }
}
