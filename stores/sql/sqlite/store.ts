import type { ReadAnswer, StoreCall } from '../../../src/contract/store.ts'
import { checkOptions } from '../../../src/text/check-options.ts'
import { namesOf, optionsOf, type SqlStoreOptions } from '../options.ts'
import { endOf } from '../retry.ts'
import { isKey } from '../rows.ts'
import type { Steps, Values } from '../statement.ts'
import { type Ended, nextTurn, type PendingWrite, type Swept } from '../store.ts'
import { printed } from '../tables.ts'
import { TransactionStore } from '../transaction-store.ts'
import { checkSqlite, type SqliteDatabase } from './client.ts'
import { SqliteFile } from './file.ts'
import { sqliteSchema } from './schema.ts'
import { sqliteStatements } from './statements.ts'

const OPTIONS = optionsOf('SqliteStore', {})

/** What comes before each place that a row can have in a file. */
const FIRST_PLACE = '-9223372036854775808'

/** Some rows of a count: the live sessions among them, and the place of the last. */
interface Piece {
  readonly live: number
  readonly last: string | null
}

function sqliteNames(options: SqlStoreOptions) {
  checkOptions(OPTIONS, options)
  return namesOf(options, '"')
}

/**
 * Sessions in a SQLite file, through a connection of better-sqlite3, libsql, node:sqlite or bun:sqlite that the
 * application opens and closes. Several processes may share the file; set `journal_mode = WAL`. At its first use the
 * store sets `busy_timeout` of the connection to 5 ms and waits by itself from there: SQLite's own waiting blocks the
 * event loop.
 */
export class SqliteStore extends TransactionStore {
  protected readonly names
  protected readonly database
  protected readonly statements
  protected readonly schema
  /** Fewer than at a server: the event loop and the file wait meanwhile. */
  protected override readonly batch = 250

  /** Opens and creates nothing. @throws TypeError for a connection or an option of the wrong kind. */
  constructor(database: SqliteDatabase, options: SqlStoreOptions = {}) {
    super()
    this.database = new SqliteFile(checkSqlite(database))
    this.names = sqliteNames(options)
    this.statements = sqliteStatements(this.names)
    this.schema = sqliteSchema(this.names)
  }

  /** The DDL that `migrate()` runs, for those who keep their schema in files. */
  static ddl(options: SqlStoreOptions = {}): string {
    return printed(sqliteSchema(sqliteNames(options)))
  }

  /**
   * What is stored under a key. At once: a statement to SQLite is a function call, and several in one would save nothing.
   */
  override read(key: string, { now, deadline }: StoreCall): ReadAnswer | Promise<ReadAnswer> {
    if (!isKey(key)) return null
    const end = endOf(deadline)
    try {
      const row = this.database.find(this.statements.read, key, end)
      if (!(row instanceof Promise)) return this.answerFrom(row, key, now, end)
      return row.then(came => this.answerFrom(came, key, now, end))
    } catch (error) {
      // Rejected, not thrown: a caller looks for the errors of a read in one place.
      return Promise.reject(error)
    }
  }

  /** Ends the session under a key, and the sessions that a forward there leads to; answers whether there was one. */
  override async delete(key: string, call: StoreCall): Promise<boolean> {
    // What is absent needs no lock.
    if (!isKey(key)) return false
    const found = await this.database.read('delete', endOf(call.deadline), () => this.row(key))
    return found !== null && super.delete(key, call)
  }

  /**
   * How many live sessions there are: 0.3 s for a million rows, in pieces between which the event loop runs. A session that
   * gets a new ID meanwhile may count twice.
   */
  async count({ now, deadline }: StoreCall): Promise<number> {
    const end = endOf(deadline)
    let sessions = 0
    let after: string | null = FIRST_PLACE
    while (after !== null) {
      const piece: Piece = await this.database.read('count', end, this.#countPiece(now, after))
      sessions += piece.live
      after = piece.last
      await nextTurn()
    }
    return sessions
  }

  #countPiece(now: number, after: string): () => Steps<Piece> {
    const { countPiece } = this.statements
    return function* () {
      const [live, last] = (yield [countPiece, { now, after }]).rows[0]!
      return { live: Number(live), last }
    }
  }

  protected *write({ old, options }: PendingWrite, values: Values): Steps<boolean> {
    const { forward, insert, remove } = this.statements
    if (old !== undefined) yield options.forward === undefined ? [remove, { id: old.key }] : [forward, values]
    yield [insert, values]
    return true
  }

  protected *endSome(values: Values): Steps<Ended> {
    // Asked in each piece: the excepted session may be renewed in between.
    const piece = { ...values, except: yield* this.successor(values.except), limit: this.batch }
    const [found, live] = (yield [this.statements.userPiece, piece]).rows[0]!
    if (Number(found) > 0) yield [this.statements.endUserPiece, piece]
    return { ended: Number(live), all: Number(found) < this.batch }
  }

  protected *sweepBatch(table: 'sessions' | 'users', values: Values): Steps<Swept> {
    return { removed: (yield [this.statements.sweep[table], values]).changed, last: Number(values.from) }
  }
}
