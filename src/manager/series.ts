// A remember-me series is the record behind all remember tokens of one device. How it is read and written, and how it
// ends, with the sessions that began with its tokens.
import { timingSafeEqual } from 'node:crypto'
import { CLOCK_TOLERANCE, type SessionRecord } from '../contract/store.ts'
import { firstKeyOf } from '../data/meta.ts'
import { afterWrite, eachWrite } from '../guard/store-calls.ts'
import { hashOf, keyOf, newWriteId, type SessionKey } from '../session/id.ts'
import type { Context, EndReason } from './context.ts'

/** What leads to a series and to its sessions. */
type SeriesKey = Pick<SessionRecord, 'key' | 'userId'>

/** The data of a series' record. */
export interface Series {
  /** Hash of the verifier that is good now. */
  readonly current: string
  /** Hash of the verifier that was used last. */
  readonly previous: string | null
  /** The next token and its session were derived from this and from that verifier. */
  readonly salt: string
  /** When the session of the used verifier was last begun. Within the window that verifier gives it again. */
  readonly rotatedAt: number
  /** `createdAt` of that session, and when it was first used. */
  readonly createdAt: number
  readonly touchedAt: number | null
  /** The first key of the session that asked for the token: the same device. */
  readonly issuedFor: string
}

/** A series and its record. */
export interface FoundSeries {
  readonly record: SessionRecord
  readonly series: Series
}

const TOKEN = /^([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{43})$/

/** The parts of a token that a browser presents. */
export interface Presented {
  /** Of its series. */
  readonly key: SessionKey
  readonly selector: string
  readonly verifier: string
}

/** `null` if the text cannot be a token. */
export function parseToken(namespace: string | null, token: string): Presented | null {
  const [, selector, verifier] = (typeof token === 'string' && TOKEN.exec(token)) || []
  return selector && verifier ? { key: seriesKey(namespace, selector), selector, verifier } : null
}

/** A session ID offered as a token, or the reverse, leads nowhere. */
export const seriesKey = (namespace: string | null, selector: string): SessionKey =>
  keyOf(selector, `remember\0${namespace ?? ''}`)

/** Whether a verifier is the one that a series keeps the hash of. */
export function isVerifier(verifier: string, hash: string | null): boolean {
  const presented = hashOf(verifier)
  return hash !== null && hash.length === presented.length && timingSafeEqual(Buffer.from(presented), Buffer.from(hash))
}

/** `null` for text that no manager of ours wrote. */
export function parseSeries(text: string): Series | null {
  try {
    const series = JSON.parse(text)
    return typeof series.current === 'string' ? series : null
  } catch {
    return null
  }
}

/** The live series that a token's key leads to. */
export async function readSeries(context: Context, key: string): Promise<FoundSeries | null> {
  const record = await context.storedRecord(key)
  if (record?.kind !== 'remember') return null
  // As for a session: the limit of today holds it too, where there is one.
  const longest = context.options.rememberFor ?? Number.POSITIVE_INFINITY
  const expiresAt = Math.min(record.expiresAt, record.createdAt + longest)
  if (!(expiresAt > context.now())) return null
  const series = parseSeries(record.data)
  if (series !== null && context.userIdOf(record) !== null) return { record: { ...record, expiresAt }, series }
  // One whose user ID is of another kind stays, as a session does: `userIds` may be wrong in this deployment alone.
  if (series === null) await context.calls.delete(key, context.call())
  const cause = series === null ? 'not a remember-me series' : `user ID is not of kind '${context.options.userIds}'`
  context.emit({ type: 'corrupt-record', key: key as SessionKey, cause })
  return null
}

/**
 * For this long a used token gives the session of its rotation again, counted from the first use of that session: one minute
 * for the slowest of parallel requests, plus the tolerance of clocks.
 */
const REUSE_WINDOW = 60_000 + CLOCK_TOLERANCE

export const isReuseLate = ({ touchedAt, rotatedAt }: Series, now: number): boolean =>
  now - (touchedAt ?? rotatedAt) > REUSE_WINDOW

/** Whether a token is the one that is good now, or was until a parallel request used it; `null` if it is neither. */
export async function useOf(context: Context, token: string): Promise<'current' | 'used' | null> {
  const { key, verifier } = parseToken(context.namespace, token)!
  const series = (await readSeries(context, key))?.series
  if (series === undefined) return null
  if (isVerifier(verifier, series.current)) return 'current'
  return isVerifier(verifier, series.previous) && !isReuseLate(series, context.now()) ? 'used' : null
}

export function writeSeries(
  context: Context,
  { key, version, expiresAt }: SessionRecord,
  series: Series,
  now: number,
): Promise<'updated' | 'conflict' | 'gone'> {
  const change = { data: JSON.stringify(series), seenAt: now, expiresAt, writeId: newWriteId() }
  return context.calls.update(key, version, change, context.call(now))
}

/** The first use of a remembered session: from now on a spent token of its series, after the grace, is a stolen one. */
export async function setTouched(context: Context, session: SessionRecord): Promise<void> {
  for (;;) {
    const found = await readSeries(context, session.parent!)
    if (found === null || found.series.touchedAt !== null) return
    // Only the session of the last rotation counts, under its first ID or a newer one.
    if (session.createdAt !== found.series.createdAt) return
    const now = context.now()
    const used = { ...found.series, touchedAt: now }
    if ((await writeSeries(context, found.record, used, now)) !== 'conflict') return
  }
}

/**
 * Ends a series and the sessions that began with its tokens, except one. The series goes between two looks for its sessions:
 * until then it may begin one, and a call that failed and is repeated still finds it.
 */
export async function endSeries(
  context: Context,
  { key, userId }: SeriesKey,
  reason: EndReason,
  exceptKey: string | null = null,
): Promise<void> {
  if (reason === 'logout') context.recentlyEnded.addEnd(key, true, exceptKey)
  const isOfUser = reason === 'theft' && context.options.onTheft === 'invalidate-user'
  const endSessions = async () => {
    if (isOfUser) return void (await context.endUser(userId!, key))
    await endBegun(context, { key, userId }, reason, session => session.key !== exceptKey)
  }
  await endSessions()
  await afterWrite(async () => {
    let isDeleted = true
    try {
      isDeleted = await context.calls.delete(key, context.call())
    } finally {
      // Only the call that deletes it tells of the theft: parallel requests with one token tell once. If the answer is lost,
      // nobody else may.
      if (reason === 'theft' && isDeleted)
        context.emit({ type: 'remember-theft', key: key as SessionKey, userId: context.userIdOf({ userId }) })
    }
    await endSessions()
  })
}

/**
 * Ends whatever session is under a key, its successor too, and the remember token that it began with. `known`: the record, if
 * the caller has it. Answers the record, and whether there was one to end.
 */
export async function logOut(
  context: Context,
  key: string,
  known: SessionRecord | null = null,
): Promise<{ readonly record: SessionRecord | null; readonly existed: boolean }> {
  // Before the answers: even if they are lost, a slow response must not send this cookie again.
  context.recentlyEnded.addEnd(key, known !== null)
  const record = known ?? (await context.storedRecord(key))
  const end = () => context.endSession(key, record, 'logout')
  const series = record && seriesOf(record)
  if (series === null) return { record, existed: await end() }
  // The remember token first: while it lives, it could start this session again.
  await endSeries(context, series, 'logout', record!.key)
  return { record, existed: await afterWrite(end) }
}

/** Ends those of the sessions that began with the tokens of a series for which `isOver` is true. */
export async function endBegun(
  context: Context,
  { key, userId }: SeriesKey,
  reason: EndReason,
  isOver: (session: SessionRecord) => boolean,
): Promise<void> {
  if (userId === null) return
  // What has expired by our clock may live at a node with a slower one.
  const sessions = await context.calls.listUser(userId, 'session', context.call(context.now() - CLOCK_TOLERANCE))
  const over = sessions.filter(session => session.parent === key && isOver(session))
  await eachWrite(over, session => context.endSession(session.key, session, reason))
}

/** The series that a session began with. */
export const seriesOf = ({ parent, userId }: SessionRecord): SeriesKey | null =>
  parent === null ? null : { key: parent, userId }

/** Whether a series and a session are of one device: the session began with it, or asked for it, under whatever ID. */
export const isSameDevice = (series: SessionRecord, session: SessionRecord): boolean =>
  session.parent === series.key || firstKeyOf(session) === parseSeries(series.data)?.issuedFor

/** The series of a session's device. */
export async function seriesOfDevice(context: Context, session: SessionRecord): Promise<SessionRecord[]> {
  const series = await context.calls.listUser(session.userId!, 'remember', context.call())
  return series.filter(each => isSameDevice(each, session))
}
