// What ended in this process a moment ago, or got a new ID. The requests of one browser run in parallel: a slow response
// must not send the cookie of what has ended meanwhile (it would overwrite the cookie of a login), and a late request must
// not begin something in its place.
import type { SessionRecord } from '../contract/store.ts'
import { Recent } from '../time/recent.ts'

/** How long it is remembered: longer than a slow response takes, in ms. */
const LIFETIME = 300_000
/** At least as many new IDs as one session gets in that time, see begin.ts. */
const MAX_HOPS = 64

/** Keys of tenants and of both kinds of records are distinct, so that one memory does for all. */
export class Endings {
  /** What has ended. `true` if the browser itself logged in or out: then another response gives it another cookie. */
  readonly #ended = new Recent<boolean>(LIFETIME)
  /** Under which key a session goes on. */
  readonly #successors = new Recent<string>(LIFETIME)
  readonly #users = new Recent<{ readonly at: number; readonly exceptKey: string | null }>(LIFETIME)

  /** The session goes on under `to`. If `from` has ended meanwhile, so has its successor. */
  moved(from: string, to: string): void {
    this.#successors.set(from, to, performance.now())
    const hasLeft = this.#ended.get(from, performance.now())
    if (hasLeft !== undefined) this.end(to, hasLeft ? 'left' : 'ended')
  }

  /** Session `to` replaced `from`, and `from` has ended. If the browser logs in or out with `from` once more, `to` ends too. */
  replaced(from: string, to: string): void {
    this.#successors.set(from, to, performance.now())
  }

  /** A session or series ends, and its successors that this process knows of: `'left'` by its browser's own login or logout. */
  end(key: string, how: 'left' | 'ended', exceptKey: string | null = null): void {
    const now = performance.now()
    for (let each: string | undefined = key; each !== undefined && each !== exceptKey; ) {
      const hasLeft = this.#ended.get(each, now)
      // If this key was marked before, its successors were marked then. The loop ends: no session returns to a key it has left.
      if (each !== key && (hasLeft === true || (hasLeft === false && how === 'ended'))) return
      this.#ended.set(each, hasLeft === true || how === 'left', now)
      each = this.#successors.get(each, now)
    }
  }

  /** Whether its session lives on under another key, as far as is known here. */
  goesOn(key: string): boolean {
    const last = this.#lastOf(key)
    return last !== key && !this.isOver(last)
  }

  /** All sessions of a user end, but for the one under `exceptKey` or its successors. */
  endUser(user: string, exceptKey: string | null): void {
    const now = performance.now()
    this.#users.set(user, { at: now, exceptKey }, now)
  }

  /** Whether its browser has another cookie by now: nothing may begin in its place. */
  isLeft(key: string): boolean {
    const now = performance.now()
    return this.#ended.get(key, now) === true || this.#successors.get(key, now) !== undefined
  }

  isOver(key: string): boolean {
    return this.#ended.get(key, performance.now()) !== undefined
  }

  /** Whether this session has ended: alone, with its series, or after `since` with its user's other sessions. */
  hasEnded({ key, parent, userId }: Pick<SessionRecord, 'key' | 'parent' | 'userId'>, since: number): boolean {
    if (this.isOver(key) || this.isLeft(key) || (parent !== null && this.isOver(parent))) return true
    const invalidation = userId === null ? undefined : this.#users.get(userId, performance.now())
    if (invalidation === undefined || invalidation.at <= since) return false
    return invalidation.exceptKey === null || !this.#leadsTo(invalidation.exceptKey, key)
  }

  #leadsTo(from: string, to: string): boolean {
    return from === to || this.#lastOf(from) === to
  }

  /** The last of the successors. */
  #lastOf(key: string): string {
    const now = performance.now()
    let last = key
    for (let hops = 0; hops < MAX_HOPS; hops += 1) {
      const next = this.#successors.get(last, now)
      if (next === undefined) break
      last = next
    }
    return last
  }
}
