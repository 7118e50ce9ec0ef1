import { SessionStoreError } from '../contract/errors.ts'
import { isUnvisited } from '../session/expiry.ts'
import type { Session } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import type { Context, Found } from './context.ts'
import { find } from './lookup.ts'
import { seen } from './records.ts'
import { noteVisit } from './remember.ts'

/** Writes the visit down, once per interval in this process, however many requests run in parallel. */
export async function touch<D extends object, I extends UserIds>(
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
    // again soon: else one failure with a long interval would be a log-out.
    touched.set(record.key, now - Math.floor(options.touchInterval * 0.9), now)
    return context.session(found, isFollowed)
  }
  return context.session({ ...found, record: { ...record, seenAt, expiresAt } }, true)
}
