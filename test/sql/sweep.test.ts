import type { Store } from 'coatcheck'
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
import { type OpenDatabase, openSqlite, SQLITE_DRIVERS } from '../support/services/sqlite.ts'
import { isLive, newWriteId, record } from './records.ts'

const LONG = process.env.COATCHECK_LONG === '1'
const ROWS = LONG ? 1_000_000 : 20_000
const HOUR = 3_600_000
const TIMEOUT = LONG ? 590_000 : 60_000

interface Database {
  open(): Store
  /** Rows that expired an hour ago, made by the server itself. */
  fill(rows: number): Promise<unknown>
  count(): Promise<number>
  /** How many rows a user's first login makes beside the session. */
  readonly beside: number
}

const living = (changes = {}) => {
  const now = Date.now()
  return record({ createdAt: now, seenAt: now, expiresAt: now + HOUR, absoluteExpiresAt: now + 12 * HOUR, ...changes })
}
const quantile = (times: number[], q: number) => [...times].sort((a, b) => a - b)[Math.floor(times.length * q)] ?? 0
const timed = async (times: number[], call: () => Promise<unknown>) => {
  const begun = performance.now()
  await call()
  times.push(performance.now() - begun)
}

/** Gets, touches, updates, logins and logouts by some users at once, until told to stop; gives how long each took. */
async function traffic(store: Store, stop: () => boolean): Promise<number[]> {
  const times: number[] = []
  const visitor = async (userId: string) => {
    while (!stop()) {
      const one = living({ userId })
      const now = Date.now()
      await timed(times, () => store.create(one, { now }))
      for (let i = 0; i < 5; i++) await timed(times, async () => store.read(one.key, { now }))
      await timed(times, () => store.touch(one.key, now + 1, now + HOUR, { now }))
      const change = { data: '{"n":1}', seenAt: now, expiresAt: now + HOUR, writeId: newWriteId() }
      await timed(times, () => store.update(one.key, 1, change, { now }))
      await timed(times, () => store.delete(one.key, { now }))
      await timed(times, () => store.deleteUser(userId, { minPasswordVersionUntil: now }, { now }))
      await new Promise(resolve => setTimeout(resolve, 5))
    }
  }
  await Promise.all(['1', '2', '3', '4'].map(visitor))
  return times
}

function sweeping(get: () => Database) {
  it('sweeps beside live traffic in short batches, without a deadlock', { timeout: TIMEOUT }, async () => {
    const { open, fill, count } = get()
    const store = open()
    await fill(ROWS)
    const kept = living()
    await store.create(kept, { now: Date.now() })
    let done = false
    const quietEnd = Date.now() + (LONG ? 10_000 : 500)
    const quiet = await traffic(store, () => Date.now() > quietEnd)
    const busy = traffic(store, () => done)
    const batches: number[] = []
    let removed = 0
    for (let last = 1; last > 0; removed += last)
      await timed(batches, async () => {
        last = await store.sweep!(250, { now: Date.now() })
      })
    done = true
    const during = await busy
    const figures = {
      rows: removed,
      batchMedian: quantile(batches, 0.5),
      batchP99: quantile(batches, 0.99),
      quietMedian: quantile(quiet, 0.5),
      duringMedian: quantile(during, 0.5),
      quietP99: quantile(quiet, 0.99),
      duringP99: quantile(during, 0.99),
    }
    if (LONG) console.log(JSON.stringify(figures))
    expect(removed).toBe(ROWS)
    expect(await count()).toBe(1)
    expect(await isLive(store, kept.key, Date.now())).toBe(true)
    await store.delete(kept.key, { now: Date.now() })
  })

  it('removes each row once when ten nodes sweep at once', { timeout: TIMEOUT }, async () => {
    const { open, fill, count } = get()
    await fill(5000)
    const nodes = Array.from({ length: 10 }, open)
    let removed = 0
    // A node that met others stops early; the next round finds the rest.
    for (let round = 0; round < 30 && (await count()) > 0; round++)
      for (const swept of await Promise.all(nodes.map(store => store.sweep!(1000, { now: Date.now() }))))
        removed += swept
    expect(removed).toBe(5000)
    expect(await count()).toBe(0)
  })

  it('ends no session when the clock of a node is an hour ahead', async () => {
    const { open } = get()
    const store = open()
    const [live, justExpired] = [living({ expiresAt: Date.now() + 60_000 }), living({ expiresAt: Date.now() - 60_000 })]
    for (const each of [live, justExpired]) await store.create(each, { now: Date.now() })
    expect(await store.sweep!(1000, { now: Date.now() + HOUR })).toBe(0)
    expect(await isLive(store, live.key, Date.now())).toBe(true)
    // A node whose clock is behind still finds it alive.
    expect(await isLive(store, justExpired.key, Date.now() - 120_000)).toBe(true)
    for (const each of [live, justExpired]) await store.delete(each.key, { now: Date.now() })
  })

  it('removes no more than it was asked to, oldest first', async () => {
    const { open } = get()
    const store = open()
    const now = Date.now()
    const old = [3, 1, 2].map(hours => living({ expiresAt: now - hours * HOUR }))
    for (const each of old) await store.create(each, { now })
    expect(await store.sweep!(2, { now })).toBe(2)
    const left = await Promise.all(old.map(({ key }) => isLive(store, key, now - 5 * HOUR)))
    expect(left).toEqual([false, true, false])
    expect(await store.sweep!(10, { now })).toBe(1)
  })

  it('forgets a minimum password version that no longer holds, and no other', async () => {
    const { open } = get()
    const store = open()
    const now = Date.now()
    await store.deleteUser(
      '501',
      { minPasswordVersion: 9, minPasswordVersionUntil: now - HOUR },
      { now: now - 2 * HOUR },
    )
    await store.deleteUser('502', { minPasswordVersion: 9, minPasswordVersionUntil: now + HOUR }, { now })
    expect(await store.sweep!(1000, { now })).toBe(1)
    expect(await store.create(living({ userId: '502' }), { now })).toBe('stale-login')
  })

  it('keeps what a login makes beside a session for 30 days after it', async () => {
    const { open, beside } = get()
    const store = open()
    const DAY = 24 * HOUR
    const swept = async (userId: string, ago: number) => {
      const end = Date.now() - ago
      const one = living({ userId, createdAt: end - DAY, seenAt: end - DAY, expiresAt: end, absoluteExpiresAt: end })
      await store.create(one, { now: end - 1 })
      return store.sweep!(1000, { now: Date.now() })
    }
    expect(await swept('601', 30 * DAY - HOUR)).toBe(1)
    expect(await swept('602', 30 * DAY + HOUR)).toBe(1 + beside)
  })
}

const VALUES = (i: string, text: string) =>
  `${text}, 'session', NULL, '', NULL, NULL, NULL, '{"cart":[1,2,3]}', 1, 'writeIdOfARow', 0, 0, ${i}, ${i}, NULL`

describeEngine('postgresql', 'a sweep of PostgreSQL', () => {
  let server: PostgresDatabase
  let pool: pg.Pool
  beforeAll(async () => {
    server = await sharedPostgres()
    pool = server.pool({ max: 20 })
    await new PostgresStore(pool, { table: 's' }).migrate()
  })
  afterAll(() => server?.stop())
  const database = (): Database => ({
    open: () => new PostgresStore(pool, { table: 's' }),
    fill: async rows => {
      const past = Date.now() - HOUR
      await pool.query(
        `INSERT INTO s SELECT ${VALUES(`${past} - i`, "lpad(md5(i::text), 46, '0')")} FROM generate_series(1, ${rows}) i`,
      )
      await pool.query('ANALYZE s')
    },
    count: async () => Number((await pool.query('SELECT count(*) FROM s')).rows[0].count),
    beside: 1,
  })
  sweeping(database)
})

describeEngine('mariadb', 'a sweep of MariaDB', () => {
  let server: MariadbDatabase
  let pool: mysql.Pool
  beforeAll(async () => {
    server = await sharedMariadb()
    pool = server.pool({ connectionLimit: 20 })
    await new MysqlStore(pool, { table: 's' }).migrate()
  })
  afterAll(() => server?.stop())
  const database = (): Database => ({
    open: () => new MysqlStore(pool, { table: 's' }),
    fill: rows => {
      const past = Date.now() - HOUR
      return pool.query(
        `INSERT INTO s SELECT ${VALUES(`${past} - seq`, "lpad(md5(seq), 46, '0')")} FROM seq_1_to_${rows}`,
      )
    },
    count: async () => Number(((await pool.query('SELECT count(*) AS n FROM s')) as any)[0][0].n),
    beside: 1,
  })
  sweeping(database)
})

for (const driver of SQLITE_DRIVERS)
  describeEngine(driver, `a sweep of SQLite with ${driver}`, () => {
    let database: OpenDatabase
    beforeAll(async () => {
      database = openSqlite(driver, ':memory:')
      await new SqliteStore(database, { table: 's' }).migrate()
    })
    sweeping(() => ({
      open: () => new SqliteStore(database, { table: 's' }),
      fill: async rows =>
        database.exec(
          `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows})
           INSERT INTO s SELECT ${VALUES(`${Date.now() - HOUR} - i`, "printf('%046d', i)")} FROM n`,
        ),
      count: async () => Number((database.prepare('SELECT count(*) AS n FROM s').get() as any).n),
      beside: 0,
    }))
  })

describeEngine('d1', 'a sweep of D1', () => {
  let server: D1StoreServer
  beforeAll(async () => {
    server = await startD1Store()
    await server.open({ table: 's' }).migrate()
  })
  afterAll(() => server?.stop())
  sweeping(() => ({
    open: () => server.open({ table: 's' }),
    fill: rows =>
      server.run(
        `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows})
         INSERT INTO s SELECT ${VALUES(`${Date.now() - HOUR} - i`, "printf('%046d', i)")} FROM n`,
      ),
    count: () => server.number('SELECT count(*) FROM s'),
    beside: 0,
  }))
})
