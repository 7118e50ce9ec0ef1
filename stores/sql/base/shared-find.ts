import { SessionStoreError } from '../../../src/contract/errors.ts'
import { SharedReads } from '../../shared/shared-reads.ts'
import type { Row } from './engine.ts'
import { NOT_APPLIED, Refusal, storeError } from './retry.ts'
import { rowOf } from './rows.ts'

/** For how many keys one SELECT asks at most. */
export const READ_MOST = 256

/**
 * Finds rows by their keys; `select` is asked once for those of one turn of the event loop. It gives each row as one JSON
 * array, `cells`: a server describes each column anew in each answer, which takes longer than all the rest of a read.
 */
export function sharedFind(select: (ids: readonly string[], end: number) => Promise<readonly Row[]>) {
  const reads = new SharedReads<Row | null>(READ_MOST, async (ids, end) => {
    const rows = (await select(ids, end)).map(rowIn)
    const found = new Map(rows.map(row => [row.id, row]))
    const answers = ids.map(id => found.get(id) ?? null)
    // A driver's mistake must not pass for the end of a session.
    if (answers.filter(row => row !== null).length !== rows.length)
      throw storeError('read', new Refusal('the driver answered for another key'), NOT_APPLIED)
    return answers
  })
  // Each reader gets an error of its own: an application may add to it.
  const ofItsOwn = ({ outcome, message, cause }: SessionStoreError): never => {
    throw new SessionStoreError('read', outcome, message, { cause })
  }
  return (key: string, end: number): Promise<Row | null> => reads.read(key, end).catch(ofItsOwn)
}

/** The row whose cells these are: as text, or parsed by mysql2 if the server is MySQL. */
function rowIn({ cells }: Row): Row {
  try {
    const parsed = typeof cells === 'string' ? JSON.parse(cells) : cells
    if (Array.isArray(parsed)) return rowOf(parsed)
  } catch {
    // Not its cause: the message repeats the text.
  }
  throw storeError('read', new Refusal('the driver gave no row of the statement'), NOT_APPLIED)
}
