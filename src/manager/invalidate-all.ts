// Ends all that is stored, of all users and visitors: after an incident, or when a secret was lost.
import { SessionStoreError } from '../contract/errors.ts'
import { CLOCK_TOLERANCE, FORWARD_LIFETIME, type ScanPage, type SessionRecord } from '../contract/store.ts'
import type { SessionKey } from '../session/id.ts'
import type { Session } from '../session/session.ts'
import { aFunction, checkOptions, type OptionPlace } from '../text/check-options.ts'
import { Writes } from './after-write.ts'
import type { AnyContext } from './context.ts'
import { endSession, endUser } from './end.ts'
import { anExcept, keyOfExcept } from './except.ts'
import { chainFrom } from './lookup.ts'
import { Recent } from './recent.ts'
import { aSignal, eachOf, isOwn, PAGE, pagesOf, requireScan, Tenants } from './walk.ts'

/** A walk that took less met all that existed when it began: each forward that was left meanwhile still stood, in ms. */
const SHORT_WALK = FORWARD_LIFETIME - CLOCK_TOLERANCE
/** How many of the users that were ended last are left alone where another session of theirs is met. */
const KEPT_USERS = 50_000
/** How many of the keys on the way of forwards are not read again. */
const KEPT_KEYS = 50_000

/** What `invalidateAll` takes. */
export interface InvalidateAllOptions {
  /** Stops it after the page under way: it rejects with the signal's reason. */
  signal?: AbortSignal | undefined
  /** Called after each page. Where it answers a promise, the next page waits for it. */
  onProgress?: ((progress: InvalidateAllProgress) => unknown) | undefined
  /** Goes on, under a new ID too, as in `invalidateUser`: a session of this manager, or the key of any. */
  // biome-ignore lint/suspicious/noExplicitAny: of whichever data and user ID
  except?: Session<any, any> | SessionKey | null | undefined
}

/** How far `invalidateAll` is. */
export interface InvalidateAllProgress {
  /** How many live sessions it has ended. */
  readonly ended: number
  /** How many records and forwards it has met. */
  readonly met: number
}

const END_ALL: OptionPlace<InvalidateAllOptions> = {
  where: 'invalidateAll',
  rules: { signal: aSignal, onProgress: aFunction, except: anExcept },
}

/** Ends all that existed when it was called; answers how many live sessions that were. */
export async function invalidateAllSessions(context: AnyContext, options: InvalidateAllOptions): Promise<number> {
  checkOptions(END_ALL, options)
  const exceptKey = keyOfExcept(context, options.except)
  requireScan(context, 'invalidateAll')
  return new EndAll(context, exceptKey).run(options)
}

/**
 * Each series has a user: a record of that kind without one is none, and no browser comes in by it. `coatcheck/import` keeps so
 * which sessions of another library are over, and they would begin again without it.
 */
const isOfVisitor = ({ userId, kind }: SessionRecord): boolean => userId === null && kind === 'session'

class EndAll {
  readonly #context: AnyContext
  readonly #exceptKey: string | null
  readonly #tenants: Tenants
  /** Users of whom nothing is left that existed when this began: what they have now is new. */
  readonly #done = new Recent<true>(Number.POSITIVE_INFINITY, KEPT_USERS)
  /** Keys whose forwards were followed: what they lead to was dealt with, and each part of a chain is read once. */
  readonly #followed = new Recent<true>(Number.POSITIVE_INFINITY, KEPT_KEYS)
  /** What was created later, by whatever node's clock, did not exist when this began. */
  readonly #latest: number
  readonly #writes = new Writes()
  #ended = 0
  #met = 0

  constructor(context: AnyContext, exceptKey: string | null) {
    this.#context = context
    this.#exceptKey = exceptKey
    this.#tenants = new Tenants(context)
    this.#latest = context.now() + CLOCK_TOLERANCE
  }

  async run(options: InvalidateAllOptions): Promise<number> {
    try {
      for (let isFirst = true; ; isFirst = false) {
        const [now, begun] = [this.#context.now(), performance.now()]
        const found = await this.#walk(options)
        // By both clocks: either may have been set back.
        const took = Math.max(performance.now() - begun, this.#context.now() - now)
        // A session that gets a new ID before it is met is met by the forward under the old one, as long as that stands.
        // After a longer walk another one looks for what escaped, until one is short or finds nothing.
        if (took < SHORT_WALK || (found === 0 && !isFirst)) return this.#ended
      }
    } catch (error) {
      const failure = this.#writes.failure(error)
      if (!(failure instanceof SessionStoreError)) throw failure
      const { operation, outcome, message } = failure
      const ended = `invalidateAll: ${this.#ended} sessions were ended, then the store failed: repeat it (${message})`
      throw new SessionStoreError(operation, outcome, ended, { cause: error })
    }
  }

  /** Answers how many users, sessions and series it found that existed when this began. */
  async #walk({ signal, onProgress }: InvalidateAllOptions): Promise<number> {
    let found = 0
    // What has just expired by our clock may be live by another node's.
    for await (const page of pagesOf(this.#context, PAGE, signal, CLOCK_TOLERANCE)) {
      found += await this.#endPage(page)
      await onProgress?.({ ended: this.#ended, met: this.#met })
    }
    return found
  }

  async #endPage({ records, forwards }: ScanPage): Promise<number> {
    this.#met += records.length + forwards.length
    const stored = [...records]
    await eachOf(forwards, async key => {
      const { record, isEnd } = await this.#follow(key)
      if (record !== null) stored.push(record)
      // Nothing live is found there. A node with a slower clock may find it, whosever it is: so not for a tenant.
      else if (isEnd && this.#context.namespace === null)
        await this.#writes.run(() =>
          this.#context.calls.delete(key, { now: this.#context.now(), deadline: this.#context.deadline() }),
        )
    })
    const old = stored.filter(({ createdAt, userId }) => createdAt <= this.#latest && isOwn(this.#context, userId))
    const users = new Set(old.flatMap(({ userId }) => (userId === null || this.#done.get(userId, 0) ? [] : userId)))
    await eachOf([...users], user => this.#endUser(user))
    // All of the page were stored before this is asked: one that the excepted session has become by then is in the chain.
    const spared = this.#exceptKey === null ? [] : (await this.#chainFrom(this.#exceptKey)).keys
    const visitors = old.filter(record => isOfVisitor(record) && !spared.includes(record.key))
    await eachOf(visitors, record => this.#endVisitor(record))
    return users.size + visitors.length
  }

  /** `isEnd: false` where another forward has led to the same end, which was dealt with or is about to be. */
  #follow(start: string) {
    const isKnown = (key: string) => {
      const isFollowed = this.#followed.get(key, 0) === true
      this.#followed.set(key, true, 0)
      return isFollowed
    }
    return this.#chainFrom(start, isKnown)
  }

  #chainFrom(key: string, isKnown: (key: string) => boolean = () => false) {
    return chainFrom(this.#context, key, { now: this.#context.now() - CLOCK_TOLERANCE, isKnown })
  }

  async #endUser(user: string): Promise<void> {
    const context = this.#tenants.of(user)
    const except = this.#exceptKey === null ? {} : { exceptKey: this.#exceptKey }
    const ended = await this.#writes.run(() => endUser(context, user, except, context.deadline()))
    this.#ended += ended
    this.#done.set(user, true, 0)
  }

  async #endVisitor({ key, expiresAt }: SessionRecord): Promise<void> {
    const context = this.#context
    const existed = await this.#writes.run(() => endSession(context, key, null, 'invalidated', context.deadline()))
    if (existed && expiresAt > context.now()) this.#ended += 1
  }
}
