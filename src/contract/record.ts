import type { SessionRecord } from './store.ts'

const KEY = /^[A-Za-z0-9_-]{46}$/

/** Whether something can be the key of a record: the shard and a hash. */
export const isRecordKey = (value: unknown): value is string => typeof value === 'string' && KEY.test(value)

/** An unsigned 32-bit number. */
export const isPasswordVersion = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 0xffff_ffff

const MAX_INSTANT = 8_640_000_000_000_000 // ECMA-262, 21.4.1.1: the largest time value

/** Epoch milliseconds. */
export const isInstant = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= MAX_INSTANT

/**
 * Says why a stored record is impossible, or `null` for a sound one. For stores whose rows others can edit. The
 * answer contains nothing of the record's content.
 */
export function corruption(record: SessionRecord): string | null {
  if (!isRecordKey(record.key)) return 'key is malformed'
  if (record.kind !== 'session' && record.kind !== 'remember') return 'kind is unknown'
  if (record.parent !== null && !isRecordKey(record.parent)) return 'parent is malformed'
  if ((record.userId === null) !== (record.userName === null)) return 'user ID without name, or name without user ID'
  if (record.userId !== null && (typeof record.userId !== 'string' || record.userId === '')) return 'user ID is empty'
  if (record.userName !== null && typeof record.userName !== 'string') return 'name is not text'
  if (record.passwordVersion !== null && !isPasswordVersion(record.passwordVersion))
    return 'password version is not an unsigned 32-bit number'
  if (typeof record.data !== 'string') return 'data is not text'
  if (!Number.isSafeInteger(record.version) || record.version < 1) return 'version is not a positive number'
  if (typeof record.writeId !== 'string') return 'write ID is not text'
  for (const field of ['createdAt', 'seenAt', 'expiresAt', 'absoluteExpiresAt'] as const)
    if (!isInstant(record[field])) return `${field} is not an instant`
  return null
}
