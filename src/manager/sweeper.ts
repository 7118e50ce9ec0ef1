import { nextTurn } from '../time/next-turn.ts'

const BATCH = 1000
/** A batch that took this long, in ms, was work for a database and not only for this process. */
const NOTICEABLE = 5

/**
 * The manager's one timer: jittered, so that ten nodes do not sweep at once, and no reason for a process to stay. Set at
 * the first use: Cloudflare Workers make managers at module level, and allow no timer there.
 */
export class Sweeper {
  readonly #batch: ((limit: number, now: number) => Promise<number>) | null
  readonly #now: () => number
  readonly #interval: number | null
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  /** `batch` removes at most `limit` records; `null` if the store removes them itself. No `interval`: no timer. */
  constructor(
    batch: ((limit: number, now: number) => Promise<number>) | null,
    now: () => number,
    interval: number | null,
  ) {
    this.#batch = batch
    this.#now = now
    this.#interval = interval
  }

  /** Sweeps from now on, unless it does already, or was stopped. */
  start(): void {
    if (this.#timer === undefined && this.#interval !== null && !this.#isStopped) this.#arm(this.#interval)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#isStopped = true
  }

  #arm(interval: number): void {
    this.#timer = setTimeout(
      () => {
        // A failure was told as an event; the next round tries again.
        const done = () => {
          if (!this.#isStopped) this.#arm(interval)
        }
        this.sweep().then(done, done)
      },
      interval * (0.75 + Math.random() / 2),
    )
    this.#timer.unref?.()
  }

  /**
   * Batches until one finds no more, with the event loop between them; after one that took time a pause as long as it,
   * so that requests have the database for at least half of the time. A quick batch that is not full was the last one: it
   * ends without a turn of the event loop, because a test with fake timers may never give one. Records that expire after the
   * sweep has begun are for the next sweep: otherwise it might never end. A manager that was closed begins no further batch.
   * Answers how many records were removed.
   */
  async sweep(): Promise<number> {
    if (this.#batch === null) return 0
    const now = this.#now()
    let total = 0
    for (;;) {
      const begun = performance.now()
      const removed = await this.#batch(BATCH, now)
      total += removed
      const took = performance.now() - begun
      if (removed === 0 || (removed < BATCH && took < NOTICEABLE)) return total
      await new Promise<void>(resolve => (took < NOTICEABLE ? nextTurn(resolve) : setTimeout(resolve, took)))
      if (this.#isStopped) return total
    }
  }
}
