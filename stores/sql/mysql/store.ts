import type { ReplaceResult, StoreCall } from '../../../src/contract/store.ts'
import { checkSqlOptions, namesOf, type SqlOptions } from '../options.ts'
import { isKey } from '../rows.ts'
import {
  changedMeanwhile,
  type Ended,
  isLimited,
  type Making,
  ServerStore,
  SWEEP_BATCH,
  withinLimit,
} from '../server-store.ts'
import type { Run, Statement, Values } from '../statement.ts'
import { answer, verdict } from '../verdict.ts'
import { checkMysqlPool, isDuplicate, MysqlConnections, type MysqlPool, mysqlFailure } from './client.ts'
import { migrateMysql, mysqlSchema } from './schema.ts'
import { mysqlStatements } from './statements.ts'

function checked(options: SqlOptions): SqlOptions {
  checkSqlOptions('MysqlStore', options)
  return options
}

/**
 * Sessions in MySQL 8 or MariaDB 10.5 and later (InnoDB), through a pool of `mysql2/promise` or of `mysql2` that the
 * application makes and closes. The connections speak utf8mb4, mysql2's default.
 */
export class MysqlStore extends ServerStore {
  protected readonly names
  protected readonly connections: MysqlConnections
  protected readonly statements: ReturnType<typeof mysqlStatements>
  readonly #made = new Map<string, Statement>()

  /** Opens and creates nothing. @throws TypeError for a pool or an option of the wrong kind. */
  constructor(pool: MysqlPool, options: SqlOptions = {}) {
    super()
    this.names = namesOf(checked(options), '`')
    const bytes = this.names.userIds === 'text' ? ['tenant', 'user'] : ['tenant']
    this.connections = new MysqlConnections(checkMysqlPool(pool), bytes, this.names.plain.sessions)
    this.statements = mysqlStatements(this.names, this.batch)
  }

  /** The DDL that `migrate()` runs, for those who keep their schema in files. */
  static schema(options: SqlOptions = {}): string {
    return mysqlSchema(namesOf(checked(options), '`'))
  }

  /**
   * Creates the tables where they are missing; any number of processes may call it at once. Needs the right to create
   * only where something is missing.
   * @throws Error that names the difference where a table of another schema has the name.
   */
  migrate(): Promise<void> {
    return migrateMysql(this.connections, this.names)
  }

  /** Removes at most `limit` expired rows, oldest first; answers how many. */
  async sweep(limit: number, { now, deadline }: StoreCall): Promise<number> {
    return this.attempts('sweep', deadline, async end => {
      let removed = 0
      for (const { find, remove } of this.statements.sweep)
        for (let last = 1; last > 0 && removed < limit && performance.now() < end; ) {
          const found = (await this.connections.run(find, { now }, end)).rows.slice(0, limit - removed)
          if (found.length === 0) break
          const values: Record<string, string | number> = { now }
          // Always as many keys as the statement has places, so that it is prepared once.
          for (let i = 0; i < SWEEP_BATCH; i++) {
            const row = found[Math.min(i, found.length - 1)]!
            for (const [column, cell] of row.entries()) values[`k${column}n${i}`] = cell
          }
          last = (await this.connections.run(remove, values, end)).changed
          removed += last
        }
      return removed
    })
  }

  protected async endSome(run: Run, values: Values): Promise<Ended> {
    // Looked for under the lock: the excepted session may have been replaced before. A circle of forwards ends the walk.
    const spared = new Set<unknown>()
    for (let id: unknown = values.except; isKey(id) && !spared.has(id); ) {
      spared.add(id)
      id = (await run(this.statements.movedTo, { id })).rows[0]?.[0]
    }
    const rest = { ...values, except: ([...spared].at(-1) as string | undefined) ?? '' }
    const { changed } = await run(this.statements.endUser, rest)
    if (changed === this.batch) return { ended: changed, all: false }
    return { ended: changed, all: (await run(this.statements.endRest, rest)).changed < this.batch }
  }

  protected failureOf = mysqlFailure

  protected async make(making: Making, end: number): Promise<ReplaceResult> {
    if (isLimited(making)) return this.connections.transaction(end, run => this.#careful(making, run), true)
    const alone: Run = (statement, values) => this.connections.run(statement, values, end)
    if (await this.#write(making, alone)) return answer('created')
    // A user's first login: there was no row to lock.
    if (making.record.userId !== null && (await alone(this.statements.meet, making.values)).changed > 0)
      if (await this.#write(making, alone)) return answer('created')
    const reason = await this.reason(alone, making)
    if (reason !== null) return answer(reason)
    if (making.old === undefined || making.record.parent === null) throw changedMeanwhile()
    return this.connections.transaction(end, run => this.#careful(making, run), true)
  }

  // For what one statement cannot say: to count after the lock, and to ask for the parent of another session's successor.
  async #careful(making: Making, run: Run): Promise<ReplaceResult> {
    const { record, options, old, values } = making
    if (record.userId !== null) await run(this.statements.lockUser, values)
    if (record.parent !== null) await run(this.statements.lockParent, values)
    const reason = verdict(record, await this.facts(run, making), old?.version)
    if (reason !== null) return answer(reason)
    const others = isLimited(making) ? (await run(this.statements.oldest, values)).rows.map(([id]) => id) : []
    const ended = withinLimit(options.limit, others)
    if (ended === null) return answer('limit')
    // Rolled back; the next attempt sees what stood in the way.
    if (!(await this.#write(making, run, false))) throw changedMeanwhile()
    for (const id of ended) await run(this.statements.remove, { id })
    return { outcome: 'created', ended }
  }

  /** `born`: whether the statement itself has to look after the parent. */
  async #write(making: Making, run: Run, born = making.record.parent !== null): Promise<boolean> {
    const values: Values = { ...making.values, born: born ? 1 : 0 }
    try {
      return (await run(this.#statement(making), values)).changed > 0
    } catch (error) {
      if (isDuplicate(error)) return false
      throw error
    }
  }

  // There are eight forms of create and replace; each is made when it is first needed.
  #statement({ record, options, old }: Making): Statement {
    const [known, born] = [record.userId !== null, record.parent !== null]
    const leaves = options.forward !== undefined
    const form = [old !== undefined, known, born, leaves].join()
    let statement = this.#made.get(form)
    if (statement === undefined) {
      const { create, replace } = this.statements
      statement = old === undefined ? create(known, born) : replace(known, leaves)
      this.#made.set(form, statement)
    }
    return statement
  }
}
