// The limit of sessions of one user, kept by those who log in: a login looks before it writes, and once more afterwards.
import { SessionStoreError } from '../contract/errors.ts'
import type { ReplaceOutcome, SessionRecord } from '../contract/store.ts'
import { afterWrite, eachWrite } from '../guard/store-calls.ts'
import type { Context } from './context.ts'
import { recordsOfUser } from './lookup.ts'

/** How long a login that fails when its time is over may take to end what it began, in ms. */
const LAST_STEP = 1000

const byAge = (a: SessionRecord, b: SessionRecord) => a.createdAt - b.createdAt || (a.key < b.key ? -1 : 1)

/**
 * Makes a session live by `put`, within the limit of its user. Logins of one user in this process wait for each other.
 * Those of two nodes meet in the second look and agree on an order there: what the first look saw is older, whatever the clocks say.
 * `replaced`: the key of the session whose place it takes. `givesWay`: the sessions that end for it before any other.
 * @throws SessionStoreError with outcome 'unknown' only if the session may live
 */
export function withinLimit<Outcome extends ReplaceOutcome>(
  context: Context,
  { key, userId }: SessionRecord,
  replaced: string | null,
  put: () => Promise<Outcome>,
  givesWay: (session: SessionRecord) => boolean = () => false,
): Promise<Outcome | 'limit'> {
  const { calls, deadline, options } = context
  if (options.limit === null || userId === null) return put()
  const { max, onLimit } = options.limit
  const end = (sessions: SessionRecord[]) => eachWrite(sessions, each => context.endSession(each.key, each, 'limit'))
  const undo = () => {
    const last = Math.max(deadline, performance.now() + LAST_STEP)
    return afterWrite(() => calls.delete(key, { now: context.now(), deadline: last }))
  }
  const late = () => calls.fail('create', 'not-applied', 'create: earlier logins of this user took all of storeTimeout')
  return context.local.writers.inTurn(`logins of ${userId}`, deadline, late, async () => {
    let before = (await recordsOfUser(context, userId)).filter(each => each.key !== key && each.key !== replaced)
    if (before.length >= max) {
      await end(before.filter(givesWay))
      before = before.filter(each => !givesWay(each))
    }
    if (onLimit === 'refuse' && before.length >= max) return 'limit'
    const outcome = await put()
    if (outcome !== 'created') return outcome
    try {
      const after = await recordsOfUser(context, userId)
      const isOlder = new Set(before.map(each => each.key))
      const order = after.sort((a, b) => Number(isOlder.has(b.key)) - Number(isOlder.has(a.key)) || byAge(a, b))
      const surplus = onLimit === 'refuse' ? order.slice(max) : order.slice(0, -max)
      // Each node ends its own session alone, or the others alone: of two that did both, none would be left.
      if (onLimit === 'end-oldest') await end(surplus.filter(each => each.key !== key))
      if (onLimit === 'end-oldest' || surplus.every(each => each.key !== key)) return outcome
    } catch (error) {
      await undo()
      if (!(error instanceof SessionStoreError && error.outcome === 'unknown')) throw error
      throw new SessionStoreError(error.operation, 'not-applied', error.message, { cause: error })
    }
    await undo()
    return 'limit'
  })
}
