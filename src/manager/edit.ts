import { isDeepStrictEqual } from 'node:util'
import type { SessionRecord } from '../contract/store.ts'
import { type Change, runChange } from '../data/change.ts'
import { isPlain } from '../data/plain.ts'
import { newWriteId } from '../session/id.ts'
import type { Session } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import { quote } from '../text/quote.ts'
import type { Context, Found } from './context.ts'
import { held, storedRecord } from './lookup.ts'
import { encode, thaw } from './records.ts'
import { write } from './writing.ts'

/**
 * Edits fresh data and writes it; `draft: null` leaves the data as it is. `null` if the session is gone. It does not extend
 * the session: only `get` is a use, since its response can send the cookie again.
 */
async function edit<Data extends object, Ids extends UserIds, V>(
  context: Context<Data, Ids>,
  session: Session<Data, Ids>,
  change: (draft: Data, again: () => Data) => { draft: object | null; value: V },
): Promise<{ session: Session<Data, Ids>; value: V } | null> {
  const start = held(context, session)
  const deadline = context.deadline()
  return write(context, 'update', start, deadline, async (found, isSnapshot) => {
    const { record } = found
    const { draft, value } = change(thaw(context, record), () => thaw(context, record))
    // The snapshot says nothing changes, but it may be stale: read once before answering.
    if (draft === null && isSnapshot) return 'snapshot'
    if (draft === null) return { value: { session: context.session(found), value } }
    const { seenAt, expiresAt } = record
    const written = { data: encode(context, record, draft), seenAt, expiresAt, writeId: newWriteId() }
    const outcome = await context.calls.update(record.key, record.version, written, context.call(deadline))
    if (outcome !== 'updated') return outcome
    const latest = { ...record, ...written, version: record.version + 1 }
    return { value: { session: context.session({ ...found, record: latest }), value }, latest }
  })
}

/** Sets keys, or runs a function on fresh data: the session as it is then, `null` if it is gone. */
export async function writeData<Data extends object, Ids extends UserIds, R>(
  context: Context<Data, Ids>,
  session: Session<Data, Ids>,
  change: Change<Data, R>,
): Promise<Session<Data, Ids> | null> {
  if (typeof change !== 'function' && !isPlain(change))
    throw new TypeError(`update: expected keys to set or a function that edits them, got ${quote(change)}`)
  const written = (draft: Data, unchanged: () => Data) => {
    if (typeof change !== 'function') return { draft: { ...draft, ...change }, value: undefined }
    runChange(change, draft, unchanged)
    return { draft, value: undefined }
  }
  return (await edit(context, session, written))?.session ?? null
}

/** Reads and removes one key: the value, and the session as it is then, `null` if it is gone. */
export async function takeKey<Data extends object, Ids extends UserIds, Name extends keyof Data & string>(
  context: Context<Data, Ids>,
  session: Session<Data, Ids>,
  name: Name,
): Promise<{ session: Session<Data, Ids> | null; value: Data[Name] | undefined }> {
  const taken = (draft: Data): { draft: object | null; value: Data[Name] | undefined } => {
    if (!Object.hasOwn(draft, name)) return { draft: null, value: undefined }
    const { [name]: value, ...rest } = draft
    if (value === undefined) return { draft: null, value }
    const start = context.shape.start()
    if (!Object.hasOwn(start, name)) return { draft: rest, value }
    // A flash message that is asked for at each request, and is not there, must not be written at each request.
    if (isDeepStrictEqual(value, start[name])) return { draft: null, value }
    return { draft: { ...rest, [name]: start[name] }, value }
  }
  return (await edit(context, session, taken)) ?? { session: null, value: undefined }
}

/**
 * Sets keys of a session by its record, for a caller without its ID; prolongs nothing. Answers the key under which it stands
 * then, or `null` if it is gone.
 */
export async function writeRecord<Data extends object, Ids extends UserIds>(
  context: Context<Data, Ids>,
  record: SessionRecord,
  keys: Partial<Data>,
): Promise<string | null> {
  const deadline = context.deadline()
  const start: Found<Ids> = { id: '', record, userId: context.userIdOf(record), isFollowed: false }
  const attempt = async ({ record }: Found<Ids>) => {
    const { key, version, seenAt, expiresAt } = record
    const data = encode(context, record, { ...thaw(context, record), ...keys })
    const written = { data, seenAt, expiresAt, writeId: newWriteId() }
    const outcome = await context.calls.update(key, version, written, context.call(deadline))
    return outcome === 'updated' ? { value: key, latest: { ...record, ...written, version: version + 1 } } : outcome
  }
  // By its key: the forward of any new ID is followed, not only of those in their grace.
  const findAgain = async (found: Found<Ids>) => {
    const latest = await storedRecord(context, found.record.key, deadline)
    return latest === null ? null : { ...found, record: latest }
  }
  return write(context, 'update', start, deadline, attempt, findAgain)
}
