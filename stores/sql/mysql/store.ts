import { checkOptions } from '../../../src/text/check-options.ts'
import { namesOf, optionsOf, type SqlStoreOptions } from '../options.ts'
import { ServerStore } from '../server-store.ts'
import type { Statement, Steps, Value, Values } from '../statement.ts'
import { type Ended, type PendingWrite, SWEEP_BATCH, type Swept } from '../store.ts'
import { printed } from '../tables.ts'
import { checkMysqlPool, MysqlConnections, type MysqlPool } from './client.ts'
import { mysqlSchema } from './schema.ts'
import { mysqlStatements, READ_SIZES } from './statements.ts'

const OPTIONS = optionsOf('MysqlStore', {})

function mysqlNames(options: SqlStoreOptions) {
  checkOptions(OPTIONS, options)
  return namesOf(options, '`')
}

/**
 * Sessions in MySQL 8 or MariaDB 10.5 and later (InnoDB), through a pool of `mysql2/promise` or of `mysql2` that the
 * application makes and closes. The connections speak utf8mb4, mysql2's default.
 */
export class MysqlStore extends ServerStore {
  protected readonly names
  protected readonly database
  protected readonly statements
  protected readonly schema

  /** Opens and creates nothing. @throws TypeError for a pool or an option of the wrong kind. */
  constructor(pool: MysqlPool, options: SqlStoreOptions = {}) {
    super()
    this.names = mysqlNames(options)
    const bytes = this.names.userIds === 'string' ? ['tenant', 'userId'] : ['tenant']
    this.database = new MysqlConnections(checkMysqlPool(pool), bytes, this.names.plain.sessions)
    this.statements = mysqlStatements(this.names, this.batch)
    this.schema = mysqlSchema(this.names)
  }

  /** The DDL that `migrate()` runs, for those who keep their schema in files. */
  static ddl(options: SqlStoreOptions = {}): string {
    return printed(mysqlSchema(mysqlNames(options)))
  }

  // The last key again in the places that are left: a list of any length would be a statement to prepare for each length.
  protected selectEach(keys: readonly string[]): readonly [Statement, Value[]] {
    const at = READ_SIZES.findIndex(size => size >= keys.length)
    const values = [...keys]
    while (values.length < READ_SIZES[at]!) values.push(keys.at(-1)!)
    return [this.statements.readEach[at]!, values]
  }

  protected override *write(pending: PendingWrite, values: Values): Steps<boolean> {
    if (yield* super.write(pending, values)) return true
    // A user's first login: there was no row to lock.
    if (pending.record.userId === null || (yield [this.statements.insertUser, values]).changed === 0) return false
    return yield* super.write(pending, values)
  }

  protected override *lock(pending: PendingWrite): Steps<void> {
    yield* super.lock(pending)
    if (pending.record.parent !== null) yield [this.statements.lockParent, pending.values]
  }

  protected *endSome(values: Values): Steps<Ended> {
    // Looked for under the lock: the excepted session may have been replaced before.
    const rest = { ...values, except: yield* this.successor(values.except) }
    const { changed } = yield [this.statements.endUser, rest]
    if (changed === this.batch) return { ended: changed, all: false }
    return { ended: changed, all: (yield [this.statements.endRest, rest]).changed < this.batch }
  }

  protected *sweepBatch(table: 'sessions' | 'users', { now, from, limit }: Values): Steps<Swept> {
    const { find, remove } = this.statements.sweep[table]
    const found = (yield [find, { now: now!, from: from! }]).rows.slice(0, Number(limit))
    if (found.length === 0) return { removed: 0, last: Number(from) }
    const last = Number(found.at(-1)!.at(-1))
    const values: Record<string, string | number> = { now: Number(now) }
    // Always as many keys as the statement has places, so that it is prepared once.
    for (let i = 0; i < SWEEP_BATCH; i++)
      for (const [column, cell] of found[Math.min(i, found.length - 1)]!.slice(0, -1).entries())
        values[`k${column}n${i}`] = cell
    return { removed: (yield [remove, values]).changed, last }
  }
}
