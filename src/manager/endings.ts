// What ended in this process a moment ago, and what followed from it. The requests of one browser run in parallel: a slow
// response must not send the cookie of what has ended meanwhile (it would overwrite the cookie of a login), and a late
// request must not begin something in its place.

import { nextOrder, orderOf, recordOf } from '../session/session.ts'
import { Recent } from './recent.ts'

/** How long it is remembered: longer than a slow response takes, in ms. */
const LIFETIME = 300_000
/** A client that keeps asking with one dead ID can begin any number of sessions: a login ends the last few. */
const MAX_FOLLOWERS = 8
/** How many successors in a row are looked at: as many as a late request may have missed. */
const MAX_HOPS = 8
/** How many follow one that ends: a client that makes a longer chain must not buy any number of store calls by one request. */
const MAX_ENDED = 32

/**
 * What became of a session or of a remember-me series: the session goes on under another key (`moved`), its browser
 * logged in or out (`left`), or it ended otherwise (`ended`), so that its browser has no other cookie and may begin anew.
 */
type Fate = 'moved' | 'left' | 'ended'

interface Follower {
  readonly key: string
  /** The same session under a new key, where the store's `delete` follows; else one that began in its place. */
  readonly isSuccessor: boolean
}

/** Whether a user has logged in since this began. */
export interface LogInWatch {
  readonly hasLoggedIn: boolean
  end(): void
}

/** Keys of tenants and of both kinds of records are distinct, so that one memory does for all. */
export class Endings {
  readonly #fates = new Recent<Fate>(LIFETIME)
  readonly #followers = new Recent<readonly Follower[]>(LIFETIME)
  /** As many as there are such calls of the store at once. */
  readonly #watches = new Set<{ readonly user: string; hasLoggedIn: boolean }>()
  readonly #invalidated = new Recent<{ order: number; exceptKey: string | null }>(LIFETIME)

  /** The session goes on under `to`; where `from` has ended meanwhile, so will its successor. */
  moved(from: string, to: string): void {
    this.#follow(from, { key: to, isSuccessor: true })
    const fate = this.#over(from)
    if (fate === null) this.#set(from, 'moved')
    else this.end(to, fate)
  }

  /** `to` began in place of `from`; `false` where `from` was left meanwhile: then `to` must end. */
  began(from: string, to: string): boolean {
    this.#follow(from, { key: to, isSuccessor: false })
    if (!this.isLeft(from)) return true
    this.end(to, 'left')
    return false
  }

  /** `to` stands in the place of `from`, and ends with it; where that has ended already, at once. */
  follows(from: string, to: string): void {
    this.#follow(from, { key: to, isSuccessor: false })
    const fate = this.#over(from)
    if (fate !== null) this.end(to, fate)
  }

  /**
   * A session or series ends, and all that followed from it in this process; answers the keys of what began in its
   * place, which a store cannot know. By the browser's own login or logout: `'left'`. `exceptKey` goes on.
   */
  end(key: string, fate: 'left' | 'ended', exceptKey: string | null = null): string[] {
    const began: string[] = []
    if (key === exceptKey) return began
    const ending = new Set([key])
    // A set hands out what is added while it is walked through: the nearest come first.
    for (const each of ending) {
      if (this.#fate(each) !== 'left') this.#set(each, fate)
      for (const follower of this.#followersOf(each)) {
        if (ending.size > MAX_ENDED || ending.has(follower.key) || follower.key === exceptKey) continue
        ending.add(follower.key)
        if (!follower.isSuccessor) began.push(follower.key)
      }
    }
    return began
  }

  /** Whether its browser has something else by now: nothing may begin in its place. */
  isLeft(key: string): boolean {
    const fate = this.#fate(key)
    return fate === 'left' || fate === 'moved'
  }

  /** Whether its browser has another session in its place by now, or will have; so it is taken where the chain is long. */
  hasFollower(key: string, hops = MAX_HOPS): boolean {
    if (!this.isLeft(key)) return false
    return this.#followersOf(key).some(
      ({ key: next }) => hops === 0 || this.#fate(next) === undefined || this.hasFollower(next, hops - 1),
    )
  }

  /** Whether a session or a series ended for good. */
  isOver(key: string): boolean {
    return this.#over(key) !== null
  }

  /**
   * While the store is asked to end all sessions of a user, logins of that user are watched for. Whether they began before
   * the store did so or after is not known here, and their cookies are held back.
   */
  watch(user: string): LogInWatch {
    const watch = {
      user,
      hasLoggedIn: false,
      end: () => {
        this.#watches.delete(watch)
      },
    }
    this.#watches.add(watch)
    return watch
  }

  /** A session of this user has begun. */
  loggedIn(user: string): void {
    for (const watch of this.#watches) if (watch.user === user) watch.hasLoggedIn = true
  }

  /** All sessions of a user end, that is: those whose snapshots were made before now. */
  endUser(user: string, exceptKey: string | null): void {
    this.#invalidated.set(user, { order: nextOrder(), exceptKey }, performance.now())
  }

  /** Whether the cookie of this session must not be sent any more: it ended, alone, with its series or with its user's others. */
  has(session: object): boolean {
    const record = recordOf(session)
    if (record === null) return false
    const { key, parent, userId } = record
    if (this.#fate(key) !== undefined) return true
    if (parent !== null && this.isOver(parent)) return true
    const invalidation = userId === null ? undefined : this.#invalidated.get(userId, performance.now())
    if (invalidation === undefined || orderOf(session) >= invalidation.order) return false
    return invalidation.exceptKey === null || !this.#leadsTo(invalidation.exceptKey, key)
  }

  #over(key: string): 'left' | 'ended' | null {
    const fate = this.#fate(key)
    return fate === undefined || fate === 'moved' ? null : fate
  }

  #fate(key: string): Fate | undefined {
    return this.#fates.get(key, performance.now())
  }

  #followersOf(key: string): readonly Follower[] {
    return this.#followers.get(key, performance.now()) ?? []
  }

  #set(key: string, fate: Fate): void {
    this.#fates.set(key, fate, performance.now())
  }

  #follow(from: string, follower: Follower): void {
    const before = this.#followersOf(from)
    if (before.some(({ key }) => key === follower.key)) return
    this.#followers.set(from, [...before, follower].slice(-MAX_FOLLOWERS), performance.now())
  }

  #successorOf(key: string): string | undefined {
    return this.#followersOf(key).find(({ isSuccessor }) => isSuccessor)?.key
  }

  #leadsTo(from: string, to: string): boolean {
    let key: string | undefined = from
    for (let hops = 0; key !== undefined && hops < MAX_HOPS; hops += 1) {
      if (key === to) return true
      key = this.#successorOf(key)
    }
    return false
  }
}
