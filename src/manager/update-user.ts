// One change for all sessions of a user, such as a role.
import { SessionStoreError } from '../contract/errors.ts'
import { CLOCK_TOLERANCE, type SessionRecord } from '../contract/store.ts'
import type { Change } from '../data/change.ts'
import type { UserIds } from '../session/user-id.ts'
import type { Context } from './context.ts'
import { checkChange, writeRecord } from './edit.ts'
import { chainFrom } from './lookup.ts'
import { recordsOfUser } from './password-version.ts'
import { eachOf } from './walk.ts'

/** How often at most the sessions are listed again, for those that got a new ID while they were listed. */
const MAX_LISTS = 8

/** Changes the data of all live sessions of a user, each once; answers how many. */
export async function updateUser<D extends object, I extends UserIds, R>(
  context: Context<D, I>,
  user: string,
  change: Change<D, R>,
): Promise<number> {
  checkChange('updateUser', change)
  const latest = context.now() + CLOCK_TOLERANCE
  /** Keys of what was changed, or is being changed. */
  const taken = new Set<string>()
  const failures: unknown[] = []
  let changed = 0
  const write = async (record: SessionRecord) => {
    if (taken.has(record.key)) return
    taken.add(record.key)
    // A session that got a new ID may be listed under both: the change of the other one has it.
    const take = (keys: readonly string[]) => {
      const isOther = keys.some(key => taken.has(key))
      for (const key of keys) taken.add(key)
      return !isOther
    }
    try {
      if (await writeRecord(context, record, change, take)) changed += 1
    } catch (error) {
      // Data that one session cannot hold is no reason for the others to stay as they are.
      if (error instanceof SessionStoreError) throw error
      failures.push(error)
    }
  }
  let records = await recordsOfUser(context, user, context.deadline())
  for (let lists = 1; records.length > 0; lists += 1) {
    await eachOf(records, write)
    if (lists >= MAX_LISTS) break
    const listed = await recordsOfUser(context, user, context.deadline())
    records = listed.filter(({ key, createdAt }) => !taken.has(key) && createdAt <= latest)
    // What got a new ID after its change stands under a key that leads there.
    if (records.length > 0)
      await eachOf([...taken], async key => {
        const call = { now: context.now(), deadline: context.deadline() }
        for (const next of (await chainFrom(context, key, call)).keys) taken.add(next)
      })
    records = records.filter(({ key }) => !taken.has(key))
  }
  if (failures.length > 0) throw failures[0]
  return changed
}
