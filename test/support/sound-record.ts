import type { SessionRecord } from 'coatcheck/custom-store'

/** What a store may answer under this key: an anonymous session that lives for long. */
export const soundRecord = (key: string): SessionRecord => ({
  key,
  kind: 'session',
  parent: null,
  userId: null,
  userName: null,
  passwordVersion: null,
  data: '{}',
  version: 1,
  writeId: 'w'.repeat(9),
  createdAt: 1,
  seenAt: 1,
  expiresAt: 4e12,
  absoluteExpiresAt: 4e12,
})
