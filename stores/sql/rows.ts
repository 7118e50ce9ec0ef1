import { corruption } from '../../src/contract/record.ts'
import type { Corrupt, Forward, SessionRecord } from '../../src/contract/store.ts'
import type { ColumnName } from './tables.ts'
import { isU64, joinUser, splitUser } from './user.ts'

/** What drivers give for a cell; only text, numbers and NULL can be sound. */
export type Cell = unknown
/** The columns of the session table in the order in which they are read: the last four may contain any text. */
export const ROW_COLUMNS = [
  'id',
  'kind',
  'parent',
  'password_version',
  'version',
  'write_id',
  'created_at',
  'seen_at',
  'expires_at',
  'absolute_expires_at',
  'moved_to',
  'user_id',
  'tenant',
  'user_name',
  'data',
] as const satisfies readonly ColumnName[]

/** The cells of a row of the session table, each found by the name of its column: `row[AT.seen_at]`. */
export type Row = readonly Cell[]
export const AT = Object.fromEntries(ROW_COLUMNS.map((name, place) => [name, place])) as Readonly<
  Record<ColumnName, number>
>

const KEY = /^[A-Za-z0-9_-]{46}$/
/** Keys of any other form are in no table and are not asked for. */
export const isKey = (key: unknown): key is string => typeof key === 'string' && KEY.test(key)

// Drivers give integers as text, number or bigint, depending on the driver and its options.
function integer(cell: Cell): number {
  if (typeof cell === 'number') return cell
  return (typeof cell === 'string' && cell !== '') || typeof cell === 'bigint' ? Number(cell) : Number.NaN
}

/** What a row says; `null` for one whose time is over. */
export function fromRow(row: Row, now: number, userIds: 'bigint' | 'string'): SessionRecord | Forward | Corrupt | null {
  const expiresAt = integer(row[AT.expires_at])
  if (expiresAt <= now && expiresAt >= 0) return null
  if (row[AT.moved_to] !== null) return forwardFrom(row, expiresAt)
  const record = {
    key: row[AT.id],
    kind: row[AT.kind],
    parent: row[AT.parent],
    userId: row[AT.user_id] === null ? null : userFrom(row, userIds),
    userName: row[AT.user_name],
    passwordVersion: row[AT.password_version] === null ? null : integer(row[AT.password_version]),
    data: row[AT.data],
    version: integer(row[AT.version]),
    writeId: row[AT.write_id],
    createdAt: integer(row[AT.created_at]),
    seenAt: integer(row[AT.seen_at]),
    expiresAt,
    absoluteExpiresAt: integer(row[AT.absolute_expires_at]),
  } as SessionRecord
  const corrupt = corruption(record)
  return corrupt === null ? record : { corrupt }
}

// '' is what `corruption` refuses: a user ID that cannot be what the store wrote.
function userFrom(row: Row, userIds: 'bigint' | 'string'): string {
  const [tenant, user] = [row[AT.tenant], row[AT.user_id]]
  if (typeof tenant !== 'string' || typeof user !== 'string' || (userIds === 'bigint' && !isU64(user))) return ''
  return joinUser(tenant, user)
}

function forwardFrom(row: Row, expiresAt: number): Forward | Corrupt {
  const [movedTo, salt, until] = [row[AT.moved_to], row[AT.data], integer(row[AT.absolute_expires_at])]
  if (!isKey(movedTo) || typeof salt !== 'string' || !Number.isSafeInteger(until) || !Number.isSafeInteger(expiresAt))
    return { corrupt: 'forward is malformed' }
  return { movedTo, salt, until }
}

/** The values of a record's columns, by the names of their parameters. */
export const recordValues = ({ key, userId, ...fields }: SessionRecord) => ({
  ...fields,
  id: key,
  ...(userId === null ? { tenant: '', userId } : splitUser(userId)),
  /** Compared with a floor, where a missing password version counts as 0. */
  provenVersion: fields.passwordVersion ?? 0,
})
