const BATCH = 1000

/** The manager's one timer: jittered, so that ten nodes do not sweep at once, and no reason for a process to stay. */
export class Sweeper {
  readonly #interval: number
  readonly #sweep: () => Promise<unknown>
  #timer: NodeJS.Timeout | undefined

  constructor(interval: number, sweep: () => Promise<unknown>) {
    this.#interval = interval
    this.#sweep = sweep
    this.#arm()
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #arm(): void {
    const wait = this.#interval * (0.75 + Math.random() / 2)
    this.#timer = setTimeout(() => {
      // A failure was told as an event; the next round tries again.
      const done = () => {
        if (this.#timer !== undefined) this.#arm()
      }
      this.#sweep().then(done, done)
    }, wait)
    this.#timer.unref()
  }

  /** Batches until one is not full, with the event loop between them. */
  static async sweepAll(batch: (limit: number) => Promise<number>): Promise<number> {
    let total = 0
    for (;;) {
      const removed = await batch(BATCH)
      total += removed
      if (removed < BATCH) return total
      await new Promise(resolve => setImmediate(resolve))
    }
  }
}
