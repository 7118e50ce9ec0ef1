const BATCH = 1000
/** From how many ms on a batch was work for somebody else: a database. */
const NOTICEABLE = 5

/**
 * The manager's one timer: jittered, so that ten nodes do not sweep at once, and no reason for a process to stay. Set at
 * the first use: where managers are made at module level (Cloudflare Workers) no timer is allowed.
 */
export class Sweeper {
  readonly #interval: number
  readonly #sweep: () => Promise<unknown>
  #timer: NodeJS.Timeout | undefined
  #isOver = false

  constructor(interval: number, sweep: () => Promise<unknown>) {
    this.#interval = interval
    this.#sweep = sweep
  }

  /** Sweeps from now on, unless it does already, or was stopped. */
  start(): void {
    if (this.#timer === undefined && !this.#isOver) this.#arm()
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#isOver = true
  }

  #arm(): void {
    const wait = this.#interval * (0.75 + Math.random() / 2)
    this.#timer = setTimeout(() => {
      // A failure was told as an event; the next round tries again.
      const done = () => {
        if (!this.#isOver) this.#arm()
      }
      this.#sweep().then(done, done)
    }, wait)
    this.#timer.unref?.()
  }

  /**
   * Batches until one is not full, with the event loop between them; after one that took time a pause as long as it,
   * so that requests have the database for at least half of the time.
   */
  static async sweepAll(batch: (limit: number) => Promise<number>): Promise<number> {
    let total = 0
    for (;;) {
      const begun = performance.now()
      const removed = await batch(BATCH)
      total += removed
      if (removed < BATCH) return total
      const took = performance.now() - begun
      await new Promise(resolve => (took < NOTICEABLE ? setImmediate(resolve) : setTimeout(resolve, took)))
    }
  }
}
