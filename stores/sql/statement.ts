import { createHash } from 'node:crypto'

export type Value = string | number | null | readonly string[] | Uint8Array
export type Values = Readonly<Record<string, Value>>

/** What a statement gave: its rows as arrays, and how many rows a write met. */
export interface Outcome {
  readonly rows: any[][]
  readonly changed: number
}
/** Runs one statement, by itself or inside a transaction. */
export type Run = (statement: Statement, values: Values) => Promise<Outcome>

/** A statement with the order in which its parameters are bound. */
export interface Statement {
  /** Follows from the text: behind a pooler that shares connections, one name never means two texts. */
  readonly name: string
  readonly text: string
  readonly order: readonly string[]
  /** Whether it refuses to run after `:deadline`, an instant of the database's clock that the connection adds. */
  readonly timed?: boolean
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

/** The values of a statement's parameters, in order. */
export const bind = (statement: Statement, values: Values): Value[] =>
  statement.order.map(name => {
    const value = values[name]
    if (value === undefined) throw new Error(`no value for :${name}`)
    return value
  })
