// How a remember-me series ends, with the sessions that began with its tokens.
import { SessionStoreError } from '../contract/errors.ts'
import type { SessionRecord } from '../contract/store.ts'
import { afterWrite, Writes } from '../guard/after-write.ts'
import { keyOf, newWriteId, type SessionKey } from '../session/id.ts'
import type { AnyContext } from './context.ts'
import { endSession, endUser } from './end.ts'
import { parseSeries, type Series, type SeriesEnd } from './series.ts'

/** Where a series stands while its sessions are ended: not live under the key that a token leads to. */
const endingKey = (key: string): SessionKey => keyOf(key, 'ending')

/**
 * Ends a series, and the sessions that began with its tokens, but for one of them. The series first moves to another key in
 * one step, so that nothing begins with it any more, and goes when the last of its sessions has ended: so a call that is
 * repeated after a failure finds it by the forward.
 */
export async function endSeries(
  context: AnyContext,
  found: SessionRecord,
  reason: SeriesEnd,
  deadline: number,
  exceptKey: string | null = null,
): Promise<void> {
  const { userId, data } = found
  const { ending } = parseSeries(data) ?? {}
  const key = ending?.key ?? found.key
  context.endings.end(key, reason === 'logout' ? 'left' : 'ended', exceptKey)
  const moving = ending === undefined ? await move(context, found, reason, deadline) : 'moved'
  const end = () => context.calls.delete(key, context.call(deadline))
  await afterWrite(async () => {
    // Another call has moved it: that one may have found a theft.
    const other = moving === 'gone' ? await endingAt(context, endingKey(key), deadline) : ending
    const why = other?.reason === 'theft' ? 'theft' : (ending?.reason ?? reason)
    const endBegun = async () => {
      if (why === 'theft' && context.options.onTheft === 'invalidate-user')
        await endUser(context, userId!, { exceptKey: moving === 'full' ? key : endingKey(key) }, deadline)
      else await endBegunWith(context, key, userId, why, deadline, ({ key: each }) => each === exceptKey)
    }
    await endBegun()
    let isEnded = false
    if (moving === 'full') {
      // What has begun meanwhile ends too; nothing begins after this.
      isEnded = await end()
      await endBegun()
    }
    // The forward goes with what it leads to. The call that deletes it tells a theft: parallel requests with one token are one.
    isEnded = (await end()) || isEnded
    if (why === 'theft' && isEnded)
      context.emit({ type: 'remember-theft', key: key as SessionKey, userId: context.userIdOf(found) })
  })
}

/**
 * Moves a live series, with a forward for as long as it would have lived. 'gone': it is live no more. 'full': the store
 * has no room for the forward, and a logout must not wait until there is some; nothing was written.
 */
async function move(
  context: AnyContext,
  found: SessionRecord,
  reason: SeriesEnd,
  deadline: number,
): Promise<'moved' | 'gone' | 'full'> {
  const { calls } = context
  const { key } = found
  for (let record: SessionRecord | null = found; record !== null; ) {
    const series = parseSeries(record.data)
    // What cannot be read begins nothing, and goes when its sessions have ended.
    if (series === null) return 'moved'
    const data = JSON.stringify({ ...series, ending: { key, reason } })
    const moved = { ...record, key: endingKey(key), data, version: 1, writeId: newWriteId() }
    const forward = { salt: '', until: record.expiresAt }
    const call = context.call(deadline)
    try {
      const { outcome } = await calls.replace(key, record.version, moved, { forward }, call)
      if (outcome === 'created') return 'moved'
      if (outcome === 'gone') return 'gone'
      // Refused because of a newer password version: all of the user is being ended.
      if (outcome !== 'conflict') return 'full'
    } catch (error) {
      if (error instanceof SessionStoreError && error.outcome === 'not-applied') return 'full'
      throw error
    }
    record = (await calls.read(key, call)).record
  }
  return 'gone'
}

/** Why the series that was moved to this key ends; nothing once its end is over. */
async function endingAt(context: AnyContext, key: string, deadline: number): Promise<Series['ending']> {
  const { record } = await context.calls.read(key, context.call(deadline))
  return record === null ? undefined : parseSeries(record.data)?.ending
}

/** Goes on with the end of a series that failed on the way, and left it under this key. */
export async function finishEnd(context: AnyContext, movedTo: string, deadline: number): Promise<void> {
  const { record } = await context.calls.read(movedTo, context.call(deadline))
  const ending = record === null ? undefined : parseSeries(record.data)?.ending
  if (ending !== undefined) await endSeries(context, record!, ending.reason, deadline)
}

/**
 * Ends the series that a session began with, and the others that did. For a caller who ends the session last: if this fails
 * and is repeated, the session still leads here.
 */
export async function endParent(context: AnyContext, session: SessionRecord, deadline: number): Promise<void> {
  const { key, parent, userId } = session
  context.endings.end(parent!, 'left', key)
  await context.calls.delete(parent!, context.call(deadline))
  await afterWrite(() => endBegunWith(context, parent!, userId, 'logout', deadline, each => each.key === key))
}

/** Ends the sessions that began with the tokens of a series. */
export async function endBegunWith(
  context: AnyContext,
  seriesKey: string,
  userId: string | null,
  reason: SeriesEnd,
  deadline: number,
  isSpared: (session: SessionRecord) => boolean,
): Promise<void> {
  if (userId === null) return
  const writes = new Writes()
  for (const session of await context.calls.listUser(userId, 'session', context.call(deadline)))
    if (session.parent === seriesKey && !isSpared(session))
      await writes.run(() => endSession(context, session.key, userId, reason, deadline))
}

/**
 * Ends the series of a session's device: which the session began with, or which it asked for. Then the session by `end`,
 * then a series that it asked for meanwhile. Answers what `end` does.
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

/** Answers whether there was a series to end. */
export async function endDevice(context: AnyContext, session: SessionRecord, deadline: number): Promise<boolean> {
  const { calls, options } = context
  const { userId } = session
  if (options.rememberFor === null || userId === null) return false
  const writes = new Writes()
  let isAny = false
  for (const record of await calls.listUser(userId, 'remember', context.call(deadline))) {
    const series = parseSeries(record.data)
    const key = series?.ending?.key ?? record.key
    if (key !== session.parent && series?.origin !== session.createdAt) continue
    await writes.run(() => endSeries(context, record, 'revoked', deadline, session.key))
    isAny = true
  }
  return isAny
}
