import { Failure } from './errors.ts'

/** How long each question to the store may take, unless --timeout bounds all of them together, in ms. */
const EACH = 10_000

/** How the message of a question begins that the store has not answered in time. */
export const NO_ANSWER = 'no answer within'

/** The time of one command, which all that it asks the store shares. */
export class TimeLimit {
  readonly #timeout: number | null
  readonly #begun = performance.now()

  /** `timeout`: in ms; `null` if only each question is bounded. */
  constructor(timeout: number | null) {
    this.#timeout = timeout
  }

  /** How long the next question may take, in whole ms. */
  get left(): number {
    return this.#timeout === null ? EACH : Math.max(1, Math.ceil(this.#timeout - performance.now() + this.#begun))
  }

  /**
   * The answer to a question, or to a command as a whole, which may be done in part when time runs out.
   * @throws Failure if there is none in time; with the `outcome` of a store's error
   */
  ask<T>(question: string, answer: Promise<T>, outcome: 'not-applied' | 'unknown' = 'not-applied'): Promise<T> {
    if (outcome === 'unknown' && this.#timeout === null) return answer
    const time = this.left
    const error = new Failure(`${NO_ANSWER} ${this.#timeout ?? time} ms (${question})`)
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(Object.assign(error, { outcome })), time)
      answer.finally(() => clearTimeout(timer)).then(resolve, reject)
    })
  }
}
