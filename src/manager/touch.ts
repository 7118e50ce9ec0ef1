import { SessionStoreError } from '../contract/errors.ts'
import type { AnySession } from '../session/session.ts'
import type { Context, Found } from './context.ts'
import { find } from './lookup.ts'
import { idleOf, isCookieDueAt, isTouchDue, isUntouched, seen } from './records.ts'
import { noteTouch } from './series.ts'

/**
 * Writes down that a session is in use, once per interval in this process, however many requests run in parallel. `null`
 * if nothing is due, else the session as it is then.
 */
export function touch(
  context: Context,
  found: Found,
  now: number,
  deadline: number,
): Promise<AnySession | null> | null {
  const { options, touched } = context
  const { record } = found
  if (!isTouchDue(record.seenAt, now, options) && !isUntouched(record)) return null
  const last = touched.get(record.key, now)
  if (last !== undefined && now >= last && now - last < options.touchInterval) return null
  touched.set(record.key, now, now)
  return write(context, found, now, deadline)
}

async function write(context: Context, found: Found, now: number, deadline: number): Promise<AnySession | null> {
  const { calls, options, touched } = context
  const { id, record, isFollowed } = found
  const { seenAt, expiresAt } = seen(context, record, now)
  let outcome: 'touched' | 'gone'
  try {
    if (record.parent !== null && isUntouched(record)) await noteTouch(context, record, deadline)
    outcome = await calls.touch(record.key, seenAt, expiresAt, { now, deadline })
  } catch (error) {
    if (!(error instanceof SessionStoreError)) throw error
    // Told as an event by the guard: a touch that could not be written is no reason to refuse the request. Tried again
    // soon: with a long interval one failure would end the session.
    touched.set(record.key, now - Math.floor(options.touchInterval * 0.9), now)
    return context.session(found)
  }
  if (outcome === 'gone') {
    const again = await find(context, id, now, deadline)
    return again === null ? null : context.session({ ...again, isFollowed: isFollowed || again.isFollowed })
  }
  const isCookieDue = isCookieDueAt(seenAt, record, idleOf(context, record))
  return context.session({ ...found, record: { ...record, seenAt, expiresAt } }, isCookieDue)
}
