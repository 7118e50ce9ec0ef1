// The sessions that a browser left a moment ago, as far as this process knows. The requests of one browser run in parallel: a slow
// response must not send the cookie of a session that the browser has left (it would overwrite the cookie of a login), and a
// late request must not begin something in its place.
import { CLOCK_TOLERANCE } from '../contract/store.ts'
import { Recent } from '../time/recent.ts'

/** How long it is remembered: longer than a slow response takes, in ms. */
const LIFETIME = 300_000

/** Keys of namespaces and of both kinds of records are distinct, so one memory serves all. */
export class RecentlyEnded {
  /** Ended by the browser's own login or logout, whose response gives it another cookie. */
  readonly #ended = new Recent<true>(LIFETIME)
  /** The same, where nothing was found. Strangers may send any number of such keys: they push out each other alone. */
  readonly #absent = new Recent<true>(LIFETIME)
  /** The key under which a session goes on, and until when (on the scale of `performance.now()`) the old one leads there. */
  readonly #successors = new Recent<{ readonly to: string; readonly until: number }>(LIFETIME)

  /**
   * The session goes on under `to`, to which `from` leads for `grace` ms more, and somewhat longer because clocks differ.
   * If `from` has ended meanwhile, so has its successor.
   */
  addNewId(from: string, to: string, grace: number): void {
    const now = performance.now()
    this.#successors.set(from, { to, until: now + grace + CLOCK_TOLERANCE }, now)
    if (this.isEnded(from)) this.addEnd(to)
  }

  /** Session `to` replaced `from`, which has ended. If the browser logs in or out with `from` once more, `to` ends too. */
  addReplacement(from: string, to: string): void {
    this.#successors.set(from, { to, until: Number.POSITIVE_INFINITY }, performance.now())
  }

  /**
   * The browser logs in or out with a session or a remember token: it ends, and so do its successors, but not `exceptKey`.
   * `isThere`: something was found under the key.
   */
  addEnd(key: string, isThere = true, exceptKey: string | null = null): void {
    const now = performance.now()
    for (let each: string | undefined = key; each !== undefined && each !== exceptKey; ) {
      // A successor that was added before has added its own successors. This also ends a ring.
      if (each !== key && this.isEnded(each)) return
      const memory = isThere || each !== key ? this.#ended : this.#absent
      memory.set(each, true, now)
      each = this.#successors.get(each, now)?.to
    }
  }

  isEnded(key: string): boolean {
    const now = performance.now()
    return (this.#ended.get(key, now) ?? this.#absent.get(key, now)) === true
  }

  /** Where the session of this key goes on, as long as the key leads there. */
  #successorOf(key: string): string | null {
    const now = performance.now()
    const successor = this.#successors.get(key, now)
    return successor !== undefined && now < successor.until ? successor.to : null
  }

  /** The key under which its session lives on, as far as is known here. */
  liveSuccessorOf(key: string): string | null {
    const next = this.#successorOf(key)
    return next === null || this.isEnded(next) ? null : next
  }

  /** Whether its browser has another cookie by now: nothing may begin in its place. */
  isSuperseded(key: string): boolean {
    return this.isEnded(key) || this.#successorOf(key) !== null
  }
}
