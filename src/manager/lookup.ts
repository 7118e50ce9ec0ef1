import { SessionError } from '../contract/errors.ts'
import { CLOCK_TOLERANCE, type Forward, type SessionRecord } from '../contract/store.ts'
import { isForward, isRecord } from '../guard/store-calls.ts'
import { deriveId, isId, type SessionKey, shardOf } from '../session/id.ts'
import { type Current, recordOf, type Session, spaceOf } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import type { Context } from './context.ts'

type AnyContext = Context<any, any, any>

/** A live session as it was found, under the ID that leads to it now. */
export interface Found {
  readonly id: string
  readonly record: SessionRecord
}

/** How many renewals in a row a late request may have missed. */
const MAX_HOPS = 8

/** The record behind a caller's session. @throws TypeError for a copy of one, another tenant's, or anything else */
export function heldRecord<D, I extends UserIds>(context: AnyContext, session: Session<D, I>): SessionRecord {
  const record = typeof session === 'object' && session !== null ? recordOf(session) : null
  if (record === null || typeof session.secret !== 'string')
    throw new TypeError(
      'session: expected a session from this library (not a copy of one, an entry of list(), or one of another version of it)',
    )
  if (spaceOf(session) !== context.space) throw new TypeError('session: belongs to another namespace')
  return record
}

/** The ID to look for; `null` for nothing and for what cannot be one (which never reaches the store). */
export function idOf<D, I extends UserIds>(context: AnyContext, current: Current<D, I>): string | null {
  if (current === null || current === undefined) return null
  if (typeof current === 'string') return isId(current) ? current : null
  heldRecord(context, current)
  return current.secret
}

/** The live session that an ID leads to, over rotations within their grace. */
export async function find(context: AnyContext, start: string, now: number, deadline: number): Promise<Found | null> {
  let id = start
  for (let hops = 0; hops < MAX_HOPS; hops += 1) {
    const key = context.keyOf(id)
    const answer = await context.calls.read(key, { now, deadline })
    if (answer === null) return null
    if (isRecord(answer)) {
      // No turn of the queue where there is nothing to wait for: this is the path of every request.
      const acceptable = isAcceptable(context, key, answer, now, deadline)
      if (acceptable !== true && !(await acceptable)) return null
      return { id, record: answer }
    }
    if (!isForward(answer)) {
      context.emit({ type: 'corrupt-record', key, cause: answer.corrupt })
      return null
    }
    context.endings.moved(key, answer.movedTo)
    const next = follow(context, id, answer, now)
    if (next === null) return null
    id = next
  }
  return null
}

/** Who held the old ID derives the new one; who only reads the store cannot. */
function follow(context: AnyContext, id: string, { salt, until, movedTo }: Forward, now: number): string | null {
  // `until` is an instant of another node's clock: a reader whose clock is ahead must not lose the session.
  if (salt === '' || now >= until + CLOCK_TOLERANCE) return null
  const next = deriveId(shardOf(id), id, 'rotate', salt)
  return context.keyOf(next) === movedTo ? next : null
}

/** Believes a record only where it is what was asked for. */
function isAcceptable(
  context: AnyContext,
  key: SessionKey,
  record: SessionRecord,
  now: number,
  deadline: number,
): boolean | Promise<boolean> {
  if (record.key !== key) throw context.calls.fail('read', 'not-applied', 'read: the store answered another record')
  if (record.kind !== 'session' || !(record.expiresAt > now)) return false
  if (record.userId === null) return true
  if (context.users.fromText(record.userId) === null) return removeForeign(context, key, deadline)
  return (
    context.given.passwordVersion === undefined || context.isOutdated(record, deadline).then(isOutdated => !isOutdated)
  )
}

async function removeForeign(context: AnyContext, key: SessionKey, deadline: number): Promise<boolean> {
  await context.calls.delete(key, { now: context.now(), deadline })
  context.emit({ type: 'corrupt-record', key, cause: `user ID is not of kind '${context.options.userIds}'` })
  return false
}

/** What a verb works on: the snapshot that the caller holds, else what the store has. */
export async function findCurrent<D extends object, I extends UserIds>(
  context: Context<D, I, any>,
  current: Current<D, I>,
  deadline: number,
): Promise<Found | null> {
  const id = idOf(context, current)
  if (id === null) return null
  if (typeof current === 'object' && current !== null) return { id, record: heldRecord(context, current) }
  return find(context, id, context.now(), deadline)
}

/** What stands under a key now, or under the one that it leads to: for those who end sessions, not for visitors. */
export async function storedRecord(
  context: AnyContext,
  start: string,
  deadline: number,
): Promise<SessionRecord | null> {
  let key = start
  for (let hops = 0; hops < MAX_HOPS; hops += 1) {
    const answer = await context.calls.read(key, { now: context.now(), deadline })
    if (answer === null || !isForward(answer)) return answer !== null && isRecord(answer) ? answer : null
    context.endings.moved(key, answer.movedTo)
    key = answer.movedTo
  }
  return null
}

/** After 'conflict' or 'gone': the session as it is now, after a short wait that keeps many writers apart. */
export async function findAgain(
  context: AnyContext,
  id: string,
  attempt: number,
  deadline: number,
): Promise<Found | null> {
  if (attempt > 0) {
    // Full jitter: 100 writers need 13 tries each with it, and 70 without.
    const wait = Math.random() * Math.min(100, 2 ** attempt)
    if (performance.now() + wait >= deadline)
      throw new SessionError('ERR_SESSION_CONFLICT', 'other writers kept changing this session for all of storeTimeout')
    await new Promise(resolve => setTimeout(resolve, wait))
  }
  return find(context, id, context.now(), deadline)
}

/** The later of what the caller holds and what the last writer of this process left. */
export const newer = (latest: SessionRecord | null, held: SessionRecord): SessionRecord =>
  latest !== null && latest.key === held.key && latest.version > held.version ? latest : held
