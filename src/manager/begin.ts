// How sessions begin in a store: on their own, in place of another, or with a remember token.
import type { SessionRecord } from '../contract/store.ts'
import { afterWrite } from '../guard/after-write.ts'
import { newId } from '../session/id.ts'
import type { Session, UserSession } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import type { Owner } from '../session/users.ts'
import type { AnyContext, Context, Found } from './context.ts'
import { endSession, noticeAnswer } from './end.ts'
import { find, storedRecord } from './lookup.ts'
import { type Lifetime, limitFor, newRecord } from './records.ts'
import { refusal } from './refusals.ts'
import { endParent, endSeries } from './series-end.ts'
import { MAX_COLLISIONS, write } from './writing.ts'

/** What a new session is made of. */
export interface Start {
  readonly owner: Owner
  /** Encoded data; `before` is the session that ends, if its data may be carried over. */
  readonly dataAfter: (before: SessionRecord | null) => string
  readonly lifetime: Lifetime
}

/** Stores a session that did not exist before, under a new ID. @throws SessionError for what is refused */
export async function begin<Data extends object, Ids extends UserIds>(
  context: Context<Data, Ids>,
  { owner, dataAfter, lifetime }: Start,
  deadline: number,
): Promise<Session<Data, Ids>> {
  const data = dataAfter(null)
  for (let collisions = 0; ; collisions += 1) {
    const id = newId(context.users.shardOf(owner.userId))
    const call = context.call(deadline)
    const record = newRecord(context, id, owner, data, call.now, lifetime)
    const answer = await context.calls.create(record, limitFor(context, owner), call)
    noticeAnswer(context, answer, owner)
    if (answer.outcome === 'created') return created(context, id, record)
    if (answer.outcome !== 'collision' || collisions >= MAX_COLLISIONS) throw refusal(context, answer.outcome)
  }
}

function created<Data extends object, Ids extends UserIds>(
  context: Context<Data, Ids>,
  id: string,
  record: SessionRecord,
): Session<Data, Ids> {
  const userId = context.userIdOf(record)
  const session = context.session({ id, record, userId, isFollowed: false })
  context.emit({ type: 'created', key: session.key, userId, remembered: session.remembered })
  return session
}

/** Replaces a session by a new one; `null` if it ended meanwhile. */
export function takePlace<Data extends object, Ids extends UserIds>(
  context: Context<Data, Ids>,
  start: Found<Ids>,
  { owner, dataAfter, lifetime }: Start,
  deadline: number,
): Promise<Session<Data, Ids> | null> {
  const { calls, endings } = context
  const userId = context.userIdOf(owner)
  return write(context, 'replace', start, deadline, async ({ record: before }) => {
    const isOthers = before.userId !== null && before.userId !== owner.userId
    const data = dataAfter(isOthers ? null : before)
    const id = newId(context.users.shardOf(owner.userId))
    const call = context.call(deadline)
    const next = newRecord(context, id, owner, data, call.now, lifetime)
    const answer = await calls.replace(before.key, before.version, next, limitFor(context, owner), call)
    noticeAnswer(context, answer, owner, before.key)
    if (answer.outcome !== 'created') return answer.outcome
    endings.end(before.key, 'left')
    const session = regenerated(context, before, { id, record: next, userId, isFollowed: false })
    if (before.parent !== null) await afterWrite(() => endSeriesBefore(context, before, session.key, deadline))
    return { value: session }
  })
}

/** The session of a new ID, and the event that tells which ID it had before. */
export function regenerated<Data extends object, Ids extends UserIds>(
  context: Context<Data, Ids>,
  before: SessionRecord,
  next: Found<Ids>,
): Session<Data, Ids> {
  const session = context.session(next)
  const oldKey = before.key as typeof session.key
  context.emit({ type: 'regenerated', key: session.key, oldKey, userId: next.userId })
  return session
}

/**
 * The series of a session that a login has replaced. Last, because a login that fails must leave the remember token. If this
 * fails, the token could start a session again, and the login fails.
 */
async function endSeriesBefore(
  context: AnyContext,
  before: SessionRecord,
  newKey: string,
  deadline: number,
): Promise<void> {
  try {
    const series = await storedRecord(context, before.parent!, deadline)
    if (series?.kind === 'remember') await endSeries(context, series, 'logout', deadline, newKey)
    else await endParent(context, { ...before, key: newKey }, deadline)
  } catch (error) {
    await endSession(context, newKey, null, 'logout', deadline).catch(() => {})
    throw error
  }
}

/**
 * A session that follows from a remember token: its ID and `createdAt` are given, and it lives only while the series
 * does. `null` if the series is over or the user's limit refuses; 'expired' if one with this ID existed and was never used.
 */
export async function beginRemembered<Data extends object, Ids extends UserIds>(
  context: Context<Data, Ids>,
  id: string,
  series: SessionRecord,
  createdAt: number,
  deadline: number,
): Promise<UserSession<Data, Ids> | 'expired' | null> {
  const call = context.call(deadline)
  const { userId, userName, passwordVersion } = series
  const owner = { userId, userName, passwordVersion }
  const fresh = newRecord(context, id, owner, context.shape.first(undefined), call.now)
  // Stored as not yet seen, so that its first use is written down: that tells a lost response from a theft.
  const seenAt = Math.min(call.now, createdAt) - context.options.touchInterval
  const record = { ...fresh, parent: series.key, createdAt, seenAt }
  const answer = await context.calls.create(record, limitFor(context, owner), call)
  noticeAnswer(context, answer, owner)
  if (answer.outcome === 'created') return created(context, id, record) as UserSession<Data, Ids>
  // The session is refused or has ended; the token is still good and works again as soon as a session is free.
  if (answer.outcome !== 'collision') return null
  const found = await find(context, id, call.now, deadline)
  if (found !== null) return context.session(found) as UserSession<Data, Ids>
  // Taken, and not live: by a session that expired, or by the forward of one that goes on under another ID.
  const { record: taken, forward } = await context.calls.read(record.key, call)
  return taken === null && forward === null ? 'expired' : null
}
