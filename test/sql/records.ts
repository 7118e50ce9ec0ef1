import { randomBytes } from 'node:crypto'
import type { Store } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { soon } from '../support/deadlines.ts'
import { HOUR, recordAt } from '../support/records.ts'

/** A frozen instant in the past: the sweeps' database clock is later. */
export const NOW = 1_700_000_000_000

export const newKey = () => randomBytes(35).toString('base64url').slice(0, 46)
export const newWriteId = () => randomBytes(9).toString('base64url')

/** A call that has to succeed. */
export const call = () => ({ now: NOW, deadline: soon() })
export const change = (changes = {}) => ({
  data: '"new"',
  seenAt: NOW + 5,
  expiresAt: NOW + 9e6,
  writeId: newWriteId(),
  ...changes,
})
export const everybody = { minPasswordVersion: 3, minPasswordVersionUntil: NOW + 1e9 }
export const forward = { salt: 'c2FsdA', until: NOW }

/** A live session of user 42, or as told. */
export const record = (changes: Partial<SessionRecord> = {}) => recordAt(NOW, { expiresAt: NOW + HOUR, ...changes })

export const anonymous = (changes: Partial<SessionRecord> = {}) => record({ userId: null, userName: null, ...changes })

export const isLive = async (store: Store, key: string, now = NOW) => {
  const found = await store.read(key, { now })
  return found !== null && 'key' in found
}

/** The columns of the session table but for its key, in the order of the table. */
export const COLUMNS_BUT_ID = `kind, parent_key, namespace, user_id, user_name, password_version, data, version, write_id,
  created_at, seen_at, expires_at, absolute_expires_at, moved_to`
