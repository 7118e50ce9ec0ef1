// A newer major version than Debian's: the suite of contract/postgres.test.ts, shorter.

import { modelTest, testStore } from 'coatcheck/custom-store/testing'
import { PostgresStore } from 'coatcheck/stores/postgres'
import fc from 'fast-check'
import type pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeEngine } from '../support/services/engines.ts'
import { NEWER_POSTGRES } from './newer-postgres.ts'
import { type PostgresServer, startPostgres } from '../support/services/postgres.ts'

describeEngine('postgresql 18', 'the PostgreSQL store on PostgreSQL 18', () => {
  let server: PostgresServer
  let pool: pg.Pool
  let second: pg.Pool
  beforeAll(async () => {
    server = await startPostgres({}, { programs: NEWER_POSTGRES })
    pool = server.pool({ max: 10 })
    second = server.pool({ max: 10 })
  })
  afterAll(() => server?.stop())

  it('is that version', async () => {
    const { rows } = await pool.query('SHOW server_version')
    expect(rows[0].server_version).toMatch(/^18\./)
  })

  const open = async () => {
    const stores = [new PostgresStore(pool), new PostgresStore(second)] as const
    await stores[0].migrate()
    return stores
  }
  const corrupt = async (_: unknown, key: string) => {
    await pool.query('UPDATE coatcheck_sessions SET version = -1 WHERE id = $1', [key])
  }
  const outage = async () => {
    await pool.query('ALTER TABLE coatcheck_sessions RENAME TO elsewhere')
    return () => pool.query('ALTER TABLE elsewhere RENAME TO coatcheck_sessions')
  }
  testStore(it, open, undefined, { corrupt, outage, runs: 10, rounds: 4 })
  it('behaves like the reference model', () => modelTest(fc, open, undefined, { runs: 10 }))
})
