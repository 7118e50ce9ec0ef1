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

/** A live record at T0: of a user, or anonymous with `userId: null`. */
export function recordOf(store: Store, userId: string | null, more: Partial<SessionRecord> = {}): SessionRecord {
  return {
    key: userId === null || store.shard === undefined ? anywhere() : keyIn(store.shard(userId)),
    kind: 'session',
    parent: null,
    userId,
    userName: userId === null ? null : 'ada',
    passwordVersion: null,
    data: '{}',
    version: 1,
    writeId: writeId(),
    createdAt: T0,
    seenAt: T0,
    expiresAt: T0 + HOUR / 2,
    absoluteExpiresAt: T0 + 12 * HOUR,
    ...more,
  }
}
