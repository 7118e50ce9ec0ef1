// A newer major version than Debian's.
import { PostgresStore } from 'coatcheck/stores/postgres'
import { expect, it } from 'vitest'
import { describeEngine } from '../support/services/engines.ts'
import { startPostgres } from '../support/services/postgres.ts'
import { postgresOf } from './databases.ts'
import { NEWER_POSTGRES } from './newer-postgres.ts'
import { partOfTheSuite } from './suite.ts'

describeEngine('postgresql 18', 'the PostgreSQL store on PostgreSQL 18', () => {
  const own = postgresOf(() => startPostgres({}, { programs: NEWER_POSTGRES }))

  it('is that version', async () => {
    const { rows } = await own.admin.query('SHOW server_version')
    expect(rows[0].server_version).toMatch(/^18\./)
  })

  partOfTheSuite(() => ({
    stores: [new PostgresStore(own.admin), new PostgresStore(own.server.pool())],
    run: sql => own.admin.query(sql),
  }))
})
