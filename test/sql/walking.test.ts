import type { Store } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import type mysql from 'mysql2/promise'
import type pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type D1StoreServer, startD1Store } from './d1-store.ts'
import { describeEngine } from '../support/services/engines.ts'
import { type MariadbDatabase, sharedMariadb } from '../support/services/mariadb.ts'
import { type PostgresDatabase, sharedPostgres } from '../support/services/postgres.ts'
import { until } from '../support/services/process.ts'
import { type OpenDatabase, openSqlite, SQLITE_DRIVERS, sqliteFile } from '../support/services/sqlite.ts'
import { anonymous, NOW, newKey } from './records.ts'

interface Tables {
  readonly store: Store
  run(sql: string): Promise<unknown>
}

const call = { now: NOW }
const COLUMNS = 'id, kind, namespace, data, version, write_id, created_at, seen_at, expires_at, absolute_expires_at'

/** What the pages of a walk say. */
async function walk(store: Store, limit: number) {
  const records: SessionRecord[] = []
  const forwards: string[] = []
  for (let cursor: string | null = null; ; ) {
    const page = await store.scan!(cursor, limit, call)
    records.push(...page.records)
    forwards.push(...page.forwards)
    if (page.next === null) return { records, forwards }
    cursor = page.next
  }
}

const keysOf = (records: readonly SessionRecord[]) => records.map(({ key }) => key)
/** A key that begins so, in the order of the bytes: `-` 0 A _ a. */
const keyFrom = (start: string) => start + newKey().slice(start.length)

function walking(get: () => Tables) {
  const empty = () => get().run('DELETE FROM s')

  it('goes on behind rows that a hand has put under what is no key', async () => {
    await empty()
    const { store, run } = get()
    const [first, last] = [anonymous({ key: keyFrom('A') }), anonymous({ key: keyFrom('z') })]
    for (const one of [first, last]) await store.create(one, call)
    const hand = Array.from({ length: 9 }, (_, i) => `M ${i}`)
    for (const id of ['', '{', ...hand])
      await run(
        `INSERT INTO s (${COLUMNS}) VALUES ('${id}', 'session', '', '{}', 1, 'w', 0, 0, ${NOW + 9}, ${NOW + 9})`,
      )
    for (const limit of [1, 2, 5, 100]) {
      const { records, forwards } = await walk(store, limit)
      expect(keysOf(records)).toEqual([first.key, last.key])
      expect(forwards).toEqual([])
    }
    await empty()
  })

  it('comes to an end also where no rows are asked for', async () => {
    await empty()
    const { store } = get()
    for (let number = 0; number < 3; number++) await store.create(anonymous(), call)
    for (const limit of [0, -1]) expect((await walk(store, limit)).records).toHaveLength(3)
  })

  // On a busy machine a network takes its time for 1,003 writes.
  it('answers no more than 1,000 rows in a page, however many are asked for', { timeout: 120_000 }, async () => {
    await empty()
    const { store } = get()
    await Promise.all(Array.from({ length: 1003 }, () => store.create(anonymous(), call)))
    const page = await store.scan!(null, 1e9, call)
    expect(page.records.length).toBeLessThanOrEqual(1000)
    expect(page.next).not.toBe(null)
    expect((await walk(store, 1e9)).records.length).toBe(1003)
    await empty()
  })
}

describeEngine('postgresql', 'a walk over PostgreSQL', () => {
  let server: PostgresDatabase
  let pool: pg.Pool
  let store: PostgresStore
  beforeAll(async () => {
    server = await sharedPostgres()
    pool = server.pool({ max: 20 })
    store = new PostgresStore(pool, { table: 's' })
    await store.migrate()
  })
  afterAll(() => server?.stop())
  const tables = () => ({ store, run: (sql: string) => pool.query(sql) })
  walking(tables)

  it('begins each page at its place in the primary key, without looking at the rows before', async () => {
    await pool.query('DELETE FROM s')
    await pool.query(`INSERT INTO s (${COLUMNS})
      SELECT lpad(n::text, 46, '0'), 'session', '', '{}', 1, 'writeId0', 0, 0, 0, 0 FROM generate_series(1, 5000) n`)
    await pool.query('ANALYZE s')
    const client = await pool.connect()
    const plans: string[] = []
    const explained = Object.assign(Object.create(client), {
      release() {},
      query(query: { text: string; values: unknown[] }, answer: (...answer: unknown[]) => void) {
        if (query.text.includes('ORDER BY id'))
          client.query(`EXPLAIN ${query.text}`, query.values as string[]).then(({ rows }) => {
            plans.push(rows.map(row => row['QUERY PLAN']).join('\n'))
          })
        client.query(query, answer as never)
      },
    })
    try {
      const one = new PostgresStore({ connect: async () => explained } as never, { table: 's' })
      await one.scan('0'.repeat(46), 100, call)
    } finally {
      client.release()
    }
    expect(plans.join()).toMatch(/Index Scan using s_pkey on s .*\n\s+Index Cond: \(id > /)
  })

  it.each(['scan', 'count'] as const)('ends a %s at the server when its caller has given it up', async verb => {
    const holder = await pool.connect()
    await holder.query('BEGIN; LOCK TABLE s')
    try {
      const timed = { now: NOW, deadline: performance.now() + 200 }
      const asked = verb === 'scan' ? store.scan(null, 10, timed) : store.count(timed)
      await expect(asked).rejects.toMatchObject({ operation: verb, outcome: 'not-applied' })
      await until('no statement of ours waiting at the server', async () => {
        const waiting = await pool.query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        expect(waiting.rowCount).toBe(0)
      })
    } finally {
      await holder.query('ROLLBACK')
      holder.release()
    }
    expect((await store.scan(null, 10, call)).records).toEqual([])
  })
})

describeEngine('mariadb', 'a walk over MariaDB', () => {
  let server: MariadbDatabase
  let pool: mysql.Pool
  let store: MysqlStore
  beforeAll(async () => {
    server = await sharedMariadb()
    pool = server.pool({ connectionLimit: 20 })
    store = new MysqlStore(pool, { table: 's' })
    await store.migrate()
  })
  afterAll(() => server?.stop())
  walking(() => ({ store, run: sql => pool.query(sql) }))

  it('leaves the count to a walk, since the server would read the whole table for it', () => {
    expect((store as Store).count).toBe(undefined)
  })

  it('reads no more rows than a page has', async () => {
    for (let i = 0; i < 300; i++) await store.create(anonymous(), call)
    const connection = await pool.getConnection()
    await connection.query('FLUSH STATUS')
    const one = new MysqlStore(
      { getConnection: async () => Object.assign(Object.create(connection), { release() {} }) } as never,
      { table: 's' },
    )
    await one.scan(`A${'-'.repeat(45)}`, 20, call)
    const [rows] = await connection.query("SHOW SESSION STATUS LIKE 'Handler_read%'")
    connection.release()
    const reads = (rows as any[]).reduce((sum, { Value }) => sum + Number(Value), 0)
    expect(reads).toBeLessThanOrEqual(21)
  })
})

for (const driver of SQLITE_DRIVERS)
  describeEngine(driver, `a walk over SQLite with ${driver}`, () => {
    const { file, remove } = sqliteFile()
    let database: OpenDatabase
    let store: SqliteStore
    beforeAll(async () => {
      database = openSqlite(driver, file)
      store = new SqliteStore(database, { table: 's' })
      await store.migrate()
    })
    afterAll(() => {
      database.close()
      remove()
    })
    const tables = () => ({ store, run: async (sql: string) => database.exec(sql) })
    walking(tables)

    it('passes over bytes that are no text, and ends behind them', async () => {
      database.exec('DELETE FROM s')
      const one = anonymous({ key: keyFrom('z') })
      await store.create(one, call)
      const rest = `'session', '', '{}', 1, 'w', 0, 0, ${NOW + 9}, ${NOW + 9}`
      const bytes = ["CAST(x'410042' AS TEXT)"]
      // libsql ends the process where it reads bytes that are no text.
      if (driver !== 'libsql') bytes.push("x'41ff'", "x'ffff'", "CAST(x'41fe' AS TEXT)", "CAST(x'7bfe' AS TEXT)")
      for (const id of bytes) database.exec(`INSERT INTO s (${COLUMNS}) VALUES (${id}, ${rest})`)
      for (const limit of [1, 3, 100]) expect(keysOf((await walk(store, limit)).records)).toEqual([one.key])
      database.exec('DELETE FROM s')
    })
  })

describeEngine('d1', 'a walk over D1', () => {
  let server: D1StoreServer
  let store: ReturnType<D1StoreServer['open']>
  beforeAll(async () => {
    server = await startD1Store()
    store = server.open({ table: 's' })
    await store.migrate()
  })
  afterAll(() => server?.stop())
  const tables = () => ({ store, run: server.run })
  walking(tables)
})
