import { SharedReads } from '../../shared/shared-reads.ts'
import type { Row } from './engine.ts'
import { NOT_APPLIED, Refusal, storeError } from './retry.ts'
import { rowOf } from './rows.ts'

/** For how many keys one SELECT asks at most. */
export const READ_MOST = 256

/**
 * Finds rows by their keys, by one `select` for all reads of one turn of the event loop. Each row comes as one JSON array,
 * `cells`: with separate columns, a server describes each of them in every answer, which takes longer than the read itself.
 */
export function sharedFind(select: (ids: readonly string[], end: number) => Promise<readonly Row[]>) {
  const reads = new SharedReads<Row | null>(READ_MOST, async (ids, end) => {
    const rows = (await select(ids, end)).map(rowIn)
    const found = new Map(rows.map(row => [row.id, row]))
    const answers = ids.map(id => found.get(id) ?? null)
    // A mistake of the driver must not look like the end of a session.
    if (answers.filter(row => row !== null).length !== rows.length)
      throw storeError('read', new Refusal('the driver answered for another key'), NOT_APPLIED)
    return answers
  })
  return (key: string, end: number): Promise<Row | null> => reads.read(key, end)
}

/** A row from its cells: JSON text, or an array that mysql2 has parsed (MySQL). */
function rowIn({ cells }: Row): Row {
  try {
    const parsed = typeof cells === 'string' ? JSON.parse(cells) : cells
    if (Array.isArray(parsed)) return rowOf(parsed)
  } catch {
    // Not as the cause: the message of JSON.parse quotes the text.
  }
  throw storeError('read', new Refusal('the driver gave no row of the statement'), NOT_APPLIED)
}
