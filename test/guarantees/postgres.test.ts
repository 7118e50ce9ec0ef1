import { PostgresStore } from 'coatcheck/stores/postgres'
import { startPostgres } from '../support/services/postgres.ts'
import { noTable, TABLES } from '../support/sql/backend.ts'
import { onEngine } from './on-engine.ts'

onEngine('postgresql', 'PostgreSQL', async () => {
  const server = await startPostgres({ shared_preload_libraries: 'pg_stat_statements' })
  const pool = server.pool({ max: 10 })
  await pool.query('CREATE EXTENSION pg_stat_statements')
  const store = new PostgresStore(pool)
  await store.migrate()
  const dump = async () =>
    JSON.stringify(await Promise.all(TABLES.map(async name => (await pool.query(`TABLE ${name} ORDER BY 1, 2`)).rows)))
  const commands = async () => {
    const sql = `SELECT COALESCE(sum(calls), 0) AS calls FROM pg_stat_statements
      WHERE query ILIKE 'SELECT%coatcheck_sessions%' AND query NOT LIKE '%pg_stat_statements%'`
    return Number((await pool.query(sql)).rows[0].calls)
  }
  return { store, dump, outage: () => noTable(sql => pool.query(sql)), commands, close: () => server.stop() }
})
