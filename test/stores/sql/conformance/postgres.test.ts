import { PostgresStore } from 'coatcheck/stores/sql'
import { modelTest, testStore } from 'coatcheck/testing'
import fc from 'fast-check'
import type pg from 'pg'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { describeEngine } from '../../../services/engines.ts'
import { type PostgresServer, startPostgres } from '../../../services/postgres.ts'

describeEngine('postgresql', 'the PostgreSQL store', () => {
  let server: PostgresServer
  let pool: pg.Pool
  beforeAll(async () => {
    server = await startPostgres()
    pool = server.pool({ max: 10 })
  })
  afterAll(() => server?.stop())

  describe.each(['u64', 'text'] as const)('with %s user IDs', userIds => {
    const open = async (options = {}) => {
      const store = new PostgresStore(pool, { userIds, table: `${userIds}_sessions`, ...options })
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
    testStore(it, open, undefined, { textUserIds: userIds === 'text', corrupt, outage, runs: 25 })
    it('behaves like the reference model', () => modelTest(fc, open, undefined, { runs: 50 }))
    it('behaves like the reference model without prepared statements', () =>
      modelTest(fc, () => open({ prepare: false }), undefined, { runs: 25 }))
  })
})
