// How sessions end: in the store, in the memory of this process, and for those who listen.
import type { ReplaceResult } from '../contract/store.ts'
import type { SessionKey } from '../session/id.ts'
import type { Owner } from '../session/users.ts'
import type { Context } from './context.ts'
import type { SessionEvent } from './events.ts'

export type EndReason = Extract<SessionEvent, { type: 'destroyed' }>['reason']

/** What the memory of this process keeps of an end: after a logout nothing may begin in the session's place. */
const fateOf = (reason: EndReason) => (reason === 'logout' ? 'left' : 'ended')

/** Deletes a session, and the successor that its key leads to. */
export async function endSession(
  context: Context,
  key: string,
  userId: string | null,
  reason: EndReason,
  deadline: number,
): Promise<boolean> {
  // Before the answer: even if it is lost, a slow response must not send this cookie again.
  context.endings.end(key, fateOf(reason))
  const existed = await context.calls.delete(key, context.call(deadline))
  if (existed) noticeEnd(context, key, userId, reason)
  return existed
}

function noticeEnd(context: Context, key: string, userId: string | null, reason: EndReason): void {
  context.endings.end(key, fateOf(reason))
  context.emit({ type: 'destroyed', key: key as SessionKey, userId: context.userIdOf({ userId }), reason })
}

/** What a store answered to a login: the limit ended others of the user, or it was refused. `key`: what was to end for it. */
export function noticeAnswer(
  context: Context,
  { outcome, ended }: Pick<ReplaceResult, 'outcome' | 'ended'>,
  { userId }: Owner,
  key: string | null = null,
): void {
  for (const each of ended) noticeEnd(context, each, userId, 'limit')
  if (outcome === 'limit' || outcome === 'stale-login') context.tellRefused(outcome, { key, userId })
}

/** Ends everything of a user; even if the answer is lost, no slow response sends one of these cookies again. */
export async function endUser(
  context: Context,
  user: string,
  options: { exceptKey?: string; minPasswordVersion?: number },
  deadline: number,
): Promise<number> {
  context.endings.endUser(user, options.exceptKey ?? null)
  const call = context.call(deadline)
  const minPasswordVersionUntil = call.now + context.options.minPasswordVersionLifetime
  const count = await context.calls.deleteUser(user, { minPasswordVersionUntil, ...options }, call)
  context.emit({ type: 'invalidated', userId: context.users.fromText(user)!, count })
  return count
}
