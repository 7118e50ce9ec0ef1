// The row of a record, and the record in a row.
import { corruption } from '../../../src/contract/record.ts'
import type { Corrupt, Forward, SessionRecord } from '../../../src/contract/store.ts'
import type { Row } from './engine.ts'

const KEY = /^[A-Za-z0-9_-]{46}$/
/** Keys of any other form are in no table: the store doesn't ask for them. */
export const isKey = (key: unknown): key is string => typeof key === 'string' && KEY.test(key)

function integer(cell: unknown): number {
  if (typeof cell === 'number') return cell
  return (typeof cell === 'string' && cell !== '') || typeof cell === 'bigint' ? Number(cell) : Number.NaN
}

/** A row from its cells in the order of `SESSION_COLUMNS`. A literal is three times as fast as a loop. */
export const rowOf = (cells: readonly unknown[]): Row => ({
  id: cells[0],
  kind: cells[1],
  parent_key: cells[2],
  namespace: cells[3],
  user_id: cells[4],
  user_name: cells[5],
  password_version: cells[6],
  data: cells[7],
  version: cells[8],
  write_id: cells[9],
  created_at: cells[10],
  seen_at: cells[11],
  expires_at: cells[12],
  absolute_expires_at: cells[13],
  moved_to: cells[14],
})

/** The content of a row at `now`; `null` if it has expired. */
export function fromRow(row: Row, now: number): SessionRecord | Forward | Corrupt | null {
  const expiresAt = integer(row.expires_at)
  if (expiresAt <= now && expiresAt >= 0) return null
  if (row.moved_to !== null) {
    const [movedTo, salt, until] = [row.moved_to, row.data, integer(row.absolute_expires_at)]
    const isSound = isKey(movedTo) && typeof salt === 'string' && Number.isSafeInteger(until) && expiresAt > now
    return isSound ? { movedTo, salt, until } : { corrupt: 'forward is malformed' }
  }
  const record = {
    key: row.id,
    kind: row.kind,
    parent: row.parent_key,
    userId: row.user_id === null || row.namespace === '' ? row.user_id : `${row.namespace}\t${row.user_id}`,
    userName: row.user_name,
    passwordVersion: row.password_version === null ? null : integer(row.password_version),
    data: row.data,
    version: integer(row.version),
    writeId: row.write_id,
    createdAt: integer(row.created_at),
    seenAt: integer(row.seen_at),
    expiresAt,
    absoluteExpiresAt: integer(row.absolute_expires_at),
  } as SessionRecord
  const corrupt = typeof row.namespace === 'string' ? corruption(record) : 'namespace is not text'
  return corrupt === null ? record : { corrupt }
}

/** A manager with a namespace writes `namespace + '\t' + id`. The columns are separate: `user_id` joins with the application's table. */
export function userValues(userId: string): { namespace: string; userId: string } {
  const tab = userId.lastIndexOf('\t')
  return tab <= 0 ? { namespace: '', userId } : { namespace: userId.slice(0, tab), userId: userId.slice(tab + 1) }
}

/** The values of a record's columns, by the names of their parameters. */
export const recordValues = (record: SessionRecord) => ({
  ...record,
  id: record.key,
  parentKey: record.parent,
  ...(record.userId === null ? { namespace: '', userId: null } : userValues(record.userId)),
  /** Compared with the minimum password version; a missing one counts as 0. */
  proven: record.passwordVersion ?? 0,
})
