import { createHash } from 'node:crypto'

export type Value = string | number | null | readonly string[] | Uint8Array
export type Values = Readonly<Record<string, Value>>

/** What a statement gave: its rows as arrays, and how many rows a write met. */
export interface Outcome {
  // biome-ignore lint/suspicious/noExplicitAny: cells as the driver gives them
  readonly rows: any[][]
  readonly changed: number
  /**
   * Why the server has a transaction open after it, where the driver tells: the application began one on this connection, or
   * autocommit is off. Absent where none is open.
   */
  readonly open?: 'begun' | 'autocommit off' | undefined
}

/** A statement with the order in which its parameters are bound. */
export interface Statement {
  /** Follows from the text: behind a pooler that shares connections, one name never means two texts. '' for DDL. */
  readonly name: string
  readonly text: string
  readonly order: readonly string[]
  /** Whether it refuses to run after `:deadline`, an instant of the database's clock that the connection adds. */
  readonly timed?: boolean
  /** Whether it gives one row at the most: SQLite's drivers get a single row faster. */
  readonly single?: boolean
  /** Whether no two of its columns have the same name, and no name is a number: mysql2's driver gives objects faster. */
  readonly namesColumns?: boolean
}

/** Turns `:name` into the dialect's parameters: `$1` (one per name) or `?` (one per mention). `::` is a cast. */
export function compile(style: '$' | '?', sql: string): Statement {
  const order: string[] = []
  const text = sql
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/(?<!:):([a-z][A-Za-z0-9]*)/g, (_, name: string) => {
      if (style === '?') {
        order.push(name)
        return '?'
      }
      if (!order.includes(name)) order.push(name)
      return `$${order.indexOf(name) + 1}`
    })
  const name = `coatcheck_${createHash('sha256').update(text).digest('hex').slice(0, 20)}`
  return { name, text, order, timed: order.includes('deadline') }
}

/** DDL and the statements around a transaction: they have no parameters and are not prepared. */
export const plain = (text: string): Statement => ({ name: '', text, order: [] })

/** The values of a statement's parameters, in order. */
export function bind({ order }: Statement, values: Values): Value[] {
  const bound: Value[] = []
  for (const name of order) {
    const value = values[name]
    if (value === undefined) throw new Error(`no value for :${name}`)
    bound.push(value)
  }
  return bound
}

/**
 * What a verb does: it yields a statement and is given its outcome, until it returns the verb's answer. So the same
 * steps serve a server, which answers later, and SQLite, where nothing else may run between two steps.
 */
export type Steps<T> = Generator<readonly [statement: Statement, values: Values], T, Outcome>

/** Runs steps where each statement answers later. */
export async function follow<T>(
  steps: Steps<T>,
  run: (statement: Statement, values: Values) => Promise<Outcome>,
): Promise<T> {
  let next = steps.next()
  while (next.done !== true) {
    let outcome: Outcome
    try {
      outcome = await run(next.value[0], next.value[1])
    } catch (error) {
      next = steps.throw(error)
      continue
    }
    next = steps.next(outcome)
  }
  return next.value
}

/** Runs steps where each statement answers at once. */
export function followNow<T>(steps: Steps<T>, run: (statement: Statement, values: Values) => Outcome): T {
  let next = steps.next()
  while (next.done !== true) {
    let outcome: Outcome
    try {
      outcome = run(next.value[0], next.value[1])
    } catch (error) {
      next = steps.throw(error)
      continue
    }
    next = steps.next(outcome)
  }
  return next.value
}
