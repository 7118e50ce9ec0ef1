// The end of a remember-me series moves it to another key. A session that its token begins in that moment has waited for
// the user's row, and must look for the series as it is then, not as it was when the statement began.
import type { Store } from 'coatcheck'
import { MysqlStore, PostgresStore } from 'coatcheck/stores/sql'
import type mysql from 'mysql2/promise'
import type pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeEngine } from '../../services/engines.ts'
import { type MariadbServer, startMariadb } from '../../services/mariadb.ts'
import { type PostgresServer, startPostgres } from '../../services/postgres.ts'
import { until } from '../../services/process.ts'
import { NOW, newKey, record } from '../../support/sql/records.ts'

const CALL = { now: NOW }
const LOCK = 'SELECT user_id FROM coatcheck_sessions_users FOR UPDATE'
/** What `replace` with a forward writes: the rest of the row does not matter here. */
const move = (key: string) =>
  `UPDATE coatcheck_sessions SET moved_to = '${newKey()}', parent = NULL WHERE id = '${key}'`

/** A transaction of another node: `run` runs a statement of it. */
interface Transaction {
  run(sql: string): Promise<unknown>
  end(): void
}

async function meets(store: Store, begin: () => Promise<Transaction>, waiting: () => Promise<number>) {
  const series = record({ kind: 'remember' })
  await store.create(series, {}, CALL)
  const started = record({ parent: series.key })
  const other = await begin()
  await other.run(LOCK)
  const made = store.create(started, {}, CALL)
  await until('the session waiting for the row of its user', async () => expect(await waiting()).toBe(1))
  await other.run(move(series.key))
  await other.run('COMMIT')
  other.end()
  expect(await made).toEqual({ outcome: 'orphan', ended: [] })
  expect(await store.read(started.key, CALL)).toBe(null)
}

const SAID = 'begins no session with a series that has moved while the session waited for the row of its user'

describeEngine('postgresql', 'the end of a series on PostgreSQL', () => {
  let server: PostgresServer
  let pool: pg.Pool
  beforeAll(async () => {
    server = await startPostgres()
    pool = server.pool()
    await new PostgresStore(pool).migrate()
  })
  afterAll(() => server?.stop())

  const begin = async () => {
    const connection = await pool.connect()
    await connection.query('BEGIN')
    return { run: (sql: string) => connection.query(sql), end: () => connection.release() }
  }
  const waiting = async () =>
    (await pool.query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'")).rowCount!

  it(`through pg ${SAID}`, () => meets(new PostgresStore(pool), begin, waiting))
  it(`through Postgres.js ${SAID}`, async () => {
    const sql = postgres(server.url(), { onnotice: () => {} })
    await meets(new PostgresStore(sql), begin, waiting)
    await sql.end()
  })
  it.each(['repeatable read', 'serializable'])(`${SAID}, where the default isolation is %s`, async isolation => {
    const strict = server.pool({ options: `-c default_transaction_isolation=${isolation.replace(' ', '\\ ')}` })
    await meets(new PostgresStore(strict), begin, waiting)
  })
})

describeEngine('mariadb', 'the end of a series on MariaDB', () => {
  let server: MariadbServer
  let pool: mysql.Pool
  beforeAll(async () => {
    server = await startMariadb()
    pool = server.pool()
    await new MysqlStore(pool).migrate()
  })
  afterAll(() => server?.stop())

  it(SAID, async () => {
    const begin = async () => {
      const connection = await pool.getConnection()
      await connection.query('START TRANSACTION')
      return { run: (sql: string) => connection.query(sql), end: () => connection.release() }
    }
    const waiting = async () => {
      const [rows] = await pool.query("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")
      return Number((rows as { Value: string }[])[0]!.Value)
    }
    await meets(new MysqlStore(pool), begin, waiting)
  })
})
