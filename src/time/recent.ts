/**
 * Remembers what happened to some keys lately, in bounded memory: two generations of at most `capacity` keys, the older one dropped
 * when the newer is full or `lifetime` ms old. An entry is remembered for at least `lifetime` unless the capacity is
 * exceeded, and for at most twice that, also if nothing happens any more.
 */
export class Recent<T> {
  readonly #lifetime: number
  readonly #capacity: number
  #young = new Map<string, T>()
  #old = new Map<string, T>()
  #since = 0

  constructor(lifetime: number, capacity = 10_000) {
    this.#lifetime = lifetime
    this.#capacity = capacity
  }

  /** `now` in ms of any one clock; one that runs backwards only keeps entries longer. */
  get(key: string, now: number): T | undefined {
    const age = now - this.#since
    if (age >= 2 * this.#lifetime) return undefined
    return this.#young.get(key) ?? (age < this.#lifetime ? this.#old.get(key) : undefined)
  }

  set(key: string, value: T, now: number): void {
    const age = now - this.#since
    if (age >= this.#lifetime || this.#young.size >= this.#capacity) {
      this.#old = age >= 2 * this.#lifetime ? new Map() : this.#young
      this.#young = new Map()
      this.#since = now
    }
    this.#young.set(key, value)
  }
}
