// The sessions that a browser left a moment ago, as far as this process knows. The requests of one browser run in parallel: a slow
// response must not send the cookie of a session that the browser has left (it would overwrite the cookie of a login), and a
// late request must not begin something in its place.
import { Recent } from '../time/recent.ts'

/** How long it is remembered: longer than a slow response takes, in ms. */
const LIFETIME = 300_000

/** Keys of namespaces and of both kinds of records are distinct, so one memory serves all. */
export class RecentlyEnded {
  /** Ended by the browser's own login or logout, whose response gives it another cookie. */
  readonly #ended = new Recent<true>(LIFETIME)
  /** Under which key a session goes on. */
  readonly #successors = new Recent<string>(LIFETIME)

  /** The session goes on under `to`. If `from` has ended meanwhile, so has its successor. */
  addNewId(from: string, to: string): void {
    this.#successors.set(from, to, performance.now())
    if (this.isEnded(from)) this.addEnd(to)
  }

  /** Session `to` replaced `from`, which has ended. If the browser logs in or out with `from` once more, `to` ends too. */
  addReplacement(from: string, to: string): void {
    this.#successors.set(from, to, performance.now())
  }

  /** The browser logs in or out with a session or a remember token: it ends, and so do its successors, but not `exceptKey`. */
  addEnd(key: string, exceptKey: string | null = null): void {
    const now = performance.now()
    for (let each: string | undefined = key; each !== undefined && each !== exceptKey; ) {
      // A successor that was added before has added its own successors. This also ends a ring.
      if (each !== key && this.isEnded(each)) return
      this.#ended.set(each, true, now)
      each = this.#successors.get(each, now)
    }
  }

  isEnded(key: string): boolean {
    return this.#ended.get(key, performance.now()) === true
  }

  /** Whether its session lives on under another key, as far as is known here. */
  hasLiveSuccessor(key: string): boolean {
    const next = this.#successors.get(key, performance.now())
    return next !== undefined && !this.isEnded(next)
  }

  /** Whether its browser has another cookie by now: nothing may begin in its place. */
  isSuperseded(key: string): boolean {
    return this.isEnded(key) || this.#successors.get(key, performance.now()) !== undefined
  }
}
