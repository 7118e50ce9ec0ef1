import type { ReplaceResult, StoreCall } from '../../../src/contract/store.ts'
import { optionNames } from '../../../src/text/check-options.ts'
import { quote } from '../../../src/text/quote.ts'
import { checkSqlOptions, namesOf, SQL_OPTIONS, type SqlOptions } from '../options.ts'
import { unpacked } from '../rows.ts'
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
import { answer } from '../verdict.ts'
import { checkPgPool, isUniqueViolation, PgConnections, type PgPool, pgFailure } from './client.ts'
import { migratePostgres, postgresSchema } from './schema.ts'
import { postgresStatements } from './statements.ts'

export interface PostgresOptions extends SqlOptions {
  /**
   * Whether statements are prepared under a name, once per connection. Behind a pooler that shares connections by
   * transaction and does not know prepared statements (pgbouncer before 1.21) the store finds out and stops by itself.
   * @default true
   */
  prepare?: boolean
}

const OPTIONS = [...SQL_OPTIONS, ...optionNames<Omit<PostgresOptions, keyof SqlOptions>>({ prepare: true })]

function checked(options: PostgresOptions): PostgresOptions {
  checkSqlOptions('PostgresStore', options, OPTIONS)
  if (options.prepare !== undefined && typeof options.prepare !== 'boolean')
    throw new TypeError(`PostgresStore: prepare must be true or false, got ${quote(options.prepare)}`)
  return options
}

/** Sessions in PostgreSQL 12 or later, through a `pg.Pool` that the application makes and closes. */
export class PostgresStore extends ServerStore {
  protected readonly names
  protected readonly connections: PgConnections
  protected readonly statements: ReturnType<typeof postgresStatements>
  readonly #made = new Map<string, Statement>()

  /** Opens and creates nothing. @throws TypeError for a pool or an option of the wrong kind. */
  constructor(pool: PgPool, options: PostgresOptions = {}) {
    super()
    this.names = namesOf(checked(options), '"')
    this.connections = new PgConnections(checkPgPool(pool), options.prepare ?? true)
    this.statements = postgresStatements(this.names, this.batch)
  }

  /** The DDL that `migrate()` runs, for those who keep their schema in files. */
  static schema(options: SqlOptions = {}): string {
    return postgresSchema(namesOf(checked(options), '"'))
  }

  /**
   * Creates the tables where they are missing; any number of processes may call it at once. Needs the right to create
   * only where something is missing.
   * @throws Error that names the difference where a table of another schema has the name.
   */
  migrate(): Promise<void> {
    return migratePostgres(this.connections, this.names)
  }

  /** Removes at most `limit` expired rows, oldest first; answers how many. */
  async sweep(limit: number, { now, deadline }: StoreCall): Promise<number> {
    return this.attempts('sweep', deadline, async end => {
      let removed = 0
      for (const statement of this.statements.sweep)
        for (let last = 1; last > 0 && removed < limit && performance.now() < end; ) {
          const values = { now, limit: Math.min(SWEEP_BATCH, limit - removed) }
          last = (await this.connections.run(statement, values, end)).changed
          removed += last
        }
      return removed
    })
  }

  protected async endSome(run: Run, values: Values): Promise<Ended> {
    const [ended, found] = (await run(this.statements.endSome, values)).rows[0]!
    return { ended: Number(ended), all: Number(found) < this.batch }
  }

  protected failureOf = pgFailure
  protected override unpack = unpacked

  protected async make(making: Making, end: number): Promise<ReplaceResult> {
    if (isLimited(making)) return this.connections.transaction(end, run => this.#limited(making, run))
    const alone: Run = (statement, values) => this.connections.run(statement, values, end)
    if (await this.#write(making, alone)) return answer('created')
    const reason = await this.reason(alone, making)
    if (reason === null) throw changedMeanwhile()
    return answer(reason)
  }

  // To lock and to count in one statement would count by a snapshot from before the wait for the lock.
  async #limited(making: Making, run: Run): Promise<ReplaceResult> {
    await run(this.statements.lockUser, making.values)
    const reason = await this.reason(run, making)
    if (reason !== null) return answer(reason)
    const { rows } = await run(this.statements.oldest, making.values)
    const ended = withinLimit(
      making.options.limit,
      rows.map(([id]) => id),
    )
    if (ended === null) return answer('limit')
    // Rolled back; the next attempt sees what stood in the way.
    if (!(await this.#write(making, run))) throw changedMeanwhile()
    if (ended.length > 0) await run(this.statements.end, { ids: ended })
    return { outcome: 'created', ended }
  }

  async #write(making: Making, run: Run): Promise<boolean> {
    try {
      return (await run(this.#statement(making), making.values)).changed > 0
    } catch (error) {
      if (isUniqueViolation(error)) return false
      throw error
    }
  }

  // There are twelve forms of create and replace; each is made when it is first needed.
  #statement({ record, options, old }: Making): Statement {
    const [known, born] = [record.userId !== null, record.parent !== null]
    const leaves = options.forward !== undefined
    const form = [old !== undefined, known, born, leaves].join()
    let statement = this.#made.get(form)
    if (statement === undefined) {
      const { create, replace } = this.statements
      statement = old === undefined ? create(known, born) : replace(known, born, leaves)
      this.#made.set(form, statement)
    }
    return statement
  }
}
