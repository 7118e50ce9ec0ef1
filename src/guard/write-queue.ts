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
   * Runs `work` when the earlier writers of this key have left, at once if there are none.
   * Rejects with `late()` if it could not begin by `deadline` (on the scale of `performance.now()`).
   */
  async inTurn<T>(
    key: string,
    deadline: number,
    late: () => Error,
    work: (queue: Pick<Queue, 'latest'>) => Promise<T>,
  ): Promise<T> {
    const known = this.#isPerRequest ? undefined : this.#queues.get(key)
    const queue = known ?? { latest: null, waiting: new Set() }
    if (known === undefined) this.#queues.set(key, queue)
    else await this.#comeIn(known, deadline, late)
    try {
      return await work(queue)
    } finally {
      // Lets the next one in.
      const [next] = queue.waiting
      if (next === undefined) this.#queues.delete(key)
      else next()
    }
  }

  #comeIn({ waiting }: Queue, deadline: number, late: () => Error): Promise<void> {
    return new Promise((resolve, reject) => {
      const comeIn = () => {
        clearTimeout(timer)
        waiting.delete(comeIn)
        resolve()
      }
      const giveUp = () => {
        waiting.delete(comeIn)
        reject(late())
      }
      const timer = setTimeout(giveUp, Math.max(1, deadline - performance.now()))
      waiting.add(comeIn)
    })
  }

  /** What a writer has written, for those that wait. */
  note(record: SessionRecord): void {
    const queue = this.#queues.get(record.key)
    if (queue !== undefined) queue.latest = record
  }
}
