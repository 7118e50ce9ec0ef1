import type { StoreOperation } from '../../../src/contract/errors.ts'
import type { ReplaceOutcome, StoreCall } from '../../../src/contract/store.ts'
import { checkOptions, type OptionsOf } from '../../../src/text/check-options.ts'
import type { Row, Values } from '../base/engine.ts'
import { endOf, retry } from '../base/retry.ts'
import { optionsOf, type SqlStoreOptions } from '../base/schema.ts'
import { ddlText, type Ended, formOf, type Pending, SqlStore, verdict } from '../base/store.ts'
import { SQLITE } from '../sqlite/engine.ts'
import { checkD1, type D1Client, D1Engine } from './engine.ts'

/** Options of D1Store. A D1 database has one schema, so there is none to choose. */
export type D1StoreOptions = Pick<SqlStoreOptions, 'table'>

const { rules, hints } = optionsOf('D1Store', {})
const OPTIONS: OptionsOf<D1StoreOptions> = {
  where: 'D1Store',
  rules: { table: rules.table },
  hints: { ...hints, schema: 'the database has one schema' },
}

/**
 * Sessions in Cloudflare D1, through the binding of a Worker. Statements that must be committed together are one batch, in
 * one round trip.
 *
 * Reads of several requests do not share a statement: on Workers, I/O that a request waits for ends with that request.
 */
export class D1Store extends SqlStore {
  declare protected readonly engine: D1Engine
  protected override readonly batch = 250
  readonly isPerRequest = true

  /** Asks and creates nothing. @throws TypeError for a database or an option of the wrong kind */
  constructor(database: D1Client, options: D1StoreOptions = {}) {
    checkOptions(OPTIONS, options)
    super(new D1Engine(checkD1(database)), options)
  }

  /** The DDL that `migrate()` runs, for a file of `wrangler d1 migrations`. */
  static ddl(options: D1StoreOptions = {}): string {
    checkOptions(OPTIONS, options)
    return ddlText(options, SQLITE)
  }

  protected readonly find = async (key: string, end: number): Promise<Row | null> =>
    (await this.select('read', this.texts.read, { id: key }, end))[0] ?? null

  /** How many live sessions there are: reads the whole table. */
  async count({ now, deadline }: StoreCall): Promise<number> {
    return Number((await this.select('count', this.texts.count, { now }, endOf(deadline)))[0]!.live)
  }

  // No answer comes in the middle of a batch. So where a forward takes two statements, the first one puts a `!` before the
  // write ID, which no write ID contains, and a third one removes it. By the `!` the second one sees that there is a session.
  protected override make(operation: StoreOperation, pending: Pending, end: number): Promise<ReplaceOutcome> {
    const { sessions } = this.names
    const isNew = `id = :id AND write_id = '!' || :writeId`
    const [made, move] = this.texts.make(formOf(pending))
    const moves = [
      made!.replace(':writeId', "'!' || :writeId"),
      `${move} AND EXISTS (SELECT 1 FROM ${sessions} WHERE ${isNew})`,
      `UPDATE ${sessions} SET write_id = :writeId WHERE ${isNew}`,
    ]
    const steps = (move === undefined ? [made!] : moves).map(text => [text, pending.values] as const)
    return retry(operation, end, this.engine.failureOf, async () => {
      const [outcome] = await this.engine.batch(steps, end)
      if (outcome!.changed > 0) return 'created'
      const [facts] = await this.engine.batch([[this.texts.facts, pending.values]], end)
      return verdict(pending, facts!.rows[0]!)
    })
  }

  protected override endPiece(values: Values, end: number): Promise<Ended> {
    return retry('deleteUser', end, this.engine.failureOf, async () => {
      const raises = values.minPasswordVersionUntil === 0 ? [] : [this.texts.lockUser]
      const outcomes = await this.engine.batch(
        [...raises, this.texts.endUser].map(text => [text, values]),
        end,
      )
      return this.endedBy(outcomes.at(-1)!.rows, values)
    })
  }
}
