// The same keys for all sessions of a user, such as a role.
import { SessionStoreError } from '../contract/errors.ts'
import type { SessionRecord } from '../contract/store.ts'
import { afterWrite } from '../guard/store-calls.ts'
import { eachOf } from './walk.ts'

/**
 * Sets keys in the data of each record. `write` answers the key under which the record stands then, or `null` if it has
 * ended. Answers how many sessions were written to.
 */
export async function updateEach(
  records: readonly SessionRecord[],
  write: (record: SessionRecord) => Promise<string | null>,
): Promise<number> {
  const failures: unknown[] = []
  // A session that gets a new ID meanwhile may be listed under both.
  const written = new Set<string>()
  const writeOne = async (record: SessionRecord) => {
    try {
      const key = await write(record)
      if (key !== null) written.add(key)
    } catch (error) {
      // Data that one session cannot hold is no reason for the others to stay as they are.
      if (error instanceof SessionStoreError) throw error
      failures.push(error)
    }
  }
  const writeAll = () => eachOf(records, writeOne)
  await (records.length > 1 ? afterWrite(writeAll) : writeAll())
  if (failures.length > 0) throw failures[0]
  return written.size
}
