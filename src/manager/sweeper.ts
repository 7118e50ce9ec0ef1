import { nextTurn } from '../time/next-turn.ts'

const BATCH = 1000
/** A batch that took this long, in ms, was work for a database and not only for this process. */
const NOTICEABLE = 5

/** The one timer of a manager, and the sweep that it begins. */
export type Sweeper = ReturnType<typeof makeSweeper>

/**
 * The manager's one timer: jittered, so that ten nodes do not sweep at once, and no reason for a process to stay. Set at
 * the first use: Cloudflare Workers make managers at module level, and allow no timer there. `batch` removes at most
 * `limit` records; `null` if the store removes them itself. No `interval`, in ms: no timer.
 */
export function makeSweeper(
  batch: ((limit: number, now: number) => Promise<number>) | null,
  clock: () => number,
  interval: number | null,
) {
  let timer: NodeJS.Timeout | undefined
  let isStopped = false

  const arm = () => {
    if (interval === null || isStopped) return
    // A failure was told as an event; the next round tries again.
    timer = setTimeout(() => sweep().then(arm, arm), interval * (0.75 + Math.random() / 2))
    timer.unref?.()
  }

  /**
   * Batches until one finds no more, with the event loop between them; after one that took time a pause as long as it,
   * so that requests have the database for at least half of the time. A quick batch that is not full was the last one: it
   * ends without a turn of the event loop, because a test with fake timers may never give one. Records that expire after the
   * sweep has begun are for the next sweep: otherwise it might never end. A manager that was closed begins no further batch.
   * Answers how many records were removed.
   */
  const sweep = async (): Promise<number> => {
    if (batch === null) return 0
    const now = clock()
    for (let total = 0; ; ) {
      const begun = performance.now()
      const removed = await batch(BATCH, now)
      total += removed
      const took = performance.now() - begun
      if (removed === 0 || (removed < BATCH && took < NOTICEABLE)) return total
      await new Promise<void>(resolve => (took < NOTICEABLE ? nextTurn(resolve) : setTimeout(resolve, took)))
      if (isStopped) return total
    }
  }

  return {
    sweep,
    /** Sweeps from now on, unless it does already, or was stopped. */
    start(): void {
      if (timer === undefined) arm()
    },
    stop(): void {
      clearTimeout(timer)
      isStopped = true
    },
  }
}
