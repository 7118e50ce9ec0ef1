// PGlite is one connection in this process. Each statement of its own waits for those before it, and so does a
// transaction, which it begins and ends by itself.
import type { PgClient, PgPool } from './pg.ts'

// biome-ignore-start lint/suspicious/noExplicitAny: PGlite types rows by what the application asks for
/** The part of a PGlite that the store uses. */
export interface Pglite {
  query(text: string, values?: any[], options?: { parsers?: any }): Promise<{ rows: any[]; affectedRows?: number }>
  transaction(work: (tx: any) => Promise<any>): Promise<any>
}
// biome-ignore-end lint/suspicious/noExplicitAny: PGlite types rows by what the application asks for
interface Query {
  readonly text: string
  readonly values: unknown[]
}
type Answer = Parameters<PgClient['query']>[1]

/** Cells as they were written, whatever their type: bigint, text, integer, JSON, bool and numeric. */
const TEXT = Object.fromEntries([16, 20, 21, 23, 25, 114, 1043, 1700].map(type => [type, (cell: string) => cell]))
const NOTHING = { rows: [], rowCount: 0 }
const LEFT = Symbol('rolled back')

/** A PGlite as the pool of a `PostgresStore`: for tests, and for applications that embed the database. */
export function pglite(database: Pglite): PgPool {
  if (typeof database?.transaction !== 'function') throw new TypeError('pglite expects a PGlite')
  return { connect: answer => answer(null, new Lease(database)) }
}

/** Exclusive use of the only connection: statements, or one transaction. */
class Lease implements PgClient {
  readonly #database: Pglite
  #scope: Pick<Pglite, 'query'>
  /** Ends the transaction. */
  #end: ((isCommit: boolean) => void) | null = null
  #over: Promise<unknown> | null = null
  #isReleased = false

  constructor(database: Pglite) {
    this.#database = database
    this.#scope = database
  }

  query({ text, values }: Query, answer: Answer): void {
    if (text.startsWith('BEGIN')) this.#begin(answer)
    else if (text === 'COMMIT' || text === 'ROLLBACK') {
      this.#end?.(text === 'COMMIT')
      this.#over?.then(
        () => answer(null, NOTHING),
        error => (error === LEFT ? answer(null, NOTHING) : answer(error, undefined)),
      )
    } else
      this.#scope.query(text, values, { parsers: TEXT }).then(
        ({ rows, affectedRows = 0 }) => answer(null, { rows, rowCount: affectedRows }),
        error => answer(error, undefined),
      )
  }

  #begin(answer: Answer): void {
    this.#over = this.#database.transaction(
      tx =>
        new Promise<void>((commit, rollBack) => {
          // Given up while it waited for the connection.
          if (this.#isReleased) return rollBack(LEFT)
          this.#scope = tx
          this.#end = isCommit => (isCommit ? commit() : rollBack(LEFT))
          answer(null, NOTHING)
        }),
    )
    this.#over.catch(error => {
      if (this.#end === null) answer(error, undefined)
    })
  }

  release(): void {
    this.#isReleased = true
    this.#end?.(false)
  }

  on() {}
  removeListener() {}
}
