/** What has to be over by an instant. */
export interface Pending {
  readonly deadline: number
  /** Called once the deadline has come, unless it was closed before. */
  late(): void
  previous: Pending | null
  next: Pending | null
  isOpen: boolean
}

/**
 * One timer for all calls that are under way: a timer of its own for each costs as much as the rest of a `get`. Instants
 * are on the scale of `performance.now()`.
 */
export class Deadlines {
  #last: Pending | null = null
  #timer: NodeJS.Timeout | null = null
  /** When the timer rings. */
  #due = 0

  open(deadline: number, late: () => void): Pending {
    const pending = { deadline, late, previous: null, next: null, isOpen: true }
    this.add(pending)
    return pending
  }

  add(pending: Pending): void {
    const { deadline } = pending
    if (this.#timer === null || deadline < this.#due) this.#arm(deadline)
    // Referenced: a process that only waits for a hanging store must still hear that it hangs.
    else if (this.#last === null) this.#timer.ref?.()
    pending.previous = this.#last
    if (this.#last !== null) this.#last.next = pending
    this.#last = pending
  }

  /** Whether there was still time. */
  close(pending: Pending): boolean {
    if (!pending.isOpen) return false
    pending.isOpen = false
    const { previous, next } = pending
    if (previous !== null) previous.next = next
    if (next !== null) next.previous = previous
    else this.#last = previous
    // Let go of everything: one of these that has grown old in the heap would keep all that came after it, one by one,
    // until the next full collection.
    pending.previous = null
    pending.next = null
    // Left to ring: the next call is likely to come before, and finds it set.
    if (this.#last === null) this.#timer?.unref?.()
    return true
  }

  #arm(due: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#due = due
    this.#timer = setTimeout(() => this.#ring(), Math.max(1, due - performance.now()))
  }

  #ring(): void {
    this.#timer = null
    // Timers count whole milliseconds and may ring a fraction early.
    const now = performance.now() + 1
    // After a loop that was busy for long, timers come before sockets: answers that arrived in time wait there unread.
    // They are read before anything is given up.
    setImmediate(() => this.#giveUp(now))
  }

  #giveUp(now: number): void {
    let earliest = Number.POSITIVE_INFINITY
    for (let pending = this.#last; pending !== null; ) {
      const { previous, deadline } = pending
      if (deadline > now) earliest = Math.min(earliest, deadline)
      else if (this.close(pending)) pending.late()
      pending = previous
    }
    // What was told of the delay may have begun another call, and armed the timer for it.
    if (earliest < Number.POSITIVE_INFINITY && (this.#timer === null || earliest < this.#due)) this.#arm(earliest)
  }
}
