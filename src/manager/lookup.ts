import { CLOCK_TOLERANCE, type Forward, type SessionRecord } from '../contract/store.ts'
import type { Reading } from '../guard/store-calls.ts'
import { deriveId, isId, type SessionKey, shardOf } from '../session/id.ts'
import { recordOf, type Session, type SessionRef, spaceOf, wasFollowed } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import type { AnyContext, Context, Found } from './context.ts'
import { isOutdated } from './password-version.ts'

/** How many rotations in a row a late request may have missed. */
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

/** A caller's session as it was found. @throws TypeError as `heldRecord` does */
export function held<D, I extends UserIds>(context: AnyContext, session: Session<D, I>): Found<I> {
  const record = heldRecord(context, session)
  return { id: session.secret, record, userId: session.user?.id ?? null, isFollowed: wasFollowed(session) }
}

/** The ID to look for; `null` for nothing and for what cannot be one (which never reaches the store). */
export function idOf<D, I extends UserIds>(context: AnyContext, current: SessionRef<D, I>): string | null {
  if (current === null || current === undefined) return null
  if (typeof current === 'string') return isId(current) ? current : null
  heldRecord(context, current)
  return current.secret
}

/**
 * The live session that an ID leads to, over rotations within their grace. At once where the store answers at once: an
 * async function here, and one in each of its callers, costs a `get` from memory a fifth.
 */
export function find<D extends object, I extends UserIds>(
  context: Context<D, I>,
  id: string,
  now: number,
  deadline: number,
  hops = 0,
): Found<I> | null | Promise<Found<I> | null> {
  const key = context.keyOf(id)
  const reading = context.calls.read(key, { now, deadline })
  const lookUp = { context, id, key, now, deadline, hops }
  return reading instanceof Promise ? reading.then(read => foundIn(lookUp, read)) : foundIn(lookUp, reading)
}

interface LookUp<D extends object, I extends UserIds> {
  readonly context: Context<D, I>
  readonly id: string
  readonly key: SessionKey
  readonly now: number
  readonly deadline: number
  /** How many forwards led here. */
  readonly hops: number
}

function foundIn<D extends object, I extends UserIds>(
  { context, id, key, now, deadline, hops }: LookUp<D, I>,
  { record, forward, corrupt }: Reading,
): Found<I> | null | Promise<Found<I> | null> {
  if (record !== null) {
    if (record.key !== key) throw context.calls.fail('read', 'not-applied', 'read: the store answered another record')
    if (record.kind !== 'session' || !(record.expiresAt > now)) return null
    const userId = context.userIdOf(record)
    if (record.userId !== null && userId === null) return removeForeign(context, key, deadline)
    const found = { id, record, userId, isFollowed: hops > 0 }
    return context.given.getPasswordVersion === undefined ? found : unlessOutdated(context, found, deadline)
  }
  if (corrupt !== null) context.emit({ type: 'corrupt-record', key, cause: corrupt })
  if (forward === null) return null
  context.endings.moved(key, forward.movedTo)
  const next = hops < MAX_HOPS ? follow(context, id, forward, now) : null
  return next === null ? null : find(context, next, now, deadline, hops + 1)
}

async function unlessOutdated<I extends UserIds>(
  context: AnyContext,
  found: Found<I>,
  deadline: number,
): Promise<Found<I> | null> {
  return (await isOutdated(context, found.record, deadline)) ? null : found
}

/** The holder of the old ID derives the new one; a reader of the store cannot. */
function follow(context: AnyContext, id: string, { salt, until, movedTo }: Forward, now: number): string | null {
  // `until` is an instant of another node's clock: a reader whose clock is ahead must not lose the session.
  if (salt === '' || now >= until + CLOCK_TOLERANCE) return null
  const next = deriveId(shardOf(id), id, 'renew', salt)
  return context.keyOf(next) === movedTo ? next : null
}

async function removeForeign(context: AnyContext, key: SessionKey, deadline: number): Promise<null> {
  await context.calls.delete(key, { now: context.now(), deadline })
  context.emit({ type: 'corrupt-record', key, cause: `user ID is not of kind '${context.options.userIds}'` })
  return null
}

/** What a verb works on: the snapshot that the caller holds, else what the store has. */
export async function findCurrent<D extends object, I extends UserIds>(
  context: Context<D, I>,
  current: SessionRef<D, I>,
  deadline: number,
): Promise<Found<I> | null> {
  const id = idOf(context, current)
  if (id === null) return null
  if (typeof current === 'object' && current !== null) return held(context, current)
  return find(context, id, context.now(), deadline)
}

/** Where the forwards from a key lead. */
interface Chain {
  /** All that were read, in order; the last one too. */
  readonly keys: readonly string[]
  /** What is live under the last key; `null` too where `isEnd` is false. */
  readonly record: SessionRecord | null
  /** Whether the last key leads no further. */
  readonly isEnd: boolean
}

/**
 * Follows the forwards from a key to their end, as a store's `delete` does, for those who end or change sessions: a client
 * may have asked for any number of new IDs. It stops before a key that is known. `deadline` is that of all reads together;
 * without it each has its own.
 */
export async function chainFrom(
  context: AnyContext,
  start: string,
  { now, deadline, isKnown }: { now: number; deadline?: number; isKnown?: (key: string) => boolean },
): Promise<Chain> {
  const keys = new Set<string>()
  // No store makes a circle. Where one has it all the same, the call ends.
  for (let key = start; !keys.has(key) && !isKnown?.(key); ) {
    keys.add(key)
    const { record, forward } = await context.calls.read(key, { now, deadline: deadline ?? context.deadline() })
    if (forward === null) return { keys: [...keys], record, isEnd: true }
    context.endings.moved(key, forward.movedTo)
    key = forward.movedTo
  }
  return { keys: [...keys], record: null, isEnd: false }
}

/** What stands under a key now, or under the one that it leads to: for those who end sessions, not for visitors. */
export const storedRecord = async (
  context: AnyContext,
  start: string,
  deadline: number,
): Promise<SessionRecord | null> => (await chainFrom(context, start, { now: context.now(), deadline })).record
