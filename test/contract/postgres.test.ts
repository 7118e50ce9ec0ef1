import { modelTest, testStore } from 'coatcheck/custom-store/testing'
import { PostgresStore } from 'coatcheck/stores/postgres'
import fc from 'fast-check'
import { it } from 'vitest'
import { describeEngine } from '../support/services/engines.ts'
import { sharedPostgres } from '../support/services/postgres.ts'
import { damages } from '../support/sql/backend.ts'
import { started } from '../support/started.ts'

describeEngine('postgresql', 'the PostgreSQL store', () => {
  const own = started(async () => {
    const server = await sharedPostgres()
    const pool = () => server.pool({ max: 10 })
    return { pool: pool(), second: pool(), stop: server.stop }
  })

  const open = async (options = {}) => {
    const stores = [new PostgresStore(own().pool, options), new PostgresStore(own().second, options)] as const
    await stores[0].migrate()
    return stores
  }
  it('behaves like the reference model', () => modelTest(fc, open, undefined, { runs: 10 }))
  it('behaves like the reference model without prepared statements', () =>
    modelTest(fc, () => open({ prepare: false }), undefined, { runs: 10 }))
  testStore(it, open, undefined, { textUserIds: true, ...damages(sql => own().pool.query(sql)), runs: 15 })
})
