import type { StoreOperation } from '../../../src/contract/errors.ts'
import type { ReadAnswer, ReplaceResult, StoreCall } from '../../../src/contract/store.ts'
import type { OptionPlace } from '../../../src/text/check-options.ts'
import { type Names, namesOf, optionsOf, type SqlStoreOptions } from '../options.ts'
import { endOf } from '../retry.ts'
import { isKey } from '../rows.ts'
import { sqliteSchema } from '../sqlite/schema.ts'
import { followNow, plain, type Statement, type Steps, type Values } from '../statement.ts'
import { type Ended, isLimited, type PendingWrite, reasonIn, SqlStore, type Swept, withinLimit } from '../store.ts'
import { printed, type Schema } from '../tables.ts'
import { answer } from '../verdict.ts'
import { Batches, type RemoteSqlite, type Step, unfit } from './batches.ts'
import { remoteStatements } from './statements.ts'

/** Options of the stores for SQLite on a network. Such a database has one schema, so there is none to choose. */
export type RemoteSqliteOptions = Pick<SqlStoreOptions, 'table' | 'userIds'>

/** What such a store takes. */
export function remoteOptions(where: string): OptionPlace<RemoteSqliteOptions> {
  const { rules, hints } = optionsOf(where, {})
  const { table, userIds } = rules
  return { where, rules: { table, userIds }, hints: { ...hints, schema: 'the database has one schema' } }
}

/** The DDL of the tables. */
export const remoteSchema = (options: RemoteSqliteOptions) => printed(sqliteSchema(namesOf(options, '"')))

/**
 * What the stores for SQLite on a network have in common: each write is one batch, one round trip, committed as a whole, and
 * refused by the database where it comes after its deadline.
 */
export abstract class RemoteSqliteStore extends SqlStore {
  protected readonly names: Names
  protected readonly database: Batches
  protected readonly statements: ReturnType<typeof remoteStatements>
  protected readonly schema: Schema
  protected override readonly batch = 250

  protected constructor(remote: RemoteSqlite, options: RemoteSqliteOptions) {
    super()
    this.database = new Batches(remote)
    this.names = namesOf(options, '"')
    this.statements = remoteStatements(this.names)
    this.schema = sqliteSchema(this.names)
  }

  /** What is stored under a key: one statement, by the primary key. */
  async read(key: string, { now, deadline }: StoreCall): Promise<ReadAnswer> {
    if (!isKey(key)) return null
    const end = endOf(deadline)
    const row = await this.database.read('read', end, () => this.row(key))
    return this.answerFrom(row, key, now, end)
  }

  /** The record is read in the same batch: where nothing was written, no second round trip tells why. */
  protected override orElse<T>(operation: StoreOperation, end: number, steps: () => Steps<T>, key: string): Promise<T> {
    const first = steps().next()
    if (first.done === true) return Promise.resolve(first.value)
    const pair = [first.value, [this.statements.read, { id: key }] as const]
    return this.database.together(operation, end, pair, outcomes => {
      let next = 0
      return followNow(steps(), () => outcomes[next++]!)
    })
  }

  /** Ends the session under a key, or the one that a forward there leads to; answers whether there was one. */
  override async delete(key: string, { deadline }: StoreCall): Promise<boolean> {
    if (!isKey(key)) return false
    const { ending, end } = this.statements
    const steps = stepsOf([ending, end], { id: key })
    return this.database.together('delete', endOf(deadline), steps, ([sessions]) => Number(sessions!.rows[0]?.[0]) > 0)
  }

  /** How many live sessions there are, by one look at the whole table. */
  count({ now, deadline }: StoreCall): Promise<number> {
    return this.database.read('count', endOf(deadline), () => this.#count(now))
  }

  *#count(now: number): Steps<number> {
    return Number((yield [this.statements.count, { now }]).rows[0]?.[0])
  }

  protected createTables(end: number): Promise<void> {
    const ddl = this.schema.tables.flatMap(table => this.schema.ddl(table))
    return this.database.together('create', end, stepsOf(ddl.map(plain), {}), () => undefined)
  }

  protected make(operation: StoreOperation, pending: PendingWrite, end: number): Promise<ReplaceResult> {
    const { facts, oldest, insert, endOldest, forward, removeOld, settle } = this.statements
    const { old, options } = pending
    const limit = isLimited(pending) ? options.limit : undefined
    const refuseAt = limit?.onLimit === 'refuse' ? limit.max : null
    const values = { ...pending.values, refuseAt, max: limit?.max ?? 0 }
    const looks = limit === undefined ? [facts] : [facts, oldest]
    const writes = [insert]
    if (limit?.onLimit === 'end-oldest') writes.push(endOldest)
    if (old !== undefined) writes.push(options.forward === undefined ? removeOld : forward)
    const steps = stepsOf([...looks, ...writes, settle], values)
    return this.database.together(operation, end, steps, outcomes => {
      const reason = reasonIn(pending, outcomes[0]!)
      const others = limit === undefined ? [] : outcomes[1]!.rows.map(([id]) => String(id))
      const ended = reason === null ? withinLimit(limit, others) : null
      const isMade = outcomes[looks.length]!.changed === 1
      // Else a session could be live that its caller takes for refused, or the reverse.
      if (isMade !== (ended !== null)) throw unfit('contradicts itself within one batch')
      return ended === null ? answer(reason ?? 'limit') : { outcome: 'created', ended }
    })
  }

  protected endPiece(values: Values, end: number): Promise<Ended> {
    const { lockUser, userPiece, endUserPiece } = this.statements
    const steps = stepsOf([lockUser, userPiece, endUserPiece], { ...values, limit: this.batch })
    return this.database.together('deleteUser', end, steps, outcomes => {
      const [found, live] = outcomes[1]!.rows[0]!
      return { ended: Number(live), all: Number(found) < this.batch }
    })
  }

  protected *sweepBatch(table: 'sessions' | 'users', values: Values): Steps<Swept> {
    return { removed: (yield [this.statements.sweep[table], values]).changed, last: Number(values.from) }
  }
}

const stepsOf = (statements: readonly Statement[], values: Values): Step[] =>
  statements.map(statement => [statement, values])
