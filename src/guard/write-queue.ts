import type { SessionRecord } from '../contract/store.ts'

interface Turn {
  /** What the last writer of this process left, so that the next need not run into a conflict first. */
  latest: SessionRecord | null
}

interface Queue extends Turn {
  /** Resolves when all writers of this queue are done. */
  tail: Promise<void>
  waiting: number
}

/** One queue of writers per session in this process: they take turns instead of colliding in the store. */
export class WriteQueue {
  readonly #queues = new Map<string, Queue>()

  /**
   * Runs `job` when the ones before it are done, or rejects with `late()` if that has not happened by `deadline`
   * (on the scale of `performance.now()`); a job that was given up never runs.
   */
  run<T>(key: string, deadline: number, job: (turn: Turn) => Promise<T>, late: () => Error): Promise<T> {
    const before = this.#queues.get(key)
    const queue = before ?? { tail: Promise.resolve(), waiting: 0, latest: null }
    const leave = () => {
      queue.waiting -= 1
      if (queue.waiting === 0) this.#queues.delete(key)
    }
    queue.waiting += 1
    if (before === undefined) {
      this.#queues.set(key, queue)
      const result = job(queue)
      queue.tail = result.then(leave, leave)
      return result
    }
    return new Promise<T>((resolve, reject) => {
      let isLate = false
      const giveUp = () => {
        isLate = true
        reject(late())
      }
      const timer = setTimeout(giveUp, Math.max(1, deadline - performance.now()))
      const run = () => {
        clearTimeout(timer)
        if (isLate) return
        const result = job(queue)
        resolve(result)
        return result.then(() => {})
      }
      queue.tail = queue.tail.then(run).then(leave, leave)
    })
  }
}
