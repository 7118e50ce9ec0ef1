import { CLOCK_TOLERANCE, type Forward, type SessionRecord } from '../contract/store.ts'
import type { Reading } from '../guard/store-calls.ts'
import { deriveId, isId, shardOf } from '../session/id.ts'
import { recordOf, type Session, type SessionRef, spaceOf, wasFollowed } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import type { AnyContext, Context, Found } from './context.ts'
import { isOutdated } from './password-version.ts'

/** How many new IDs in a row a late request may have missed. */
const MAX_HOPS = 8

/** The record behind a caller's session. @throws TypeError for a copy of one, another namespace's, or anything else */
export function heldRecord<Data, Ids extends UserIds>(context: AnyContext, session: Session<Data, Ids>): SessionRecord {
  const record = typeof session === 'object' && session !== null ? recordOf(session) : null
  if (record === null || typeof session.secret !== 'string')
    throw new TypeError(
      'session: expected a session from this library (not a copy of one, an entry of list(), or one of another version of it)',
    )
  if (spaceOf(session) !== context.space) throw new TypeError('session: belongs to another namespace')
  return record
}

/** A caller's session as it was found. @throws TypeError as `heldRecord` does */
export function held<Data, Ids extends UserIds>(context: AnyContext, session: Session<Data, Ids>): Found<Ids> {
  const record = heldRecord(context, session)
  return { id: session.secret, record, userId: session.user?.id ?? null, isFollowed: wasFollowed(session) }
}

/** The ID to look for; `null` for nothing and for what cannot be one (which never reaches the store). */
export function idOf<Data, Ids extends UserIds>(context: AnyContext, ref: SessionRef<Data, Ids>): string | null {
  if (ref === null || ref === undefined) return null
  if (typeof ref === 'string') return isId(ref) ? ref : null
  heldRecord(context, ref)
  return ref.secret
}

/**
 * The live session that an ID leads to, also by new IDs within their grace. At once if the store answers at once: an async
 * function here, and one in each of its callers, costs a `get` from memory a fifth.
 */
export function find<Data extends object, Ids extends UserIds>(
  context: Context<Data, Ids>,
  id: string,
  now: number,
  deadline: number,
  hops = 0,
): Found<Ids> | null | Promise<Found<Ids> | null> {
  const reading = context.calls.read(context.keyOf(id), { now, deadline })
  const lookUp = { context, id, now, deadline, hops }
  return reading instanceof Promise ? reading.then(read => foundIn(lookUp, read)) : foundIn(lookUp, reading)
}

interface LookUp<Data extends object, Ids extends UserIds> {
  readonly context: Context<Data, Ids>
  readonly id: string
  readonly now: number
  readonly deadline: number
  /** How many forwards led here. */
  readonly hops: number
}

function foundIn<Data extends object, Ids extends UserIds>(
  { context, id, now, deadline, hops }: LookUp<Data, Ids>,
  { record, forward, corrupt }: Reading,
): Found<Ids> | null | Promise<Found<Ids> | null> {
  if (record !== null) {
    if (record.kind !== 'session' || !(record.expiresAt > now)) return null
    const userId = context.userIdOf(record)
    if (record.userId !== null && userId === null) return removeForeign(context, record, deadline)
    const found = { id, record, userId, isFollowed: hops > 0 }
    return context.given.getPasswordVersion === undefined ? found : unlessOutdated(context, found, deadline)
  }
  if (corrupt !== null) context.emit({ type: 'corrupt-record', key: context.keyOf(id), cause: corrupt })
  if (forward === null) return null
  context.endings.moved(context.keyOf(id), forward.movedTo)
  const next = hops < MAX_HOPS ? follow(context, id, forward, now) : null
  return next === null ? null : find(context, next, now, deadline, hops + 1)
}

async function unlessOutdated<Ids extends UserIds>(
  context: AnyContext,
  found: Found<Ids>,
  deadline: number,
): Promise<Found<Ids> | null> {
  return (await isOutdated(context, found.record, deadline)) ? null : found
}

/** The holder of the old ID derives the new one; a reader of the store cannot. */
function follow(context: AnyContext, id: string, { salt, until, movedTo }: Forward, now: number): string | null {
  // `until` is an instant of another node's clock: a reader whose clock is ahead must not lose the session.
  if (salt === '' || now >= until + CLOCK_TOLERANCE) return null
  const next = deriveId(shardOf(id), id, 'renew', salt)
  return context.keyOf(next) === movedTo ? next : null
}

async function removeForeign(context: AnyContext, { key }: SessionRecord, deadline: number): Promise<null> {
  await context.calls.delete(key, context.call(deadline))
  context.emit({
    type: 'corrupt-record',
    key: key as never,
    cause: `user ID is not of kind '${context.options.userIds}'`,
  })
  return null
}

/** What a method works on: the snapshot that the caller holds, otherwise what the store has. */
export async function findCurrent<Data extends object, Ids extends UserIds>(
  context: Context<Data, Ids>,
  ref: SessionRef<Data, Ids>,
  deadline: number,
): Promise<Found<Ids> | null> {
  const id = idOf(context, ref)
  if (id === null) return null
  if (typeof ref === 'object' && ref !== null) return held(context, ref)
  return find(context, id, context.now(), deadline)
}

/** Where the forwards from a key lead. */
export interface Chain {
  /** All keys that were read, in order. */
  readonly keys: readonly string[]
  /** The live record under the last key; `null` also if the walk stopped before a key that is known. */
  readonly record: SessionRecord | null
  /** Whether the last key leads no further. */
  readonly isEnd: boolean
}

/**
 * Follows the forwards from a key to their end, as a store's `delete` does. For logout and revocation; requests use `find`.
 * `deadline` is that of all reads together; without it each read has its own.
 */
export async function chainFrom(
  context: AnyContext,
  start: string,
  { now, deadline, isKnown }: { now: number; deadline?: number; isKnown?: (key: string) => boolean },
): Promise<Chain> {
  const keys = new Set<string>()
  // No store makes a circle. If one has it all the same, the call ends.
  for (let key = start; !keys.has(key) && !isKnown?.(key); ) {
    keys.add(key)
    const { record, forward } = await context.calls.read(key, { now, deadline: deadline ?? context.deadline() })
    if (forward === null) return { keys: [...keys], record, isEnd: true }
    context.endings.moved(key, forward.movedTo)
    key = forward.movedTo
  }
  return { keys: [...keys], record: null, isEnd: false }
}

/** The record stored under a key, following forwards. For logout and revocation; requests use `find`. */
export const storedRecord = async (
  context: AnyContext,
  start: string,
  deadline: number,
): Promise<SessionRecord | null> => (await chainFrom(context, start, { now: context.now(), deadline })).record
