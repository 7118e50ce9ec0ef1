import type { SessionRecord } from '../contract/store.ts'

interface Queue {
  /** Resolves when all writers of this queue are done. */
  tail: Promise<void>
  waiting: number
  /** What the last writer of this process left, so that the next need not run into a conflict first. */
  latest: SessionRecord | null
}

/** One queue of writers per session in this process: they take turns instead of colliding in the store. */
export class WriteQueue {
  readonly #queues = new Map<string, Queue>()

  /**
   * Runs `job` when the ones before it are done, or rejects with `late()` where that has not happened by `deadline`
   * (scale of `performance.now()`); a job that was given up never runs.
   */
  run<T>(
    key: string,
    deadline: number,
    job: (turn: { latest: SessionRecord | null }) => Promise<T>,
    late: () => Error,
  ): Promise<T> {
    const queue = this.#queues.get(key) ?? { tail: Promise.resolve(), waiting: 0, latest: null }
    if (queue.waiting === 0) {
      this.#queues.set(key, queue)
      queue.waiting = 1
      const result = job(queue)
      queue.tail = result.then(noop, noop).then(() => this.#leave(key, queue))
      return result
    }
    queue.waiting += 1
    return new Promise<T>((resolve, reject) => {
      let givenUp = false
      const timer = setTimeout(
        () => {
          givenUp = true
          reject(late())
        },
        Math.max(1, deadline - performance.now()),
      )
      queue.tail = queue.tail
        .then(() => {
          clearTimeout(timer)
          if (givenUp) return undefined
          const result = job(queue)
          resolve(result)
          return result.then(noop, noop)
        })
        .then(() => this.#leave(key, queue))
    })
  }

  #leave(key: string, queue: Queue): void {
    queue.waiting -= 1
    if (queue.waiting === 0) this.#queues.delete(key)
  }
}

function noop() {}
