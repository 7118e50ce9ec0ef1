import type { SessionRecord } from '../contract/store.ts'
import { newWriteId } from './id.ts'

export const DAY = 86_400_000
/** No browser keeps a cookie longer (RFC 6265bis, section 5.5), in ms. */
export const LONGEST = 400 * DAY

/**
 * A note under its own key: a record without a user, of the kind that visitors never read. An update may raise its
 * `expiresAt` later.
 */
export const noteRecord = (key: string, data: string, now: number, expiresAt: number): SessionRecord => ({
  key,
  kind: 'remember',
  parent: null,
  userId: null,
  userName: null,
  passwordVersion: null,
  data,
  version: 1,
  writeId: newWriteId(),
  createdAt: now,
  seenAt: now,
  expiresAt,
  absoluteExpiresAt: now + 10 * LONGEST,
})
