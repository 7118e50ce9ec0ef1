import type { StoreOperation } from '../../../src/contract/errors.ts'
import type { ReplaceResult, StoreCall } from '../../../src/contract/store.ts'
import { checkOptions, type OptionPlace } from '../../../src/text/check-options.ts'
import type { Row, Values } from '../base/engine.ts'
import { changedMeanwhile, endOf, retry } from '../base/retry.ts'
import { optionsOf, type SqlStoreOptions } from '../base/schema.ts'
import { partsOf } from '../base/statements.ts'
import { ddlText, type Ended, formOf, late, type Pending, SqlStore, verdict } from '../base/store.ts'
import { SQLITE } from '../sqlite/engine.ts'
import { checkD1, type D1Client, D1Engine, type Step } from './engine.ts'

/** Options of D1Store. A D1 database has one schema, so there is none to choose. */
export type D1StoreOptions = Pick<SqlStoreOptions, 'table'>

const { rules, hints } = optionsOf('D1Store', {})
const OPTIONS: OptionPlace<D1StoreOptions> = {
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

  protected override make(operation: StoreOperation, pending: Pending, end: number): Promise<ReplaceResult> {
    return retry(operation, end, this.engine.failureOf, async () => {
      const { record, old, limit, values } = pending
      const [made, ...others] = await this.engine.batch(this.#making(pending), end)
      if (made!.changed > 0) {
        const ended = limit === undefined ? [] : others[0]!.rows.map(({ id }) => String(id))
        return { outcome: 'created', ended }
      }
      const looks: Step[] = [this.texts.facts, this.texts.oldest].map(text => [text, values])
      const [facts, oldest] = await this.engine.batch(looks, end)
      const isFull = limit?.onLimit === 'refuse' && oldest!.rows.length >= limit.max
      const outcome = verdict(record, old, facts!.rows[0]!) ?? (isFull ? 'limit' : null)
      if (outcome === null) throw late(facts!.rows[0]!, values.latest) ?? changedMeanwhile()
      return { outcome, ended: [] }
    })
  }

  // No answer comes in the middle of a batch. So the first statement puts a `!` before the write ID, which no write ID
  // contains, and the last one removes it. By the `!` the others see whether the first one made the session.
  #making(pending: Pending): Step[] {
    const { sessions } = this.names
    const { live, ofUser } = partsOf(this.names, this.engine.dialect)
    const { limit } = pending
    const [first, ...others] = this.texts.make(formOf(pending))
    const isNew = `id = :id AND write_id = '!' || :writeId`
    const oldest = `FROM ${sessions} WHERE ${ofUser()} AND kind = 'session' AND ${live()} AND id <> :old AND id <> :id`
    const room = limit?.onLimit === 'refuse' ? ` AND (SELECT count(*) ${oldest}) < :max` : ''
    const next = others.map(text => `${text} AND EXISTS (SELECT 1 FROM ${sessions} WHERE ${isNew})`)
    if (limit !== undefined)
      next.unshift(`DELETE FROM ${sessions} WHERE EXISTS (SELECT 1 FROM ${sessions} WHERE ${isNew}) AND id IN (
        SELECT id ${oldest} ORDER BY created_at, id LIMIT max(0, (SELECT count(*) ${oldest}) + 1 - :max)) RETURNING id`)
    const texts = [
      first!.replace(':writeId', "'!' || :writeId") + room,
      ...next,
      `UPDATE ${sessions} SET write_id = :writeId WHERE ${isNew}`,
    ]
    const values: Values = { ...pending.values, max: limit?.max ?? 0 }
    return (next.length === 0 ? [first! + room] : texts).map(text => [text, values])
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
