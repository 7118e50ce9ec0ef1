import type { SessionRecord } from '../contract/store.ts'
import { lifetimeOf } from '../session/expiry.ts'
import { newId } from '../session/id.ts'
import type { AnySession, Session, SessionRef } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import type { Login, Owner } from '../session/users.ts'
import { afterWrite } from './after-write.ts'
import type { AnyContext, Context, Found } from './context.ts'
import { endSession, noticeAnswer } from './end.ts'
import { find, findCurrent, idOf, storedRecord } from './lookup.ts'
import { firstData, type Lifetime, limitFor, newRecord } from './records.ts'
import { endSeries, endStoredSeries } from './series-end.ts'
import { insert, write } from './writing.ts'

/** Stores a session that did not exist before, under a new ID. */
export function begin<D extends object, I extends UserIds>(
  context: Context<D, I>,
  owner: Owner,
  data: string,
  deadline: number,
  lifetime?: Lifetime,
): Promise<Session<D, I>> {
  return insert(context, async () => {
    const id = newId(context.users.shardOf(owner.userId))
    const now = context.now()
    const record = newRecord(context, id, owner, data, now, lifetime)
    const answer = await context.calls.create(record, limitFor(context, owner), { now, deadline })
    noticeAnswer(context, answer, owner)
    return answer.outcome === 'created' ? { value: created(context, id, record) } : answer.outcome
  })
}

function created<D extends object, I extends UserIds>(
  context: Context<D, I>,
  id: string,
  record: SessionRecord,
): Session<D, I> {
  const userId = context.userIdOf(record)
  const session = context.begun({ id, record, userId, isFollowed: false })
  context.emit({ type: 'created', key: session.key, userId, remembered: session.remembered })
  return session
}

/** Login: the session that was there, anyone's, ends in the same step in which the new one begins. */
export async function logIn<D extends object, I extends UserIds, In extends object>(
  context: Context<D, I, In>,
  current: SessionRef<D, I>,
  login: Login<D, I, In>,
): Promise<Session<D, I>> {
  const owner = context.users.ownerOf(login, context.now())
  const lifetime = lifetimeOf(login, context.options)
  const deadline = context.deadline()
  const id = idOf(context, current)
  const start = await findCurrent(context, current, deadline)
  const beginAfresh = () => begin(context, owner, firstData(context, login, null), deadline, lifetime)
  if (id === null) return beginAfresh()
  if (start === null) {
    // This node finds no live session. Delete the key all the same: it may lead to a successor, or be live for a node
    // with a slower clock.
    await endSession(context, context.keyOf(id), null, 'logout', deadline)
    return afterWrite(beginAfresh)
  }
  const dataOf = (before: SessionRecord) => {
    const isOthers = before.userId !== null && before.userId !== owner.userId
    return firstData(context, login, isOthers ? null : before)
  }
  const session = await takePlace(context, start, owner, dataOf, deadline, lifetime)
  if (session !== null) return session
  // A parallel request ended or regenerated it: its successor ends too, then this login begins on its own.
  await endSession(context, start.record.key, start.record.userId, 'logout', deadline)
  return afterWrite(beginAfresh)
}

/** Replaces a session by one of `owner`; `null` where it ended meanwhile. */
function takePlace<D extends object, I extends UserIds>(
  context: Context<D, I>,
  start: Found<I>,
  owner: Owner,
  dataOf: (before: SessionRecord) => string,
  deadline: number,
  lifetime?: Lifetime,
): Promise<Session<D, I> | null> {
  const { calls, endings } = context
  const userId = context.userIdOf(owner)
  return write(context, 'replace', start, deadline, async ({ record: before }) => {
    const data = dataOf(before)
    const now = context.now()
    const id = newId(context.users.shardOf(owner.userId))
    const next = newRecord(context, id, owner, data, now, lifetime)
    const call = { now, deadline }
    const answer = await calls.replace(before.key, before.version, next, limitFor(context, owner), call)
    noticeAnswer(context, answer, owner, before.key)
    if (answer.outcome !== 'created') return answer.outcome
    endings.end(before.key, 'left')
    const session = regenerated(context, before, { id, record: next, userId, isFollowed: false })
    if (before.parent !== null) await afterWrite(() => endSeriesOf(context, before, session, deadline))
    return { value: session }
  })
}

/** The session of a new ID, and the event that tells which ID it had before. */
export function regenerated<D extends object, I extends UserIds>(
  context: Context<D, I>,
  before: SessionRecord,
  next: Found<I>,
): Session<D, I> {
  const session = context.session(next)
  context.emit({
    type: 'regenerated',
    key: session.key,
    oldKey: before.key as typeof session.key,
    userId: next.userId,
  })
  return session
}

/** Last, since a login that fails must leave the remember token. Where this fails, the token could start a session again. */
async function endSeriesOf(
  context: AnyContext,
  before: SessionRecord,
  session: AnySession,
  deadline: number,
): Promise<void> {
  try {
    const series = await storedRecord(context, before.parent!, deadline)
    if (series?.kind === 'remember') await endStoredSeries(context, series, 'logout', deadline, session.key)
    else await endSeries(context, { ...before, key: before.parent! }, 'logout', deadline, session.key)
  } catch (error) {
    await endSession(context, session.key, null, 'logout', deadline).catch(() => {})
    throw error
  }
}

/**
 * A session that follows from a remember token: its ID and `createdAt` are given, and it lives only while the series
 * does. `null` where the series is over or the user's limit refuses; 'expired' where one with this ID existed and was
 * never used.
 */
export async function beginRemembered<D extends object, I extends UserIds>(
  context: Context<D, I>,
  id: string,
  series: SessionRecord,
  createdAt: number,
  deadline: number,
): Promise<Session<D, I> | 'expired' | null> {
  const now = context.now()
  const call = { now, deadline }
  const { userId, userName, passwordVersion } = series
  const owner = { userId, userName, passwordVersion }
  const fresh = newRecord(context, id, owner, context.shape.first(undefined), now)
  // Stored as not yet seen, so that its first visit is written down: that tells a lost response from a theft.
  const seenAt = Math.min(now, createdAt) - context.options.touchInterval
  const record = { ...fresh, parent: series.key, createdAt, seenAt }
  const answer = await context.calls.create(record, limitFor(context, owner), call)
  noticeAnswer(context, answer, owner)
  if (answer.outcome === 'created') return created(context, id, record)
  // The session is refused or has ended; the token is still good and works again as soon as a session is free.
  if (answer.outcome !== 'collision') return null
  const found = await find(context, id, now, deadline)
  if (found !== null) return context.session(found)
  // Taken, and not live: by a session that expired, or by the forward of one that goes on under another ID.
  const { record: taken, forward } = await context.calls.read(record.key, call)
  return taken === null && forward === null ? 'expired' : null
}
