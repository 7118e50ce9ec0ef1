import type { Store } from 'coatcheck'
import { type D1Client, D1Store } from 'coatcheck/stores/d1'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import type mysql from 'mysql2/promise'
import type pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { soon } from '../support/deadlines.ts'
import { startD1 } from './d1.ts'
import { describeEngine } from '../support/services/engines.ts'
import { type MariadbDatabase, sharedMariadb } from '../support/services/mariadb.ts'
import { type PostgresServer, startPostgres } from '../support/services/postgres.ts'
import { type OpenDatabase, openSqlite } from '../support/services/sqlite.ts'
import { NOW, newWriteId, record } from './records.ts'

// What a verb reads of the tables, as the database itself counts it: what belongs to the user, not what others have.

const LATER = NOW + 9e6
/** The user who has many sessions, most of them expired and not yet swept. */
const BUSY = '42'
const OWN = 2000
const LIVE = 20_000
const call = () => ({ now: NOW, deadline: soon() })

interface Database {
  store: Store
  run(sql: string): Promise<unknown>
  /** A row for each `n` from 1 to so many. */
  numbers(count: number): string
  joined(...texts: string[]): string
  analyze: string
  /** What `work` read: rows and entries of indexes. */
  read(work: () => Promise<unknown>): Promise<number>
}

const COLUMNS = `id, kind, namespace, user_id, user_name, password_version, data, version, write_id, created_at, seen_at,
  expires_at, absolute_expires_at`
/** Sessions of the users `user`, an expression of `n`. */
const insert = (first: string, count: number, user: string, expiresAt: string, { numbers, joined }: Database) =>
  `INSERT INTO coatcheck_sessions (${COLUMNS})
   SELECT ${joined(`'${first}'`, '10000000 + n', `'${'x'.repeat(46 - first.length - 8)}'`)}, 'session', '', ${joined(user)}, 'ada', 1, '{}', 1,
     'writeId0', ${NOW}, ${NOW}, ${expiresAt}, ${NOW + 9e7} FROM ${numbers(count)}`
const insertUsers = (count: number, user: string, expiresAt: string, { numbers, joined }: Database) =>
  `INSERT INTO coatcheck_sessions_users (namespace, user_id, min_password_version, min_password_version_until, expires_at)
   SELECT '', ${joined(user)}, 1, 0, ${expiresAt} FROM ${numbers(count)}`

/** The statistics are of a time when nothing that is live now was there: the database takes live sessions for very few. */
async function fillWithStaleStatistics(database: Database) {
  const { run, analyze } = database
  const expired = `${NOW - 9e8}`
  await run(insert('past', 9 * OWN, '1000000 + n', expired, database))
  await run(insert('mine', OWN, BUSY, expired, database))
  await run(analyze)
  await run(insert('live', LIVE, '2000000 + n', `${LATER} + n`, database))
}

function readsWhatIsTheUsers(get: () => Database) {
  beforeAll(() => fillWithStaleStatistics(get()), 120_000)

  it('reads what is the user’s, however many others are live', { timeout: 120_000 }, async () => {
    const { store, read } = get()
    // As often as a server may plan a statement for its values before it keeps a plan.
    for (let time = 0; time < 7; time++)
      expect(await read(() => store.listUser(BUSY, 'session', call())), 'listUser').toBeLessThan(LIVE / 2)
    const everywhere = () => store.deleteUser(BUSY, { minPasswordVersionUntil: LATER }, call())
    // Rows are looked at and then removed, and their entries in three indexes.
    expect(await read(everywhere), 'deleteUser').toBeLessThan(LIVE)
    expect(await store.listUser(BUSY, 'session', call())).toEqual([])
  })

  it('reads one session where it is asked for one', { timeout: 120_000 }, async () => {
    const { store, read } = get()
    const few = async (verb: string, work: () => Promise<unknown>) => expect(await read(work), verb).toBeLessThan(1000)
    for (let time = 0; time < 7; time++) {
      const parent = record({ kind: 'remember', userId: `${5_000_000 + time}`, expiresAt: LATER })
      const one = record({ userId: `${5_000_000 + time}`, parent: parent.key, expiresAt: LATER })
      const next = record({ userId: `${5_000_000 + time}`, parent: parent.key, expiresAt: LATER })
      const change = { data: '{"n":1}', seenAt: NOW, expiresAt: LATER, writeId: newWriteId() }
      const forward = { salt: 'c2FsdA', until: NOW }
      await few('create of a series', () => store.create(parent, call()))
      await few('create', async () => expect(await store.create(one, call())).toBe('created'))
      await few('update', async () => expect(await store.update(one.key, 1, change, call())).toBe('updated'))
      await few('touch', () => store.touch(one.key, NOW + 1, LATER + 1, call()))
      await few('replace', async () =>
        expect(await store.replace(one.key, 2, next, { forward }, call())).toBe('created'),
      )
      await few('create again', async () => expect(await store.create(next, call())).toBe('created'))
      await few('delete', async () => expect(await store.delete(one.key, call())).toBe(true))
    }
  })

  it('sweeps by what has expired, and reads none of the live ones', { timeout: 120_000 }, async () => {
    const database = get()
    const { store, run, read } = database
    await run('DELETE FROM coatcheck_sessions')
    await run('DELETE FROM coatcheck_sessions_users')
    await run(insert('live', LIVE, '2000000 + n', `${Date.now() + 9e6} + n`, database))
    await run(insert('past', 10, '1000000 + n', `${NOW} + n`, database))
    await run(insertUsers(LIVE, '2000000 + n', `${Date.now() + 9e6} + n`, database))
    await run(insertUsers(10, '1000000 + n', `${NOW} + n`, database))
    await run(database.analyze)
    const sweep = () => store.sweep!(500, { now: Date.now(), deadline: soon() })
    expect(await read(async () => expect(await sweep()).toBe(20))).toBeLessThan(1000)
    expect(await read(async () => expect(await sweep()).toBe(0))).toBeLessThan(1000)
  })
}

describeEngine('postgresql', 'rows that PostgreSQL reads', () => {
  let server: PostgresServer
  let pool: pg.Pool
  let database: Database
  beforeAll(async () => {
    server = await startPostgres({ autovacuum: 'off' })
    // One connection, so that what it counts is at hand when it is asked.
    pool = server.pool({ max: 1 })
    const store = new PostgresStore(pool)
    await store.migrate()
    const counted = async () => {
      await pool.query('SELECT pg_stat_force_next_flush()')
      const sum = `SELECT (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes)
        + (SELECT sum(seq_tup_read) FROM pg_stat_user_tables) AS n`
      return Number((await pool.query(sum)).rows[0].n)
    }
    database = {
      store,
      run: sql => pool.query(sql),
      numbers: count => `generate_series(1, ${count}) AS n`,
      joined: (...texts) => `concat(${texts.join(', ')})`,
      analyze: 'VACUUM ANALYZE',
      async read(work) {
        const before = await counted()
        await work()
        return (await counted()) - before
      },
    }
  })
  afterAll(() => server?.stop())
  readsWhatIsTheUsers(() => database)
})

describeEngine('mariadb', 'rows that MariaDB reads', () => {
  let server: MariadbDatabase
  let database: Database
  beforeAll(async () => {
    server = await sharedMariadb()
    const pool: mysql.Pool = server.pool()
    const store = new MysqlStore(pool)
    await store.migrate()
    const counted = async () => {
      const [rows] = await pool.query("SHOW GLOBAL STATUS LIKE 'Handler_read%'")
      return (rows as { Value: string }[]).reduce((sum, { Value }) => sum + Number(Value), 0)
    }
    database = {
      store,
      run: sql => pool.query(sql),
      numbers: count => `(SELECT seq AS n FROM seq_1_to_${count}) AS numbers`,
      joined: (...texts) => `concat(${texts.join(', ')})`,
      analyze: 'ANALYZE TABLE coatcheck_sessions, coatcheck_sessions_users',
      async read(work) {
        const before = await counted()
        await work()
        return (await counted()) - before
      },
    }
  })
  afterAll(() => server?.stop())
  readsWhatIsTheUsers(() => database)
})

// No driver counts rows: its plans say whether it goes through all live sessions. Statistics of values, which mislead it,
// are compiled into better-sqlite3 and node:sqlite.
describeEngine('better-sqlite3', 'rows that SQLite reads', () => {
  let file: OpenDatabase
  let database: Database
  beforeAll(async () => {
    file = openSqlite('better-sqlite3', ':memory:')
    const plans: string[] = []
    const explained = (text: string) => {
      const statement = file.prepare(text)
      const plan = file.prepare(`EXPLAIN QUERY PLAN ${text}`)
      const first =
        (method: 'run' | 'get' | 'all') =>
        (...values: unknown[]): any => {
          for (const { detail } of plan.all(...values) as { detail: string }[]) plans.push(detail)
          return statement[method](...values)
        }
      const raw = () => (statement as unknown as { raw(): void }).raw()
      return { run: first('run'), get: first('get'), all: first('all'), raw }
    }
    const store = new SqliteStore({ prepare: explained, exec: sql => file.exec(sql) })
    await store.migrate()
    database = {
      store,
      run: async sql => file.exec(sql),
      numbers: count =>
        `(WITH RECURSIVE m(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM m WHERE n < ${count}) SELECT n FROM m)`,
      joined: (...texts) => texts.map(text => `(${text})`).join(' || '),
      analyze: 'ANALYZE',
      async read(work) {
        plans.length = 0
        await work()
        return plans.filter(plan => /SCAN coatcheck|expires_at>/.test(plan)).length * LIVE
      },
    }
  })
  afterAll(() => file?.close())
  readsWhatIsTheUsers(() => database)
})

describeEngine('d1', 'rows that D1 reads, and bills', () => {
  let server: Awaited<ReturnType<typeof startD1>>
  let database: Database
  beforeAll(async () => {
    server = await startD1()
    let sum = 0
    const counted: D1Client = {
      prepare: sql => server.database.prepare(sql),
      async batch(statements) {
        const answers = await server.database.batch(statements)
        for (const { meta } of answers) sum += (meta as { rows_read: number }).rows_read
        return answers
      },
    }
    const store = new D1Store(counted)
    await store.migrate()
    database = {
      store,
      run: sql => server.run(sql),
      numbers: count =>
        `(WITH RECURSIVE m(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM m WHERE n < ${count}) SELECT n FROM m)`,
      joined: (...texts) => texts.map(text => `(${text})`).join(' || '),
      analyze: 'ANALYZE',
      async read(work) {
        sum = 0
        await work()
        return sum
      },
    }
  }, 60_000)
  afterAll(() => server?.stop())
  readsWhatIsTheUsers(() => database)
})
