// Finds the record for a caller's session, ID or key.
import { CLOCK_TOLERANCE, type Forward, type SessionRecord } from '../contract/store.ts'
import type { Reading } from '../guard/store-calls.ts'
import { deriveId, isId, isKey, type SessionKey, shardOf } from '../session/id.ts'
import { type AnySession, keySpaceOf, recordOf, wasFoundByOldId } from '../session/session.ts'
import { passwordVersionOf } from '../session/users.ts'
import type { Rule } from '../text/check-options.ts'
import { IS_DEBUG, noSession } from '../text/debug.ts'
import { isThenable, within } from '../time/within.ts'
import type { Context, Found } from './context.ts'
import { held } from './records.ts'

/** A session of any data and user IDs, or the value of its cookie. */
export type AnyRef = AnySession | string | null | undefined

/** How many new IDs in a row a late request may have missed. */
const MAX_FORWARDS = 8

/** The record behind a caller's session. @throws TypeError for a copy of one, another namespace's, or anything else */
export function recordOfSnapshot(context: Context, session: AnySession): SessionRecord {
  const record = typeof session === 'object' && session !== null ? recordOf(session) : null
  if (record === null || typeof session.secret !== 'string')
    throw new TypeError(
      'session: expected the object that get() or logIn() returned, not a copy and not an entry of list() (if it is that, two versions of coatcheck are installed: check `npm ls coatcheck`)',
    )
  if (keySpaceOf(session) !== context.keySpace) throw new TypeError('session: belongs to another namespace')
  return record
}

/** A caller's session as it was found. @throws TypeError as `recordOfSnapshot` does */
export function fromSnapshot(context: Context, session: AnySession): Found {
  const record = recordOfSnapshot(context, session)
  return { id: session.secret, record, userId: session.user?.id ?? null, isByOldId: wasFoundByOldId(session) }
}

/** The ID to look for; `null` if nothing was given, or text that cannot be an ID (it never reaches the store). */
export function idOf(context: Context, ref: AnyRef): string | null {
  if (ref === null || ref === undefined) return null
  if (typeof ref === 'string') return isId(ref) ? ref : null
  recordOfSnapshot(context, ref)
  return ref.secret
}

/** The session that a method works on: the snapshot that the caller holds, otherwise the one that the store has. */
export function findCurrent(context: Context, ref: AnyRef): Found | null | Promise<Found | null> {
  if (typeof ref === 'object' && ref !== null) return fromSnapshot(context, ref)
  const id = idOf(context, ref)
  return id === null ? null : find(context, id, context.now())
}

/** The live session that an ID leads to, also by new IDs within their grace. At once if the store answers at once. */
export function find(context: Context, id: string, now: number, followed = 0): Found | null | Promise<Found | null> {
  const key = context.keyOf(id)
  const reading = context.calls.read(key, context.call(now))
  return isThenable(reading)
    ? reading.then(read => foundIn(context, id, key, now, followed, read))
    : foundIn(context, id, key, now, followed, reading)
}

/** The session of a record, if it is live and the user's password version does not refuse it; or where a forward leads. */
function foundIn(
  context: Context,
  id: string,
  key: SessionKey,
  now: number,
  followed: number,
  { record: stored, forward, corrupt }: Reading,
): Found | null | Promise<Found | null> {
  if (corrupt !== null) context.emit({ type: 'corrupt-record', key, cause: corrupt })
  if (forward !== null) {
    context.recentlyEnded.addNewId(key, forward.movedTo, forward.until - now)
    const next = followed < MAX_FORWARDS ? nextIdOf(context, id, forward, now) : null
    return next === null ? none(context, key, 'under a new ID already') : find(context, next, now, followed + 1)
  }
  if (stored?.kind !== 'session' || !(stored.expiresAt > now)) return none(context, key)
  const record = held(context, stored)
  if (!(record.expiresAt > now)) return none(context, key, 'past a shorter time limit')
  const userId = context.userIdOf(record)
  if (record.userId !== null && userId === null) {
    const cause = `user ID is not of kind '${context.options.userIds}'`
    context.emit({ type: 'corrupt-record', key, cause })
    return null
  }
  const found = { id, record, userId, isByOldId: followed > 0 }
  if (context.options.getPasswordVersion === undefined) return found
  const refused = 'refused by the password version'
  return isOutdated(context, record).then(isOver => (isOver ? none(context, key, refused) : found))
}

/** No session, and why. */
function none(context: Context, key: string, reason = 'not live (unknown, expired or ended)'): null {
  if (IS_DEBUG) noSession(context.recentlyEnded.isEnded(key) ? 'ended in this process' : reason, key)
  return null
}

/** The holder of the old ID derives the new one; a reader of the store cannot. */
function nextIdOf(context: Context, id: string, { salt, until, movedTo }: Forward, now: number): string | null {
  // `until` is an instant of another node's clock: a reader whose clock is ahead must not lose the session.
  if (salt === '' || now >= until + CLOCK_TOLERANCE) return null
  const next = deriveId(shardOf(id), id, 'regenerate', salt)
  return context.keyOf(next) === movedTo ? next : null
}

/** Whether the application raised the user's password version since this record's credentials were verified. */
export async function isOutdated(context: Context, record: SessionRecord): Promise<boolean> {
  if (record.userId === null) return false
  return (record.passwordVersion ?? 0) < (await passwordVersionNow(context, record.userId))
}

/** The user's live sessions, without those that the application's password version refuses. */
export async function recordsOfUser(context: Context, user: string): Promise<SessionRecord[]> {
  const call = context.call()
  const records = (await context.calls.listUser(user, 'session', call)).map(record => held(context, record))
  const version = records.length === 0 ? 0 : await passwordVersionNow(context, user)
  return records.filter(record => record.expiresAt > call.now && (record.passwordVersion ?? 0) >= version)
}

/** The user's password version, 0 if the application does not say. The lookup has what is left of `storeTimeout`. */
async function passwordVersionNow(context: Context, user: string): Promise<number> {
  const { getPasswordVersion } = context.options
  if (getPasswordVersion === undefined) return 0
  const name = 'getPasswordVersion()'
  const looking = async () => passwordVersionOf(await getPasswordVersion(context.users.fromText(user)!), name) ?? 0
  return within(context.deadline, looking(), {
    late: () => context.calls.fail('read', 'not-applied', `read: ${name} did not answer within storeTimeout`),
  })
}

/** Which session `invalidateUser` and `invalidateAll` spare. */
export const anExcept: Rule = value => {
  // Not quoted: it may be a session ID.
  if (typeof value !== 'object' && !isKey(value)) throw new TypeError('except: expected a session or its key')
}

/** @throws TypeError for a copy of a session, or another namespace's */
export function keyOfExcept(context: Context, except: AnySession | SessionKey | null | undefined): string | null {
  if (except === null || except === undefined) return null
  return typeof except === 'object' ? recordOfSnapshot(context, except).key : except
}
