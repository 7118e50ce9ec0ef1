// The methods of the contract for all SQL databases, as statements that an engine runs.
import { setImmediate } from 'node:timers/promises'
import { SessionStoreError, type StoreOperation } from '../../../src/contract/errors.ts'
import {
  CLOCK_TOLERANCE,
  type CreateOutcome,
  type DeleteUserOptions,
  FORWARD_LIFETIME,
  type ReadAnswer,
  type RecordChange,
  type ReplaceOptions,
  type ReplaceOutcome,
  type ScanPage,
  type SessionRecord,
  type Store,
  type StoreCall,
} from '../../../src/contract/store.ts'
import { isThenable } from '../../../src/time/within.ts'
import type { Engine, Mode, Row, Steps, Values } from './engine.ts'
import { changedMeanwhile, endOf, NOT_APPLIED, Refusal, retry, storeError } from './retry.ts'
import { fromRow, isKey, recordValues, userValues } from './rows.ts'
import { ddl, isMigrated, migrate, type Names, namesOf, type SqlStoreOptions } from './schema.ts'
import { type Form, statements } from './statements.ts'

/** How many rows one statement of a sweep removes at most: it should hold its locks for some milliseconds only. */
const SWEEP_BATCH = 250
const MIGRATION_TIMEOUT = 60_000
/** How long a user's row stays after the last session that it was written for, in ms: 30 days. It only saves a write. */
const USER_ROW_LIFETIME = 2_592_000_000

/** A `create`, or a `replace` of the record under `old`, on its way to the database. */
export interface Pending {
  readonly record: SessionRecord
  readonly old: { readonly key: string; readonly version: number } | undefined
  readonly leavesForward: boolean
  readonly values: Values & { readonly latest: number }
}

/** The result of one transaction of a `deleteUser`. */
export interface Ended {
  /** How many live records of kind `'session'` it ended. */
  readonly sessions: number
  /** Whether nothing of the user is left. */
  readonly isLast: boolean
}

export type TouchValues = Values & { readonly id: string; readonly seenAt: number; readonly now: number }

export abstract class SqlStore implements Store {
  protected readonly engine: Engine
  protected readonly names: Names
  protected readonly texts: ReturnType<typeof statements>
  /** How many of a user's records one transaction ends, and how many rows a page of a scan has at most. */
  protected readonly batch: number = 1000
  readonly #forms = new Map<string, readonly string[]>()

  protected constructor(engine: Engine, options: SqlStoreOptions) {
    this.engine = engine
    this.names = namesOf(options, engine.dialect)
    this.texts = statements(this.names, engine.dialect)
  }

  /** The row under a key. */
  protected abstract readonly find: (key: string, end: number) => Row | null | Promise<Row | null>

  /**
   * Creates the tables if they are missing; any number of processes may call it at once. It only looks at a finished
   * schema, and then needs no right to create.
   * @throws Error that names the difference if a table of another schema has the name
   */
  async migrate(): Promise<void> {
    if (!(await this.isMigrated())) await this.#migration('together', () => migrate(this.names, this.engine.dialect))
  }

  /**
   * Whether the tables are there; looks, and creates nothing.
   * @throws Error that names the difference if a table of another schema has the name
   */
  isMigrated(): Promise<boolean> {
    return this.#migration('read', () => isMigrated(this.names, this.engine.dialect))
  }

  #migration<T>(mode: Mode, steps: () => Steps<T>): Promise<T> {
    const end = performance.now() + MIGRATION_TIMEOUT
    return this.run('create', mode, end, steps).catch(error => {
      throw error.cause ?? error
    })
  }

  /** Runs steps, again after a lock or a deadlock was in the way. Every failure is a `SessionStoreError`. */
  protected run<T>(operation: StoreOperation, mode: Mode, end: number, steps: () => Steps<T>): Promise<T> {
    return retry(operation, end, this.engine.failureOf, () => this.engine.run(mode, end, steps))
  }

  /** The rows that one SELECT finds. */
  protected select(operation: StoreOperation, text: string, values: Values, end: number): Promise<readonly Row[]> {
    return retry(operation, end, this.engine.failureOf, () => this.engine.select(text, values, end))
  }

  /** Makes a session live. */
  create(record: SessionRecord, call: StoreCall): Promise<CreateOutcome> {
    return this.#make('create', record, {}, call) as Promise<CreateOutcome>
  }

  /** Ends the old session and makes the new one live. */
  replace(
    oldKey: string,
    oldVersion: number,
    record: SessionRecord,
    options: ReplaceOptions,
    call: StoreCall,
  ): Promise<ReplaceOutcome> {
    return this.#make('replace', record, options, call, { key: oldKey, version: oldVersion })
  }

  async #make(
    operation: 'create' | 'replace',
    record: SessionRecord,
    { forward }: ReplaceOptions,
    { now, deadline }: StoreCall,
    old?: Pending['old'],
  ): Promise<ReplaceOutcome> {
    const end = endOf(deadline)
    const values = {
      ...recordValues(record),
      now,
      old: old?.key ?? '',
      oldVersion: old?.version ?? 0,
      userUntil: record.absoluteExpiresAt + USER_ROW_LIFETIME,
      salt: forward?.salt ?? '',
      until: forward?.until ?? 0,
      forgetAt: Math.max(now, forward?.until ?? 0) + FORWARD_LIFETIME,
      latest: latestOf(end),
    }
    const pending = { record, old, leavesForward: forward !== undefined, values }
    return this.make(operation, pending, end)
  }

  protected make(operation: StoreOperation, pending: Pending, end: number): Promise<ReplaceOutcome> {
    return this.run(operation, 'each', end, () => this.#decide(pending))
  }

  *#decide(pending: Pending): Steps<ReplaceOutcome> {
    if (yield* this.write(pending)) return 'created'
    return verdict(pending, (yield [this.texts.facts, pending.values]).rows[0]!)
  }

  /** Writes the row that makes the session live; false if something stood in the way. */
  protected *write(pending: Pending): Steps<boolean> {
    const { values } = pending
    const form = formOf(pending)
    const name = Object.values(form).join()
    const [first, ...others] = this.#forms.get(name) ?? this.texts.make(form)
    this.#forms.set(name, [first!, ...others])
    if ((yield [first!, values]).changed === 0) return false
    for (const text of others) yield [text, values]
    return true
  }

  /** The record or forward under a key. */
  read(key: string, { now, deadline }: StoreCall): ReadAnswer | Promise<ReadAnswer> {
    if (!isKey(key)) return null
    const end = endOf(deadline)
    const found = this.find(key, end)
    return isThenable(found)
      ? found.then(row => this.#answer(row, key, now, end), ofItsOwn)
      : this.#answer(found, key, now, end)
  }

  #answer(row: Row | null, key: string, now: number, end: number): ReadAnswer | Promise<ReadAnswer> {
    if (row === null) return null
    // A mistake of the driver must not give one user's session to another.
    if (row.id !== key)
      return Promise.reject(storeError('read', new Refusal('the driver answered for another key'), NOT_APPLIED))
    const found = fromRow(row, now)
    if (found === null || !('corrupt' in found)) return found
    return this.run('read', 'each', end, () => this.removeEach([key])).then(() => found)
  }

  async update(
    key: string,
    version: number,
    change: RecordChange,
    { now, deadline }: StoreCall,
  ): Promise<'updated' | 'conflict' | 'gone'> {
    if (!isKey(key)) return 'gone'
    const end = endOf(deadline)
    const values = { id: key, version, now, ...change, latest: latestOf(end) }
    return this.run('update', 'each', end, () => this.#update(values))
  }

  *#update(
    values: Values & { id: string; version: number; writeId: string; now: number; latest: number },
  ): Steps<'updated' | 'conflict' | 'gone'> {
    if ((yield [this.texts.update, values]).changed > 0) return 'updated'
    const row = (yield [this.texts.look, values]).rows[0]
    const found = row === undefined ? null : fromRow(row, values.now)
    if (row === undefined || found === null || !('key' in found)) return 'gone'
    if (found.version === values.version + 1 && found.writeId === values.writeId) return 'updated'
    if (found.version !== values.version) return 'conflict'
    // This record matches, so the statement came too late, or the record was made between the two statements.
    throw late(row, values.latest) ?? changedMeanwhile()
  }

  async touch(
    key: string,
    seenAt: number,
    expiresAt: number,
    { now, deadline }: StoreCall,
  ): Promise<'touched' | 'gone'> {
    if (!isKey(key)) return 'gone'
    return this.run('touch', 'each', endOf(deadline), () => this.slide({ id: key, seenAt, expiresAt, now }))
  }

  protected *slide(values: TouchValues): Steps<'touched' | 'gone'> {
    return (yield [this.texts.touch, values]).changed > 0 ? 'touched' : 'gone'
  }

  /** Ends the session under a key, or the one that the forwards there lead to; answers whether there was one. */
  async delete(key: string, { deadline }: StoreCall): Promise<boolean> {
    if (!isKey(key)) return false
    return this.run('delete', 'each', endOf(deadline), () => this.#delete(key))
  }

  *#delete(key: string): Steps<boolean> {
    // A circle of forwards, which only a person can make, ends the walk.
    const forwards = new Set<string>()
    let ended = false
    for (let id: unknown = key; isKey(id) && !forwards.has(id); ) {
      ended = (yield [this.texts.delete, { id }]).changed > 0
      if (ended) break
      const row: Row | undefined = (yield [this.texts.read, { id }]).rows[0]
      if (row === undefined) break
      // This record was made between the two statements.
      if (row.moved_to === null) throw changedMeanwhile()
      forwards.add(id)
      id = row.moved_to
    }
    // The forwards go last: a repeated call still finds the session. Once the session has ended, forwards that stay
    // lead nowhere; rejecting then would say that nothing was written.
    try {
      yield* this.removeEach([...forwards])
    } catch (error) {
      if (!ended || !this.engine.dialect.locks) throw error
    }
    return ended
  }

  // Works in pieces, each committed by itself: if a user has too many sessions for one call, a repeated call goes on. Each piece
  // locks the user's row. The last one proves under that lock that no session from before the call is left.
  async deleteUser(
    userId: string,
    { exceptKey, minPasswordVersion, minPasswordVersionUntil }: DeleteUserOptions,
    { now, deadline }: StoreCall,
  ): Promise<number> {
    const end = endOf(deadline)
    const values = {
      ...userValues(userId),
      minPasswordVersion: minPasswordVersion ?? 0,
      minPasswordVersionUntil: minPasswordVersion === undefined ? 0 : minPasswordVersionUntil,
      userUntil: minPasswordVersionUntil,
      now,
      except: exceptKey ?? '',
      limit: this.batch,
    }
    let sessions = 0
    for (let begun = false; ; begun = true) {
      const piece = await this.endPiece(values, end).catch(error => {
        // The pieces before are committed.
        throw begun ? new SessionStoreError('deleteUser', 'unknown', error.message, { cause: error.cause }) : error
      })
      sessions += piece.sessions
      if (piece.isLast) return sessions
      await setImmediate()
    }
  }

  /** Raises the minimum password version and ends some of the user's records, in one transaction. */
  protected endPiece(values: Values, end: number): Promise<Ended> {
    return this.run('deleteUser', 'together', end, () => this.#endPiece(values))
  }

  *#endPiece(values: Values): Steps<Ended> {
    // Without row locks this statement only raises the version.
    if (this.engine.dialect.locks || values.minPasswordVersionUntil !== 0) yield [this.texts.lockUser, values]
    return yield* this.endSome(values)
  }

  /** Ends some of a user's records. The user's row is locked: no session of this user becomes live meanwhile. */
  protected *endSome(values: Values): Steps<Ended> {
    return this.endedBy((yield [this.texts.endUser, values]).rows, values)
  }

  /** Reads the rows of `endUser`. */
  protected endedBy(rows: readonly Row[], values: Values): Ended {
    const isSession = ({ kind, moved_to, expires_at }: Row) =>
      kind === 'session' && moved_to === null && Number(expires_at) > Number(values.now)
    return { sessions: rows.filter(isSession).length, isLast: rows.length < this.batch }
  }

  async listUser(userId: string, kind: SessionRecord['kind'], { now, deadline }: StoreCall): Promise<SessionRecord[]> {
    const values = { ...userValues(userId), kind, now }
    const rows = await this.select('listUser', this.texts.list, values, endOf(deadline))
    return rows.map(row => fromRow(row, now)).filter(found => found !== null && 'key' in found) as SessionRecord[]
  }

  /**
   * A page of all that is stored, in the order of the keys; the cursor is the last key of the page before. A record keeps
   * its key until it ends, and a new ID leaves a row under the old key. So no row moves while it is stored.
   */
  async scan(cursor: string | null, limit: number, { now, deadline }: StoreCall): Promise<ScanPage> {
    // With none at all the loop would not end.
    for (let most = Math.min(Math.max(1, limit), this.batch); ; most *= 2) {
      const rows = await this.select('scan', this.texts.scan, { after: cursor ?? '', limit: most }, endOf(deadline))
      const keyed = rows.filter(({ id }) => isKey(id))
      // All rows of this page are under IDs that are no keys, inserted by hand: no page could go on from there.
      if (keyed.length === 0 && rows.length === most) continue
      const found = keyed.map(row => ({ key: row.id as string, is: fromRow(row, now) }))
      return {
        records: found.flatMap(({ is }) => (is !== null && 'key' in is ? is : [])),
        forwards: found.flatMap(({ key, is }) => (is !== null && 'movedTo' in is ? key : [])),
        next: rows.length < most ? null : found.at(-1)!.key,
      }
    }
  }

  /** Removes at most `limit` expired rows, oldest first; answers how many. */
  async sweep(limit: number, { now, deadline }: StoreCall): Promise<number> {
    const end = endOf(deadline)
    let removed = 0
    for (const table of ['sessions', 'users'] as const)
      for (let found = 1; found > 0 && removed < limit; await setImmediate())
        try {
          const values = { now, limit: Math.min(SWEEP_BATCH, limit - removed) }
          found = await this.run('sweep', 'each', end, () => this.#sweep(table, values))
          removed += found
        } catch (error) {
          // The removed rows stay removed, and the next sweep does the rest.
          if (removed > 0) return removed
          throw error
        }
    return removed
  }

  /** One statement of a sweep; answers how many rows it removed. */
  *#sweep(table: 'sessions' | 'users', values: Values): Steps<number> {
    return (yield [this.texts.sweep[table], values]).changed
  }

  /** Removes records; answers which were still there, since another call may have ended some meanwhile. */
  protected *removeEach(ids: readonly string[]): Steps<readonly string[]> {
    const ended: string[] = []
    for (const id of ids) if ((yield [this.texts.remove, { id }]).changed > 0) ended.push(id)
    return ended
  }
}

/** For readers that shared a statement: each gets an error of its own, because the application may add properties to it. */
const ofItsOwn = ({ operation, outcome, message, cause }: SessionStoreError): never => {
  throw new SessionStoreError(operation, outcome, message, { cause })
}

/** The DDL that `migrate()` runs, for those who keep their schema in files. */
export const ddlText = (options: SqlStoreOptions, dialect: Engine['dialect']): string =>
  `${ddl(namesOf(options, dialect), dialect).join(';\n')};\n`

/** Which conditions the statement of a `create` or `replace` has. */
export const formOf = ({ record, old, leavesForward }: Pending): Form => ({
  hasUser: record.userId !== null,
  checksParent: record.parent !== null,
  replaces: old !== undefined,
  leavesForward,
})

/** Until when, by its own clock, the database may run a statement that makes a session live. */
const latestOf = (end: number) => Math.ceil(Date.now() + end - performance.now()) + CLOCK_TOLERANCE

/** The refusal of a statement that came to the database after its time; `null` if it came in time. */
function late({ clock }: Row, latest: number): Refusal | null {
  if (Number(clock) <= latest) return null
  const [theirs, ours] = [Number(clock), Date.now()].map(instant => new Date(instant).toISOString())
  return new Refusal(`came too late: the clock of the database says ${theirs}, that of this process ${ours}`)
}

/** Why nothing was written, in the order that the contract gives. @throws Refusal if nothing stands in the way any more */
export function verdict({ record, old, values }: Pending, facts: Row): ReplaceOutcome {
  if (facts.write_id === record.writeId) return 'created'
  if (old !== undefined && facts.version === null) return 'gone'
  if (old !== undefined && Number(facts.version) !== old.version) return 'conflict'
  if (facts.taken !== null) return 'collision'
  if (facts.stale !== null) return 'stale-login'
  // A replaced session has its parent already: only a new one needs a parent that is live.
  const needsParent = record.parent !== null && facts.parent_key !== record.parent
  if (needsParent && facts.parent_lives === null) return 'orphan'
  throw late(facts, values.latest) ?? changedMeanwhile()
}
