// A session that gets a new ID moves to another key. A remember-me series that it asks for in that moment has waited for the
// user's row, and must look for the session as it is then, not as it was when the statement began.
import type { Store } from 'coatcheck'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import type mysql from 'mysql2/promise'
import type pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeEngine } from '../support/services/engines.ts'
import { type MariadbDatabase, sharedMariadb } from '../support/services/mariadb.ts'
import { type PostgresDatabase, sharedPostgres } from '../support/services/postgres.ts'
import { until } from '../support/services/process.ts'
import { type Locks, locksOfMariadb, locksOfPostgres } from './locks.ts'
import { NOW, newKey, record } from './records.ts'

const CALL = { now: NOW }
const LOCK = 'SELECT user_id FROM coatcheck_sessions_users FOR UPDATE'
/** What `replace` with a forward writes: the rest of the row does not matter here. */
const move = (key: string) =>
  `UPDATE coatcheck_sessions SET moved_to = '${newKey()}', parent_key = NULL WHERE id = '${key}'`

async function meets(store: Store, { begin, waiting }: Locks) {
  const session = record()
  await store.create(session, CALL)
  const series = record({ kind: 'remember', parent: session.key })
  const other = await begin()
  await other.run(LOCK)
  const made = store.create(series, CALL)
  await until('the series waiting for the row of its user', async () => expect(await waiting()).toBe(1))
  await other.run(move(session.key))
  await other.commit()
  expect(await made).toBe('orphan')
  expect(await store.read(series.key, CALL)).toBe(null)
}

const SAID = 'begins no series with a session that got a new ID while the series waited for the row of its user'

describeEngine('postgresql', 'a parent that moves, on PostgreSQL', () => {
  let server: PostgresDatabase
  let pool: pg.Pool
  beforeAll(async () => {
    server = await sharedPostgres()
    pool = server.pool()
    await new PostgresStore(pool).migrate()
  })
  afterAll(() => server?.stop())

  it(`through pg ${SAID}`, () => meets(new PostgresStore(pool), locksOfPostgres(pool)))
  it(`through Postgres.js ${SAID}`, async () => {
    const sql = postgres(server.url(), { onnotice: () => {} })
    await meets(new PostgresStore(sql), locksOfPostgres(pool))
    await sql.end()
  })
  it.each(['repeatable read', 'serializable'])(`${SAID}, where the default isolation is %s`, async isolation => {
    const strict = server.pool({ options: `-c default_transaction_isolation=${isolation.replace(' ', '\\ ')}` })
    await meets(new PostgresStore(strict), locksOfPostgres(pool))
  })
})

describeEngine('mariadb', 'a parent that moves, on MariaDB', () => {
  let server: MariadbDatabase
  let pool: mysql.Pool
  beforeAll(async () => {
    server = await sharedMariadb()
    pool = server.pool()
    await new MysqlStore(pool).migrate()
  })
  afterAll(() => server?.stop())

  it(SAID, () => meets(new MysqlStore(pool), locksOfMariadb(pool)))
})
