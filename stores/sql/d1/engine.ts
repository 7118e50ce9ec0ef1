// Cloudflare D1 through the binding of a Worker: SQLite on a network. Statements that belong together are one batch.
import { quote } from '../../../src/text/quote.ts'
import {
  bind,
  compile,
  type Engine,
  follow,
  type Mode,
  type Outcome,
  type Row,
  type Steps,
  type Values,
} from '../base/engine.ts'
import { answerBy, type Failure, NOT_MIGRATED, Refusal, TooLate } from '../base/retry.ts'
import { has } from '../sqlite/driver.ts'
import { SQLITE } from '../sqlite/engine.ts'

/** A prepared statement of D1. */
export interface D1Query {
  // biome-ignore lint/suspicious/noExplicitAny: D1 has its own type of values
  bind(...values: any[]): unknown
}
/** D1's answer to one statement of a batch. */
export interface D1Answer {
  readonly results: unknown[]
  readonly meta: { readonly changes?: unknown }
}
/** The part of a D1 database that the store uses: the binding that a Worker finds in its `env`. */
export interface D1Client {
  prepare(sql: string): D1Query
  // biome-ignore lint/suspicious/noExplicitAny: D1 has its own class of statements
  batch(statements: any[]): Promise<D1Answer[]>
}

// D1 has no codes: https://developers.cloudflare.com/d1/observability/debug-d1/ lists its messages.
const REFUSED = /SQLITE_(?!IOERR|FULL)[A-Z]|D1_(?:TYPE|COLUMN|EXEC)_ERROR|D1_ERROR: No SQL/
const BUSY = /SQLITE_(?:BUSY|LOCKED)/
/** Its queue was full: the statement did not run, and a retry would keep the queue full. */
const OVERLOADED = /D1 DB is overloaded\. (?:Too many|Requests)/

function failureOf(error: unknown): Failure {
  const text = error instanceof Error ? error.message : String(error)
  if (/no such (table|column)|has no column/.test(text)) return NOT_MIGRATED
  const isApart = REFUSED.test(text) || OVERLOADED.test(text)
  return { outcome: isApart ? 'not-applied' : 'unknown', retry: BUSY.test(text) }
}

/** The error for a client that is not D1. It may have written. */
const unfit = (what: string) =>
  new Refusal(
    `the driver is not that of D1: ${what}`,
    { outcome: 'unknown' },
    new TypeError(`not a D1 database: ${what}`),
  )

export type Step = readonly [text: string, values: Values]

export class D1Engine implements Engine {
  readonly dialect = { ...SQLITE, isRemote: true }
  readonly failureOf = failureOf
  readonly #client: D1Client

  constructor(client: D1Client) {
    this.#client = client
  }

  /** Commits each step by itself, in a request of its own. Use `batch` for steps that must be committed together. */
  run<T>(_: Mode, end: number, steps: () => Steps<T>): Promise<T> {
    return follow(steps(), async (text, values) => (await this.batch([[text, values]], end))[0]!)
  }

  async select(text: string, values: Values, end: number): Promise<readonly Row[]> {
    return (await this.batch([[text, values]], end))[0]!.rows
  }

  /** Statements that are committed as a whole, in one round trip. */
  async batch(steps: readonly Step[], end: number): Promise<readonly Outcome[]> {
    if (performance.now() >= end) throw new TooLate()
    const queries = steps.map(([text, values]) => {
      const compiled = compile(text, '?')
      return this.#client.prepare(compiled.text).bind(...bind(compiled, values))
    })
    const late = () => new Refusal('the database did not answer in time', { outcome: 'unknown' })
    const answers = await answerBy<D1Answer[]>(end, (...to) => this.#client.batch(queries).then(...to), late)
    if (!Array.isArray(answers) || answers.length !== queries.length)
      throw unfit('its batch() does not answer each statement')
    return answers.map(({ results, meta }) => {
      if (!Array.isArray(results)) throw unfit('its batch() gives no rows')
      return { rows: results as Row[], changed: Number(meta?.changes ?? 0) }
    })
  }
}

const EXPECTED = 'D1Store expects a D1 database: the binding of a Worker, env.DB, with prepare() and batch()'
const isD1 = (value: unknown) => has(value, 'prepare') && has(value, 'batch')

/** Why this is no D1 database; `null` if it looks like one. */
function fault(given: unknown): string | null {
  if (given === undefined) return 'got undefined: does wrangler.json name the binding under d1_databases?'
  if (typeof given === 'string') return `got ${quote(given)}: pass the binding itself`
  if (has(given, 'then')) return 'got a promise: await it'
  // Its reads may be answered by a replica that does not know of a logout yet.
  if (has(given, 'getBookmark'))
    return 'got the result of withSession(), whose reads may be old: pass the binding itself'
  if (has(given, 'executeMultiple')) return 'got the client of @libsql/client: see the page on D1'
  if (isD1(given)) return null
  if (has(given, 'prepare') && has(given, 'exec')) return 'got a connection to a SQLite file: pass it to SqliteStore'
  const inside = ['$client', 'DB', 'db'].find(name => isD1((given as Record<string, unknown> | null)?.[name]))
  return inside === undefined ? `got ${quote(given)}` : `got an object around one: pass its ${inside}`
}

/** Checks that this is a D1 database. @throws TypeError that says what to pass instead */
export function checkD1(given: D1Client): D1Client {
  const what = fault(given)
  if (what !== null) throw new TypeError(`${EXPECTED}; ${what}`)
  return given
}
