// What the server says and is told, whatever the driver.
import type { Fault } from '../connections.ts'
import { compile } from '../statement.ts'

export const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED'

/** The server's clock. */
export const GREETING = compile('$', 'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint')

/** What a server says that does not know a prepared statement, or knows it already. */
export const NOT_PREPARED = new Set(['26000', '42P05'])

const FAULTS: Readonly<Record<string, Fault>> = {
  '40003': 'uncertain',
  '40001': 'busy',
  '40P01': 'busy',
  CR000: 'busy',
  // A transaction that was left open, or one that has failed.
  '25001': 'unusable',
  '25P02': 'unusable',
  '25006': 'wrong-server',
  // What set_config says to a time that is over: a negative one.
  '22023': 'late',
  '23505': 'duplicate',
  '42P01': 'foreign',
  '42703': 'foreign',
  '42804': 'foreign',
  '42883': 'foreign',
  '3F000': 'foreign',
  '23502': 'foreign',
  '22001': 'foreign',
}

/** The server's own code of an error (https://www.postgresql.org/docs/current/errcodes-appendix.html); `null` for a driver's. */
export const sqlState = (error: unknown): string | null => {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && 'severity' in (error as object) ? code : null
}

export function faultOf(error: unknown): Fault {
  const state = sqlState(error)
  // Classes 08 and 57P end the connection; the statement may have been committed before the answer was lost.
  if (state === null || state.startsWith('08') || state.startsWith('57P')) return 'lost'
  // A prepared statement of before an ALTER: in a language of the server's the message says it, the routine in all.
  if (state === '0A000' && (error as { routine?: unknown }).routine === 'RevalidateCachedQuery') return 'unusable'
  return FAULTS[state] ?? 'refused'
}
