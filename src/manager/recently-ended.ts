// What ended in this process a moment ago, or got a new ID. The requests of one browser run in parallel: a slow response
// must not send the cookie of what has ended meanwhile (it would overwrite the cookie of a login), and a late request must
// not begin something in its place.
import type { SessionRecord } from '../contract/store.ts'
import { Recent } from '../time/recent.ts'

/** How long it is remembered: longer than a slow response takes, in ms. */
const LIFETIME = 300_000
/** At least as many new IDs as one session gets in that time, see begin.ts. */
const MAX_SUCCESSORS = 64

/** Keys of namespaces and of both kinds of records are distinct, so that one memory does for all. */
export class RecentlyEnded {
  /** What has ended. `true` if the browser itself logged in or out: then another response gives it another cookie. */
  readonly #ended = new Recent<boolean>(LIFETIME)
  /** Under which key a session goes on. */
  readonly #successors = new Recent<string>(LIFETIME)
  readonly #users = new Recent<{ readonly at: number; readonly exceptKey: string | null }>(LIFETIME)

  /** The session goes on under `to`. If `from` has ended meanwhile, so has its successor. */
  noteNewId(from: string, to: string): void {
    this.#successors.set(from, to, performance.now())
    const isSuperseded = this.#ended.get(from, performance.now())
    if (isSuperseded !== undefined) this.noteEnd(to, isSuperseded ? 'superseded' : 'ended')
  }

  /** Session `to` replaced `from`, and `from` has ended. If the browser logs in or out with `from` once more, `to` ends too. */
  noteReplacement(from: string, to: string): void {
    this.#successors.set(from, to, performance.now())
  }

  /** A session or series ends, and its successors that this process knows of: `'superseded'` by its browser's own login or logout. */
  noteEnd(key: string, how: 'superseded' | 'ended', exceptKey: string | null = null): void {
    const now = performance.now()
    for (let each: string | undefined = key; each !== undefined && each !== exceptKey; ) {
      const isSuperseded = this.#ended.get(each, now)
      // If this key was marked before, its successors were marked then. The loop ends: no session returns to a key it has left.
      if (each !== key && (isSuperseded === true || (isSuperseded === false && how === 'ended'))) return
      this.#ended.set(each, isSuperseded === true || how === 'superseded', now)
      each = this.#successors.get(each, now)
    }
  }

  /** Whether its session lives on under another key, as far as is known here. */
  hasLiveSuccessor(key: string): boolean {
    const last = this.#lastSuccessor(key)
    return last !== key && !this.isEnded(last)
  }

  /** All sessions of a user end, but for the one under `exceptKey` or its successors. */
  noteUserEnd(user: string, exceptKey: string | null): void {
    const now = performance.now()
    this.#users.set(user, { at: now, exceptKey }, now)
  }

  /** Whether its browser has another cookie by now: nothing may begin in its place. */
  isSuperseded(key: string): boolean {
    const now = performance.now()
    return this.#ended.get(key, now) === true || this.#successors.get(key, now) !== undefined
  }

  isEnded(key: string): boolean {
    return this.#ended.get(key, performance.now()) !== undefined
  }

  /** Whether this session has ended: alone, with its series, or after `since` with its user's other sessions. */
  hasEnded({ key, parent, userId }: Pick<SessionRecord, 'key' | 'parent' | 'userId'>, since: number): boolean {
    if (this.isEnded(key) || this.isSuperseded(key) || (parent !== null && this.isEnded(parent))) return true
    const invalidation = userId === null ? undefined : this.#users.get(userId, performance.now())
    if (invalidation === undefined || invalidation.at <= since) return false
    return invalidation.exceptKey === null || !this.#leadsTo(invalidation.exceptKey, key)
  }

  #leadsTo(from: string, to: string): boolean {
    return from === to || this.#lastSuccessor(from) === to
  }

  /** The last of the successors. */
  #lastSuccessor(key: string): string {
    const now = performance.now()
    let last = key
    for (let hops = 0; hops < MAX_SUCCESSORS; hops += 1) {
      const next = this.#successors.get(last, now)
      if (next === undefined) break
      last = next
    }
    return last
  }
}
