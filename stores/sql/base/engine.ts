// The engine: all that the store asks of a database.
import type { Failure } from './retry.ts'

/** A row by the names of its columns. Integers come as text, number or bigint, depending on the driver. */
export type Row = Readonly<Record<string, unknown>>
export type Value = string | number | null
/** The values of a statement's parameters, by name. */
export type Values = Readonly<Record<string, Value>>

/** The result of a statement. */
export interface Outcome {
  readonly rows: readonly Row[]
  /** How many rows a write changed. */
  readonly changed: number
}

/** A method as a generator: it yields statements with their values, gets their outcomes, and returns its answer. */
export type Steps<T> = Generator<readonly [text: string, values: Values], T, Outcome>

/**
 * - `'read'`: the steps write nothing;
 * - `'each'`: each step may be committed by itself;
 * - `'together'`: all steps are committed, or none.
 */
export type Mode = 'read' | 'each' | 'together'

/** A database behind a driver. */
export interface Engine {
  readonly dialect: Dialect
  /** Runs the steps once. It gives up at `end` (on the scale of `performance.now()`). */
  run<T>(mode: Mode, end: number, steps: () => Steps<T>): T | Promise<T>
  /** Runs one SELECT without a generator, which would double the cost of a read. */
  select(text: string, values: Values, end: number): readonly Row[] | Promise<readonly Row[]>
  /** The meaning of a driver's error. */
  failureOf(error: unknown): Failure
}

/**
 * The content of a column; each database has one type for it. `key` and `word` are ASCII, `id` is any text of at most 200
 * characters; all three are compared byte by byte.
 */
export type Content = 'key' | 'word' | 'id' | 'name' | 'data' | 'integer'

/** The differences between the SQL of the databases. */
export interface Dialect {
  /** Quotes an identifier. */
  readonly quote: '"' | '`'
  readonly greatest: string
  readonly least: string
  /** Equality that treats NULL as a value. */
  readonly same: string
  /** The database's clock in epoch ms: now, and when the statement began. */
  readonly clock: string
  readonly startClock: string
  /** Whether several writers run at the same time and need row locks; if not, they wait for each other. */
  readonly locks: boolean
  /** Whether a network may deliver a statement late. Statements that make a session live then check the time. */
  readonly isRemote: boolean
  /** The type of a column, as the catalogue names it. */
  readonly types: Readonly<Record<Content, string>>
  /** The end of CREATE TABLE, after the columns. */
  readonly tableOptions: string
  /** Whether it knows partial indexes and CREATE INDEX IF NOT EXISTS; if not, CREATE TABLE lists the indexes. */
  readonly partialIndexes: boolean
  /** Whether CREATE INDEX names the schema with the index (SQLite), not with the table. */
  readonly indexesInSchema?: boolean
  /**
   * Lists the columns of `:table` in `:schema` (NULL: the connection's own): `name`, `type`, and `required` = 1 if an
   * INSERT has to name it.
   */
  readonly columnsFound: string
  /** Selects what is wrong with the encoding of the database or the connection, and the line to run, as `fault`; NULL if nothing is. */
  readonly encodingFault?: string
  /** The first statement of a migration, which waits until no other one runs. `null` if none is needed. */
  readonly alone: string | null
}

/** Runs steps on a driver that answers later. */
export async function follow<T>(steps: Steps<T>, ask: (text: string, values: Values) => Promise<Outcome>): Promise<T> {
  let next = steps.next()
  while (next.done !== true) {
    let outcome: Outcome
    try {
      outcome = await ask(next.value[0], next.value[1])
    } catch (error) {
      next = steps.throw(error)
      continue
    }
    next = steps.next(outcome)
  }
  return next.value
}

/** Runs steps on a driver that answers at once. */
export function followNow<T>(steps: Steps<T>, ask: (text: string, values: Values) => Outcome): T {
  let next = steps.next()
  while (next.done !== true) next = steps.next(ask(next.value[0], next.value[1]))
  return next.value
}

/** A statement for the driver, and the order in which its values are bound. */
export interface Compiled {
  readonly text: string
  readonly order: readonly string[]
}

/** `:name` becomes `$1`, one for each name, or `?`, one for each mention; `::` is a cast. */
export function compile(sql: string, style: '$' | '?'): Compiled {
  const order: string[] = []
  const text = sql.replace(/\s+/g, ' ').replace(/(?<!:):([a-z][A-Za-z0-9]*)/g, (_, name: string) => {
    if (style === '?' || !order.includes(name)) order.push(name)
    return style === '?' ? '?' : `$${order.indexOf(name) + 1}`
  })
  return { text, order }
}

/** The values in the order of the parameters. */
export function bind({ order }: Compiled, values: Values): Value[] {
  return order.map(name => {
    const value = values[name]
    if (value === undefined) throw new TypeError(`no value for :${name}`)
    return value
  })
}
