/** A browser proves itself every few minutes; it may ask several times at once. */
const PER_SESSION = 20

/** How many signatures this process verifies in a second: in all, and for one session, so that none uses up what others need. */
export class Proofs {
  readonly #max: number
  #second = 0
  #taken = 0
  #bySession = new Map<string, number>()

  constructor(max: number) {
    this.#max = max
  }

  /** Whether one more proof of this session may be verified now. */
  take(session: string): boolean {
    const second = Math.floor(performance.now() / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#taken = 0
      this.#bySession.clear()
    }
    const own = this.#bySession.get(session) ?? 0
    if (own >= PER_SESSION || this.#taken >= this.#max) return false
    this.#taken += 1
    this.#bySession.set(session, own + 1)
    return true
  }
}
