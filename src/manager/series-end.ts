// How a remember-me series ends, and the sessions that began with its tokens. The series first: from then on no session can
// begin with it, and what began before is in the list.
import { SessionStoreError } from '../contract/errors.ts'
import type { ReplaceResult, SessionRecord } from '../contract/store.ts'
import { keyOf, newWriteId, type SessionKey } from '../session/id.ts'
import { afterWrite, Writes } from './after-write.ts'
import type { AnyContext } from './context.ts'
import { endSession, endUser } from './end.ts'
import { parseSeries, type Series, type SeriesEnd } from './series.ts'

type Ended = Pick<SessionRecord, 'key' | 'userId'>

/**
 * Ends a series, and the sessions that began with its tokens. For a caller who, repeated after a failure, has the key
 * again: from a session that ends last.
 */
export async function endSeries(
  context: AnyContext,
  series: Ended,
  reason: SeriesEnd,
  deadline: number,
  exceptKey: string | null = null,
): Promise<void> {
  noticeEnd(context, series, reason, exceptKey)
  await context.calls.delete(series.key, { now: context.now(), deadline })
  await afterWrite(() => endChildren(context, series, isThis(exceptKey), reason, deadline))
}

/**
 * As `endSeries`, for a caller who has nothing but the series, or what is left of one. It moves to another key in one step,
 * and goes from there when the last of its sessions has ended: so a call that is repeated after a failure finds it.
 */
export async function endStoredSeries(
  context: AnyContext,
  found: SessionRecord,
  reason: SeriesEnd,
  deadline: number,
  exceptKey: string | null = null,
): Promise<void> {
  const { userId } = found
  const ending = parseSeries(found.data)?.ending
  const series = { key: ending?.key ?? found.key, userId }
  noticeEnd(context, series, reason, exceptKey)
  const moving = ending === undefined ? await move(context, found, reason, deadline) : 'before'
  const moved = moving === 'refused' ? await endInPlace(context, series, reason, exceptKey, deadline) : moving
  await afterWrite(() => finishMoved(context, series, { ending, moved, reason, exceptKey }, deadline))
}

/**
 * For a store that is full: it has no room for the forward, and a logout must not wait until there is some. What began
 * with the tokens ends first, so that a repeated call finds the series; what begins meanwhile ends after it.
 */
async function endInPlace(
  context: AnyContext,
  series: Ended,
  reason: SeriesEnd,
  exceptKey: string | null,
  deadline: number,
): Promise<'deleted' | 'gone'> {
  await endBegun(context, series, { reason, exceptKey, seriesAt: series.key }, deadline)
  const isEnded = await afterWrite(() => context.calls.delete(series.key, { now: context.now(), deadline }))
  return isEnded ? 'deleted' : 'gone'
}

interface MovedSeries {
  /** What the series says of its end; nothing where this call has moved it. */
  readonly ending: Series['ending']
  readonly moved: 'before' | 'moved' | 'deleted' | 'gone'
  readonly reason: SeriesEnd
  readonly exceptKey: string | null
}

/** Ends what began with the tokens of a series that was moved, and what is left of it. */
async function finishMoved(
  context: AnyContext,
  series: Ended,
  { ending, moved, reason, exceptKey }: MovedSeries,
  deadline: number,
): Promise<void> {
  const { calls } = context
  // The call that deletes it last tells a theft, also one for which another call moved it meanwhile.
  const other = moved === 'gone' ? await endingAt(context, endingKey(series.key), deadline) : null
  const why = other?.ending?.reason === 'theft' ? 'theft' : (ending?.reason ?? reason)
  await endBegun(context, series, { reason: why, exceptKey, seriesAt: endingKey(series.key) }, deadline)
  // The forward goes with what it leads to.
  const isLast = await calls.delete(series.key, { now: context.now(), deadline })
  // Parallel requests with one stolen token are one theft.
  if (why === 'theft' && (isLast || moved === 'deleted'))
    context.emit({ type: 'remember-theft', key: series.key as SessionKey, userId: context.userIdOf(series) })
}

interface BegunEnd {
  readonly reason: SeriesEnd
  readonly exceptKey: string | null
  /** Where the series stands, which goes last. */
  readonly seriesAt: string
}

/** Ends the sessions that began with the tokens of a series, or after a theft all of its user. */
async function endBegun(
  context: AnyContext,
  series: Ended,
  { reason, exceptKey, seriesAt }: BegunEnd,
  deadline: number,
): Promise<void> {
  if (reason === 'theft' && context.options.onTheft === 'invalidate-user')
    await endUser(context, series.userId!, { exceptKey: seriesAt }, deadline)
  else await endChildren(context, series, isThis(exceptKey), reason, deadline)
}

/** Goes on with the end of a series that failed on the way, and left it under this key. */
export async function finishEnd(context: AnyContext, movedTo: string, deadline: number): Promise<void> {
  const { record, ending } = await endingAt(context, movedTo, deadline)
  if (ending !== undefined) await endStoredSeries(context, record!, ending.reason, deadline)
}

/** What stands under a key that a series was moved to, and why the series ends; nothing where its end is over. */
async function endingAt(
  context: AnyContext,
  key: string,
  deadline: number,
): Promise<{ readonly record: SessionRecord | null; readonly ending?: Series['ending'] }> {
  const { record } = await context.calls.read(key, { now: context.now(), deadline })
  return { record, ending: record === null ? undefined : parseSeries(record.data)?.ending }
}

/** Ends the sessions of earlier rotations: each rotation's is later than those before it, under whatever ID. */
export async function endEarlier(
  context: AnyContext,
  record: SessionRecord,
  { createdAt }: Series,
  deadline: number,
): Promise<void> {
  await endChildren(context, record, session => session.createdAt >= createdAt, 'revoked', deadline)
}

/** Ends the sessions that began with the tokens of a series. */
async function endChildren(
  context: AnyContext,
  { key, userId }: Ended,
  isSpared: (session: SessionRecord) => boolean,
  reason: SeriesEnd,
  deadline: number,
): Promise<void> {
  if (userId === null) return
  const sessions = await context.calls.listUser(userId, 'session', { now: context.now(), deadline })
  const writes = new Writes()
  for (const session of sessions)
    if (session.parent === key && !isSpared(session))
      await writes.run(() => endSession(context, session.key, session.userId, reason, deadline))
}

const isThis = (key: string | null) => (session: SessionRecord) => session.key === key

/**
 * Ends the series of the device that a session belongs to, and the other sessions that began with their tokens. Answers
 * whether there was one.
 */
export async function endDevice(context: AnyContext, session: SessionRecord, deadline: number): Promise<boolean> {
  const { calls, options } = context
  const { userId } = session
  if (options.rememberFor === null || userId === null) return false
  const writes = new Writes()
  let isAny = false
  for (const record of await calls.listUser(userId, 'remember', { now: context.now(), deadline })) {
    const series = parseSeries(record.data)
    const key = series?.ending?.key ?? record.key
    if (key !== session.parent && series?.origin !== session.createdAt) continue
    await writes.run(() => endStoredSeries(context, record, 'revoked', deadline, session.key))
    isAny = true
  }
  return isAny
}

/**
 * Ends the series of a session's device, then the session by `end`, then a series that it asked for meanwhile: none begins
 * after that. Answers what `end` does.
 */
export async function endWithDevice(
  context: AnyContext,
  session: SessionRecord,
  end: () => Promise<boolean>,
  deadline: number,
): Promise<boolean> {
  const existed = (await endDevice(context, session, deadline)) ? await afterWrite(end) : await end()
  await afterWrite(() => endDevice(context, session, deadline))
  return existed
}

/** Where a series stands while its sessions are ended: not live under the key that a token leads to. */
const endingKey = (key: string): SessionKey => keyOf(key, 'ending')

/** Before the store's answer: even where it is lost, no slow response sends a cookie of the series again. */
const noticeEnd = (context: AnyContext, { key }: Ended, reason: SeriesEnd, exceptKey: string | null): void =>
  context.endings.end(key, reason === 'logout' ? 'left' : 'ended', exceptKey)

/**
 * Moves a live series, and leaves a forward for as long as it would have lived. `'gone'`: it was not live any more.
 * `'refused'`: certainly nothing was written.
 */
async function move(
  context: AnyContext,
  found: SessionRecord,
  reason: SeriesEnd,
  deadline: number,
): Promise<'moved' | 'deleted' | 'gone' | 'refused'> {
  const { calls } = context
  const { key } = found
  for (let record: SessionRecord | null = found; record !== null; ) {
    const series = parseSeries(record.data)
    const call = { now: context.now(), deadline }
    // What cannot be read begins nothing, and goes when its sessions have ended.
    if (series === null) return 'moved'
    const data = JSON.stringify({ ...series, ending: { key, reason } })
    const ending = { ...record, key: endingKey(key), data, version: 1, writeId: newWriteId() }
    const options = { forward: { salt: '', until: record.expiresAt } }
    const outcome = await outcomeOf(calls.replace(key, record.version, ending, options, call))
    if (outcome === 'refused') return outcome
    if (outcome === 'created') return 'moved'
    if (outcome === 'gone') return 'gone'
    // A floor above it refuses: then all of the user is being ended.
    if (outcome !== 'conflict') return (await calls.delete(key, call)) ? 'deleted' : 'gone'
    record = (await calls.read(key, call)).record
  }
  return 'gone'
}

async function outcomeOf(replacing: Promise<ReplaceResult>): Promise<ReplaceResult['outcome'] | 'refused'> {
  try {
    return (await replacing).outcome
  } catch (error) {
    if (error instanceof SessionStoreError && error.outcome === 'not-applied') return 'refused'
    throw error
  }
}
