import { SessionStoreError } from '../contract/errors.ts'
import { isSeenAhead, isTouchDue, isUnvisited } from '../session/expiry.ts'
import type { Session } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import type { Context, Found } from './context.ts'
import { find, held } from './lookup.ts'
import { seen } from './records.ts'
import { noteVisit } from './remember.ts'

/** The session as a visit finds it, which is written down where that is due. */
export function visited<D extends object, I extends UserIds>(
  context: Context<D, I>,
  found: Found<I>,
  now: number,
  deadline: number,
): Session<D, I> | Promise<Session<D, I> | null> {
  const { seenAt } = found.record
  if (isTouchDue(seenAt, now, context.options) || isUnvisited(found.record)) return touch(context, found, now, deadline)
  return context.session(found, found.isFollowed || isSeenAhead(seenAt, now, context.options))
}

/** The same for a session that was found without a visit. */
export async function visitedHeld<D extends object, I extends UserIds>(
  context: Context<D, I>,
  session: Session<D, I>,
): Promise<Session<D, I> | null> {
  const after = await visited(context, held(context, session), context.now(), context.deadline())
  if (after === null || after.key !== session.key || after.seenAt !== session.seenAt) return after
  return after.cookieDue && !session.cookieDue ? after : session
}

/** Writes the visit down, once per interval in this process, however many requests run in parallel. */
async function touch<D extends object, I extends UserIds>(
  context: Context<D, I>,
  found: Found<I>,
  now: number,
  deadline: number,
): Promise<Session<D, I> | null> {
  const { calls, options, touched } = context
  const { id, record, isFollowed } = found
  const last = touched.get(record.key, now)
  if (last !== undefined && now >= last && now - last < options.touchInterval) return context.session(found, isFollowed)
  touched.set(record.key, now, now)
  const { seenAt, expiresAt } = seen(context, record, now)
  try {
    if (record.parent !== null && isUnvisited(record)) await noteVisit(context, record, deadline)
    if ((await calls.touch(record.key, seenAt, expiresAt, { now, deadline })) === 'gone') {
      const again = await find(context, id, now, deadline)
      if (again === null) return null
      const hasMoved = isFollowed || again.isFollowed
      return context.session({ ...again, isFollowed: hasMoved }, hasMoved)
    }
  } catch (error) {
    if (!(error instanceof SessionStoreError)) throw error
    // Told as an event by the guard: a visit that could not be written down is no reason to refuse the visitor. Tried
    // again soon: else one failure with a long interval would be a logout.
    touched.set(record.key, now - Math.floor(options.touchInterval * 0.9), now)
    return context.session(found, isFollowed)
  }
  return context.session({ ...found, record: { ...record, seenAt, expiresAt } }, true)
}
