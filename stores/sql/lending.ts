import type { Deadlines, Pending } from '../../src/time/deadlines.ts'
import { notBegun } from './retry.ts'

/** How many requests for a connection stand in the pool's own queue at once. */
const ASKED = 16

interface Waiter<C> {
  /** How many had come before. */
  readonly number: number
  readonly pending: Pending
  readonly end: number
  give(connection: C): void
  refuse(error: unknown): void
}

/**
 * Takes connections from a pool for callers that may stop waiting. A pool keeps each request until it can serve it, so
 * that a stall of ten minutes would keep every call that was given up in it; here only a few are asked for, and what
 * comes goes to the caller that has waited longest of those that still wait.
 */
export class Lender<C> {
  readonly #ask: (answer: (error: unknown, connection?: C) => void) => void
  readonly #giveBack: (connection: C) => void
  readonly #deadlines: Deadlines
  // Arrays, not Sets, whose tables keep what they held, see src/time/deadlines.ts: a reader with its request is much more.
  readonly #waiting: Waiter<C>[] = []
  readonly #urgent: Waiter<C>[] = []
  #asked = 0
  #came = 0

  constructor(
    deadlines: Deadlines,
    ask: (answer: (error: unknown, connection?: C) => void) => void,
    giveBack: (connection: C) => void,
  ) {
    this.#deadlines = deadlines
    this.#ask = ask
    this.#giveBack = giveBack
  }

  /** A connection, or a refusal once `end` is reached. `urgent`: before all others. */
  take(end: number, urgent = false): Promise<C> {
    return new Promise<C>((resolve, reject) => {
      const queue = urgent ? this.#urgent : this.#waiting
      const late = () => {
        queue.splice(queue.indexOf(waiter), 1)
        reject(notBegun('no connection of the pool became free in time'))
      }
      const waiter: Waiter<C> = {
        number: this.#came++,
        pending: this.#deadlines.open(end, late),
        end,
        give: resolve,
        refuse: reject,
      }
      queue.push(waiter)
      this.#demand()
    })
  }

  #demand(): void {
    while (this.#asked < Math.min(ASKED, this.#waiting.length + this.#urgent.length)) {
      this.#asked += 1
      const came = this.#came
      let answered = false
      const answer = (error: unknown, connection?: C) => {
        if (answered) return
        answered = true
        this.#asked -= 1
        // A refusal is for the callers that waited when the pool was asked: a later one asks again.
        if (connection === undefined || connection === null)
          this.#next(came)?.refuse(notBegun('no connection to the database', error))
        else this.#lend(connection)
        this.#demand()
      }
      try {
        this.#ask(answer)
      } catch (error) {
        answer(error)
      }
    }
  }

  #lend(connection: C): void {
    const waiter = this.#next()
    if (waiter !== undefined && performance.now() < waiter.end) {
      waiter.give(connection)
      return
    }
    this.#giveBack(connection)
    waiter?.refuse(notBegun('a connection became free too late'))
  }

  /** The caller that has waited longest; only of the first `came` ones. */
  #next(came = Number.POSITIVE_INFINITY): Waiter<C> | undefined {
    const queue = this.#urgent.length > 0 && this.#urgent[0]!.number < came ? this.#urgent : this.#waiting
    if (queue.length === 0 || queue[0]!.number >= came) return undefined
    const waiter = queue.shift()!
    this.#deadlines.close(waiter.pending)
    return waiter
  }
}
