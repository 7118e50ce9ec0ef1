import { isDeepStrictEqual } from 'node:util'
import { type Change, runChange } from '../data/change.ts'
import { isPlain } from '../data/plain.ts'
import { isTouchDue, isUnvisited } from '../session/expiry.ts'
import { newWriteId } from '../session/id.ts'
import type { Session } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import { quote } from '../text/quote.ts'
import type { Context } from './context.ts'
import { findAgain, heldRecord, newer } from './lookup.ts'

/**
 * Reads, edits and writes until no other writer came between; `draft: null` leaves the data as it is. `null` where the
 * session is gone. `slides: false` leaves its idle time as it is, where the browser's cookie cannot slide with it.
 */
function edit<D extends object, I extends UserIds, V>(
  context: Context<D, I, any>,
  session: Session<D, I>,
  change: (draft: D, again: () => D) => { draft: object | null; value: V },
  slides: boolean,
): Promise<{ session: Session<D, I>; value: V } | null> {
  const { calls, lines, options } = context
  const held = heldRecord(context, session)
  const deadline = context.deadline()
  const job = async (line: { latest: typeof held | null }) => {
    let id = session.secret
    let record = newer(line.latest, held)
    let isFresh = false
    for (let attempt = 0; ; attempt += 1) {
      const { draft, value } = change(context.thaw(record), () => context.thaw(record))
      if (draft === null && !isFresh) {
        // Nothing to do, says a snapshot: the store may know better.
        const found = await findAgain(context, id, 0, deadline)
        if (found === null) return null
        id = found.id
        record = found.record
        isFresh = true
        continue
      }
      if (draft === null)
        return { session: context.session(record, id, session.cookieDue || id !== session.secret), value }
      const now = context.now()
      // As seldom as a touch: else each update would have to send the cookie again.
      const isDue = slides && !isUnvisited(record) && isTouchDue(record.seenAt, now, options)
      const { seenAt, expiresAt } = isDue ? context.seen(record, now) : record
      const written = { data: context.encode(record, draft), seenAt, expiresAt, writeId: newWriteId() }
      const outcome = await calls.update(record.key, record.version, written, { now, deadline })
      if (outcome === 'updated') {
        line.latest = { ...record, ...written, version: record.version + 1 }
        const cookieDue = isDue || session.cookieDue || id !== session.secret
        return { session: context.session(line.latest, id, cookieDue), value }
      }
      const again = await findAgain(context, id, attempt, deadline)
      if (again === null) return null
      id = again.id
      record = again.record
      isFresh = true
    }
  }
  return lines.run(held.key, deadline, job, () =>
    calls.fail('update', 'not-applied', 'update: earlier writers of this session took all of storeTimeout'),
  )
}

/** Sets keys, or runs a function on fresh data: the session as it is then, `null` where it is gone. */
export async function writeData<D extends object, I extends UserIds, R>(
  context: Context<D, I, any>,
  session: Session<D, I>,
  change: Change<D, R>,
  slides = true,
): Promise<Session<D, I> | null> {
  if (typeof change !== 'function' && !isPlain(change))
    throw new TypeError(`update: expected keys to set or a function that edits them, got ${quote(change)}`)
  const written = (draft: D, unchanged: () => D) => {
    if (typeof change !== 'function') return { draft: { ...draft, ...change }, value: undefined }
    runChange(change, draft, unchanged)
    return { draft, value: undefined }
  }
  return (await edit(context, session, written, slides))?.session ?? null
}

/** Reads and removes one key: the value, and the session as it is then, `null` where it is gone. */
export async function takeKey<D extends object, I extends UserIds, N extends keyof D & string>(
  context: Context<D, I, any>,
  session: Session<D, I>,
  name: N,
  slides = true,
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
  return (await edit(context, session, taken, slides)) ?? { session: null, value: undefined }
}
