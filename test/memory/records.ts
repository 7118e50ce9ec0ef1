import type { Store } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { keyFor, newWriteId } from 'coatcheck/custom-store/testing'

export const NOW = 1_700_000_000_000
export const HOUR = 3_600_000

/** A live session of a user, or an anonymous one, or as told. */
export const record = (store: Store, userId: string | null, over: Partial<SessionRecord> = {}): SessionRecord => ({
  key: keyFor(store, userId),
  kind: 'session',
  parent: null,
  userId,
  userName: userId === null ? null : 'Ada',
  passwordVersion: null,
  data: '{}',
  version: 1,
  writeId: newWriteId(),
  createdAt: NOW,
  seenAt: NOW,
  expiresAt: NOW + HOUR,
  absoluteExpiresAt: NOW + 12 * HOUR,
  ...over,
})

/** Stores a record, which must succeed. */
export async function put(
  store: Store,
  userId: string | null,
  over: Partial<SessionRecord> = {},
): Promise<SessionRecord> {
  const stored = record(store, userId, over)
  const outcome = await store.create(stored, { now: NOW })
  if (outcome !== 'created') throw new Error(`not created: ${outcome}`)
  return stored
}

/** Stores so many live sessions, of a user or anonymous ones, and answers their keys. */
export async function fill(store: Store, count: number, userId: string | null = null): Promise<string[]> {
  const keys: string[] = []
  for (let made = 0; made < count; made++) {
    keys.push((await put(store, userId)).key)
  }
  return keys
}
