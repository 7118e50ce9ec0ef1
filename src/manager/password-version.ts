// The option `getPasswordVersion`: the application says which password version a user has now, and older sessions are refused.
import type { SessionRecord } from '../contract/store.ts'
import { passwordVersionOf } from '../session/users.ts'
import { within } from '../time/within.ts'
import type { AnyContext } from './context.ts'

/** Whether the application raised the user's password version since this record's credentials were verified. */
export async function isOutdated(context: AnyContext, record: SessionRecord, deadline: number): Promise<boolean> {
  if (record.userId === null) return false
  return (record.passwordVersion ?? 0) < (await versionNow(context, record.userId, deadline))
}

/** The user's password version, 0 if the application does not say. The lookup has what is left of `storeTimeout`. */
async function versionNow(context: AnyContext, user: string, deadline: number): Promise<number> {
  const { getPasswordVersion } = context.given
  if (!getPasswordVersion) return 0
  const asked = async () => passwordVersionOf(await getPasswordVersion(context.users.fromText(user)!), NAME) ?? 0
  return within(deadline, asked(), {
    accept: version => version,
    failed: cause => cause,
    late: () => context.calls.fail('read', 'not-applied', `read: ${NAME} did not answer within storeTimeout`),
  })
}
const NAME = 'getPasswordVersion()'

/** The user's live sessions, without those that the application's password version refuses. */
export async function recordsOfUser(context: AnyContext, user: string, deadline: number): Promise<SessionRecord[]> {
  const records = await context.calls.listUser(user, 'session', context.call(deadline))
  const version = records.length === 0 ? 0 : await versionNow(context, user, deadline)
  return records.filter(record => (record.passwordVersion ?? 0) >= version)
}
