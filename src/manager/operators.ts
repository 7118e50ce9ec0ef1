// What the operations on all sessions ask of a manager.
import type { SessionRecord } from '../contract/store.ts'
import { type InvalidateAllOptions, invalidateAll } from '../operations/invalidate-all.ts'
import { aSignal, requireScan } from '../operations/walk.ts'
import type { StoredSession } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import { namespaceOf } from '../session/users.ts'
import { aFunction, checkOptions, type OptionPlace } from '../text/check-options.ts'
import type { Context } from './context.ts'
import { endSession, endUser } from './end.ts'
import { anExcept, keyOfExcept } from './except.ts'
import { chainFrom } from './lookup.ts'

const INVALIDATE_ALL: OptionPlace<InvalidateAllOptions> = {
  where: 'invalidateAll',
  rules: { signal: aSignal, onProgress: aFunction, except: anExcept },
}

/** The context of the namespace that a stored user names: events and user IDs are its own. */
function contextFor<Data extends object, Ids extends UserIds>(
  context: Context<Data, Ids>,
  userId: string | null,
): Context<Data, Ids> {
  const namespace = userId === null ? null : namespaceOf(userId)
  return namespace === null || namespace === context.namespace ? context : context.tenant(namespace)
}

/** A record as operators see it; `null` for another kind of user ID, of another application. */
export function storedSession<Data extends object, Ids extends UserIds>(
  root: Context<Data, Ids>,
  record: SessionRecord,
): StoredSession<Data, Ids> | null {
  const context = contextFor(root, record.userId)
  return record.userId !== null && context.userIdOf(record) === null ? null : context.stored(record)
}

/** Ends all that existed when it was called; answers how many live sessions that were. */
export async function invalidateEverything<Data extends object, Ids extends UserIds>(
  context: Context<Data, Ids>,
  options: InvalidateAllOptions,
): Promise<number> {
  checkOptions(INVALIDATE_ALL, options)
  const exceptKey = keyOfExcept(context, options.except)
  requireScan(context, 'invalidateAll')
  return invalidateAll(context, options, {
    endUser: user =>
      endUser(contextFor(context, user), user, exceptKey === null ? {} : { exceptKey }, context.deadline()),
    endVisitor: key => endSession(context, key, null, 'invalidated', context.deadline()),
    follow: (key, now, isKnown) => chainFrom(context, key, { now, isKnown }),
    sparedKeys: async () =>
      exceptKey === null ? [] : (await chainFrom(context, exceptKey, { now: context.now() })).keys,
  })
}
