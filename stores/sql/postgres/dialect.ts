// PostgreSQL's SQL and errors, for all drivers.
import { createHash } from 'node:crypto'
import { type Compiled, compile, type Dialect } from '../base/engine.ts'
import { type Failure, NOT_APPLIED, NOT_MIGRATED, READ_ONLY } from '../base/retry.ts'

const epoch = (clock: string) => `(extract(epoch FROM ${clock}) * 1000)::bigint`
const BY_BYTES = 'text COLLATE "C"'

export const DIALECT: Dialect = {
  quote: '"',
  greatest: 'GREATEST',
  least: 'LEAST',
  same: 'IS NOT DISTINCT FROM',
  clock: epoch('clock_timestamp()'),
  // clock_timestamp() may differ from row to row: an index would be read to its end.
  startClock: epoch('statement_timestamp()'),
  locks: true,
  isRemote: true,
  types: { key: BY_BYTES, word: 'text', id: BY_BYTES, name: 'text', data: 'text', integer: 'bigint' },
  tableOptions: '',
  partialIndexes: true,
  columnsFound: `SELECT a.attname AS name, (a.attnotnull AND NOT a.atthasdef AND a.attidentity = '')::int AS required,
      format_type(a.atttypid, a.atttypmod)
        || CASE WHEN c.collname <> 'default' THEN ' COLLATE "' || c.collname || '"' ELSE '' END AS type
    FROM pg_attribute a LEFT JOIN pg_collation c ON c.oid = a.attcollation
    WHERE a.attrelid = to_regclass(COALESCE(quote_ident(:schema) || '.', '') || quote_ident(:table))
      AND a.attnum > 0 AND NOT a.attisdropped`,
  // SQL_ASCII keeps all bytes as they come.
  encodingFault: `SELECT CASE
      WHEN current_setting('server_encoding') NOT IN ('UTF8', 'SQL_ASCII') THEN 'the encoding of the database is '
        || current_setting('server_encoding') || ', which has no place for every name: CREATE DATABASE '
        || quote_ident(current_database() || '_utf8') || ' ENCODING ''UTF8'' TEMPLATE template0'
      WHEN upper(current_setting('client_encoding')) <> 'UTF8' THEN 'client_encoding is '
        || current_setting('client_encoding') || ', and pg and postgres speak UTF8: SET client_encoding = ''UTF8'''
    END AS fault`,
  // CREATE ... IF NOT EXISTS by two at once ends in a unique violation of the catalogue.
  alone: `SELECT pg_advisory_xact_lock(hashtextextended('coatcheck', 0))`,
}

export const ISOLATION = 'ISOLATION LEVEL READ COMMITTED'
/** The server ends a transaction that runs or idles longer, so no lock outlives its caller for long. */
export const bounds = (ms: number) =>
  `SET LOCAL statement_timeout = ${ms}; SET LOCAL idle_in_transaction_session_timeout = ${ms}`

/** The code of a server's error (https://www.postgresql.org/docs/current/errcodes-appendix.html); `null` for a driver's. */
export function sqlState(error: unknown): string | null {
  const { code, severity } = (error ?? {}) as { code?: unknown; severity?: unknown }
  return typeof code === 'string' && severity !== undefined ? code : null
}

/** A server behind a pooler that shares connections does not know the statement, or knows it already. */
const NOT_PREPARED = new Set(['26000', '42P05'])
/** Nothing was written, and the same may succeed: serialization, deadlock, a key that was taken meanwhile, CockroachDB's. */
const AGAIN = new Set(['40001', '40P01', '23505', 'CR000'])
/** Nothing was written, and the same may succeed on another connection: a transaction of the application is open on this one. */
const ELSEWHERE = new Set(['25001', '25P02'])
/** A table, a column, a schema or a type is not what the statement expects. */
const FOREIGN = new Set(['42P01', '42703', '42804', '42883', '3F000', '23502', '22001'])

/** The meaning of an error. `outcome` is unknown if the connection is lost: the answer may have been lost with it. */
export function failureOf(error: unknown): Failure {
  const state = sqlState(error)
  // Classes 08 and 57P end the connection.
  if (state === null || state.startsWith('08') || state.startsWith('57P') || state === '40003')
    return { outcome: 'unknown', retry: false, destroy: true }
  // A statement that was prepared before an ALTER: in all languages the routine says so.
  const isOutdated = state === '0A000' && (error as { routine?: unknown }).routine === 'RevalidateCachedQuery'
  if (ELSEWHERE.has(state) || isOutdated) return { ...NOT_APPLIED, retry: true, destroy: true }
  if (state === '25006') return READ_ONLY
  if (FOREIGN.has(state)) return NOT_MIGRATED
  return { ...NOT_APPLIED, retry: AGAIN.has(state) || NOT_PREPARED.has(state) }
}

/** Compiles statements, and says whether they are prepared under a name. */
export class Statements {
  readonly #known = new Map<string, Compiled & { readonly name: string }>()
  #prepare: boolean

  constructor(prepare: boolean) {
    this.#prepare = prepare
  }

  /** `name` is '' for a statement that is not prepared. */
  compile(sql: string): Compiled & { readonly name: string } {
    const known = this.#known.get(sql)
    if (known !== undefined) return this.#prepare ? known : { ...known, name: '' }
    const compiled = compile(sql, '$')
    // DDL, BEGIN and COMMIT: BEGIN differs each time.
    if (compiled.order.length === 0) return { ...compiled, name: '' }
    // The name is a hash of the text, so behind a pooler that shares connections one name never means two texts.
    const name = `coatcheck_${createHash('sha256').update(compiled.text).digest('hex').slice(0, 20)}`
    this.#known.set(sql, { ...compiled, name })
    return this.compile(sql)
  }

  /** Prepares nothing any more if this error says that prepared statements do not work here. */
  learn(error: unknown): void {
    if (NOT_PREPARED.has(sqlState(error) ?? '')) this.#prepare = false
  }
}
