// What a login at the limit says it has ended, where other calls end sessions of that user at the same time.
import type { Store } from 'coatcheck'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import type mysql from 'mysql2/promise'
import type pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeEngine } from '../../support/services/engines.ts'
import { type MariadbDatabase, sharedMariadb } from '../../support/services/mariadb.ts'
import { type PostgresDatabase, sharedPostgres } from '../../support/services/postgres.ts'
import { until } from '../../support/services/process.ts'
import { type Locks, locksOfMariadb, locksOfPostgres } from '../../support/sql/locks.ts'
import { NOW, record } from '../../support/sql/records.ts'

const CALL = { now: NOW }

/** The login waits for a row that another transaction has deleted and not committed. */
async function meets(store: Store, userId: string, { begin, waiting }: Locks) {
  const [oldest, older, next] = [1000, 2000, 3000].map(ms => record({ userId, createdAt: NOW - 10_000 + ms }))
  await store.create(oldest!, {}, CALL)
  await store.create(older!, {}, CALL)
  const deletion = await begin()
  await deletion.run(`DELETE FROM coatcheck_sessions WHERE id = '${oldest!.key}'`)
  const made = store.create(next!, { limit: { max: 1, onLimit: 'end-oldest' } }, CALL)
  await until('the login waiting', async () => expect(await waiting()).toBeGreaterThan(0))
  await deletion.commit()
  expect(await made).toEqual({ outcome: 'created', ended: [older!.key] })
  expect((await store.listUser(userId, 'session', CALL)).map(({ key }) => key)).toEqual([next!.key])
}

const SAID = 'names no session that a parallel logout has ended'

describeEngine('postgresql', 'a login at the limit on PostgreSQL', () => {
  let server: PostgresDatabase
  let pool: pg.Pool
  beforeAll(async () => {
    server = await sharedPostgres()
    pool = server.pool()
    await new PostgresStore(pool).migrate()
  })
  afterAll(() => server?.stop())

  it(`through pg ${SAID}`, () => meets(new PostgresStore(pool), '77', locksOfPostgres(pool)))
  it(`through Postgres.js ${SAID}`, async () => {
    const sql = postgres(server.url(), { onnotice: () => {} })
    await meets(new PostgresStore(sql), '78', locksOfPostgres(pool))
    await sql.end()
  })
})

describeEngine('mariadb', 'a login at the limit on MariaDB', () => {
  let server: MariadbDatabase
  let pool: mysql.Pool
  beforeAll(async () => {
    server = await sharedMariadb()
    pool = server.pool()
    await new MysqlStore(pool).migrate()
  })
  afterAll(() => server?.stop())

  it(SAID, () => meets(new MysqlStore(pool), '77', locksOfMariadb(pool)))
})
