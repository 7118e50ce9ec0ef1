import { checkOptions } from '../../../src/text/check-options.ts'
import type { Row, Steps, Values } from '../base/engine.ts'
import { PoolEngine } from '../base/pool.ts'
import { fromRow } from '../base/rows.ts'
import { optionsOf, type SqlStoreOptions } from '../base/schema.ts'
import { sharedFind } from '../base/shared-find.ts'
import { ddlText, type Ended, type Pending, SqlStore, type TouchValues } from '../base/store.ts'
import { checkMysqlPool, DUPLICATE, type MysqlPool } from './client.ts'
import { MYSQL, MysqlDriver } from './driver.ts'
import { mysqlStatements, READ_SIZES } from './statements.ts'

const OPTIONS = optionsOf('MysqlStore', {})

/**
 * Sessions in MySQL 8 or MariaDB 10.5 and later (InnoDB), through a pool of `mysql2/promise` or of `mysql2` that the
 * application makes and closes. The connections speak utf8mb4, mysql2's default.
 */
export class MysqlStore extends SqlStore {
  protected override readonly texts = mysqlStatements(this.names)
  protected readonly find = sharedFind((keys, end) => this.#rows(keys, end))

  /**
   * Opens and creates nothing.
   * @throws TypeError for a pool or an option of the wrong kind
   * @example
   * const store = new MysqlStore(mysql.createPool('mysql://app@localhost/app'))
   */
  constructor(pool: MysqlPool, options: SqlStoreOptions = {}) {
    checkOptions(OPTIONS, options)
    super(new PoolEngine(new MysqlDriver(checkMysqlPool(pool))), options)
  }

  /** The DDL that `migrate()` runs, for those who keep their schema in files. */
  static ddl(options: SqlStoreOptions = {}): string {
    checkOptions(OPTIONS, options)
    return ddlText(options, MYSQL)
  }

  #rows(keys: readonly string[], end: number): Promise<readonly Row[]> {
    if (keys.length === 1) return this.select('read', this.texts.readOne, { id: keys[0]! }, end)
    const at = READ_SIZES.findIndex(size => size >= keys.length)
    // Fills up with the last key: lists of any length would need a prepared statement for each length.
    const placeholders = Array.from({ length: READ_SIZES[at]! }, (_, i) => [`k${i}`, keys[i] ?? keys.at(-1)!])
    return this.select('read', this.texts.readMany[at]!, Object.fromEntries(placeholders), end)
  }

  protected override *write(pending: Pending): Steps<boolean> {
    for (let isAgain = false; ; isAgain = true) {
      try {
        if (yield* super.write(pending)) return true
      } catch (error) {
        if ((error as { errno?: unknown } | null)?.errno === DUPLICATE) return false
        throw error
      }
      // A user's first login: there was no row to lock.
      if (isAgain || pending.record.userId === null) return false
      if ((yield [this.texts.insertUser, pending.values]).changed === 0) return false
    }
  }

  // MySQL counts changed rows (without FOUND_ROWS), and a second touch of the same instant changes nothing.
  protected override *slide(values: TouchValues): Steps<'touched' | 'gone'> {
    if ((yield* super.slide(values)) === 'touched') return 'touched'
    const row = (yield [this.texts.read, values]).rows[0]
    const found = row === undefined ? null : fromRow(row, values.now)
    // A record with an earlier `seenAt` was made after the statement, which would have changed it.
    return found !== null && 'key' in found && found.seenAt >= values.seenAt ? 'touched' : 'gone'
  }

  protected override *endSome(values: Values): Steps<Ended> {
    // Follows forwards under the lock: the excepted session may have got a new ID before.
    let except = values.except as string
    for (let row: Row | undefined; ; except = row.moved_to as string) {
      row = except === '' ? undefined : (yield [this.texts.read, { id: except }]).rows[0]
      if (row === undefined || row.moved_to === null) break
    }
    const rest = { ...values, except }
    const { changed } = yield [this.texts.endUser, rest]
    if (changed === this.batch) return { sessions: changed, isLast: false }
    return { sessions: changed, isLast: (yield [this.texts.endRest, rest]).changed < this.batch }
  }
}
