import type { SessionRecord } from '../contract/store.ts'
import { afterWrite } from '../manager/after-write.ts'
import type { AnyContext } from '../manager/context.ts'
import { endSession, endUser } from '../manager/end.ts'
import { endDevice } from '../manager/series-end.ts'
import type { SessionKey } from '../session/id.ts'

/**
 * A wrong proof came: the cookies of this session are in other hands, and so may be the remember token of its device. The
 * series first: while it lives, its token could start another session. The session last: with it a repeated request, after
 * a failure of the store, shows the theft again.
 */
export async function endStolen(context: AnyContext, record: SessionRecord, deadline: number): Promise<void> {
  const { key, userId } = record
  const isUser = context.options.onTheft === 'invalidate-user' && userId !== null
  if (isUser) await endUser(context, userId, { exceptKey: key }, deadline)
  const hasWritten = isUser || (await endDevice(context, record, deadline))
  const end = () => endSession(context, key, userId, 'theft', deadline)
  // Parallel requests with one stolen cookie are one theft.
  if (await (hasWritten ? afterWrite(end) : end()))
    context.emit({ type: 'device-theft', key: key as SessionKey, userId: context.userIdOf(record) })
  // What the session asked for meanwhile; it asks for no more.
  await afterWrite(() => endDevice(context, record, deadline))
}
