import type { SessionRecord } from '../contract/store.ts'
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
  if (context.options.onTheft === 'end-user' && userId !== null)
    await endUser(context, userId, { exceptKey: key }, deadline)
  else await endDevice(context, record, deadline)
  // Parallel requests with one stolen cookie are one theft.
  if (await endSession(context, key, userId, 'theft', deadline))
    context.emit({ type: 'device-theft', key: key as SessionKey, userId: context.userIdOf(record) })
}
