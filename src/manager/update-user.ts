// One change for all sessions of a user, such as a role.
import { SessionStoreError } from '../contract/errors.ts'
import { CLOCK_TOLERANCE, type SessionRecord } from '../contract/store.ts'
import type { Change } from '../data/change.ts'
import type { UserIds } from '../session/user-id.ts'
import { Writes } from './after-write.ts'
import type { Context } from './context.ts'
import { checkChange, writeRecord } from './edit.ts'
import { recordsOfUser } from './password-version.ts'
import { hasChange, newChange } from './records.ts'
import { eachOf } from './walk.ts'

/** How often at most the sessions are listed, for those that a login begins beside it. */
const MAX_LISTS = 8

/** Changes the data of all live sessions of a user, each once; answers how many. */
export async function updateSessionsOfUser<D extends object, I extends UserIds, R>(
  context: Context<D, I>,
  user: string,
  change: Change<D, R>,
): Promise<number> {
  checkChange('updateUserSessions', change)
  const latest = context.now() + CLOCK_TOLERANCE
  // Stored with the data in one step, and carried over with it by a new ID and by a login: who has it has the change.
  const name = newChange()
  /** Keys of those that have it, which more changes meanwhile may take its name from, and of those that cannot hold it. */
  const done = new Set<string>()
  const failures: unknown[] = []
  const writes = new Writes()
  let changed = 0
  const write = async (record: SessionRecord) => {
    try {
      const left = await writes.run(() => writeRecord(context, record, change, name))
      if (left !== null) done.add(left.key)
      if (left?.isWritten) changed += 1
    } catch (error) {
      // Data that one session cannot hold is no reason for the others to stay as they are.
      if (error instanceof SessionStoreError) throw error
      failures.push(error)
      done.add(record.key)
    }
  }
  try {
    let records = await recordsOfUser(context, user, context.deadline())
    for (let lists = 1; records.length > 0; lists += 1) {
      await eachOf(records, write)
      if (lists >= MAX_LISTS) break
      // A login may have begun a session from data that did not have the change yet.
      const listed = await recordsOfUser(context, user, context.deadline())
      records = listed.filter(record => !done.has(record.key) && record.createdAt <= latest && !hasChange(record, name))
    }
  } catch (error) {
    throw writes.failure(error)
  }
  if (failures.length > 0) throw failures[0]
  return changed
}
