// The old store behind a guard, as ours is: whatever goes wrong there is an outage, never a logout, and ends in time.
import type { Context } from '../manager/context.ts'
import { bareError } from '../text/bare-error.ts'
import { isInSeconds, refuseSeconds } from '../text/epoch.ts'
import { quote } from '../text/quote.ts'
import { within } from '../time/within.ts'
import { isObject, type OldSession, type OldSessions } from './from.ts'

/**
 * Checks an instant that a reader or the application gave. An invalid one would pass for unknown, and a session that has
 * expired for a live one.
 * @throws TypeError that quotes the value
 */
export function epoch(name: string, value: unknown): number | null {
  if (value === undefined || value === null) return null
  const ms = value as number
  if (!Number.isFinite(ms) || ms < 0)
    throw new TypeError(`sessionImporter: ${name}: expected epoch milliseconds or null, got ${quote(value)}`)
  if (ms > 0 && isInSeconds(ms)) refuseSeconds(`sessionImporter: ${name}`, ms)
  return Math.floor(ms)
}

/**
 * Asks an old store about an ID. The ID is a cookie, and drivers hang it on their errors.
 * @throws SessionStoreError if it fails, or does not answer
 */
export function askOldStore<V>(
  { calls, deadline }: Context,
  operation: 'read' | 'delete',
  id: string,
  run: () => Promise<V>,
): Promise<V> {
  const outcome = operation === 'read' ? 'not-applied' : 'unknown'
  const fail = (what: string, options?: { cause: unknown }) =>
    calls.fail(operation, outcome, `${operation}: the store of the old sessions ${what}`, options)
  return within(deadline, run(), {
    failed: cause => fail('failed', { cause: cause && bareError(cause, text => text.replaceAll(id, '…')) }),
    late: () => fail('did not answer within storeTimeout'),
  })
}

/**
 * The live session; `null` if there is none, or if it is not JSON, which an event reports.
 * @throws SessionStoreError if the old store fails
 */
export async function readOld(context: Context, from: OldSessions, id: string): Promise<OldSession | null> {
  const answer = await askOldStore(context, 'read', id, async () => {
    try {
      return await from.read(id)
    } catch (error) {
      // By its name: in a test runner the class may be another.
      if ((error as Error | null)?.name !== 'SyntaxError') throw error
      // Without the error, which shows a piece of the text.
      context.calls.fail('read', 'not-applied', 'read: an old session is no JSON, and was left alone')
      return null
    }
  })
  if (answer === null || answer === undefined) return null
  if (!isObject(answer) || !('data' in answer))
    throw new TypeError(
      `sessionImporter: expected { data, createdAt, expiresAt } or null from read(id), got ${quote(answer)}`,
    )
  const { data, ...told } = answer as unknown as OldSession
  const expiresAt = epoch('expiresAt', told.expiresAt)
  const [createdAt, seenAt] = [epoch('createdAt', told.createdAt), epoch('seenAt', told.seenAt)]
  const isOver = expiresAt !== null && expiresAt <= context.now()
  return isOver && !from.isEndedByStore ? null : { data, createdAt, seenAt, expiresAt }
}

/** Removes a session. The note keeps its cookie from being used again: if this fails, an event reports it, and the record expires. */
export async function destroyOld(context: Context, from: OldSessions, id: string): Promise<void> {
  await askOldStore(context, 'delete', id, async () => from.destroy?.(id)).catch(() => {})
}
