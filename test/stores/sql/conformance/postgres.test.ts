import { modelTest, testStore } from 'coatcheck/custom-store/testing'
import { PostgresStore } from 'coatcheck/stores/postgres'
import fc from 'fast-check'
import type pg from 'pg'
import type { Sql } from 'postgres'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { describeEngine } from '../../../services/engines.ts'
import { type PostgresServer, startPostgres } from '../../../services/postgres.ts'

const DRIVERS = ['pg', 'postgres'] as const
const USER_IDS = ['bigint', 'string'] as const
const EACH = DRIVERS.flatMap(driver => USER_IDS.map(userIds => [driver, userIds] as const))

describeEngine('postgresql', 'the PostgreSQL store', () => {
  let server: PostgresServer
  let pool: pg.Pool
  let sql: Sql
  beforeAll(async () => {
    server = await startPostgres()
    pool = server.pool({ max: 10 })
    sql = server.postgresJs({ max: 10 })
  })
  afterAll(() => server?.stop())

  describe.each(EACH)('through %s with %s user IDs', (driver, userIds) => {
    const open = async (options = {}) => {
      const store = new PostgresStore(driver === 'pg' ? pool : sql, {
        userIds,
        table: `${userIds}_sessions`,
        ...options,
      })
      await store.migrate()
      return store
    }
    const corrupt = async (_: unknown, key: string) => {
      await pool.query(`UPDATE ${userIds}_sessions SET version = -1 WHERE id = $1`, [key])
    }
    const rename = (from: string, to: string) => pool.query(`ALTER TABLE ${from} RENAME TO ${to}`)
    const outage = async () => {
      await rename(`${userIds}_sessions`, 'elsewhere')
      return () => rename('elsewhere', `${userIds}_sessions`)
    }
    testStore(it, open, undefined, { textUserIds: userIds === 'string', corrupt, outage, runs: 25 })
    it('behaves like the reference model', () => modelTest(fc, open, undefined, { runs: 50 }))
    it('behaves like the reference model without prepared statements', () =>
      modelTest(fc, () => open({ prepare: false }), undefined, { runs: 25 }))
  })
})
