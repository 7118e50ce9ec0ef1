import { AT, type Cell, type Row } from '../rows.ts'
import { SESSION_COLUMNS } from '../tables.ts'

const SEPARATOR = '|'
/** The columns that may contain the separator. */
const ALONE = ['tenant', 'user_id', 'username', 'data'] as const
const PACKED = SESSION_COLUMNS.map(({ name }) => name).filter(
  name => name !== 'id' && !ALONE.some(alone => alone === name),
)

/** A SELECT list that sends most columns as one, which saves the client the description of each. */
export const packed = `concat(${PACKED.join(`, '${SEPARATOR}', `)}), ${ALONE.join(', ')}`

/** The row of such a SELECT. A separator in a hand-edited cell leaves cells that cannot be sound. */
export function unpacked(cells: readonly Cell[], key: string): Row {
  const parts = (cells[0] as string).split(SEPARATOR)
  const row: Cell[] = Array(SESSION_COLUMNS.length)
  row[AT.id] = key
  for (let i = 0; i < PACKED.length; i++) row[AT[PACKED[i]!]] = parts[i] === '' ? null : parts[i]
  for (let i = 0; i < ALONE.length; i++) row[AT[ALONE[i]!]] = cells[i + 1]
  if (parts.length !== PACKED.length) row[AT.expires_at] = null
  return row
}
