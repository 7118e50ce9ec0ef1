// Ends all that is stored, of all users and visitors: after an incident, or when a secret was lost.
import { SessionStoreError } from '../contract/errors.ts'
import { CLOCK_TOLERANCE, FORWARD_LIFETIME, type ScanPage, type SessionRecord } from '../contract/store.ts'
import { Writes } from '../guard/store-calls.ts'
import type { SessionKey } from '../session/id.ts'
import type { Session } from '../session/session.ts'
import { eachOf, isOwn, PAGE, pagesOf, type Walker } from './walk.ts'

/** A walk that took less met all that existed when it began: each forward that was left meanwhile still stood, in ms. */
const SHORT_WALK = FORWARD_LIFETIME - CLOCK_TOLERANCE
/** How many keys of forwards are remembered, so that none is read again for each forward that leads to it. */
const MAX_FOLLOWED = 50_000

/** What `invalidateAll` takes. */
export interface InvalidateAllOptions {
  /** Stops it after the page under way: it rejects with the signal's reason. */
  signal?: AbortSignal | undefined
  /** Called after each page. If it returns a promise, the next page waits for it. */
  onProgress?: ((progress: InvalidateAllProgress) => unknown) | undefined
  /** Goes on, under a new ID too, as in `invalidateUser`: a session of this manager, or the key of any. */
  // biome-ignore lint/suspicious/noExplicitAny: of any data and user ID
  except?: Session<any, any> | SessionKey | null | undefined
}

/** How far `invalidateAll` is. */
export interface InvalidateAllProgress {
  /** How many live sessions it has ended. */
  readonly ended: number
  /** How many records and forwards it has met. */
  readonly met: number
}

/** What it asks of its manager beside the walk. */
interface Ender {
  /** Ends all of a user but the excepted session; answers how many live sessions that were. */
  endUser(user: string): Promise<number>
  /** Ends an anonymous session; `false` if there was none. */
  endVisitor(key: string): Promise<boolean>
  /** The record that the forwards from a key lead to. `isEnd: false`: they lead to a key that is known. */
  follow(
    key: string,
    now: number,
    isKnown: (key: string) => boolean,
  ): Promise<{ readonly record: SessionRecord | null; readonly isEnd: boolean }>
  /** The keys that the excepted session has, and had. */
  keptKeys(): Promise<readonly string[]>
}

/** Ends all that existed when it was called; answers how many live sessions that were. */
export async function invalidateAll(
  walker: Walker,
  { signal, onProgress }: Omit<InvalidateAllOptions, 'except'>,
  ender: Ender,
): Promise<number> {
  // What was created later, by whatever node's clock, did not exist when this began.
  const latest = walker.now() + CLOCK_TOLERANCE
  const writes = new Writes()
  const followed = new Set<string>()
  let [ended, met] = [0, 0]

  const isKnown = (key: string) => {
    if (followed.size >= MAX_FOLLOWED) followed.clear()
    return followed.size === followed.add(key).size
  }
  const endPage = async ({ records, forwards }: ScanPage) => {
    met += records.length + forwards.length
    const stored = [...records]
    await eachOf(forwards, async key => {
      const { record, isEnd } = await ender.follow(key, walker.now() - CLOCK_TOLERANCE, isKnown)
      if (record !== null) stored.push(record)
      // Nothing live is found there. A node with a slower clock may find it, of whichever tenant.
      else if (isEnd && walker.namespace === null)
        await writes.run(() => walker.calls.delete(key, { now: walker.now(), deadline: walker.deadline() }))
    })
    const old = stored.filter(({ createdAt, userId }) => createdAt <= latest && isOwn(walker, userId))
    const users = new Set(old.flatMap(({ userId }) => userId ?? []))
    await eachOf(users, async user => {
      const count = await writes.run(() => ender.endUser(user))
      ended += count
    })
    // A series has a user. A record of that kind without one keeps which sessions of another library are over.
    const visitors = old.filter(({ userId, kind }) => userId === null && kind === 'session')
    const kept = visitors.length === 0 ? [] : await ender.keptKeys()
    await eachOf(visitors, async ({ key, expiresAt }) => {
      if (kept.includes(key)) return
      const existed = await writes.run(() => ender.endVisitor(key))
      if (existed && expiresAt > walker.now()) ended += 1
    })
    return users.size + visitors.length
  }

  try {
    for (let isFirst = true; ; isFirst = false) {
      const [now, begun] = [walker.now(), performance.now()]
      let found = 0
      // What has just expired by our clock may be live by another node's.
      for await (const page of pagesOf(walker, PAGE, signal, CLOCK_TOLERANCE)) {
        found += await endPage(page)
        await onProgress?.({ ended, met })
      }
      // A session that gets a new ID before it is met is met by the forward under the old one, as long as that stands. After
      // a longer walk another one looks for what escaped. By both clocks, because either may have been set back.
      const took = Math.max(performance.now() - begun, walker.now() - now)
      if (took < SHORT_WALK || (found === 0 && !isFirst)) return ended
      followed.clear()
    }
  } catch (error) {
    const failure = writes.failure(error)
    if (!(failure instanceof SessionStoreError)) throw failure
    const { operation, outcome, message } = failure
    const told = `invalidateAll: ${ended} sessions were ended, then the store failed: repeat it (${message})`
    throw new SessionStoreError(operation, outcome, told, { cause: error })
  }
}
