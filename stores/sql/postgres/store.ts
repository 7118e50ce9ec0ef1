import type { StoreCall } from '../../../src/contract/store.ts'
import { aBoolean, checkOptions } from '../../../src/text/check-options.ts'
import type { Row } from '../base/engine.ts'
import { PoolEngine } from '../base/pool.ts'
import { endOf } from '../base/retry.ts'
import { optionsOf, SESSION_COLUMNS, type SqlStoreOptions } from '../base/schema.ts'
import { sharedFind } from '../base/shared-find.ts'
import { ddlText, SqlStore } from '../base/store.ts'
import { DIALECT } from './dialect.ts'
import { checkPgPool, type PgPool, pgDriver } from './pg.ts'
import { checkPostgresJs, isPostgresJs, type PostgresJs, postgresJsDriver } from './postgres-js.ts'

/** Options of a `PostgresStore`. */
export interface PostgresOptions extends SqlStoreOptions {
  /**
   * Whether statements are prepared under a name, once per connection. Behind a pooler that shares connections by
   * transaction and does not know prepared statements (pgbouncer before 1.21) the store finds out and stops by itself.
   * @default true
   */
  prepare?: boolean
}

const OPTIONS = optionsOf<PostgresOptions>('PostgresStore', { prepare: aBoolean })

/**
 * Sessions in PostgreSQL 12 or later, through a `pg.Pool`, or the `sql` of `postgres`, that the application makes and
 * closes.
 */
export class PostgresStore extends SqlStore {
  protected override readonly find = sharedFind((ids, end) => this.#rows(ids, end))
  readonly #read = `${ROW} FROM ${this.names.sessions} WHERE id = :id`
  readonly #readEach = `${ROW} FROM ${this.names.sessions} WHERE id = ANY (:ids)`

  /**
   * Opens and creates nothing.
   * @throws TypeError for a pool or an option of the wrong kind
   * @example
   * const store = new PostgresStore(new pg.Pool({ connectionString: 'postgres://app@localhost/app' }))
   */
  constructor(pool: PgPool | PostgresJs, options: PostgresOptions = {}) {
    checkOptions(OPTIONS, options)
    const { prepare = true } = options
    super(
      isPostgresJs(pool)
        ? new PoolEngine(postgresJsDriver(checkPostgresJs(pool), prepare))
        : new PoolEngine(pgDriver(checkPgPool(pool), prepare)),
      options,
    )
  }

  /** The DDL that `migrate()` runs, for those who keep their schema in files. */
  static ddl(options: PostgresOptions = {}): string {
    checkOptions(OPTIONS, options)
    return ddlText(options, DIALECT)
  }

  /** How many live sessions there are, by one look at the whole table: 0.3 to 0.5 s for a million rows. */
  async count({ now, deadline }: StoreCall): Promise<number> {
    const [row] = await this.select('count', this.texts.count, { now }, endOf(deadline))
    return Number(row!.live)
  }

  #rows(ids: readonly string[], end: number): Promise<readonly Row[]> {
    const isOne = ids.length === 1
    const text = isOne ? this.#read : this.#readEach
    // An array as text: a key contains nothing that would have to be quoted there.
    const values = isOne ? { id: ids[0]! } : { ids: `{${ids.join()}}` }
    return this.select('read', text, values, end)
  }
}

const ROW = `SELECT json_build_array(${SESSION_COLUMNS.map(({ name }) => name)}) AS cells`
