/** So many per second, evenly: what was not used in one second is gone in the next. */
export class Rate {
  readonly #perSecond: number
  #left: number
  #since = performance.now()

  constructor(perSecond: number) {
    this.#perSecond = perSecond
    this.#left = perSecond
  }

  /** Whether one more is within the rate. */
  take(): boolean {
    const now = performance.now()
    this.#left = Math.min(this.#perSecond, this.#left + ((now - this.#since) / 1000) * this.#perSecond)
    this.#since = now
    if (this.#left < 1) return false
    this.#left -= 1
    return true
  }
}
