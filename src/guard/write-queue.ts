import type { SessionRecord } from '../contract/store.ts'

interface Queue {
  /** The record that the last writer of this process left. It saves the next writer a conflict. */
  latest: SessionRecord | null
  /** Functions that let the waiting writers in, in order of arrival. */
  readonly waiting: Set<() => void>
}

/**
 * One queue of writers per session in this process: they wait for each other instead of colliding in the store. With
 * `isPerRequest` nobody waits, because no request can be woken by another.
 */
export class WriteQueue {
  readonly #queues = new Map<string, Queue>()
  readonly #isPerRequest: boolean

  constructor(isPerRequest = false) {
    this.#isPerRequest = isPerRequest
  }

  /**
   * Waits until the earlier writers have left; enters at once if there are none. A writer that has entered must leave.
   * Rejects with `late()` if it has not come in by `deadline` (on the scale of `performance.now()`).
   */
  enter(key: string, deadline: number, late: () => Error): Queue | Promise<Queue> {
    const queue = this.#queues.get(key)
    if (queue === undefined || this.#isPerRequest) {
      const first: Queue = { latest: null, waiting: new Set() }
      this.#queues.set(key, first)
      return first
    }
    return new Promise((resolve, reject) => {
      const comeIn = () => {
        clearTimeout(timer)
        resolve(queue)
      }
      const giveUp = () => {
        queue.waiting.delete(comeIn)
        reject(late())
      }
      const timer = setTimeout(giveUp, Math.max(1, deadline - performance.now()))
      queue.waiting.add(comeIn)
    })
  }

  /**
   * Runs `work` when the earlier writers have left; it gets the record that the last of them left, if it knows it.
   * Rejects with `late()` if it could not begin by `deadline`.
   */
  async inTurn<T>(
    key: string,
    deadline: number,
    late: () => Error,
    work: (latest: SessionRecord | null) => Promise<T>,
  ): Promise<T> {
    const entering = this.enter(key, deadline, late)
    const { latest } = entering instanceof Promise ? await entering : entering
    try {
      return await work(latest)
    } finally {
      this.leave(key)
    }
  }

  /** What a writer has written, for those that wait. */
  note(record: SessionRecord): void {
    const queue = this.#queues.get(record.key)
    if (queue !== undefined) queue.latest = record
  }

  /** Lets the next one in. */
  leave(key: string): void {
    // Of a store that is per request, the first of several that leave takes it away.
    const waiting = this.#queues.get(key)?.waiting ?? new Set()
    const [next] = waiting
    if (next === undefined) this.#queues.delete(key)
    else {
      waiting.delete(next)
      next()
    }
  }
}
