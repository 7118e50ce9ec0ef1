import type { StoreCall } from '../../../src/contract/store.ts'
import { aBoolean, checkOptions } from '../../../src/text/check-options.ts'
import { namesOf, optionsOf, type SqlStoreOptions } from '../options.ts'
import { endOf } from '../retry.ts'
import { ServerStore } from '../server-store.ts'
import type { Statement, Steps, Value, Values } from '../statement.ts'
import type { Ended, Swept } from '../store.ts'
import { printed } from '../tables.ts'
import { checkPgPool, PgConnections } from './client.ts'
import type { PgPool } from './driver.ts'
import { checkPostgresJs, isPostgresJs, type PostgresJs, PostgresJsConnections } from './postgres-js.ts'
import { postgresSchema } from './schema.ts'
import { postgresStatements } from './statements.ts'

export interface PostgresOptions extends SqlStoreOptions {
  /**
   * Whether statements are prepared under a name, once per connection. Behind a pooler that shares connections by
   * transaction and does not know prepared statements (pgbouncer before 1.21) the store finds out and stops by itself.
   * @default true
   */
  prepare?: boolean
}

const OPTIONS = optionsOf<PostgresOptions>('PostgresStore', { prepare: aBoolean })

function postgresNames(options: PostgresOptions) {
  checkOptions(OPTIONS, options)
  return namesOf(options, '"')
}

/**
 * Sessions in PostgreSQL 12 or later, through a `pg.Pool`, or the `sql` of `postgres`, that the application makes and
 * closes.
 */
export class PostgresStore extends ServerStore {
  protected readonly names
  protected readonly database
  protected readonly statements
  protected readonly schema

  /** Opens and creates nothing. @throws TypeError for a pool or an option of the wrong kind. */
  constructor(pool: PgPool | PostgresJs, options: PostgresOptions = {}) {
    super()
    this.names = postgresNames(options)
    const prepare = options.prepare ?? true
    this.database = isPostgresJs(pool)
      ? new PostgresJsConnections(checkPostgresJs(pool, this.names.userIds), prepare)
      : new PgConnections(checkPgPool(pool), prepare)
    this.statements = postgresStatements(this.names, this.batch)
    this.schema = postgresSchema(this.names)
  }

  /** The DDL that `migrate()` runs, for those who keep their schema in files. */
  static ddl(options: SqlStoreOptions = {}): string {
    return printed(postgresSchema(postgresNames(options)))
  }

  // An array as text: a key contains nothing that would have to be quoted there.
  protected selectEach(keys: readonly string[]): readonly [Statement, Value[]] {
    return [this.statements.readEach, [`{${keys.join()}}`]]
  }

  /** How many live sessions there are, by one look at the whole table: 0.3 to 0.5 s for a million rows. */
  async count({ now, deadline }: StoreCall): Promise<number> {
    return this.database.read('count', endOf(deadline), () => this.#count(now))
  }

  *#count(now: number): Steps<number> {
    return Number((yield [this.statements.count, { now }]).rows[0]![0])
  }

  protected *endSome(values: Values): Steps<Ended> {
    const [ended, found] = (yield [this.statements.endSome, values]).rows[0]!
    return { ended: Number(ended), all: Number(found) < this.batch }
  }

  protected override *endEach(ids: readonly string[]): Steps<readonly string[]> {
    if (ids.length === 0) return []
    const ended = new Set((yield [this.statements.removeAll, { ids }]).rows.map(([id]) => id))
    return ids.filter(id => ended.has(id))
  }

  protected *sweepBatch(table: 'sessions' | 'users', values: Values): Steps<Swept> {
    const [removed, last] = (yield [this.statements.sweep[table], values]).rows[0]!
    return { removed: Number(removed), last: Number(last) }
  }
}
