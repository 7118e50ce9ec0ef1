import { withCsrfToken } from '../session/csrf.ts'
import { isUnvisited } from '../session/expiry.ts'
import { deriveId, newId, newSalt, newWriteId, shardOf } from '../session/id.ts'
import type { Session, SessionRef } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import { regenerated } from './begin.ts'
import type { Context } from './context.ts'
import { find, findCurrent } from './lookup.ts'
import { seen } from './records.ts'
import { tellRefused } from './refusals.ts'
import { write } from './writing.ts'

/** The same session under a new ID: derived from the old one where there is a grace (in ms), random otherwise. */
export async function reissue<D extends object, I extends UserIds>(
  context: Context<D, I>,
  current: SessionRef<D, I>,
  grace: number | null,
): Promise<Session<D, I> | null> {
  const deadline = context.deadline()
  const start = await findCurrent(context, current, deadline)
  if (start === null) return null
  if (grace !== null && start.isFollowed) {
    // A parallel request rotated it already: all of them get the same new cookie.
    const now = typeof current === 'string' ? start : await find(context, start.id, context.now(), deadline)
    return now === null ? null : context.session(now)
  }
  return write(context, 'replace', start, deadline, async (found, isSnapshot) => {
    const { id, record, userId } = found
    // A parallel request rotated it meanwhile.
    if (grace !== null && id !== start.id) return { value: context.session(found) }
    // The visits since the snapshot was taken did not change its version: the new record would set them back.
    if (isSnapshot && isUnvisited(record)) return 'snapshot'
    const now = context.now()
    const { seenAt, expiresAt } = seen(context, record, now)
    const salt = grace === null ? '' : newSalt()
    const nextId = grace === null ? newId(shardOf(id)) : deriveId(shardOf(id), id, 'renew', salt)
    const next = {
      ...record,
      // A new ID is no visit of a session that was not visited yet. A parallel visit may be the first one.
      seenAt: isUnvisited(record) ? record.seenAt : seenAt,
      expiresAt,
      key: context.keyOf(nextId),
      data: withCsrfToken(record.data, id, nextId),
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
