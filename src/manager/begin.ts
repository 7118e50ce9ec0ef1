// How sessions get an ID: on their own, in place of another, from a remember token, and as a new one of the same session.
import { FORWARD_LIFETIME, type SessionRecord } from '../contract/store.ts'
import { packMeta, unpackMeta } from '../data/meta.ts'
import { afterWrite } from '../guard/store-calls.ts'
import { withCsrfToken } from '../session/csrf.ts'
import { deriveId, newId, newSalt, newWriteId, shardOf } from '../session/id.ts'
import type { AnySession } from '../session/session.ts'
import { isThenable } from '../time/within.ts'
import type { Context, Found } from './context.ts'
import { withinLimit } from './limit.ts'
import { type AnyRef, find, findCurrent, idOf } from './lookup.ts'
import { initialData, isUntouched, type NewSession, newRecord, seen } from './records.ts'
import { endSeries, seriesOf } from './series.ts'
import { MAX_COLLISIONS, refusal, refuseForNow, write } from './write.ts'

/** A new session under an ID that is drawn for it. `before`: the session that ends for it, whose data its user may carry over. */
function drawSession(context: Context, { owner, first, lifetime }: NewSession, before: SessionRecord | null = null) {
  const isOthers = before !== null && before.userId !== null && before.userId !== owner.userId
  const data = initialData(context, first, isOthers ? null : before)
  const id = newId(context.users.shardOf(owner.userId))
  const call = context.call()
  return { id, call, record: newRecord(context, id, owner, data, call.now, lifetime) }
}

/** Stores a session that did not exist before, under a new ID. @throws SessionError if the store refuses it */
export async function begin(context: Context, start: NewSession): Promise<AnySession> {
  for (let collisions = 0; ; collisions += 1) {
    const { id, call, record } = drawSession(context, start)
    const outcome = await withinLimit(context, record, null, () => context.calls.create(record, call))
    context.reportOutcome(outcome, record)
    if (outcome === 'created') return context.begun(id, record)
    if (outcome !== 'collision' || collisions >= MAX_COLLISIONS) throw refusal(context, outcome)
  }
}

/** Replaces a session by a new one; `null` if it ended meanwhile. */
function replaceAtLogin(context: Context, current: Found, start: NewSession): Promise<AnySession | null> {
  return write(context, 'replace', current, async ({ record: before }) => {
    const { id, call, record } = drawSession(context, start, before)
    const put = () =>
      context.calls.replace(before.key, before.version, record, {}, call).then(said => {
        if (said === 'created') context.recentlyEnded.addEnd(before.key)
        return said
      })
    const outcome = await withinLimit(context, record, before.key, put)
    context.reportOutcome(outcome, record, before.key)
    return outcome === 'created' ? { value: context.begun(id, record, before.key) } : outcome
  })
}

/** A login: the new session, in place of whatever this ID leads to. @throws SessionError if the store refuses it */
export async function beginInPlace(context: Context, ref: AnyRef, start: NewSession): Promise<AnySession> {
  const id = idOf(context, ref)
  if (id === null) return begin(context, start)
  const current = findCurrent(context, ref)
  const found = isThenable(current) ? await current : current
  let session = found === null ? null : await replaceAtLogin(context, found, start)
  let before = found?.record ?? null
  if (session === null) {
    // Not live, or no longer. Its key is deleted anyway: it may lead to a successor, or be live for a node with a slower clock.
    const key = before?.key ?? context.keyOf(id)
    before ??= await context.storedRecord(key)
    await context.endSession(key, before, 'logout')
    session = await afterWrite(() => begin(context, start))
  }
  const series = before && seriesOf(before)
  if (series === null) return session
  const { key } = session
  try {
    // Last: if the login fails, the remember token must survive.
    await afterWrite(() => endSeries(context, series, 'logout', key))
  } catch (error) {
    // The token could start the old session again, so the login fails too.
    await context.endSession(key, start.owner, 'logout').catch(() => {})
    throw error
  }
  return session
}

/** The longest grace, in ms. */
const MAX_GRACE = 120_000
/** How long the forward that a new ID leaves may exist. */
const WINDOW = MAX_GRACE + FORWARD_LIFETIME
/**
 * How many new IDs a session gets in a window. This bounds the chain of forwards to twice that number: a logout by the
 * first ID, or an `except` with an old key, follows no more.
 */
const MAX_IN_WINDOW = 32

/** The same session under a new ID: derived from the old one if there is a grace (in ms), otherwise random. */
export async function regenerate(context: Context, ref: AnyRef, grace: number | null): Promise<AnySession | null> {
  const start = await findCurrent(context, ref)
  if (start === null) return null
  if (grace !== null && start.isByOldId) {
    // Another request was first: all of them get the same new cookie.
    const now = typeof ref === 'string' ? start : await find(context, start.id, context.now())
    return now === null ? null : context.session(now)
  }
  return write(context, 'replace', start, async (found, isFirst) => {
    const { id, record } = found
    // Another request was first, after the read.
    if (grace !== null && id !== start.id) return { value: context.session(found) }
    // A touch does not change the version, so the store cannot tell of a first use since the snapshot: read again, or the
    // new record would undo it.
    if (isFirst && isUntouched(record)) return 'conflict'
    const now = context.now()
    const data = withNewIdCounted(record, now)
    // If it got a new ID without a forward, a later logout by the old ID would answer 200 and end nothing.
    if (data === null)
      refuseForNow(context, record, `this session got ${MAX_IN_WINDOW} new IDs within minutes: try again later`)
    const { seenAt, expiresAt } = seen(context, record, now)
    const salt = grace === null ? '' : newSalt()
    const nextId = grace === null ? newId(shardOf(id)) : deriveId(shardOf(id), id, 'regenerate', salt)
    const next = {
      ...record,
      // A session that was not used yet stays so under its new ID: the request that uses it first is still to come.
      seenAt: isUntouched(record) ? record.seenAt : seenAt,
      expiresAt,
      key: context.keyOf(nextId),
      data: withCsrfToken(data, id, nextId),
      version: 1,
      writeId: newWriteId(),
    }
    const forward = { salt, until: now + (grace ?? 0) }
    const outcome = await context.calls.replace(record.key, record.version, next, { forward }, context.call(now))
    context.reportOutcome(outcome, record, record.key)
    if (outcome !== 'created') return outcome
    context.recentlyEnded.addNewId(record.key, next.key, grace ?? 0)
    return { value: context.begun(nextId, next, record.key) }
  })
}

/** The data with one more new ID counted; `null` if there were too many. */
function withNewIdCounted({ key, data }: SessionRecord, now: number): string | null {
  const { meta: before, text } = unpackMeta(data)
  const meta = { firstKey: key, ...before }
  const last = meta.newIds
  const { count, since } = last !== undefined && now - last.since < WINDOW ? last : { count: 0, since: now }
  return count >= MAX_IN_WINDOW ? null : packMeta({ ...meta, newIds: { count: count + 1, since } }, text)
}
