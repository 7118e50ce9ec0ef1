import type { Store } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { T0 as NOW, recordOf } from '../support/records.ts'

export { HOUR, recordOf as record, T0 as NOW } from '../support/records.ts'

/** Stores a record, which must succeed. */
export async function put(
  store: Store,
  userId: string | null,
  over: Partial<SessionRecord> = {},
): Promise<SessionRecord> {
  const stored = recordOf(store, userId, over)
  const outcome = await store.create(stored, { now: NOW })
  if (outcome !== 'created') throw new Error(`not created: ${outcome}`)
  return stored
}

/** Stores so many live anonymous sessions, and answers their keys. */
export async function fill(store: Store, count: number): Promise<string[]> {
  const keys: string[] = []
  for (let made = 0; made < count; made++) keys.push((await put(store, null)).key)
  return keys
}
