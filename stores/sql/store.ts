import { setImmediate } from 'node:timers'
import { SessionStoreError, type StoreOperation } from '../../src/contract/errors.ts'
import {
  type CreateOptions,
  type CreateResult,
  type DeleteUserOptions,
  FORWARD_LIFETIME,
  type ReadAnswer,
  type RecordChange,
  type ReplaceResult,
  type ScanPage,
  type SessionRecord,
  type Store,
  type StoreCall,
} from '../../src/contract/store.ts'
import type { Names } from './options.ts'
import { endOf, inputError, notBegun, Refusal, storeError } from './retry.ts'
import { AT, type Cell, fromRow, isKey, type Row, recordValues } from './rows.ts'
import type { Outcome, Statement, Steps, Values } from './statement.ts'
import type { SqlStatements } from './statements.ts'
import { BEGINNING, SweepPace } from './sweep-pace.ts'
import { isMigrated, type Schema } from './tables.ts'
import { splitUser, userFault } from './user.ts'
import { changeFault, type Facts, recordFault, verdict } from './verdict.ts'

/** How many rows one statement of a sweep removes: its locks are held for some milliseconds only. */
export const SWEEP_BATCH = 250
const MIGRATION_TIMEOUT = 60_000
/** A sweep that has less than this left, in ms, stops at what it has removed. */
const SWEEP_REST = 100
/** How long before its end a call may be given up, in ms: where a retry would not come in time. */
const LATE_BY = 50
const moment = () => new Promise(resolve => setTimeout(resolve, LATE_BY))
/** How long a user's row stays after the last session that it was written for, in ms: 30 days. It only saves a write. */
const USER_ROW_LIFETIME = 2_592_000_000

/** Of a migration the verbs' words are of no use; only the reason counts. */
const theirReason = (error: Error): never => {
  throw error.cause ?? error
}

/**
 * Runs the steps of a verb, again where a lock or a deadlock was in the way, until `end` (on the scale of
 * `performance.now()`). Every failure is a `SessionStoreError`.
 */
export interface Database {
  /** Steps that only read. */
  read<T>(operation: StoreOperation, end: number, steps: () => Steps<T>): Promise<T>
  /** Steps of which each may be committed by itself. */
  write<T>(operation: StoreOperation, end: number, steps: () => Steps<T>): Promise<T>
}

/** A `create`, or a `replace` of the record under `old`, on its way to the database. */
export interface PendingWrite {
  readonly record: SessionRecord
  readonly options: CreateOptions
  readonly old: { readonly key: string; readonly version: number } | undefined
  readonly values: Values
}

/** What one piece of a `deleteUser` did, which is committed as a whole. */
export interface Ended {
  /** How many live records of kind `'session'` it ended. */
  readonly ended: number
  /** Whether nothing of the user is left. */
  readonly all: boolean
}

/** What one statement of a sweep did. */
export interface Swept {
  readonly removed: number
  /**
   * `expires_at` of the last row that it found: the next one looks from there on. While a backup or another long transaction
   * is under way, the server keeps what is deleted, and would pass by all of it again in each statement.
   */
  readonly last: number
}

type TouchValues = Values & { readonly now: number; readonly seenAt: number; readonly expiresAt: number }

/** The verbs of the contract, as steps that all databases share; each store adds what only its database has. */
export abstract class SqlStore implements Store {
  protected abstract readonly names: Names
  protected abstract readonly database: Database
  protected abstract readonly statements: SqlStatements
  protected abstract readonly schema: Schema
  /** How many of a user's records one transaction ends: it is committed long before the caller's time is over. */
  protected readonly batch: number = 1000
  /** Whether each step of a `write` is committed by itself. */
  protected readonly commitsEachStep: boolean = false
  readonly #scans = new Map<number, Statement>()
  readonly #pace = new SweepPace(SWEEP_BATCH)

  /** Makes a session live. */
  protected abstract make(operation: StoreOperation, pending: PendingWrite, end: number): Promise<ReplaceResult>
  /** Raises the user's floor, and ends some of the user's records. No session of this user becomes live meanwhile. */
  protected abstract endPiece(values: Values, end: number): Promise<Ended>
  /** Creates what is missing of the tables. */
  protected abstract createTables(end: number): Promise<void>
  /** Removes one batch of what is past its time; answers how many rows. */
  protected abstract sweepBatch(table: 'sessions' | 'users', values: Values): Steps<Swept>

  /**
   * Creates the tables where they are missing; any number of processes may call it at once. A finished schema is only
   * looked at: it needs no right to create, and a file may be read-only.
   * @throws Error that names the difference where a table of another schema has the name.
   */
  async migrate(): Promise<void> {
    const end = performance.now() + MIGRATION_TIMEOUT
    if (await this.#isMigrated(end)) return
    await this.createTables(end).catch(theirReason)
    await this.#isMigrated(end)
  }

  /**
   * Whether the tables are there; looks, and creates nothing.
   * @throws Error that names the difference where a table of another schema has the name.
   */
  isMigrated(): Promise<boolean> {
    return this.#isMigrated(performance.now() + MIGRATION_TIMEOUT)
  }

  #isMigrated(end: number): Promise<boolean> {
    return this.database.read('create', end, () => isMigrated(this.schema, this.names)).catch(theirReason)
  }

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

  /** What is stored under a key: one record, found by the hash of its ID. */
  abstract read(key: string, call: StoreCall): ReadAnswer | Promise<ReadAnswer>

  /** What a row says to a reader; one that is corrupt is removed first. */
  protected answerFrom(row: Row | null, key: string, now: number, end: number): ReadAnswer | Promise<ReadAnswer> {
    if (row === null) return null
    // A driver's mistake must not hand one user's session to another.
    if (row[AT.id] !== key) {
      const refusal = ofAnotherKey()
      throw storeError('read', refusal.failure, refusal)
    }
    const found = fromRow(row, now, this.names.userIds)
    if (found === null || !('corrupt' in found)) return found
    return this.database.write('read', end, () => this.endEach([key])).then(() => found)
  }

  async update(
    key: string,
    version: number,
    change: RecordChange,
    { now, deadline }: StoreCall,
  ): Promise<'updated' | 'conflict' | 'gone'> {
    if (!isKey(key)) return 'gone'
    const fault = changeFault(change)
    if (fault !== null) throw inputError('update', fault)
    return this.orElse('update', endOf(deadline), () => this.#update(key, version, change, now), key)
  }

  /** Steps that write, and read the record under `key` where they wrote nothing. */
  protected orElse<T>(operation: StoreOperation, end: number, steps: () => Steps<T>, _: string): Promise<T> {
    return this.database.write(operation, end, steps)
  }

  *#update(key: string, version: number, change: RecordChange, now: number): Steps<'updated' | 'conflict' | 'gone'> {
    for (let isLast = false; ; isLast = true) {
      if ((yield [this.statements.update, { id: key, version, now, ...change }]).changed > 0) return 'updated'
      const found = yield* this.#find(key, now)
      if (found === null || !('key' in found)) return 'gone'
      if (found.version === version + 1 && found.writeId === change.writeId) return 'updated'
      // The statement would have changed this record: it was made between the two.
      if (found.version !== version || isLast) return 'conflict'
    }
  }

  async touch(
    key: string,
    seenAt: number,
    expiresAt: number,
    { now, deadline }: StoreCall,
  ): Promise<'touched' | 'gone'> {
    if (!isKey(key)) return 'gone'
    const steps = () => this.#touch(key, { id: key, seenAt, expiresAt, now })
    return this.orElse('touch', endOf(deadline), steps, key)
  }

  *#touch(key: string, values: TouchValues): Steps<'touched' | 'gone'> {
    for (let isLast = false; ; isLast = true) {
      if ((yield [this.statements.touch, values]).changed > 0) return 'touched'
      const found = yield* this.#find(key, values.now)
      if (found === null || !('key' in found)) return 'gone'
      // Without FOUND_ROWS, MySQL counts rows that it changed, and a second touch of one instant changes nothing. A record
      // that the statement would have changed was made between the two.
      const isSame =
        found.seenAt >= values.seenAt && found.expiresAt >= Math.min(values.expiresAt, found.absoluteExpiresAt)
      if (isSame || isLast) return 'touched'
    }
  }

  async delete(key: string, { deadline }: StoreCall): Promise<boolean> {
    if (!isKey(key)) return false
    return this.database.write('delete', endOf(deadline), () => this.#delete(key))
  }

  *#delete(key: string): Steps<boolean> {
    // A circle of forwards, which only a person can make, ends the walk.
    const forwards = new Set<string>()
    let ended = false
    for (let id: Cell = key; isKey(id) && !forwards.has(id); ) {
      ended = (yield [this.statements.delete, { id }]).changed > 0
      if (ended) break
      const row: Row | null = yield* this.row(id)
      if (row === null) break
      // A record, made between the two statements: delete it in another turn.
      if (row[AT.moved_to] === null) continue
      forwards.add(id)
      id = row[AT.moved_to]
    }
    // The forwards go last: a call that fails before and is repeated still finds its way. Where the session has ended, one
    // that stays leads to nothing, and a failure would tell that nothing was written. In a transaction nothing was.
    try {
      yield* this.endEach([...forwards])
    } catch (error) {
      if (!ended || !this.commitsEachStep) throw error
    }
    return ended
  }

  // In pieces, each committed: where the time is too short for a user with very many sessions, a repeated call goes on.
  // Each piece locks the user's row and raises the floor. One that finds nothing more proves under that lock that no
  // session of the user is left, so that none from before the call lives on, under whatever key. A login between two
  // pieces may be ended by the next.
  async deleteUser(
    userId: string,
    { exceptKey, minPasswordVersion: passwordVersion, minPasswordVersionUntil }: DeleteUserOptions,
    { now, deadline }: StoreCall,
  ): Promise<number> {
    const end = endOf(deadline)
    const user = this.#user('deleteUser', userId)
    const raises = passwordVersion !== undefined
    const floor = {
      floor: passwordVersion ?? 0,
      minPasswordVersionUntil: raises ? minPasswordVersionUntil : 0,
      userUntil: minPasswordVersionUntil,
    }
    const values = { ...user, ...floor, now, except: exceptKey ?? '' }
    let sessions = 0
    for (let begun = false; ; begun = true) {
      const { ended, all } = await this.endPiece(values, end).catch(error => {
        // The pieces before are committed.
        throw begun ? new SessionStoreError('deleteUser', 'unknown', error.message, { cause: error.cause }) : error
      })
      sessions += ended
      if (all) return sessions
      await nextTurn()
    }
  }

  async listUser(userId: string, kind: SessionRecord['kind'], { now, deadline }: StoreCall): Promise<SessionRecord[]> {
    const values = { ...this.#user('listUser', userId), kind, now }
    return this.database.read('listUser', endOf(deadline), () => this.#list(values, now))
  }

  *#list(values: Values, now: number): Steps<SessionRecord[]> {
    const { rows } = yield [this.statements.listUser, values]
    return rows
      .map(row => fromRow(row, now, this.names.userIds))
      .filter((found): found is SessionRecord => found !== null && 'key' in found)
  }

  /**
   * A page of all that is stored, in the order of the keys; the cursor is the last key of the page before. A record keeps
   * its key until it ends, and what a new ID leaves there is a row of the same key, so that no row moves while it stands.
   * Each page sees what was committed when it was asked for.
   */
  async scan(cursor: string | null, limit: number, { now, deadline }: StoreCall): Promise<ScanPage> {
    if (cursor !== null && !isKey(cursor))
      throw inputError('scan', 'the cursor is not one that scan answered: begin with null')
    if (!Number.isSafeInteger(limit) || limit < 1)
      throw inputError('scan', 'the limit is not a whole number of rows, at least 1')
    const rows = Math.min(limit, this.batch)
    return this.database.read('scan', endOf(deadline), () => this.#scan(cursor ?? '', rows, now))
  }

  *#scan(after: string, limit: number, now: number): Steps<ScanPage> {
    for (let most = limit; ; most *= 2) {
      const { rows } = yield [this.#scanOf(most), { after }]
      const page = pageFrom(rows, rows.length < most, now, this.names.userIds)
      // Nothing but rows that a hand has put under what is no key, and where they end is no place to go on from.
      if (page !== null) return page
    }
  }

  #scanOf(limit: number): Statement {
    const statement = this.#scans.get(limit) ?? this.statements.scan(limit)
    this.#scans.set(limit, statement)
    return statement
  }

  /** Removes at most `limit` expired rows, oldest first; answers how many. */
  async sweep(limit: number, { now, deadline }: StoreCall): Promise<number> {
    const end = endOf(deadline)
    let removed = 0
    for (const table of ['sessions', 'users'] as const) {
      let from = this.#pace.placeOf(table)
      for (let found = 0, wasLate = false; removed < limit; ) {
        const rows = Math.min(this.#pace.rows, limit - removed)
        if (removed > 0 && this.#pace.expected(rows) > end - performance.now()) return removed
        const values = { now, clock: Date.now(), from, limit: rows }
        const swept = await this.#sweepInTime(table, values, end, removed > 0)
        if (swept === null) {
          if (removed > 0) return removed
          wasLate = true
          await moment()
          continue
        }
        // The rows of the one that was given up may be locked until the server has ended it, and are passed by meanwhile.
        if (swept.removed === 0 && wasLate) {
          wasLate = false
          await moment()
          continue
        }
        removed += swept.removed
        found += swept.removed
        const isOver = swept.removed === 0
        // A call that begins where another has ended may have nothing left there, and something before.
        const wasBegun = isOver && found === 0 && from !== BEGINNING
        from = isOver ? BEGINNING : swept.last
        this.#pace.keep(table, from)
        if (performance.now() > end - SWEEP_REST) return removed
        await nextTurn()
        if (isOver && !wasBegun) break
      }
    }
    return removed
  }

  /**
   * One statement of a sweep; `null` where there is more to do with fewer rows: it took too long, or, after progress, failed.
   * The first one of a call has half of the time, so that the other half is for one that does less.
   */
  async #sweepInTime(
    table: 'sessions' | 'users',
    values: { readonly limit: number } & Values,
    end: number,
    progress: boolean,
  ): Promise<Swept | null> {
    const begun = performance.now()
    const half = values.limit > 1 && end - begun > 2 * SWEEP_REST
    const until = progress || !half ? end : begun + (end - begun) / 2
    try {
      const swept = await this.database.write('sweep', until, () => this.sweepBatch(table, values))
      this.#pace.took(values.limit, swept.removed, performance.now() - begun)
      return swept
    } catch (error) {
      const isLate = performance.now() >= until - LATE_BY
      if (isLate) this.#pace.tooMany(values.limit)
      if (progress || (isLate && until < end)) return null
      throw error
    }
  }

  /** The cells of a row of the `read` statement, in the order of the columns. */
  protected rowOf(cells: readonly Cell[]): Row {
    return cells
  }

  protected *row(key: string): Steps<Row | null> {
    return this.#rowIn(yield [this.statements.read, { id: key }], key)
  }

  #rowIn({ rows }: Outcome, key: string): Row | null {
    const cells = rows[0]
    if (cells === undefined) return null
    const row = this.rowOf(cells)
    // A driver's mistake must not hand one user's session to another.
    if (row[AT.id] !== key) throw ofAnotherKey()
    return row
  }

  /** Answers those that were there: another call may have ended some since they were looked for. */
  protected *endEach(ids: readonly string[]): Steps<readonly string[]> {
    const ended: string[] = []
    for (const id of ids) if ((yield [this.statements.remove, { id }]).changed > 0) ended.push(id)
    return ended
  }

  *#find(key: string, now: number): Steps<ReadAnswer> {
    const row = this.#rowIn(yield [this.statements.read, { id: key }], key)
    return row === null ? null : fromRow(row, now, this.names.userIds)
  }

  #user(operation: StoreOperation, userId: string) {
    const fault = userFault(userId, this.names.userIds)
    if (fault !== null) throw inputError(operation, fault)
    return { ...splitUser(userId) }
  }

  async #make(
    operation: 'create' | 'replace',
    record: SessionRecord,
    options: CreateOptions,
    { now, deadline }: StoreCall,
    old?: PendingWrite['old'],
  ): Promise<ReplaceResult> {
    const fault = recordFault(record, this.names.userIds)
    if (fault !== null) throw inputError(operation, fault)
    const { forward } = options
    const values = {
      ...recordValues(record),
      now,
      old: old?.key ?? '',
      oldVersion: old?.version ?? 0,
      checksParent: record.parent === null ? 0 : 1,
      userUntil: record.absoluteExpiresAt + USER_ROW_LIFETIME,
      salt: forward?.salt ?? '',
      until: forward?.until ?? 0,
      forgetAt: Math.max(now, forward?.until ?? 0) + FORWARD_LIFETIME,
      // For the lock of a user's row that raises no floor.
      floor: 0,
      minPasswordVersionUntil: 0,
    }
    return this.make(operation, { record, options, old, values }, endOf(deadline))
  }
}

/** What a page's rows say; `null` where there are more of them, and none from whose key the next page could begin. */
function pageFrom(rows: readonly Row[], isLast: boolean, now: number, userIds: 'bigint' | 'string'): ScanPage | null {
  const records: SessionRecord[] = []
  const forwards: string[] = []
  let next: string | null = null
  for (const row of rows) {
    const key = row[AT.id]
    if (!isKey(key)) continue
    next = key
    const found = fromRow(row, now, userIds)
    if (found === null || 'corrupt' in found) continue
    if ('key' in found) records.push(found)
    else forwards.push(key)
  }
  if (isLast) return { records, forwards, next: null }
  return next === null ? null : { records, forwards, next }
}

/** A driver's mistake. */
const ofAnotherKey = () => notBegun('the driver answered for another key')

/** The row of each key, `null` where there is none: servers answer in any order. */
export function rowsOf(keys: readonly string[], rows: readonly Row[]): (Row | null)[] {
  const found = new Map<unknown, Row>()
  for (const row of rows) found.set(row[AT.id], row)
  let met = 0
  const answers = keys.map(key => {
    const row = found.get(key) ?? null
    if (row !== null) met += 1
    return row
  })
  // A driver's mistake must not hand one user's session to another, nor pass for the end of the one that was asked for.
  if (met !== rows.length) throw ofAnotherKey()
  return answers
}

/** Each reader of a shared command gets an error of its own: an application may add to it. */
export const ofItsOwn = ({ operation, outcome, message, cause }: SessionStoreError): never => {
  throw new SessionStoreError(operation, outcome, message, { cause })
}

/** What stood in the way is gone by now: the verb is run once more. */
export const changedMeanwhile = () => new Refusal('changed meanwhile', { outcome: 'not-applied', retry: true })

const isTrue = (cell: Cell) => cell === 't' || Number(cell) === 1

/** Why nothing is written, by the row of the `facts` statement; `null` where nothing stands in the way. */
export function reasonIn({ record, old }: PendingWrite, { rows }: Outcome): ReplaceResult['outcome'] | null {
  const [taken, writeId, version, parent, stale, parentLives] = rows[0]!
  const facts: Facts = {
    taken: isTrue(taken),
    writeId,
    old: version === null ? null : { version: Number(version), parent },
    stale: isTrue(stale),
    parentLives: isTrue(parentLives),
  }
  return verdict(record, facts, old?.version)
}

/** Lets the event loop run. */
export const nextTurn = () => new Promise(resolve => setImmediate(resolve))

/** Whether the user's sessions have to be counted for this record. */
export const isLimited = ({ record, options }: PendingWrite) =>
  options.limit !== undefined && record.userId !== null && record.kind === 'session'

/** How the limit is met: the keys to end, or `null` to refuse. `others` are the user's live sessions, oldest first. */
export function withinLimit(limit: CreateOptions['limit'], others: readonly string[]): readonly string[] | null {
  const excess = limit === undefined ? 0 : Math.max(0, others.length + 1 - limit.max)
  return excess > 0 && limit?.onLimit === 'refuse' ? null : others.slice(0, excess)
}
