import { modelTest, testStore } from 'coatcheck/custom-store/testing'
import { PostgresStore } from 'coatcheck/stores/postgres'
import fc from 'fast-check'
import type pg from 'pg'
import { afterAll, beforeAll, it } from 'vitest'
import { describeEngine } from '../support/services/engines.ts'
import { type PostgresDatabase, sharedPostgres } from '../support/services/postgres.ts'
import { damages } from '../support/sql/backend.ts'

describeEngine('postgresql', 'the PostgreSQL store', () => {
  let server: PostgresDatabase
  let pool: pg.Pool
  let second: pg.Pool
  beforeAll(async () => {
    server = await sharedPostgres()
    pool = server.pool({ max: 10 })
    second = server.pool({ max: 10 })
  })
  afterAll(() => server?.stop())

  const open = async (options = {}) => {
    const stores = [new PostgresStore(pool, options), new PostgresStore(second, options)] as const
    await stores[0].migrate()
    return stores
  }
  it('behaves like the reference model', () => modelTest(fc, open, undefined, { runs: 10 }))
  it('behaves like the reference model without prepared statements', () =>
    modelTest(fc, () => open({ prepare: false }), undefined, { runs: 10 }))
  testStore(it, open, undefined, { textUserIds: true, ...damages(sql => pool.query(sql)), runs: 15 })
})
