import { afterTurn, notBegun, timeLeft } from './retry.ts'

/** How many requests for a connection stand in the pool's own queue at once. */
const ASKED = 16

interface Waiter<C> {
  /** How many had come before. */
  readonly number: number
  give(connection: C): void
  fail(error: unknown): void
}

/**
 * Takes connections from a pool for callers that may stop waiting. A pool keeps each request until it can serve it, so
 * that a stall of ten minutes would keep every call that was given up in it; here only a few are asked for, and what
 * comes goes to the caller that has waited longest of those that still wait.
 */
export class Lender<C> {
  readonly #ask: (answer: (error: unknown, connection?: C) => void) => void
  readonly #giveBack: (connection: C) => void
  readonly #waiting = new Set<Waiter<C>>()
  readonly #urgent = new Set<Waiter<C>>()
  #asked = 0
  #came = 0

  constructor(ask: (answer: (error: unknown, connection?: C) => void) => void, giveBack: (connection: C) => void) {
    this.#ask = ask
    this.#giveBack = giveBack
  }

  /** A connection, or a refusal once `end` is reached. `urgent`: before all others. */
  take(end: number, urgent = false): Promise<C> {
    return new Promise<C>((resolve, reject) => {
      const queue = urgent ? this.#urgent : this.#waiting
      const stop = afterTurn(timeLeft(end), () => {
        queue.delete(waiter)
        reject(notBegun('no connection of the pool became free in time'))
      })
      const waiter: Waiter<C> = {
        number: this.#came++,
        give: connection => {
          stop()
          resolve(connection)
        },
        fail: error => {
          stop()
          reject(notBegun('no connection to the database', error))
        },
      }
      queue.add(waiter)
      this.#demand()
    })
  }

  #demand(): void {
    while (this.#asked < Math.min(ASKED, this.#waiting.size + this.#urgent.size)) {
      this.#asked += 1
      const came = this.#came
      let answered = false
      const answer = (error: unknown, connection?: C) => {
        if (answered) return
        answered = true
        this.#asked -= 1
        if (connection === undefined || connection === null) {
          // A refusal is for the callers that waited when the pool was asked: a later one asks again.
          this.#next(came)?.fail(error)
        } else {
          const waiter = this.#next()
          if (waiter === undefined) this.#giveBack(connection)
          else waiter.give(connection)
        }
        this.#demand()
      }
      try {
        this.#ask(answer)
      } catch (error) {
        answer(error)
      }
    }
  }

  /** The caller that has waited longest; only of the first `came` ones. */
  #next(came = Number.POSITIVE_INFINITY): Waiter<C> | undefined {
    for (const queue of [this.#urgent, this.#waiting])
      for (const waiter of queue) {
        if (waiter.number >= came) break
        queue.delete(waiter)
        return waiter
      }
    return undefined
  }
}
