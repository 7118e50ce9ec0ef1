import { corruption } from '../../src/contract/record.ts'
import type { Corrupt, Forward, SessionRecord } from '../../src/contract/store.ts'
import { isU64, joinUser, splitUser } from './user.ts'

/**
 * The columns in the order in which every SELECT names them. A forward is a row with `moved_to`: `data` is its salt,
 * `absolute_expires_at` its `until`, and `expires_at` when it may be forgotten.
 */
export const COLUMNS = [
  'id',
  'kind',
  'parent',
  'tenant',
  'user_id',
  'username',
  'password_version',
  'data',
  'version',
  'write_id',
  'created_at',
  'seen_at',
  'expires_at',
  'absolute_expires_at',
  'moved_to',
] as const

/** The columns that contain no separator and can be sent as one, which saves the client the description of each. */
export const PACKED = COLUMNS.filter(name => !['id', 'tenant', 'user_id', 'username', 'data'].includes(name))
const SEPARATOR = '|'
export const packedWith = (concat: (parts: readonly string[]) => string) =>
  `${concat(PACKED.flatMap((name, i) => (i === 0 ? [name] : [`'${SEPARATOR}'`, name])))}, tenant, user_id, username, data`

/** The reverse: a row in the order of `COLUMNS`. A separator in a hand-edited cell leaves cells that cannot be sound. */
export function unpacked(cells: readonly Cell[], key: string): Cell[] {
  const [kind, parent, passwordVersion, version, writeId, createdAt, seenAt, expiresAt, absolute, movedTo, more] = (
    cells[0] as string
  ).split(SEPARATOR)
  const [, tenant, user, username, data] = cells
  const orNull = (cell: string | undefined) => (cell === '' || cell === undefined ? null : cell)
  return [
    key,
    kind,
    orNull(parent),
    tenant,
    user,
    username,
    orNull(passwordVersion),
    data,
    version,
    writeId,
    createdAt,
    seenAt,
    more === undefined ? expiresAt : null,
    absolute,
    orNull(movedTo),
  ]
}

/** What drivers give for a cell; only text, numbers and NULL can be sound. */
export type Cell = unknown

const KEY = /^[A-Za-z0-9_-]{46}$/
/** Keys of any other form are in no table and are not asked for. */
export const isKey = (key: unknown): key is string => typeof key === 'string' && KEY.test(key)

// Drivers give integers as text, number or bigint, depending on the driver and its options.
const integer = (cell: Cell): number =>
  typeof cell === 'number'
    ? cell
    : (typeof cell === 'string' && cell !== '') || typeof cell === 'bigint'
      ? Number(cell)
      : Number.NaN

/** Reads a row in the order of `COLUMNS`; `null` for one whose time is over. */
export function fromRow(
  row: readonly Cell[],
  now: number,
  userIds: 'u64' | 'text',
): SessionRecord | Forward | Corrupt | null {
  const expiresAt = integer(row[12])
  if (expiresAt <= now && expiresAt >= 0) return null
  if (row[14] !== null) return forwardFrom(row, expiresAt)
  const record = {
    key: row[0],
    kind: row[1],
    parent: row[2],
    userId: row[4] === null ? null : userFrom(row[3], row[4], userIds),
    username: row[5],
    passwordVersion: row[6] === null ? null : integer(row[6]),
    data: row[7],
    version: integer(row[8]),
    writeId: row[9],
    createdAt: integer(row[10]),
    seenAt: integer(row[11]),
    expiresAt,
    absoluteExpiresAt: integer(row[13]),
  } as SessionRecord
  const corrupt = corruption(record)
  return corrupt === null ? record : { corrupt }
}

// '' is what `corruption` refuses: a user ID that cannot be what the store wrote.
const userFrom = (tenant: Cell, user: Cell, userIds: 'u64' | 'text') =>
  typeof tenant !== 'string' || typeof user !== 'string' || (userIds === 'u64' && !isU64(user))
    ? ''
    : joinUser(tenant, user)

function forwardFrom(row: readonly Cell[], expiresAt: number): Forward | Corrupt {
  const [movedTo, salt, until] = [row[14], row[7], integer(row[13])]
  if (!isKey(movedTo) || typeof salt !== 'string' || !Number.isSafeInteger(until) || !Number.isSafeInteger(expiresAt))
    return { corrupt: 'forward is malformed' }
  return { movedTo, salt, until }
}

/** The values of a record's columns, by the names that the statements use. */
export function recordValues(record: SessionRecord) {
  const { tenant, user } =
    record.userId === null ? { tenant: '', user: null } : (splitUser(record.userId) as { tenant: string; user: string })
  return {
    id: record.key,
    kind: record.kind,
    parent: record.parent,
    tenant,
    user,
    username: record.username,
    passwordVersion: record.passwordVersion,
    data: record.data,
    version: record.version,
    writeId: record.writeId,
    createdAt: record.createdAt,
    seenAt: record.seenAt,
    expiresAt: record.expiresAt,
    absoluteExpiresAt: record.absoluteExpiresAt,
    // Where it is compared with a floor, a missing password version counts as 0.
    proof: record.passwordVersion ?? 0,
  }
}
