import { SessionError } from '../contract/errors.ts'
import type { CreateResult } from '../contract/store.ts'
import type { SessionKey } from '../session/id.ts'
import type { AnyContext } from './context.ts'
import { isHeard, type WriteRefusal } from './events.ts'

/** What `create` and `replace` of a store answer instead of 'created'. */
export type Refused = Exclude<CreateResult['outcome'], 'created'>

export function refusal({ options }: AnyContext, outcome: Refused): SessionError {
  switch (outcome) {
    case 'stale-login':
      return new SessionError('ERR_SESSION_STALE_LOGIN', 'the password was changed after it was verified: log in again')
    case 'limit':
      return new SessionError('ERR_SESSION_LIMIT', `the user has ${options.limit?.max} sessions already: end one first`)
    case 'orphan':
      return new SessionError('ERR_SESSION_UNAUTHENTICATED', 'the session has ended meanwhile: log in again')
    default:
      return new SessionError(
        'ERR_SESSION_ID_COLLISION',
        'new IDs collide: the random generator or the store is broken',
      )
  }
}

/** An event for each login or write that is refused; `key` and `userId` as the record has them. */
export function tellRefused(
  context: AnyContext,
  reason: WriteRefusal,
  { key, userId }: { key: string | null; userId: string | null },
): void {
  if (!isHeard(context.given.onEvent)) return
  context.emit({ type: 'write-refused', reason, key: key as SessionKey | null, userId: context.userIdOf({ userId }) })
}

export const tooManyWriters = () =>
  new SessionError('ERR_SESSION_CONFLICT', 'other writers kept changing this session for all of storeTimeout')

export const tooManyIds = (count: number) =>
  new SessionError('ERR_SESSION_CONFLICT', `this session got ${count} new IDs within minutes: try again later`)
