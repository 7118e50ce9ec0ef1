import type { StoreOperation } from '../../src/contract/errors.ts'
import type { ReplaceResult } from '../../src/contract/store.ts'
import { AT, type Cell, isKey, type Row } from './rows.ts'
import type { Steps, Values } from './statement.ts'
import {
  changedMeanwhile,
  type Database,
  type Ended,
  isLimited,
  type PendingWrite,
  reasonIn,
  SqlStore,
  withinLimit,
} from './store.ts'
import { migrate } from './tables.ts'
import { answer } from './verdict.ts'

/** A database with transactions that wait for an answer in the middle. */
export interface TransactionDatabase extends Database {
  /** Steps that are committed together. `inTime`: never after `end`, because they make a session live. */
  transaction<T>(operation: StoreOperation, end: number, steps: () => Steps<T>, inTime: boolean): Promise<T>
}

/** What the stores of databases with such transactions have in common. */
export abstract class TransactionStore extends SqlStore {
  protected abstract override readonly database: TransactionDatabase

  /** Writes what makes the session live; false where something stood in the way. */
  protected abstract write(pending: PendingWrite, values: Values): Steps<boolean>
  /** Ends some of a user's records. The user's row is locked: no session of this user becomes live meanwhile. */
  protected abstract endSome(values: Values): Steps<Ended>

  protected createTables(end: number): Promise<void> {
    return this.database.transaction('create', end, () => migrate(this.schema, this.names), false)
  }

  protected endPiece(values: Values, end: number): Promise<Ended> {
    return this.database.transaction('deleteUser', end, () => this.#endPiece(values), false)
  }

  *#endPiece(values: Values): Steps<Ended> {
    yield [this.statements.lockUser, values]
    return yield* this.endSome(values)
  }

  /** Where the forwards from a key lead. A circle ends the walk. */
  protected *successor(key: Cell): Steps<string> {
    const seen = new Set<string>()
    for (let id = key; isKey(id) && !seen.has(id); ) {
      seen.add(id)
      const row: Row | null = yield* this.row(id)
      id = row?.[AT.moved_to]
    }
    return [...seen].at(-1) ?? ''
  }

  protected make(operation: StoreOperation, pending: PendingWrite, end: number): Promise<ReplaceResult> {
    return this.database.transaction(operation, end, () => this.#decide(pending), true)
  }

  /** Locks what the verdict depends on. SQLite needs nothing: its writers come one after the other. */
  protected *lock(_: PendingWrite): Steps<void> {}

  /** Why nothing was written; `null` where nothing stands in the way. */
  protected *reason(pending: PendingWrite): Steps<ReplaceResult['outcome'] | null> {
    return reasonIn(pending, yield [this.statements.facts, pending.values])
  }

  // The user's sessions are counted in a statement after that of the lock: a statement that waited for a lock would count
  // by its older snapshot.
  *#decide(pending: PendingWrite): Steps<ReplaceResult> {
    const { options, values } = pending
    yield* this.lock(pending)
    const reason = yield* this.reason(pending)
    if (reason !== null) return answer(reason)
    const others = isLimited(pending) ? (yield [this.statements.oldest, values]).rows.map(([id]) => id) : []
    const excess = withinLimit(options.limit, others)
    if (excess === null) return answer('limit')
    // Rolled back; the next attempt sees what stood in the way. The parent is locked by now.
    if (!(yield* this.write(pending, { ...values, checksParent: 0 }))) throw changedMeanwhile()
    return { outcome: 'created', ended: yield* this.endEach(excess) }
  }
}
