import { checkOptions } from '../../../src/text/check-options.ts'
import { quote } from '../../../src/text/quote.ts'
import type { Failure } from '../retry.ts'
import type { Outcome } from '../statement.ts'
import { type Query, type RemoteSqlite, unfit } from './batches.ts'
import { type RemoteSqliteOptions, RemoteSqliteStore, remoteOptions, remoteSchema } from './store.ts'

/** A prepared statement of D1. */
export interface D1Query {
  // biome-ignore lint/suspicious/noExplicitAny: D1 has its own type of values
  bind(...values: any[]): D1Query
}
/** What D1 answers to one statement of a batch. */
export interface D1Answer {
  readonly results: unknown[]
  readonly meta: { readonly changes?: unknown }
}
/** What the store uses of a D1 database: the binding that a Worker finds in its `env`. */
export interface D1Client {
  prepare(sql: string): D1Query
  // biome-ignore lint/suspicious/noExplicitAny: D1 has its own class of statements
  batch(statements: any[]): Promise<D1Answer[]>
}

// D1 has no codes: https://developers.cloudflare.com/d1/observability/debug-d1/ lists its messages.
const REFUSED = /SQLITE_(?!IOERR|FULL)[A-Z]|D1_(?:TYPE|COLUMN|EXEC)_ERROR|D1_ERROR: No SQL/
const BUSY = /SQLITE_(?:BUSY|LOCKED)/
/** Its queue was full, so that it did not run; more of the same would keep the queue full. */
const OVERLOADED = /D1 DB is overloaded\. (?:Too many|Requests)/

/** What an error of D1 says about the batch. */
function d1Failure(error: unknown): Failure {
  const text = error instanceof Error ? error.message : String(error)
  const isApart = REFUSED.test(text) || OVERLOADED.test(text)
  return { outcome: isApart ? 'not-applied' : 'unknown', retry: BUSY.test(text) }
}

function outcomeOf({ results, meta }: D1Answer): Outcome {
  if (!Array.isArray(results)) throw unfit('is not that of D1: its batch() gives no rows')
  // The columns of each statement have names of their own, so that the values are the cells, in their order.
  return { rows: results.map(row => Object.values(row as object)), changed: Number(meta?.changes ?? 0) }
}

function remoteD1(client: D1Client): RemoteSqlite {
  const batch = async (queries: readonly Query[]) => {
    const answers = await client.batch(queries.map(({ sql, values }) => client.prepare(sql).bind(...values)))
    if (!Array.isArray(answers)) throw unfit('is not that of D1: its batch() gives no list')
    return answers.map(outcomeOf)
  }
  const read = async (query: Query) => {
    const [outcome] = await batch([query])
    if (outcome === undefined) throw unfit('is not that of D1: its batch() has not answered a statement')
    return outcome
  }
  return { read, batch, failureOf: d1Failure }
}

const EXPECTED = 'D1Store expects a D1 database: the binding of a Worker, env.DB, with prepare() and batch()'

const has = (value: unknown, name: string) =>
  typeof (value as Record<string, unknown> | null | undefined)?.[name] === 'function'
const isD1 = (value: unknown) => has(value, 'prepare') && has(value, 'batch')

/** What is wrong with something that is no D1 database; `null` for what looks like one. */
function fault(given: unknown): string | null {
  if (given === undefined) return 'got undefined: does wrangler.json name the binding under d1_databases?'
  if (typeof given === 'string') return `got ${quote(given)}: pass the binding itself`
  if (has(given, 'then')) return 'got a promise: await it'
  // Its reads may be answered by a replica, which does not know of a logout yet.
  if (has(given, 'getBookmark')) return 'got what withSession() gives, whose reads may be old: pass the binding itself'
  if (has(given, 'executeMultiple')) return 'got the client of @libsql/client: pass it to LibsqlStore'
  if (isD1(given)) return null
  if (has(given, 'prepare') && has(given, 'exec')) return 'got a connection to a SQLite file: pass it to SqliteStore'
  const inside = ['$client', 'DB', 'db'].find(name => isD1((given as Record<string, unknown> | null)?.[name]))
  return inside === undefined ? `got ${quote(given)}` : `got an object around one: pass its ${inside}`
}

function checkD1(given: D1Client): D1Client {
  const what = fault(given)
  if (what !== null) throw new TypeError(`${EXPECTED}; ${what}`)
  return given
}

const OPTIONS = remoteOptions('D1Store')

/**
 * Sessions in Cloudflare D1, through the binding of a Worker. Each write is one batch: one round trip, committed as a whole,
 * and refused by the database where it comes after its deadline.
 *
 * Reads of several requests are not put together: on Workers what one request waits for ends with that request.
 */
export class D1Store extends RemoteSqliteStore {
  /** Asks and creates nothing. @throws TypeError for a database or an option of the wrong kind. */
  constructor(database: D1Client, options: RemoteSqliteOptions = {}) {
    checkOptions(OPTIONS, options)
    super(remoteD1(checkD1(database)), options)
  }

  /** The DDL that `migrate()` runs, for a file of `wrangler d1 migrations`. */
  static ddl(options: RemoteSqliteOptions = {}): string {
    checkOptions(OPTIONS, options)
    return remoteSchema(options)
  }
}
