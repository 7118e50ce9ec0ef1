import { nextTurn } from './next-turn.ts'

/** What a timer of Node can count, in ms; a longer one would ring at once. */
const LONGEST = 2_147_483_647

/** What has to be over by an instant. */
export interface Pending {
  readonly deadline: number
  /** Where it is in the list of `Deadlines`; -1 before it was opened and once it is closed. */
  place: number
  /** Called once the deadline has come, unless it was closed before. */
  late(): void
}

/**
 * One timer for all that is under way: a timer for each call would cost as much as the rest of a `get` in memory.
 * Instants are on the scale of `performance.now()`.
 *
 * An array, in which the last one takes the place of the one that closes. A Set costs a `get` 5 to 8 % more: V8 replaces
 * its table at every few changes, and each old table refers to the next, so that one which has grown old in the heap keeps
 * all later ones until a full collection.
 */
export class Deadlines {
  readonly #open: Pending[] = []
  #timer: NodeJS.Timeout | null = null
  /** When the timer rings. */
  #due = 0
  /** What set it: tests exchange the clock, and a timer of the clock before may never ring. */
  #clock: typeof setTimeout | null = null

  open(deadline: number, late: () => void): Pending {
    const pending = { deadline, place: -1, late }
    this.add(pending)
    return pending
  }

  /** What is answered in time; else rejects with what `late` makes, and after a failure in time with what `failed` makes. */
  within<T>(
    deadline: number,
    answer: Promise<T>,
    late: () => unknown,
    failed: (cause: unknown) => unknown = cause => cause,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const pending = this.open(deadline, () => reject(late()))
      answer.then(
        value => {
          if (this.close(pending)) resolve(value)
        },
        cause => {
          if (this.close(pending)) reject(failed(cause))
        },
      )
    })
  }

  add(pending: Pending): void {
    const { deadline } = pending
    if (this.#timer === null || deadline < this.#due) this.#arm(deadline)
    else if (this.#clock !== setTimeout) this.#arm(this.#due)
    // A referenced timer keeps the process alive: one that only waits for a hanging store must still hear that it hangs.
    else if (this.#open.length === 0) this.#timer.ref?.()
    pending.place = this.#open.push(pending) - 1
  }

  /** Whether there was still time. */
  close(pending: Pending): boolean {
    const { place } = pending
    if (place === -1) return false
    pending.place = -1
    const last = this.#open.pop()!
    if (last !== pending) {
      this.#open[place] = last
      last.place = place
    }
    // The timer is left to ring: the next call is likely to come before, and finds it set.
    if (this.#open.length === 0) this.#timer?.unref?.()
    return true
  }

  #arm(due: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#due = due
    this.#clock = setTimeout
    const left = Math.min(Math.max(1, due - performance.now()), LONGEST)
    const timer = setTimeout(() => this.#ring(timer), left)
    this.#timer = timer
  }

  #ring(timer: NodeJS.Timeout): void {
    if (timer !== this.#timer) return
    this.#timer = null
    // Timers count whole milliseconds and may ring a fraction early.
    const now = performance.now() + 1
    // After a loop that was busy for long, timers come before sockets: answers that arrived in time wait there unread.
    // They are read before anything is given up.
    nextTurn(() => this.#giveUp(now))
  }

  #giveUp(now: number): void {
    let earliest = Number.POSITIVE_INFINITY
    // A copy: what is told of the delay may begin another call.
    for (const pending of [...this.#open]) {
      if (pending.deadline > now) earliest = Math.min(earliest, pending.deadline)
      else if (this.close(pending)) pending.late()
    }
    // A call that began meanwhile may have armed the timer already.
    if (earliest < Number.POSITIVE_INFINITY && (this.#timer === null || earliest < this.#due)) this.#arm(earliest)
  }
}
