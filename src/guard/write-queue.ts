import type { SessionRecord } from '../contract/store.ts'

interface Line {
  /** Resolves when everybody who stands in this line is done. */
  tail: Promise<void>
  waiting: number
  /** What the last writer of this process left, so that the next need not run into a conflict first. */
  latest: SessionRecord | null
}

/** One line of writers per session in this process: they take turns instead of colliding in the store. */
export class WriteQueue {
  readonly #lines = new Map<string, Line>()

  /**
   * Runs `job` when the ones before it are done, or rejects with `late()` where that has not happened by `deadline`
   * (scale of `performance.now()`); a job that was given up never runs.
   */
  run<T>(
    key: string,
    deadline: number,
    job: (line: { latest: SessionRecord | null }) => Promise<T>,
    late: () => Error,
  ): Promise<T> {
    const line = this.#lines.get(key) ?? { tail: Promise.resolve(), waiting: 0, latest: null }
    if (line.waiting === 0) {
      this.#lines.set(key, line)
      line.waiting = 1
      const result = job(line)
      line.tail = result.then(noop, noop).then(() => this.#leave(key, line))
      return result
    }
    line.waiting += 1
    return new Promise<T>((resolve, reject) => {
      let givenUp = false
      const timer = setTimeout(
        () => {
          givenUp = true
          reject(late())
        },
        Math.max(1, deadline - performance.now()),
      )
      line.tail = line.tail
        .then(() => {
          clearTimeout(timer)
          if (givenUp) return undefined
          const result = job(line)
          resolve(result)
          return result.then(noop, noop)
        })
        .then(() => this.#leave(key, line))
    })
  }

  #leave(key: string, line: Line): void {
    line.waiting -= 1
    if (line.waiting === 0) this.#lines.delete(key)
  }
}

function noop() {}
