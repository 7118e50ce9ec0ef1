import { unusable } from './retry.ts'
import { AT, type Cell, ROW_COLUMNS, type Row } from './rows.ts'
import type { ColumnName } from './tables.ts'

const SEPARATOR = '|'
/** The columns whose text may contain the separator: they are the last of a row, and are sent as they are. */
const ALONE = ROW_COLUMNS.slice(AT.tenant)
const PACKED = ROW_COLUMNS.slice(0, AT.tenant)

/**
 * A SELECT list that sends most columns as one, which saves the server and the client the description of each. A user ID
 * that is text comes by itself, and its place in the pack is empty. `cell` says how a column is read, `pack` joins them.
 */
export function packedList(
  userIds: 'bigint' | 'string',
  cell: (name: ColumnName) => string,
  pack: (cells: readonly string[], separator: string) => string,
): string {
  const isText = userIds === 'string'
  const packed = PACKED.map(name => {
    if (name === 'user_id' && isText) return "''"
    // '' stands for NULL here. Where a hand has put '' into one of these it must not pass for that: no statement that asks
    // for NULL would meet the row, and nothing could end the session.
    return name === 'parent' || name === 'moved_to' ? `CASE ${name} WHEN '' THEN '?' ELSE ${name} END` : name
  })
  const alone = [...ALONE, ...(isText ? (['user_id'] as const) : [])]
  return `${pack(packed, `'${SEPARATOR}'`)}, ${alone.map(cell).join(', ')}`
}

/**
 * The row of such a SELECT. A separator in a hand-edited cell leaves cells that cannot be sound: that is more cells. Less, or
 * no text, is a fault of the driver or of the server's settings, and no reason to remove a row that is sound elsewhere.
 */
export function unpacked(cells: readonly Cell[]): Row {
  const packed = cells[0]
  const row: Cell[] = typeof packed === 'string' ? packed.split(SEPARATOR) : []
  if (row.length < PACKED.length)
    throw unusable('a row came otherwise than the statement says: an option of the driver or the server changes values')
  const isSound = row.length === PACKED.length
  for (let i = 0; i < row.length; i++) if (row[i] === '') row[i] = null
  if (cells.length > ALONE.length + 1) row[AT.user_id] = cells[ALONE.length + 1]
  for (let i = 0; i < ALONE.length; i++) row[AT.tenant + i] = cells[i + 1]
  if (!isSound) row[AT.expires_at] = null
  return row
}
