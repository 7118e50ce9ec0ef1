import { FORWARD_LIFETIME } from '../contract/store.ts'
import { seal, unseal } from '../data/meta.ts'
import { withCsrfToken } from '../session/csrf.ts'
import { isUnvisited } from '../session/expiry.ts'
import { deriveId, newId, newSalt, newWriteId, shardOf } from '../session/id.ts'
import type { Session, SessionRef } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import { regenerated } from './begin.ts'
import type { Context } from './context.ts'
import { find, findCurrent } from './lookup.ts'
import { seen } from './records.ts'
import { tellRefused, tooManyIds } from './refusals.ts'
import { write } from './writing.ts'

/** The longest grace, in ms. */
export const MAX_GRACE = 120_000
/** How long a forward may stand. */
const WINDOW = MAX_GRACE + FORWARD_LIFETIME
/**
 * How many new IDs a session gets in a window. So at most twice as many forwards stand in a row, and who ends the
 * session by its first ID, or spares it by an outdated one, follows no more than these.
 */
const MAX_IN_WINDOW = 32

/** The same session under a new ID: derived from the old one if there is a grace (in ms), otherwise random. */
export async function reissue<Data extends object, Ids extends UserIds>(
  context: Context<Data, Ids>,
  ref: SessionRef<Data, Ids>,
  grace: number | null,
): Promise<Session<Data, Ids> | null> {
  const deadline = context.deadline()
  const start = await findCurrent(context, ref, deadline)
  if (start === null) return null
  if (grace !== null && start.isFollowed) {
    // Another request was first: all of them get the same new cookie.
    const now = typeof ref === 'string' ? start : await find(context, start.id, context.now(), deadline)
    return now === null ? null : context.session(now)
  }
  return write(context, 'replace', start, deadline, async (found, isSnapshot) => {
    const { id, record, userId } = found
    // Another request was first, after the look.
    if (grace !== null && id !== start.id) return { value: context.session(found) }
    // A touch since the snapshot was taken did not change its version: the new record would set it back.
    if (isSnapshot && isUnvisited(record)) return 'snapshot'
    const now = context.now()
    const data = counted(record.data, now)
    // Neither the old ID nor a new one without a forward: a logout by an old ID would say 200 and end nothing.
    if (data === null) {
      tellRefused(context, 'conflict', record)
      throw tooManyIds(MAX_IN_WINDOW)
    }
    const { seenAt, expiresAt } = seen(context, record, now)
    const salt = grace === null ? '' : newSalt()
    const nextId = grace === null ? newId(shardOf(id)) : deriveId(shardOf(id), id, 'renew', salt)
    const next = {
      ...record,
      // A session that was not used yet stays so under its new ID: the request that uses it first is still to come.
      seenAt: isUnvisited(record) ? record.seenAt : seenAt,
      expiresAt,
      key: context.keyOf(nextId),
      data: withCsrfToken(data, id, nextId),
      version: 1,
      writeId: newWriteId(),
    }
    const forward = { salt, until: now + (grace ?? 0) }
    const { outcome } = await context.calls.replace(record.key, record.version, next, { forward }, { now, deadline })
    if (outcome === 'stale-login') tellRefused(context, outcome, record)
    if (outcome !== 'created') return outcome
    context.endings.moved(record.key, next.key)
    return { value: regenerated(context, record, { id: nextId, record: next, userId, isFollowed: false }) }
  })
}

/** The data with one more new ID counted; `null` if there were too many. */
function counted(data: string, now: number): string | null {
  const { meta, text } = unseal(data)
  const { count, since } = meta.renewals ?? { count: 0, since: now }
  if (now - since >= WINDOW) return seal({ ...meta, renewals: { count: 1, since: now } }, text)
  return count >= MAX_IN_WINDOW ? null : seal({ ...meta, renewals: { count: count + 1, since } }, text)
}
