import type { StoreOperation } from '../../../src/contract/errors.ts'
import type { Cell } from '../rows.ts'
import { followNow, type Statement, type Steps } from '../statement.ts'
import type { TransactionDatabase } from '../transaction-store.ts'
import { SqliteConnection, type SqliteDatabase } from './client.ts'
import { Turns } from './turns.ts'

/** A SQLite file: each write is a transaction of its own, and all its steps run in one turn of the event loop. */
export class SqliteFile implements TransactionDatabase {
  readonly #connection: SqliteConnection
  // Apart, because in WAL mode no lock stops a reader.
  readonly #reads = new Turns()
  readonly #writes = new Turns()

  constructor(database: SqliteDatabase) {
    this.#connection = new SqliteConnection(database)
  }

  /** The first row of a SELECT, without a promise where no lock is in the way. */
  find(statement: Statement, key: string, end: number): Cell[] | null | Promise<Cell[] | null> {
    return this.#reads.run('read', end, () => this.#connection.first(statement, key))
  }

  async read<T>(operation: StoreOperation, end: number, steps: () => Steps<T>): Promise<T> {
    return this.#reads.run(operation, end, () => followNow(steps(), this.#connection.run))
  }

  async write<T>(operation: StoreOperation, end: number, steps: () => Steps<T>): Promise<T> {
    const work = () => followNow(steps(), this.#connection.run)
    return this.#writes.run(operation, end, () => this.#connection.transaction(work))
  }

  transaction<T>(operation: StoreOperation, end: number, steps: () => Steps<T>): Promise<T> {
    return this.write(operation, end, steps)
  }
}
