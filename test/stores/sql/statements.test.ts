import type { Store } from 'coatcheck'
import { testStore } from 'coatcheck/custom-store/testing'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import type mysql from 'mysql2/promise'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeEngine } from '../../services/engines.ts'
import { type MariadbServer, startMariadb } from '../../services/mariadb.ts'
import { type PostgresServer, startPostgres } from '../../services/postgres.ts'
import { soon, within } from '../../support/deadlines.ts'
import { anonymous, NOW, newKey, newWriteId, record } from '../../support/sql/records.ts'

/** How many statements the server runs for each verb, as the server itself counts. */
async function counts(store: Store, counted: (call: () => Promise<unknown>) => Promise<number>) {
  const first = record()
  const second = record()
  const third = record()
  const renewed = record()
  const guest = anonymous()
  const change = { data: '{}', seenAt: NOW, expiresAt: NOW + 9e6, writeId: newWriteId() }
  const forward = { salt: 'c2FsdA', until: NOW }
  // A connection asks the database for its clock before its first write, and once a minute after an answer.
  await store.touch(newKey(), NOW, NOW, { now: NOW })
  return {
    firstLogin: await counted(() => store.create(first, {}, { now: NOW })),
    login: await counted(() => store.create(second, {}, { now: NOW })),
    guest: await counted(() => store.create(guest, {}, { now: NOW })),
    get: await counted(async () => store.read(first.key, { now: NOW })),
    getAbsent: await counted(async () => store.read(newKey(), { now: NOW })),
    getMalformed: await counted(async () => store.read('x', { now: NOW })),
    touch: await counted(() => store.touch(first.key, NOW + 1, NOW + 2, { now: NOW })),
    update: await counted(() => store.update(first.key, 1, change, { now: NOW })),
    loginFromGuest: await counted(() => store.replace(guest.key, 1, third, {}, { now: NOW })),
    renewal: await counted(() => store.replace(third.key, 1, renewed, { forward }, { now: NOW })),
    list: await counted(() => store.listUser('42', 'session', { now: NOW })),
    destroy: await counted(() => store.delete(first.key, { now: NOW })),
    logOutEverywhere: await counted(() => store.deleteUser('42', { minPasswordVersionUntil: NOW }, { now: NOW })),
  }
}

const ONE_EACH = {
  login: 1,
  guest: 1,
  get: 1,
  getAbsent: 1,
  getMalformed: 0,
  touch: 1,
  update: 1,
  loginFromGuest: 1,
  renewal: 1,
  list: 1,
  destroy: 1,
}

describeEngine('postgresql', 'PostgreSQL', () => {
  let server: PostgresServer
  let pool: pg.Pool
  beforeAll(async () => {
    server = await startPostgres({ shared_preload_libraries: 'pg_stat_statements' })
    pool = server.pool()
    await pool.query('CREATE EXTENSION pg_stat_statements')
    await new PostgresStore(pool).migrate()
  })
  afterAll(() => server?.stop())

  it('runs one statement per verb, and a short transaction for a logout everywhere', async () => {
    const counted = async (call: () => Promise<unknown>) => {
      await pool.query('SELECT pg_stat_statements_reset()')
      await call()
      const sql = `SELECT COALESCE(sum(calls), 0) AS calls FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%'`
      return Number((await pool.query(sql)).rows[0].calls)
    }
    // BEGIN, lock, delete, COMMIT.
    const expected = { ...ONE_EACH, firstLogin: 1, logOutEverywhere: 4 }
    expect(await counts(new PostgresStore(pool), counted)).toEqual(expected)
    // One connection: each new one asks for the types of arrays first.
    const store = new PostgresStore(server.postgresJs({ max: 1 }))
    await pool.query('DELETE FROM coatcheck_sessions_users')
    expect(await counts(store, counted)).toEqual(expected)
  })

  it('finds a session by its primary key', async () => {
    const plan = async (sql: string) =>
      ((await pool.query(`SET enable_seqscan = off; EXPLAIN ${sql}`)) as any)[1].rows
        .map((row: any) => row['QUERY PLAN'])
        .join('\n')
    expect(await plan(`SELECT * FROM coatcheck_sessions WHERE id = 'x'`)).toContain('coatcheck_sessions_pkey')
    expect(await plan(`SELECT * FROM coatcheck_sessions WHERE tenant = '' AND user_id = 42`)).toContain(
      'coatcheck_sessions_user',
    )
  })

  it('locks no other user while it logs one out everywhere', async () => {
    const store = new PostgresStore(pool)
    await store.create(record({ userId: '1' }), {}, { now: NOW })
    const client = await pool.connect()
    await client.query('BEGIN')
    await client.query('SELECT * FROM coatcheck_sessions_users WHERE user_id = 1 FOR UPDATE')
    expect(
      await store.deleteUser(
        '2',
        { minPasswordVersionUntil: NOW, minPasswordVersion: 1 },
        { now: NOW, deadline: soon() },
      ),
    ).toBe(0)
    const blocked = store.deleteUser(
      '1',
      { minPasswordVersionUntil: NOW, minPasswordVersion: 1 },
      { now: NOW, deadline: within(300) },
    )
    await expect(blocked).rejects.toMatchObject({ code: 'ERR_SESSION_STORE', outcome: 'not-applied' })
    await client.query('ROLLBACK')
    client.release()
  })

  describe('as a role with the documented grants only', () => {
    const open = async () => new PostgresStore(restricted, { table: 'granted' })
    let restricted: pg.Pool
    beforeAll(async () => {
      await new PostgresStore(pool, { table: 'granted' }).migrate()
      await pool.query('REVOKE CREATE ON SCHEMA public FROM PUBLIC; CREATE ROLE app LOGIN')
      await pool.query('GRANT SELECT, INSERT, UPDATE, DELETE ON granted, granted_users TO app')
      restricted = server.pool({ connectionString: server.url({ user: 'app' }) })
    })
    it('cannot create tables, and need not', async () => {
      await expect(restricted.query('CREATE TABLE mine (id int)')).rejects.toThrow(/permission denied/)
      await new PostgresStore(restricted, { table: 'granted' }).migrate()
    })
    testStore(it, open, undefined, { textUserIds: false, runs: 5, rounds: 3 })
  })
})

describeEngine('mariadb', 'MariaDB', () => {
  let server: MariadbServer
  let pool: mysql.Pool
  beforeAll(async () => {
    server = await startMariadb({ 'general-log': '1', 'log-output': 'TABLE' })
    pool = server.pool()
    await new MysqlStore(pool).migrate()
  })
  afterAll(() => server?.stop())

  it('runs one statement per verb, and a short transaction for a logout everywhere', async () => {
    const counted = async (call: () => Promise<unknown>) => {
      await pool.query('TRUNCATE mysql.general_log')
      await call()
      const [rows] = await pool.query(
        `SELECT count(*) AS n FROM mysql.general_log
         WHERE command_type IN ('Query', 'Execute') AND argument NOT LIKE '%general_log%'`,
      )
      return Number((rows as any)[0].n)
    }
    // First login: nothing to lock, the user's row, once more. Logout: level, begin, lock, sessions, rest, commit.
    expect(await counts(new MysqlStore(pool), counted)).toEqual({ ...ONE_EACH, firstLogin: 3, logOutEverywhere: 6 })
  })

  it('finds a session by its primary key', async () => {
    await new MysqlStore(pool).create(record(), {}, { now: NOW })
    const key = async (sql: string) => ((await pool.query(`EXPLAIN ${sql}`)) as any)[0][0]
    expect(await key('SELECT * FROM coatcheck_sessions WHERE expires_at < 1')).toMatchObject({
      key: 'coatcheck_sessions_expires',
    })
    const store = new MysqlStore(pool)
    for (let i = 0; i < 100; i++) await store.create(anonymous(), {}, { now: NOW })
    const connection = await pool.getConnection()
    await connection.query('FLUSH STATUS')
    const one = new MysqlStore({
      getConnection: async () => Object.assign(Object.create(connection), { release() {} }),
    } as any)
    await one.read(newKey(), { now: NOW })
    const [rows] = await connection.query("SHOW SESSION STATUS LIKE 'Handler_read%'")
    connection.release()
    const reads = (rows as any[]).reduce((sum, { Value }) => sum + Number(Value), 0)
    expect(reads).toBeLessThanOrEqual(1)
  })

  describe('as a role with the documented grants only', () => {
    let restricted: mysql.Pool
    beforeAll(async () => {
      await new MysqlStore(pool, { table: 'granted' }).migrate()
      await pool.query("CREATE USER app@'127.0.0.1'")
      for (const table of ['granted', 'granted_users'])
        await pool.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON test.${table} TO app@'127.0.0.1'`)
      restricted = server.pool({ uri: server.url({ user: 'app' }) })
    })
    it('cannot create tables, and need not', async () => {
      await expect(restricted.query('CREATE TABLE mine (id int)')).rejects.toThrow(/denied/)
      await new MysqlStore(restricted, { table: 'granted' }).migrate()
    })
    testStore(it, () => new MysqlStore(restricted, { table: 'granted' }), undefined, {
      textUserIds: false,
      runs: 5,
      rounds: 3,
    })
  })
})
