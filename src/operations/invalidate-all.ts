// Ends all that is stored, of all users and visitors: after an incident, or when a secret was lost.
import { SessionStoreError } from '../contract/errors.ts'
import { CLOCK_TOLERANCE, FORWARD_LIFETIME, type ScanPage, type SessionRecord } from '../contract/store.ts'
import type { SessionKey } from '../session/id.ts'
import type { Session } from '../session/session.ts'
import { eachOf, isOwn, PAGE, pagesOf, type Walker } from './walk.ts'

/** A walk that took less met all that existed when it began: each forward that was left meanwhile still stood, in ms. */
const SHORT_WALK = FORWARD_LIFETIME - CLOCK_TOLERANCE
/** A clock by which all that is stored is live: what has expired by ours may be live by another node's. */
const ALL_LIVE = 0

/** Options of `invalidateAll`. */
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

/** The part of a manager that ends what a walk meets. */
interface Ender extends Walker {
  begin(): Ender & ReturnType<Walker['begin']>
  /** The same for the tenant of a stored user. */
  ofUser(user: string): Ender
  endUser(user: string, exceptKey: string | null): Promise<number>
  endSession(key: string, owner: null, reason: 'invalidated'): Promise<boolean>
  chainFrom(
    start: string,
    now: number,
    known?: Set<string>,
  ): Promise<{ readonly keys: ReadonlySet<string>; readonly record: SessionRecord | null; readonly isEnd: boolean }>
}

/** Ends all that existed when it was called, but one session; answers how many live sessions that were. */
export async function invalidateAll(
  manager: Ender,
  { signal, onProgress }: Omit<InvalidateAllOptions, 'except'>,
  exceptKey: string | null,
): Promise<number> {
  // All that is met ends, whatever its dates: this clock may be wrong. It only decides whether another walk is due. By the
  // clock of any node, a session that was created later than this did not exist when the call began.
  const latest = manager.now() + CLOCK_TOLERANCE
  let [ended, met] = [0, 0]

  const endPage = async ({ records, forwards }: ScanPage) => {
    met += records.length + forwards.length
    const stored = [...records]
    // Each new ID of a session leaves a forward: together they are followed once.
    const followed = new Set<string>()
    await eachOf(forwards, async key => {
      const { record, isEnd } = await manager.begin().chainFrom(key, ALL_LIVE, followed)
      if (record !== null) stored.push(record)
      // It leads to nothing any more: a repeated call need not follow it again.
      else if (isEnd && manager.namespace === null) await manager.calls.delete(key, manager.begin().call())
    })
    // A series has a user. A record of that kind without one keeps which sessions of another library are over.
    const own = stored.filter(({ userId, kind }) => isOwn(manager, userId) && (userId !== null || kind === 'session'))
    const users = new Set(own.flatMap(({ userId }) => userId ?? []))
    await eachOf(users, async user => {
      const count = await manager.ofUser(user).begin().endUser(user, exceptKey)
      ended += count
    })
    const visitors = own.filter(({ userId }) => userId === null)
    const keepsOne = exceptKey !== null && visitors.length > 0
    const kept = keepsOne ? (await manager.begin().chainFrom(exceptKey, ALL_LIVE)).keys : null
    await eachOf(visitors, async ({ key, expiresAt }) => {
      if (kept?.has(key)) return
      const existed = await manager.begin().endSession(key, null, 'invalidated')
      if (existed && expiresAt > manager.now()) ended += 1
    })
    return own.some(({ createdAt }) => createdAt <= latest)
  }

  try {
    for (let isFirst = true; ; isFirst = false) {
      const [now, begun] = [manager.now(), performance.now()]
      let hasMetOld = false
      for await (const page of pagesOf(manager, PAGE, signal, ALL_LIVE)) {
        hasMetOld = (await endPage(page)) || hasMetOld
        await onProgress?.({ ended, met })
      }
      // A session that gets a new ID before the walk meets it is met by the forward under the old one, as long as that stands. After
      // a longer walk another one looks for the rest. By both clocks, because either may have been set back.
      const took = Math.max(performance.now() - begun, manager.now() - now)
      if (took < SHORT_WALK || (!hasMetOld && !isFirst)) return ended
    }
  } catch (error) {
    if (!(error instanceof SessionStoreError)) throw error
    const { operation, outcome, message } = error
    const told = `invalidateAll: ${ended} sessions were ended, then the store failed: repeat it (${message})`
    throw new SessionStoreError(operation, met === 0 ? outcome : 'unknown', told, { cause: error })
  }
}
