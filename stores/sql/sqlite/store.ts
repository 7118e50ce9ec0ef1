import type { StoreCall } from '../../../src/contract/store.ts'
import { checkOptions } from '../../../src/text/check-options.ts'
import { isThenable } from '../../../src/time/within.ts'
import type { Row } from '../base/engine.ts'
import { endOf, Refusal, storeError } from '../base/retry.ts'
import { isKey } from '../base/rows.ts'
import { optionsOf, type SqlStoreOptions } from '../base/schema.ts'
import { ddlText, SqlStore } from '../base/store.ts'
import { checkSqlite, type SqliteDatabase } from './driver.ts'
import { SQLITE, SqliteEngine } from './engine.ts'

const OPTIONS = optionsOf('SqliteStore', {})

/**
 * Sessions in a SQLite file, through a connection of better-sqlite3, libsql, node:sqlite or bun:sqlite that the
 * application opens and closes. Several processes may share the file; set `journal_mode = WAL`. At its first use the
 * store sets the connection's `busy_timeout` to 5 ms and waits by itself from there, because SQLite's own waiting blocks
 * the event loop.
 */
export class SqliteStore extends SqlStore {
  declare protected readonly engine: SqliteEngine
  /** Fewer than at a server: the event loop and the file wait meanwhile. */
  protected override readonly batch = 250

  /**
   * Opens and creates nothing.
   * @throws TypeError for a connection or an option of the wrong kind
   * @example
   * const store = new SqliteStore(new Database('sessions.db'))
   */
  constructor(database: SqliteDatabase, options: SqlStoreOptions = {}) {
    checkOptions(OPTIONS, options)
    super(new SqliteEngine(checkSqlite(database)), options)
  }

  /** The DDL that `migrate()` runs, for those who keep their schema in files. */
  static ddl(options: SqlStoreOptions = {}): string {
    checkOptions(OPTIONS, options)
    return ddlText(options, SQLITE)
  }

  // Answers at once and without a promise. A statement is a function call here, so sharing one would save nothing.
  protected readonly find = (key: string, end: number): Row | null | Promise<Row | null> => {
    try {
      const row = this.engine.first(this.texts.read, key, end)
      return isThenable(row) ? row.catch(this.#failed) : row
    } catch (error) {
      // Rejected, not thrown: a caller looks for the errors of a read in one place.
      return Promise.reject(error).catch(this.#failed)
    }
  }

  readonly #failed = (error: unknown): never => {
    throw storeError('read', error, error instanceof Refusal ? error.failure : this.engine.failureOf(error))
  }

  /** Ends the session under a key, or the one that the forwards there lead to; answers whether there was one. */
  override async delete(key: string, call: StoreCall): Promise<boolean> {
    if (!isKey(key)) return false
    // An absent session needs no write, and so no lock.
    const rows = await this.select('delete', this.texts.read, { id: key }, endOf(call.deadline))
    return rows.length > 0 && super.delete(key, call)
  }
}
