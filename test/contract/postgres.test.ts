import { modelTest, testStore } from 'coatcheck/custom-store/testing'
import { PostgresStore } from 'coatcheck/stores/postgres'
import fc from 'fast-check'
import type pg from 'pg'
import type { Sql } from 'postgres'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { describeEngine } from '../support/services/engines.ts'
import { type PostgresServer, startPostgres } from '../support/services/postgres.ts'

const DRIVERS = ['pg', 'postgres'] as const

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

  describe.each(DRIVERS)('through %s', driver => {
    const open = async (options = {}) => {
      const store = new PostgresStore(driver === 'pg' ? pool : sql, options)
      await store.migrate()
      return store
    }
    const corrupt = async (_: unknown, key: string) => {
      await pool.query('UPDATE coatcheck_sessions SET version = -1 WHERE id = $1', [key])
    }
    const rename = (from: string, to: string) => pool.query(`ALTER TABLE ${from} RENAME TO ${to}`)
    const outage = async () => {
      await rename('coatcheck_sessions', 'elsewhere')
      return () => rename('elsewhere', 'coatcheck_sessions')
    }
    testStore(it, open, undefined, { textUserIds: true, corrupt, outage, runs: 25 })
    it('behaves like the reference model', () => modelTest(fc, open, undefined, { runs: 50 }))
    it('behaves like the reference model without prepared statements', () =>
      modelTest(fc, () => open({ prepare: false }), undefined, { runs: 25 }))
  })
})
