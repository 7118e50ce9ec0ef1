import { SessionStoreError, type StoreOperation } from '../../../src/contract/errors.ts'
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
  SWEEP_MARGIN,
} from '../../../src/contract/store.ts'
import { checkSqlOptions, type Names, namesOf, type SqlOptions } from '../options.ts'
import { notBegun, unusable } from '../patience.ts'
import { fromRow, isKey, recordValues } from '../rows.ts'
import { bind, type Statement, type Value } from '../statement.ts'
import { splitUser, userFault } from '../user.ts'
import { answer, changeFault, recordFault, verdict } from '../verdict.ts'
import { type Change, checkSqlite, SqliteConnection, type SqliteDatabase } from './client.ts'
import { migrateSqlite, sqliteSchema } from './schema.ts'
import { sqliteStatements } from './statements.ts'
import { Turns } from './turns.ts'

type Values = Readonly<Record<string, Value>>

/** How many rows a sweep removes at a time: the event loop runs in between. */
const SWEEP_BATCH = 250
/** How many records of a user end in one transaction: the same for a log-out everywhere. */
const END_BATCH = 250

function sqliteNames(options: SqlOptions): Names {
  checkSqlOptions('SqliteStore', options)
  return namesOf(options, '"')
}

/**
 * Sessions in a SQLite file, through a connection of better-sqlite3, libsql, node:sqlite or bun:sqlite that the application opens
 * and closes. Several processes may share the file; set `journal_mode = WAL`. At its first use the store sets
 * `busy_timeout` of the connection to 5 ms and waits by itself from there: SQLite's own waiting blocks the event loop.
 */
export class SqliteStore implements Store {
  readonly #names: Names
  readonly #connection: SqliteConnection
  // Apart, because in WAL mode nobody's lock stops a reader.
  readonly #reads = new Turns()
  readonly #writes = new Turns()
  readonly #statements: ReturnType<typeof sqliteStatements>

  /** Opens and creates nothing. @throws TypeError for a connection or an option of the wrong kind. */
  constructor(database: SqliteDatabase, options: SqlOptions = {}) {
    this.#connection = new SqliteConnection(checkSqlite(database))
    this.#names = sqliteNames(options)
    this.#statements = sqliteStatements(this.#names)
  }

  /** The DDL that `migrate()` runs, for those who keep their schema in files. */
  static schema(options: SqlOptions = {}): string {
    return sqliteSchema(sqliteNames(options))
  }

  /**
   * Creates the tables where they are missing; any number of processes may call it at once.
   * @throws Error that names the difference where a table of another schema has the name.
   */
  async migrate(): Promise<void> {
    await this.#writes
      .run('create', undefined, () => migrateSqlite(this.#connection, this.#names))
      .catch(error => {
        throw error.cause ?? error
      })
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

  async read(key: string, { now, deadline }: StoreCall): Promise<SessionRecord | Forward | Corrupt | null> {
    if (!isKey(key)) return null
    const found = await this.#reads.run('read', deadline, () => this.#find(key, now))
    if (found !== null && 'corrupt' in found) await this.#write('read', deadline, this.#statements.remove, { id: key })
    return found
  }

  async update(
    key: string,
    version: number,
    change: RecordChange,
    { now, deadline }: StoreCall,
  ): Promise<'updated' | 'conflict' | 'gone'> {
    if (!isKey(key)) return 'gone'
    const { update } = this.#statements
    return this.#writes.run('update', deadline, () => {
      const fault = changeFault(change)
      if (fault !== null) throw unusable(fault)
      return this.#connection.transaction(run => {
        if (run(update.text, bind(update, { id: key, version, now, ...change })) === 1) return 'updated'
        const found = this.#find(key, now)
        if (found === null || !('key' in found)) return 'gone'
        return found.version === version + 1 && found.writeId === change.writeId ? 'updated' : 'conflict'
      })
    })
  }

  async touch(
    key: string,
    seenAt: number,
    expiresAt: number,
    { now, deadline }: StoreCall,
  ): Promise<'touched' | 'gone'> {
    if (!isKey(key)) return 'gone'
    const values = { id: key, seenAt, expiresAt, now }
    return (await this.#write('touch', deadline, this.#statements.touch, values)) === 1 ? 'touched' : 'gone'
  }

  async delete(key: string, { deadline }: StoreCall): Promise<boolean> {
    // What is absent needs no lock.
    if (!isKey(key) || (await this.#reads.run('delete', deadline, () => this.#row(key))) === null) return false
    return this.#writes.run('delete', deadline, () =>
      this.#connection.transaction(change => {
        // The last key is the session, if there is one; those before it are the way, which is forgotten.
        const ids = this.#lineage(key)
        const isRecord = this.#row(ids.at(-1) as string)?.[14] === null
        for (const id of ids) change(this.#statements.remove.text, [id])
        return isRecord
      }),
    )
  }

  async deleteUser(userId: string, options: DeleteUserOptions, { now, deadline }: StoreCall): Promise<number> {
    let ended = 0
    for (let piece = 0; ; piece++) {
      try {
        const { found, live } = await this.#writes.run('deleteUser', deadline, () =>
          this.#endPiece(userId, options, now, piece === 0),
        )
        ended += live
        // In the last piece nothing was left: what was derived from the first ones meanwhile is over as well.
        if (found < END_BATCH) return ended
      } catch (error) {
        if (piece === 0 || !(error instanceof SessionStoreError)) throw error
        // The floor and the first pieces are in.
        throw new SessionStoreError('deleteUser', 'unknown', error.message, { cause: error.cause })
      }
      await new Promise(resolve => setImmediate(resolve))
    }
  }

  async listUser(userId: string, kind: SessionRecord['kind'], { now, deadline }: StoreCall): Promise<SessionRecord[]> {
    return this.#reads.run('listUser', deadline, () => {
      const { listUser } = this.#statements
      return this.#connection
        .rows(listUser.text, bind(listUser, { ...this.#user(userId), kind, now }))
        .map(row => fromRow(row, now, this.#names.userIds))
        .filter(found => found !== null && 'key' in found) as SessionRecord[]
    })
  }

  async sweep(limit: number, { now, deadline }: StoreCall): Promise<number> {
    let removed = 0
    // The earlier of the two clocks decides: a node whose clock is ahead ends nobody's session.
    const before = Math.min(now, Date.now()) - SWEEP_MARGIN
    for (const statement of this.#statements.sweep)
      for (let last = 1; last > 0 && removed < limit; ) {
        const values = { before, limit: Math.min(SWEEP_BATCH, limit - removed) }
        last = await this.#write('sweep', deadline, statement, values)
        removed += last
        if (deadline !== undefined && performance.now() > deadline - 100) return removed
        await new Promise(resolve => setImmediate(resolve))
      }
    return removed
  }

  /** One statement that writes, in its turn; answers how many rows it changed. */
  #write(
    operation: StoreOperation,
    deadline: number | undefined,
    statement: Statement,
    values: Values,
  ): Promise<number> {
    const bound = bind(statement, values)
    return this.#writes.run(operation, deadline, () =>
      this.#connection.transaction(change => change(statement.text, bound)),
    )
  }

  #row(key: string): unknown[] | null {
    const row = this.#connection.row(this.#statements.read.text, [key])
    // Nobody gets the session of another because of a driver's mistake.
    if (row !== null && row[0] !== key) throw notBegun('the driver answered for another key')
    return row
  }

  #find(key: string, now: number): SessionRecord | Forward | Corrupt | null {
    const row = this.#row(key)
    return row === null ? null : fromRow(row, now, this.#names.userIds)
  }

  // So many of a user's records as keep the event loop and the file for a moment only.
  #endPiece(userId: string, options: DeleteUserOptions, now: number, first: boolean): { found: number; live: number } {
    const { exceptKey = '', passwordVersion, floorUntil } = options
    const user = this.#user(userId)
    const { raiseFloor, userPiece, endUserPiece } = this.#statements
    return this.#connection.transaction(change => {
      if (first && passwordVersion !== undefined)
        change(raiseFloor.text, bind(raiseFloor, { ...user, now, floor: passwordVersion, floorUntil }))
      // Asked in each piece: the excepted session may be renewed in between.
      const except = this.#lineage(exceptKey).at(-1) ?? ''
      const values = { ...user, now, except, limit: END_BATCH }
      const [found, live] = this.#connection.row(userPiece.text, bind(userPiece, values)) as unknown[]
      if (Number(found) > 0) change(endUserPiece.text, bind(endUserPiece, values))
      return { found: Number(found), live: Number(live) }
    })
  }

  // A key and where the forwards from it lead, step by step. A hand-made circle ends the walk.
  #lineage(key: string): string[] {
    const seen = new Set<string>()
    for (let id: unknown = key; isKey(id) && !seen.has(id); ) {
      seen.add(id)
      id = this.#row(id)?.[14]
    }
    return [...seen]
  }

  #user(userId: string) {
    const fault = userFault(userId, this.#names.userIds)
    if (fault !== null) throw unusable(fault)
    return { ...splitUser(userId) }
  }

  #make(
    operation: 'create' | 'replace',
    record: SessionRecord,
    options: CreateOptions,
    { now, deadline }: StoreCall,
    old?: { key: string; version: number },
  ): Promise<ReplaceResult> {
    return this.#writes.run(operation, deadline, () => {
      const fault = recordFault(record, this.#names.userIds)
      if (fault !== null) throw unusable(fault)
      const { forward } = options
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
