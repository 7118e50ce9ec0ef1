// A newer major version than Debian's.
import { PostgresStore } from 'coatcheck/stores/postgres'
import type pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeEngine } from '../support/services/engines.ts'
import { type PostgresServer, startPostgres } from '../support/services/postgres.ts'
import { NEWER_POSTGRES } from './newer-postgres.ts'
import { partOfTheSuite } from './suite.ts'

describeEngine('postgresql 18', 'the PostgreSQL store on PostgreSQL 18', () => {
  let server: PostgresServer
  let pool: pg.Pool
  let second: pg.Pool
  beforeAll(async () => {
    server = await startPostgres({}, { programs: NEWER_POSTGRES })
    pool = server.pool()
    second = server.pool()
  })
  afterAll(() => server?.stop())

  it('is that version', async () => {
    const { rows } = await pool.query('SHOW server_version')
    expect(rows[0].server_version).toMatch(/^18\./)
  })

  partOfTheSuite(() => ({
    stores: [new PostgresStore(pool), new PostgresStore(second)],
    run: sql => pool.query(sql),
  }))
})
