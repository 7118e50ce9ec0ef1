import {
  type Corrupt,
  type CreateOptions,
  type CreateResult,
  type DeleteUserOptions,
  FORWARD_LIFETIME,
  type Forward,
  type RecordChange,
  type ReplaceResult,
  type SessionRecord,
  type Store,
  type StoreCall,
} from '../../src/contract/store.ts'
import type { Names } from './options.ts'
import { type Failure, persist, Refusal, unusable } from './patience.ts'
import { fromRow, isKey, recordValues } from './rows.ts'
import type { Outcome, Run, Statement, Values } from './statement.ts'
import { splitUser, userFault } from './user.ts'
import { changeFault, type Facts, recordFault, verdict } from './verdict.ts'

/** How many rows one statement of a sweep removes: its locks are held for some milliseconds only. */
export const SWEEP_BATCH = 250
/** How long a user's row stays after the last session that it was written for, in ms: 30 days. It only saves a write. */
const USER_ROW_LIFETIME = 2_592_000_000

/** The statements whose answers are read alike in PostgreSQL and MySQL. */
export interface ServerStatements {
  readonly read: Statement
  readonly update: Statement
  readonly touch: Statement
  readonly delete: Statement
  readonly remove: Statement
  readonly facts: Statement
  readonly listUser: Statement
  readonly lockUser: Statement
}

export interface Connections {
  run(statement: Statement, values: Values, end: number): Promise<Outcome>
  transaction<T>(end: number, work: (run: Run) => Promise<T>): Promise<T>
}

/** A `create`, or a `replace` of the record under `old`, on its way to the database. */
export interface Making {
  readonly record: SessionRecord
  readonly options: CreateOptions
  readonly old: { readonly key: string; readonly version: number } | undefined
  readonly values: Values
}

/** What one transaction of a `deleteUser` did. */
export interface Ended {
  /** How many live records of kind `'session'` it ended. */
  readonly ended: number
  /** Whether nothing of the user is left. */
  readonly all: boolean
}

/** What the stores of database servers have in common: all but how a session is made live and a user's are ended. */
export abstract class ServerStore implements Store {
  protected abstract readonly names: Names
  protected abstract readonly connections: Connections
  protected abstract readonly statements: ServerStatements
  /** How many of a user's records one transaction ends: it is committed long before the caller's time is over. */
  protected readonly batch: number = 1000
  protected abstract failureOf(error: unknown): Failure
  protected abstract make(making: Making, end: number): Promise<ReplaceResult>
  /** Ends some of a user's records. The user's row is locked: nobody makes or replaces a session of this user. */
  protected abstract endSome(run: Run, values: Values): Promise<Ended>
  abstract sweep(limit: number, call: StoreCall): Promise<number>

  create(record: SessionRecord, options: CreateOptions, call: StoreCall): Promise<CreateResult> {
    return this.#make('create', record, options, call) as Promise<CreateResult>
  }

  replace(
    oldKey: string,
    oldVersion: number,
    record: SessionRecord,
    options: CreateOptions,
    call: StoreCall,
  ): Promise<ReplaceResult> {
    return this.#make('replace', record, options, call, { key: oldKey, version: oldVersion })
  }

  async read(key: string, { now, deadline }: StoreCall): Promise<SessionRecord | Forward | Corrupt | null> {
    if (!isKey(key)) return null
    return this.attempts('read', deadline, async end => {
      const found = await this.#find(key, now, end)
      if (found !== null && 'corrupt' in found) await this.connections.run(this.statements.remove, { id: key }, end)
      return found
    })
  }

  async update(
    key: string,
    version: number,
    change: RecordChange,
    { now, deadline }: StoreCall,
  ): Promise<'updated' | 'conflict' | 'gone'> {
    if (!isKey(key)) return 'gone'
    return this.attempts('update', deadline, async end => {
      const fault = changeFault(change)
      if (fault !== null) throw unusable(fault)
      const values = { id: key, version, now, ...change }
      const { changed } = await this.connections.run(this.statements.update, values, end)
      if (changed > 0) return 'updated'
      const found = await this.#find(key, now, end)
      if (found === null || !('key' in found)) return 'gone'
      return found.version === version + 1 && found.writeId === change.writeId ? 'updated' : 'conflict'
    })
  }

  async touch(
    key: string,
    seenAt: number,
    expiresAt: number,
    { now, deadline }: StoreCall,
  ): Promise<'touched' | 'gone'> {
    if (!isKey(key)) return 'gone'
    return this.attempts('touch', deadline, async end => {
      const values = { id: key, seenAt, expiresAt, now }
      const { changed } = await this.connections.run(this.statements.touch, values, end)
      if (changed > 0) return 'touched'
      // Without FOUND_ROWS, MySQL counts rows that it changed, and a second touch of one instant changes nothing.
      const found = await this.#find(key, now, end)
      return found !== null && 'key' in found ? 'touched' : 'gone'
    })
  }

  async delete(key: string, { deadline }: StoreCall): Promise<boolean> {
    if (!isKey(key)) return false
    return this.attempts('delete', deadline, async end => {
      // A hand-made circle of forwards ends the walk.
      const forwards = new Set<string>()
      let ended = false
      for (let id: unknown = key; isKey(id) && !forwards.has(id); ) {
        const { changed } = await this.connections.run(this.statements.delete, { id }, end)
        ended = changed > 0
        if (ended) break
        const { rows } = await this.connections.run(this.statements.read, { id }, end)
        if (rows[0] === undefined) break
        const movedTo = this.unpack(rows[0], id)[14]
        // Stored, and no forward: it was made while we looked, so it is deleted in another turn.
        if (movedTo === null) continue
        forwards.add(id)
        id = movedTo
      }
      // The way is forgotten after its end: who fails in between and comes again still finds it.
      for (const id of forwards) await this.connections.run(this.statements.remove, { id }, end)
      return ended
    })
  }

  // In pieces, each committed: a user with very many sessions is logged out by repeating the call, if one is too short.
  // Each piece locks the user's row, the first also raises the floor. One that finds nothing more proves under that lock
  // that no session of the user is left, so that none from before the call lives on, under whatever key. A login between
  // two pieces may be ended by the next.
  async deleteUser(userId: string, options: DeleteUserOptions, { now, deadline }: StoreCall): Promise<number> {
    let sessions = 0
    let begun = false
    return this.attempts('deleteUser', deadline, async end => {
      const user = this.user(userId)
      const values = { ...user, now, except: options.exceptKey ?? '' }
      for (;;) {
        const piece = this.connections.transaction(end, async run => {
          await run(this.statements.lockUser, { ...user, ...this.floorValues(options, now) })
          return this.endSome(run, values)
        })
        const { ended, all } = await piece.catch(error => {
          throw begun ? partly(error, this.failureOf) : error
        })
        sessions += ended
        if (all) return sessions
        begun = true
      }
    })
  }

  async listUser(userId: string, kind: SessionRecord['kind'], { now, deadline }: StoreCall): Promise<SessionRecord[]> {
    return this.attempts('listUser', deadline, async end => {
      const { rows } = await this.connections.run(this.statements.listUser, { ...this.user(userId), kind, now }, end)
      return rows
        .map(row => fromRow(row, now, this.names.userIds))
        .filter((found): found is SessionRecord => found !== null && 'key' in found)
    })
  }

  protected attempts<T>(
    operation: Parameters<typeof persist>[0],
    deadline: number | undefined,
    attempt: (end: number) => Promise<T>,
  ): Promise<T> {
    return persist(operation, deadline, this.failureOf, attempt)
  }

  protected user(userId: string) {
    const fault = userFault(userId, this.names.userIds)
    if (fault !== null) throw unusable(fault)
    return splitUser(userId)
  }

  /** A row of the `read` statement in the order of `COLUMNS`. */
  protected unpack(row: readonly unknown[], _key: string): readonly unknown[] {
    return row
  }

  /** The values for the first statement of `deleteUser`. */
  protected floorValues({ passwordVersion, floorUntil }: DeleteUserOptions, now: number): Values {
    const raises = passwordVersion !== undefined
    return {
      now,
      floor: passwordVersion ?? 0,
      floorUntil: raises ? floorUntil : 0,
      userUntil: floorUntil,
    }
  }

  /** What the tables say about a session that is to be made live. */
  protected async facts(run: Run, { values }: Making): Promise<Facts> {
    const [taken, writeId, version, parent, stale, parentLives] = (await run(this.statements.facts, values)).rows[0]!
    return {
      taken: isTrue(taken),
      writeId,
      old: version === null ? null : { version: Number(version), parent },
      stale: isTrue(stale),
      parentLives: isTrue(parentLives),
    }
  }

  /** Why nothing was written. */
  protected async reason(run: Run, making: Making): Promise<ReplaceResult['outcome'] | null> {
    return verdict(making.record, await this.facts(run, making), making.old?.version)
  }

  async #find(key: string, now: number, end: number): Promise<SessionRecord | Forward | Corrupt | null> {
    const { rows } = await this.connections.run(this.statements.read, { id: key }, end)
    return rows[0] === undefined ? null : fromRow(this.unpack(rows[0], key), now, this.names.userIds)
  }

  #make(
    operation: 'create' | 'replace',
    record: SessionRecord,
    options: CreateOptions,
    { now, deadline }: StoreCall,
    old?: Making['old'],
  ): Promise<ReplaceResult> {
    return this.attempts(operation, deadline, async end => {
      const fault = recordFault(record, this.names.userIds)
      if (fault !== null) throw unusable(fault)
      const { forward } = options
      const values: Values = {
        ...recordValues(record),
        now,
        old: old?.key ?? '',
        oldVersion: old?.version ?? 0,
        userUntil: record.absoluteExpiresAt + USER_ROW_LIFETIME,
        salt: forward?.salt ?? '',
        until: forward?.until ?? 0,
        forgetAt: Math.max(now, forward?.until ?? 0) + FORWARD_LIFETIME,
        // For the lock of a user's row that raises no floor.
        floor: 0,
        floorUntil: 0,
      }
      return this.make({ record, options, old, values }, end)
    })
  }
}

const isTrue = (cell: unknown) => cell === 't' || Number(cell) === 1

/** What came before the error was committed. */
const partly = (error: unknown, failureOf: (error: unknown) => Failure) => {
  const { retry } = error instanceof Refusal ? error.failure : failureOf(error)
  const reason = error instanceof Refusal ? error.cause : error
  return new Refusal(error instanceof Error ? error.message : String(error), { outcome: 'unknown', retry }, reason)
}

/** Whether the user's sessions have to be counted for this record. */
export const isLimited = ({ record, options }: Making) =>
  options.limit !== undefined && record.userId !== null && record.kind === 'session'

/** What stood in the way is gone by now: once more. */
export const changedMeanwhile = () => new Refusal('changed meanwhile', { outcome: 'not-applied', retry: true })

/** How the limit is met: the keys to end, or `null` to refuse. `others` are the user's live sessions, oldest first. */
export function withinLimit(limit: CreateOptions['limit'], others: readonly string[]): readonly string[] | null {
  const excess = limit === undefined ? 0 : Math.max(0, others.length + 1 - limit.max)
  return excess > 0 && limit?.onLimit === 'refuse' ? null : others.slice(0, excess)
}
