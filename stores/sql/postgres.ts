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
} from '../../src/store.ts'
import { type Names, namesOf, type SqlOptions } from './options.ts'
import { persist, Refusal, timeLeft, unusable } from './patience.ts'
import { checkPgPool, isUniqueViolation, PgConnections, type PgPool, pgFailure } from './postgres-client.ts'
import { migratePostgres, postgresSchema } from './postgres-schema.ts'
import { postgresStatements } from './postgres-statements.ts'
import { fromRow, isKey, recordValues } from './rows.ts'
import type { Statement, Value } from './statement.ts'
import { splitUser, userFault } from './user.ts'
import { answer, changeFault, type Facts, recordFault, verdict } from './verdict.ts'

export interface PostgresOptions extends SqlOptions {
  /**
   * Whether statements are prepared under a name, once per connection. Behind a pooler that shares connections by
   * transaction and does not know prepared statements (pgbouncer before 1.21) the store finds out and stops by itself.
   * @default true
   */
  prepare?: boolean
}

type Values = Readonly<Record<string, Value>>
type Run = (statement: Statement, values: Values) => Promise<{ rows: any[]; rowCount: number | null }>

/** How many rows one statement of a sweep removes: its locks are held for some milliseconds only. */
const SWEEP_BATCH = 250
/** How long a user's row stays after the last session that it was written for, in ms: 30 days. It only saves a write. */
export const USER_ROW_LIFETIME = 2_592_000_000

/** Sessions in PostgreSQL 12 or later, through a `pg.Pool` that the application makes and closes. */
export class PostgresStore implements Store {
  readonly #names: Names
  readonly #connections: PgConnections
  readonly #statements: ReturnType<typeof postgresStatements>
  readonly #made = new Map<string, Statement>()

  /** Opens and creates nothing. @throws TypeError for a pool or an option of the wrong kind. */
  constructor(pool: PgPool, options: PostgresOptions = {}) {
    this.#names = namesOf(options, '"')
    this.#connections = new PgConnections(checkPgPool(pool), options.prepare ?? true)
    this.#statements = postgresStatements(this.#names)
  }

  /** The DDL that `migrate()` runs, for those who keep their schema in files. */
  static schema(options: SqlOptions = {}): string {
    return postgresSchema(namesOf(options, '"'))
  }

  /**
   * Creates the tables where they are missing; any number of processes may call it at once. Needs the right to create
   * only where something is missing.
   * @throws Error that names the difference where a table of another schema has the name.
   */
  migrate(): Promise<void> {
    return migratePostgres(this.#connections, this.#names)
  }

  create(record: SessionRecord, options: CreateOptions, deadline?: number): Promise<CreateResult> {
    return this.#make('create', record, options, deadline) as Promise<CreateResult>
  }

  replace(
    oldKey: string,
    oldVersion: number,
    record: SessionRecord,
    options: CreateOptions,
    deadline?: number,
  ): Promise<ReplaceResult> {
    return this.#make('replace', record, options, deadline, { key: oldKey, version: oldVersion })
  }

  async read(key: string, now: number, deadline?: number): Promise<SessionRecord | Forward | Corrupt | null> {
    if (!isKey(key)) return null
    return persist('read', deadline, pgFailure, async end => {
      const { rows } = await this.#connections.run(this.#statements.read, { id: key }, end)
      if (rows.length === 0) return null
      const found = fromRow(rows[0], now, this.#names.userId)
      if (found !== null && 'corrupt' in found)
        await this.#connections.run(this.#statements.remove, { id: key, wait: `${timeLeft(end)}` }, end)
      return found
    })
  }

  async update(
    key: string,
    version: number,
    change: RecordChange,
    now: number,
    deadline?: number,
  ): Promise<'updated' | 'conflict' | 'gone'> {
    if (!isKey(key)) return 'gone'
    return persist('update', deadline, pgFailure, async end => {
      const fault = changeFault(change)
      if (fault !== null) throw unusable(fault)
      const values = { id: key, version, now, ...change, wait: `${timeLeft(end)}` }
      const { rowCount } = await this.#connections.run(this.#statements.update, values, end)
      if (rowCount === 1) return 'updated'
      const { rows } = await this.#connections.run(this.#statements.read, { id: key }, end)
      const found = rows.length === 0 ? null : fromRow(rows[0], now, this.#names.userId)
      if (found === null || !('key' in found)) return 'gone'
      return found.version === version + 1 && found.writeId === change.writeId ? 'updated' : 'conflict'
    })
  }

  async touch(
    key: string,
    seenAt: number,
    expiresAt: number,
    now: number,
    deadline?: number,
  ): Promise<'touched' | 'gone'> {
    if (!isKey(key)) return 'gone'
    return persist('touch', deadline, pgFailure, async end => {
      const values = { id: key, seenAt, expiresAt, now, wait: `${timeLeft(end)}` }
      const { rowCount } = await this.#connections.run(this.#statements.touch, values, end)
      return rowCount === 1 ? 'touched' : 'gone'
    })
  }

  async delete(key: string, deadline?: number): Promise<boolean> {
    if (!isKey(key)) return false
    return persist('delete', deadline, pgFailure, async end => {
      // A hand-made circle of forwards ends the walk.
      const seen = new Set<string>()
      for (let id: string = key; isKey(id) && !seen.has(id); ) {
        seen.add(id)
        const { rowCount } = await this.#connections.run(this.#statements.delete, { id, wait: `${timeLeft(end)}` }, end)
        if (rowCount === 1) return true
        const { rows } = await this.#connections.run(this.#statements.read, { id }, end)
        if (rows.length === 0) return false
        // Stored, and no forward: it was made while we looked, so it is deleted in another turn.
        if (rows[0][14] === null) seen.delete(id)
        else id = rows[0][14]
      }
      return false
    })
  }

  async deleteUser(userId: string, options: DeleteUserOptions, deadline?: number): Promise<number> {
    return persist('deleteUser', deadline, pgFailure, async end => {
      const { now, passwordVersion, floorUntil } = options
      const user = this.#user(userId)
      return this.#connections.transaction(end, async run => {
        const raises = passwordVersion !== undefined
        await run(this.#statements.lockUser, {
          ...user,
          now,
          floor: passwordVersion ?? 0,
          floorUntil: raises ? floorUntil : 0,
          userUntil: floorUntil,
          wait: `${timeLeft(end)}`,
        })
        const { rows } = await run(this.#statements.deleteUser, { ...user, now, except: options.exceptKey ?? '' })
        return Number(rows[0][0])
      })
    })
  }

  async listUser(
    userId: string,
    kind: SessionRecord['kind'],
    now: number,
    deadline?: number,
  ): Promise<SessionRecord[]> {
    return persist('listUser', deadline, pgFailure, async end => {
      const { rows } = await this.#connections.run(this.#statements.listUser, { ...this.#user(userId), kind, now }, end)
      return rows
        .map(row => fromRow(row, now, this.#names.userId))
        .filter(found => found !== null && 'key' in found) as SessionRecord[]
    })
  }

  async sweep(now: number, limit: number, deadline?: number): Promise<number> {
    return persist('sweep', deadline, pgFailure, async end => {
      let removed = 0
      for (const statement of this.#statements.sweep)
        for (let last = 1; last > 0 && removed < limit && performance.now() < end; ) {
          const values = { now, limit: Math.min(SWEEP_BATCH, limit - removed) }
          last = (await this.#connections.run(statement, values, end)).rowCount ?? 0
          removed += last
        }
      return removed
    })
  }

  #user(userId: string) {
    const fault = userFault(userId, this.#names.userId)
    if (fault !== null) throw unusable(fault)
    return { ...splitUser(userId) }
  }

  // There are twelve forms of create and replace; each is made when it is first needed.
  #statement(replaces: boolean, user: boolean, born: boolean, leaves: boolean): Statement {
    const form = [replaces, user, born, leaves].join()
    let statement = this.#made.get(form)
    if (statement === undefined) {
      statement = replaces ? this.#statements.replace(user, born, leaves) : this.#statements.create(user, born)
      this.#made.set(form, statement)
    }
    return statement
  }

  async #make(
    operation: 'create' | 'replace',
    record: SessionRecord,
    options: CreateOptions,
    deadline: number | undefined,
    old?: { key: string; version: number },
  ): Promise<ReplaceResult> {
    return persist(operation, deadline, pgFailure, async end => {
      const fault = recordFault(record, this.#names.userId)
      if (fault !== null) throw unusable(fault)
      const { now, forward } = options
      const statement = this.#statement(
        old !== undefined,
        record.userId !== null,
        record.parent !== null,
        forward !== undefined,
      )
      const values: Values = {
        ...recordValues(record),
        now,
        old: old?.key ?? '',
        oldVersion: old?.version ?? 0,
        userUntil: record.absoluteExpiresAt + USER_ROW_LIFETIME,
        salt: forward?.salt ?? '',
        until: forward?.until ?? 0,
        forgetAt: Math.max(now, forward?.until ?? 0) + FORWARD_LIFETIME,
        wait: `${timeLeft(end)}`,
      }
      if (options.limit !== undefined && record.userId !== null && record.kind === 'session')
        return this.#limited(statement, values, record, options.limit, end, old?.version)
      const alone: Run = (one, given) => this.#connections.run(one, given, end)
      const done = await this.#attempt(alone, statement, values)
      return done ? answer('created') : answer(await this.#why(alone, values, record, old?.version))
    })
  }

  /** True if the record was written. */
  async #attempt(run: Run, statement: Statement, values: Values): Promise<boolean> {
    try {
      return (await run(statement, values)).rowCount === 1
    } catch (error) {
      if (isUniqueViolation(error)) return false
      throw error
    }
  }

  async #why(run: Run, values: Values, record: SessionRecord, oldVersion?: number): Promise<ReplaceResult['outcome']> {
    const reason = verdict(record, await this.#facts(run, values), oldVersion)
    // What stood in the way is gone by now: once more.
    if (reason === null) throw changed()
    return reason
  }

  async #facts(run: Run, values: Values): Promise<Facts> {
    const [taken, writeId, version, parent, stale, parentLives] = (await run(this.#statements.facts, values)).rows[0]
    return {
      taken: taken === 't',
      writeId,
      old: version === null ? null : { version: Number(version), parent },
      stale: stale === 't',
      parentLives: parentLives === 't',
    }
  }

  // To lock and to count in one statement would count by a snapshot from before the wait for the lock.
  #limited(
    statement: Statement,
    values: Values,
    record: SessionRecord,
    limit: NonNullable<CreateOptions['limit']>,
    end: number,
    oldVersion?: number,
  ): Promise<ReplaceResult> {
    return this.#connections.transaction(end, async run => {
      await run(this.#statements.lockUser, { ...values, floor: 0, floorUntil: 0 })
      const reason = verdict(record, await this.#facts(run, values), oldVersion)
      if (reason !== null) return answer(reason)
      const { rows } = await run(this.#statements.oldest, values)
      const excess = rows.length + 1 - limit.max
      if (excess > 0 && limit.onLimit === 'refuse') return answer('limit')
      // Rolled back; the next attempt sees what stood in the way.
      if (!(await this.#attempt(run, statement, values))) throw changed()
      const ended: string[] = rows.slice(0, Math.max(0, excess)).map(([id]: [string]) => id)
      if (ended.length > 0) await run(this.#statements.end, { ids: ended })
      return { outcome: 'created', ended }
    })
  }
}

const changed = () => new Refusal('changed meanwhile', { outcome: 'not-applied', retry: true })
