import { isDeepStrictEqual } from 'node:util'
import type { SessionRecord } from '../contract/store.ts'
import { type Change, runChange } from '../data/change.ts'
import { isPlain } from '../data/plain.ts'
import { newWriteId } from '../session/id.ts'
import type { Session } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import { quote } from '../text/quote.ts'
import type { Context, Found } from './context.ts'
import { chainFrom, held } from './lookup.ts'
import { encode, hasChange, thaw, withChange } from './records.ts'
import { write } from './writing.ts'

/**
 * Edits fresh data and writes it; `draft: null` leaves the data as it is. `null` if the session is gone. It does not extend
 * the session: only `get` is a use, since its response can send the cookie again.
 */
async function edit<D extends object, I extends UserIds, V>(
  context: Context<D, I>,
  session: Session<D, I>,
  change: (draft: D, again: () => D) => { draft: object | null; value: V },
): Promise<{ session: Session<D, I>; value: V } | null> {
  const { calls } = context
  const start = held(context, session)
  const deadline = context.deadline()
  return write(context, 'update', start, deadline, async (found, isSnapshot) => {
    const { record } = found
    const { draft, value } = change(thaw(context, record), () => thaw(context, record))
    // The snapshot says nothing changes, but it may be stale: read once before answering.
    if (draft === null && isSnapshot) return 'snapshot'
    if (draft === null) return { value: { session: context.session(found), value } }
    const now = context.now()
    const { seenAt, expiresAt } = record
    const written = { data: encode(context, record, draft), seenAt, expiresAt, writeId: newWriteId() }
    const outcome = await calls.update(record.key, record.version, written, { now, deadline })
    if (outcome !== 'updated') return outcome
    const latest = { ...record, ...written, version: record.version + 1 }
    return { value: { session: context.session({ ...found, record: latest }), value }, latest }
  })
}

/** @throws TypeError for what is neither keys to set nor a function */
export function checkChange(verb: string, change: unknown): void {
  if (typeof change !== 'function' && !isPlain(change))
    throw new TypeError(`${verb}: expected keys to set or a function that edits them, got ${quote(change)}`)
}

/** The draft with its keys set, or as the function leaves it. */
function changed<D extends object, R>(change: Change<D, R>, draft: D, unchanged: () => D): D {
  if (typeof change !== 'function') return { ...draft, ...change }
  runChange(change, draft, unchanged)
  return draft
}

/**
 * Changes what a session has now, for one who has its record and not its ID; prolongs nothing. Data that has the change of
 * this name already is left as it is. Answers under which key it stands, and whether it was written.
 */
export async function writeRecord<D extends object, I extends UserIds, R>(
  context: Context<D, I>,
  record: SessionRecord,
  change: Change<D, R>,
  name: string,
): Promise<{ readonly key: string; readonly isWritten: boolean } | null> {
  const deadline = context.deadline()
  const start: Found<I> = { id: '', record, userId: context.userIdOf(record), isFollowed: false }
  const attempt = async ({ record }: Found<I>) => {
    const { key, version, seenAt, expiresAt } = record
    if (hasChange(record, name)) return { value: { key, isWritten: false } }
    const draft = changed(change, thaw(context, record), () => thaw(context, record))
    const written = {
      data: withChange(encode(context, record, draft), name),
      seenAt,
      expiresAt,
      writeId: newWriteId(),
    }
    const outcome = await context.calls.update(key, version, written, { now: context.now(), deadline })
    if (outcome !== 'updated') return outcome
    return { value: { key, isWritten: true }, latest: { ...record, ...written, version: version + 1 } }
  }
  // By its key: the forward of any new ID is followed, not only of those in their grace.
  const findAgain = async ({ record: { key } }: Found<I>) => {
    const { record } = await chainFrom(context, key, { now: context.now(), deadline })
    return record === null ? null : { ...start, record }
  }
  return write(context, 'update', start, deadline, attempt, findAgain)
}

/** Sets keys, or runs a function on fresh data: the session as it is then, `null` where it is gone. */
export async function writeData<D extends object, I extends UserIds, R>(
  context: Context<D, I>,
  session: Session<D, I>,
  change: Change<D, R>,
): Promise<Session<D, I> | null> {
  checkChange('update', change)
  const written = (draft: D, unchanged: () => D) => ({ draft: changed(change, draft, unchanged), value: undefined })
  return (await edit(context, session, written))?.session ?? null
}

/** Reads and removes one key: the value, and the session as it is then, `null` where it is gone. */
export async function takeKey<D extends object, I extends UserIds, N extends keyof D & string>(
  context: Context<D, I>,
  session: Session<D, I>,
  name: N,
): Promise<{ session: Session<D, I> | null; value: D[N] | undefined }> {
  const taken = (draft: D): { draft: object | null; value: D[N] | undefined } => {
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
