import type { StoreOperation } from '../../src/contract/errors.ts'
import type { ReadAnswer, ReplaceResult, StoreCall } from '../../src/contract/store.ts'
import { SharedReads } from '../shared/shared-reads.ts'
import type { Connections } from './connections.ts'
import { unpacked } from './packed.ts'
import { endOf } from './retry.ts'
import { isKey, type Row } from './rows.ts'
import type { Statement, Steps, Value, Values } from './statement.ts'
import type { OneStatementForms, SqlStatements } from './statements.ts'
import { changedMeanwhile, isLimited, ofItsOwn, type PendingWrite, rowsOf } from './store.ts'
import { TransactionStore } from './transaction-store.ts'
import { answer } from './verdict.ts'

/** For how many keys one SELECT asks at the most. */
export const READ_MOST = 256

/**
 * What the stores of database servers have in common: the reads of one turn of the event loop are one SELECT, and one
 * statement makes a session live, wherever one is enough.
 */
export abstract class ServerStore extends TransactionStore {
  // biome-ignore lint/suspicious/noExplicitAny: of whichever driver
  protected abstract override readonly database: Connections<any>
  protected abstract override readonly statements: SqlStatements & OneStatementForms
  readonly #forms = new Map<string, Statement>()
  readonly #reads = new SharedReads<Row | null>(READ_MOST, (keys, end) => this.#rows(keys, end))
  protected override readonly rowOf = unpacked
  protected override readonly commitsEachStep = true

  /** The SELECT of several rows, by their keys, with its values. */
  protected abstract selectEach(keys: readonly string[]): readonly [Statement, Value[]]

  /** What is stored under a key. Reads of one turn of the event loop share a statement. */
  override read(key: string, { now, deadline }: StoreCall): Promise<ReadAnswer> {
    if (!isKey(key)) return Promise.resolve(null)
    const end = endOf(deadline)
    return this.#reads.read(key, end).then(row => this.answerFrom(row, key, now, end), ofItsOwn)
  }

  #rows(keys: readonly string[], end: number): Promise<(Row | null)[]> {
    const [statement, values] = keys.length === 1 ? [this.statements.read, [...keys]] : this.selectEach(keys)
    return this.database.select(statement, values, end, ({ rows }) => rowsOf(keys, rows.map(unpacked)))
  }

  protected override async make(operation: StoreOperation, pending: PendingWrite, end: number): Promise<ReplaceResult> {
    const quick = isLimited(pending)
      ? null
      : await this.database.write(operation, end, () => this.#inOneStatement(pending))
    return quick ?? super.make(operation, pending, end)
  }

  // `null`: MySQL's statement cannot look for a parent that the old session does not have. A transaction can.
  *#inOneStatement(pending: PendingWrite): Steps<ReplaceResult | null> {
    if (yield* this.write(pending, pending.values)) return answer('created')
    const reason = yield* this.reason(pending)
    if (reason !== null) return answer(reason)
    if (pending.old === undefined || pending.record.parent === null) throw changedMeanwhile()
    return null
  }

  protected *write(pending: PendingWrite, values: Values): Steps<boolean> {
    try {
      return (yield [this.#statement(pending), values]).changed > 0
    } catch (error) {
      if (this.database.isDuplicate(error)) return false
      throw error
    }
  }

  protected override *lock({ record, values }: PendingWrite): Steps<void> {
    if (record.userId !== null) yield [this.statements.lockUser, values]
  }

  // Each of the twelve forms of create and replace is made when it is first needed.
  #statement({ record, options, old }: PendingWrite): Statement {
    const verb = old === undefined ? 'create' : 'replace'
    const form = {
      hasUser: record.userId !== null,
      checksParent: record.parent !== null,
      leavesForward: options.forward !== undefined,
    }
    const name = [verb, ...Object.values(form)].join()
    const statement = this.#forms.get(name) ?? this.statements[verb](form)
    this.#forms.set(name, statement)
    return statement
  }
}
