// The option `passwordVersion`: the application says the user's password version now, and older sessions are refused.
import type { SessionRecord } from '../contract/store.ts'
import { passwordVersionOf } from '../session/users.ts'
import type { AnyContext } from './context.ts'

/** Whether the application raised the user's password version since this record's credentials were verified. */
export async function isOutdated(context: AnyContext, record: SessionRecord, deadline: number): Promise<boolean> {
  if (record.userId === null) return false
  return (record.passwordVersion ?? 0) < (await versionNow(context, record.userId, deadline))
}

/** The user's password version; 0 where the application does not say. It has what is left of `storeTimeout`, as a store. */
export function versionNow(context: AnyContext, user: string, deadline: number): Promise<number> {
  const { getPasswordVersion: passwordVersion } = context.given
  if (!passwordVersion) return Promise.resolve(0)
  const { calls, deadlines, users } = context
  const asked = async () => passwordVersionOf(await passwordVersion(users.fromText(user)!), 'passwordVersion()') ?? 0
  const late = 'read: passwordVersion() did not answer within storeTimeout'
  return deadlines.within(deadline, asked(), () => calls.fail('read', 'not-applied', late))
}

/** The user's live sessions, without those that the application's password version refuses. */
export async function recordsOfUser(context: AnyContext, user: string, deadline: number): Promise<SessionRecord[]> {
  const records = await context.calls.listUser(user, 'session', { now: context.now(), deadline })
  const theirs = records.filter(record => record.userId === user && record.kind === 'session')
  const version = theirs.length === 0 ? 0 : await versionNow(context, user, deadline)
  return theirs.filter(record => (record.passwordVersion ?? 0) >= version)
}
