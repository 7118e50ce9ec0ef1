import type { ReadAnswer, StoreCall } from '../../../src/contract/store.ts'
import { checkOptions } from '../../../src/text/check-options.ts'
import { quote } from '../../../src/text/quote.ts'
import { SharedReads } from '../../shared/shared-reads.ts'
import { endOf, type Failure, notBegun } from '../retry.ts'
import { isKey, type Row } from '../rows.ts'
import type { Outcome, Value } from '../statement.ts'
import { ofItsOwn, rowsOf } from '../store.ts'
import { type Query, type RemoteSqlite, unfit } from './batches.ts'
import { type RemoteSqliteOptions, RemoteSqliteStore, remoteOptions, remoteSchema } from './store.ts'

/** A statement as the store gives it to `@libsql/client`. */
export interface LibsqlQuery {
  sql: string
  // biome-ignore lint/suspicious/noExplicitAny: the client has its own type of values
  args: any[]
}
/** The part of a result of `@libsql/client` that the store reads. */
export interface LibsqlAnswer {
  // biome-ignore lint/suspicious/noExplicitAny: the client has its own type of values
  readonly rows: { readonly length: number; readonly [place: number]: any }[]
  readonly rowsAffected: number
}
/** What the store uses of a client of `@libsql/client` for a database on a network. */
export interface LibsqlClient {
  readonly protocol: string
  execute(query: LibsqlQuery): Promise<LibsqlAnswer>
  batch(queries: LibsqlQuery[], mode: 'write'): Promise<LibsqlAnswer[]>
}

/** For how many keys one SELECT asks at the most. */
const READ_MOST = 256

// What never left this process, or was refused by the server before it looked at a statement.
const NOT_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENETUNREACH',
  'EHOSTUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])
const BUSY = /^SQLITE_(?:BUSY|LOCKED)/
/** Refused before a statement was looked at: a wrong token, a database that is not there. The client has no code for it. */
const REJECTED = /HTTP status (?:401|403|404|429)/
/** Its connections are all in use. */
const THROTTLED = /HTTP status 429/
/** A lost connection says nothing of the disk either. */
const UNCLEAR = /^SQLITE_(?:IOERR|FULL)/

/** The codes of an error and of its causes; a host with several addresses has an error for each. */
function codesOf(error: unknown, depth = 0): string[] {
  const { code, cause, errors } = Object(error) as { code?: unknown; cause?: unknown; errors?: unknown }
  if (depth > 5) return []
  const inner = [cause, ...(Array.isArray(errors) ? errors : [])].flatMap(each =>
    each === undefined ? [] : codesOf(each, depth + 1),
  )
  return typeof code === 'string' ? [code, ...inner] : inner
}

/** What an error of the client says about what it sent. */
function libsqlFailure(error: unknown): Failure {
  const text = error instanceof Error ? error.message : ''
  if (REJECTED.test(text)) return { outcome: 'not-applied', retry: THROTTLED.test(text) }
  const codes = codesOf(error)
  const isApart = codes.some(code => NOT_SENT.has(code) || (/^SQL/.test(code) && !UNCLEAR.test(code)))
  return { outcome: isApart ? 'not-applied' : 'unknown', retry: codes.some(code => BUSY.test(code)) }
}

// The client would send a whole number as a float.
const sent = ({ sql, values }: Query): LibsqlQuery => ({
  sql,
  args: values.map((value: Value) => (Number.isSafeInteger(value) ? BigInt(value as number) : value)),
})

function outcomeOf(answer: LibsqlAnswer): Outcome {
  if (!Array.isArray(answer?.rows)) throw unfit('is not that of @libsql/client: it gives no rows')
  return { rows: answer.rows.map(row => Array.from(row)), changed: Number(answer.rowsAffected) }
}

function remoteLibsql(client: LibsqlClient): RemoteSqlite {
  const open = () => {
    if ((client as { closed?: unknown }).closed === true) throw notBegun('the client is closed')
    return client
  }
  return {
    read: async query => outcomeOf(await open().execute(sent(query))),
    // One request: BEGIN IMMEDIATE, each statement if the one before it succeeded, COMMIT, else ROLLBACK.
    batch: async queries => {
      const answers = await open().batch(queries.map(sent), 'write')
      if (!Array.isArray(answers)) throw unfit('is not that of @libsql/client: its batch() gives no list')
      return answers.map(outcomeOf)
    },
    failureOf: libsqlFailure,
  }
}

const EXPECTED =
  'LibsqlStore expects a client of @libsql/client for a database on a network: createClient() with a URL of libsql:, https: or http:'

const has = (value: unknown, name: string) =>
  typeof (value as Record<string, unknown> | null | undefined)?.[name] === 'function'

const isClient = (value: unknown) => has(value, 'execute') && has(value, 'batch') && has(value, 'executeMultiple')

/** What is wrong with something that is no such client; `null` for what looks like one. */
function fault(given: unknown): string | null {
  if (typeof given === 'string') return `got ${quote(given)}: pass createClient({ url, authToken })`
  if (has(given, 'then')) return 'got a promise: await it'
  if (isClient(given)) {
    const { protocol } = given as { protocol?: unknown }
    if (protocol === 'http') return null
    if (protocol === 'ws') return 'got one that speaks WebSocket: write libsql: or https: for wss:, http: for ws:'
    // Its statements stay open at a lock, and what it writes then is answered and not committed. A replica reads late.
    return "got one that reads a file: pass new Database('sessions.db') of the package libsql to SqliteStore"
  }
  if (has(given, 'commit') && has(given, 'rollback')) return 'got a transaction: pass the client itself'
  if (has(given, 'prepare') && has(given, 'batch')) return 'got a D1 database: pass it to D1Store'
  if (has(given, 'prepare') && has(given, 'exec')) return 'got a connection to a SQLite file: pass it to SqliteStore'
  const inside = ['$client', 'client'].find(name => isClient((given as Record<string, unknown> | null)?.[name]))
  return inside === undefined ? `got ${quote(given)}` : `got an object around one: pass its ${inside}`
}

function checkLibsql(given: LibsqlClient): LibsqlClient {
  const what = fault(given)
  if (what !== null) throw new TypeError(`${EXPECTED}; ${what}`)
  return given
}

const OPTIONS = remoteOptions('LibsqlStore')

/**
 * Sessions in a libSQL database on a network (Turso, `sqld`), through a client of `@libsql/client` that the application opens
 * and closes. Each write is one batch: one round trip, committed as a whole, and refused by the database where it comes after
 * its deadline. The URL has to be that of the primary: a replica reads late.
 */
export class LibsqlStore extends RemoteSqliteStore {
  readonly #reads = new SharedReads<Row | null>(READ_MOST, (keys, end) => this.#rows(keys, end))

  /** Asks and creates nothing. @throws TypeError for a client or an option of the wrong kind. */
  constructor(client: LibsqlClient, options: RemoteSqliteOptions = {}) {
    checkOptions(OPTIONS, options)
    super(remoteLibsql(checkLibsql(client)), options)
  }

  /** The DDL that `migrate()` runs, for those who keep their schema in files. */
  static ddl(options: RemoteSqliteOptions = {}): string {
    checkOptions(OPTIONS, options)
    return remoteSchema(options)
  }

  /** What is stored under a key. Reads of one turn of the event loop share a statement. */
  override async read(key: string, { now, deadline }: StoreCall): Promise<ReadAnswer> {
    if (!isKey(key)) return null
    const end = endOf(deadline)
    return this.answerFrom(await this.#reads.read(key, end).catch(ofItsOwn), key, now, end)
  }

  #rows(keys: readonly string[], end: number): Promise<(Row | null)[]> {
    const { read, readEach } = this.statements
    return this.database.select(
      keys.length === 1 ? [read, { id: keys[0]! }] : [readEach, { keys: JSON.stringify(keys) }],
      end,
      ({ rows }) => rowsOf(keys, rows),
    )
  }
}
