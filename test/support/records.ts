// Records, and how Redis calls them.
import { createHash, randomBytes } from 'node:crypto'
import type { Store } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { soon } from './deadlines.ts'

export { soon }

export const T0 = 1_767_225_600_000
export const HOUR = 3_600_000

/** What a call of a store is told, at T0 unless another time is named. */
export const call = (now = T0) => ({ now, deadline: soon() })
/** How Redis calls the record under a key. */
export const nameOf = (key: string, prefix = 'coatcheck:') => `${prefix}{${key.slice(0, 3)}}:${key.slice(3)}`
/** How the index of a user names a record. */
export const memberOf = ({ key }: { readonly key: string }) => key.slice(3)

export const keyIn = (shard: string) => shard + createHash('sha256').update(randomBytes(16)).digest('base64url')
export const anywhere = () => keyIn(randomBytes(3).toString('base64url').slice(0, 3))
export const writeId = () => randomBytes(12).toString('base64url')

/** A session of user 42 that is live at that time, or as told. */
export const recordAt = (now: number, more: Partial<SessionRecord> = {}): SessionRecord => ({
  key: anywhere(),
  kind: 'session',
  parent: null,
  userId: '42',
  userName: 'ada',
  passwordVersion: null,
  data: '{}',
  version: 1,
  writeId: writeId(),
  createdAt: now,
  seenAt: now,
  expiresAt: now + HOUR / 2,
  absoluteExpiresAt: now + 12 * HOUR,
  ...more,
})

/** A live record at T0: of a user, or anonymous with `userId: null`. */
export function recordOf(store: Store, userId: string | null, more: Partial<SessionRecord> = {}): SessionRecord {
  const key = userId === null || store.shard === undefined ? anywhere() : keyIn(store.shard(userId))
  return recordAt(T0, { key, userId, userName: userId === null ? null : 'ada', ...more })
}
