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
  SWEEP_MARGIN,
} from '../../src/store.ts'
import { type Names, namesOf, type SqlOptions } from './options.ts'
import { persist, unusable } from './patience.ts'
import { fromRow, isKey, recordValues } from './rows.ts'
import { checkSqlite, SqliteConnection, type SqliteDatabase, sqliteFailure } from './sqlite-client.ts'
import { migrateSqlite, sqliteSchema } from './sqlite-schema.ts'
import { sqliteStatements } from './sqlite-statements.ts'
import { bind, type Statement, type Value } from './statement.ts'
import { splitUser, userFault } from './user.ts'
import { answer, changeFault, recordFault, verdict } from './verdict.ts'

type Values = Readonly<Record<string, Value>>
type Change = (sql: string, values: readonly Value[]) => number

/** How many rows a sweep removes at a time: the event loop runs in between. */
const SWEEP_BATCH = 250

/**
 * Sessions in a SQLite file, through a connection of better-sqlite3, libsql or node:sqlite that the application opens
 * and closes. Several processes may share the file; set `journal_mode = WAL`. At its first use the store sets
 * `busy_timeout` of the connection to 20 ms and waits by itself from there: SQLite's own waiting blocks the event loop.
 */
export class SqliteStore implements Store {
  readonly #names: Names
  readonly #connection: SqliteConnection
  readonly #statements: ReturnType<typeof sqliteStatements>

  /** Opens and creates nothing. @throws TypeError for a connection or an option of the wrong kind. */
  constructor(database: SqliteDatabase, options: SqlOptions = {}) {
    this.#names = namesOf(options, '"')
    this.#connection = new SqliteConnection(checkSqlite(database))
    this.#statements = sqliteStatements(this.#names)
  }

  /** The DDL that `migrate()` runs, for those who keep their schema in files. */
  static schema(options: SqlOptions = {}): string {
    return sqliteSchema(namesOf(options, '"'))
  }

  /**
   * Creates the tables where they are missing; any number of processes may call it at once.
   * @throws Error that names the difference where a table of another schema has the name.
   */
  async migrate(): Promise<void> {
    await persist('create', undefined, sqliteFailure, async () => migrateSqlite(this.#connection, this.#names)).catch(
      error => {
        throw error.cause ?? error
      },
    )
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
    return persist('read', deadline, sqliteFailure, async () => {
      const row = this.#connection.row(this.#statements.read.text, [key])
      const found = row === null ? null : fromRow(row, now, this.#names.userId)
      if (found !== null && 'corrupt' in found) this.#connection.change(this.#statements.remove.text, [key])
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
    return persist('update', deadline, sqliteFailure, async () => {
      const fault = changeFault(change)
      if (fault !== null) throw unusable(fault)
      if (this.#change(this.#statements.update, { id: key, version, now, ...change }) === 1) return 'updated'
      const row = this.#connection.row(this.#statements.read.text, [key])
      const found = row === null ? null : fromRow(row, now, this.#names.userId)
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
    return persist('touch', deadline, sqliteFailure, async () =>
      this.#change(this.#statements.touch, { id: key, seenAt, expiresAt, now }) === 1 ? 'touched' : 'gone',
    )
  }

  async delete(key: string, deadline?: number): Promise<boolean> {
    if (!isKey(key)) return false
    return persist('delete', deadline, sqliteFailure, async () => {
      // What is absent needs no lock.
      if (this.#connection.row(this.#statements.read.text, [key]) === null) return false
      return this.#connection.transaction(change => {
        // The last key is the session, if there is one; those before it are the way, which is forgotten.
        const ids = this.#lineage(key)
        const isRecord = this.#connection.row(this.#statements.read.text, [ids.at(-1) as string])?.[14] === null
        for (const id of ids) change(this.#statements.remove.text, [id])
        return isRecord
      })
    })
  }

  async deleteUser(userId: string, options: DeleteUserOptions, deadline?: number): Promise<number> {
    return persist('deleteUser', deadline, sqliteFailure, async () => {
      const user = this.#user(userId)
      const { now, exceptKey = '', passwordVersion, floorUntil } = options
      return this.#connection.transaction(change => {
        const values = { ...user, now, except: this.#lineage(exceptKey).at(-1) ?? '' }
        const run = (statement: Statement, more: Values = {}) =>
          change(statement.text, bind(statement, { ...values, ...more }))
        if (passwordVersion !== undefined) run(this.#statements.raiseFloor, { floor: passwordVersion, floorUntil })
        const ended = run(this.#statements.endUser)
        run(this.#statements.endRest)
        return ended
      })
    })
  }

  async listUser(
    userId: string,
    kind: SessionRecord['kind'],
    now: number,
    deadline?: number,
  ): Promise<SessionRecord[]> {
    return persist('listUser', deadline, sqliteFailure, async () => {
      const { listUser } = this.#statements
      return this.#connection
        .rows(listUser.text, bind(listUser, { ...this.#user(userId), kind, now }))
        .map(row => fromRow(row, now, this.#names.userId))
        .filter(found => found !== null && 'key' in found) as SessionRecord[]
    })
  }

  async sweep(now: number, limit: number, deadline?: number): Promise<number> {
    let removed = 0
    // The earlier of the two clocks decides: a node whose clock is ahead ends nobody's session.
    const before = Math.min(now, Date.now()) - SWEEP_MARGIN
    for (const statement of this.#statements.sweep)
      for (let last = 1; last > 0 && removed < limit; ) {
        const values = { before, limit: Math.min(SWEEP_BATCH, limit - removed) }
        last = await persist('sweep', deadline, sqliteFailure, async () => this.#change(statement, values))
        removed += last
        if (deadline !== undefined && performance.now() > deadline - 100) return removed
        await new Promise(resolve => setImmediate(resolve))
      }
    return removed
  }

  #change(statement: Statement, values: Values): number {
    return this.#connection.change(statement.text, bind(statement, values))
  }

  // A key and where the forwards from it lead, step by step. A hand-made circle ends the walk.
  #lineage(key: string): string[] {
    const seen = new Set<string>()
    for (let id: unknown = key; isKey(id) && !seen.has(id); ) {
      seen.add(id)
      id = this.#connection.row(this.#statements.read.text, [id])?.[14]
    }
    return [...seen]
  }

  #user(userId: string) {
    const fault = userFault(userId, this.#names.userId)
    if (fault !== null) throw unusable(fault)
    return { ...splitUser(userId) }
  }

  #make(
    operation: 'create' | 'replace',
    record: SessionRecord,
    options: CreateOptions,
    deadline: number | undefined,
    old?: { key: string; version: number },
  ): Promise<ReplaceResult> {
    return persist(operation, deadline, sqliteFailure, async () => {
      const fault = recordFault(record, this.#names.userId)
      if (fault !== null) throw unusable(fault)
      const { now, forward } = options
      const values: Values = {
        ...recordValues(record),
        now,
        old: old?.key ?? '',
        salt: forward?.salt ?? '',
        until: forward?.until ?? 0,
        forgetAt: Math.max(now, forward?.until ?? 0) + FORWARD_LIFETIME,
      }
      return this.#connection.transaction(change => this.#decide(change, record, options, values, old))
    })
  }

  #decide(
    change: Change,
    record: SessionRecord,
    { limit, forward }: CreateOptions,
    values: Values,
    old?: { key: string; version: number },
  ): ReplaceResult {
    const { facts, oldest, insert } = this.#statements
    const [taken, writeId, version, parent, stale, parentLives] = this.#connection.row(
      facts.text,
      bind(facts, values),
    ) as unknown[]
    const reason = verdict(
      record,
      {
        taken: Number(taken) === 1,
        writeId: writeId as string | null,
        old: version === null ? null : { version: Number(version), parent: parent as string | null },
        stale: Number(stale) === 1,
        parentLives: Number(parentLives) === 1,
      },
      old?.version,
    )
    if (reason !== null) return answer(reason)
    let ended: string[] = []
    if (limit !== undefined && record.userId !== null && record.kind === 'session') {
      const others = this.#connection.rows(oldest.text, bind(oldest, values))
      const excess = Math.max(0, others.length + 1 - limit.max)
      if (excess > 0 && limit.onLimit === 'refuse') return answer('limit')
      ended = others.slice(0, excess).map(([id]) => id as string)
    }
    if (old !== undefined) {
      const { forward: leave, remove } = this.#statements
      if (forward === undefined) change(remove.text, [old.key])
      else change(leave.text, bind(leave, values))
    }
    change(insert.text, bind(insert, values))
    for (const id of ended) change(this.#statements.remove.text, [id])
    return { outcome: 'created', ended }
  }
}
