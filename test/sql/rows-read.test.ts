// What a call reads of the tables, as the database itself counts it: what belongs to the user, not what others have.
import type { D1Client } from 'coatcheck/stores/d1'
import type { SqliteDatabase } from 'coatcheck/stores/sqlite'
import type mysql from 'mysql2/promise'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { soon } from '../support/deadlines.ts'
import { describeEngine, type EngineName } from '../support/services/engines.ts'
import { sharedPostgres } from '../support/services/postgres.ts'
import { TABLES } from '../support/sql/backend.ts'
import { keyOf, openD1, openFile, openMariadb, postgresOn, type SqlDatabase } from './databases.ts'
import { call, change, forward, NOW, record } from './records.ts'

const LATER = NOW + 9e6
/** The user who has many sessions, most of them expired and not yet swept. */
const BUSY = '42'
const OWN = 2000
const LIVE = 20_000

interface Counting extends SqlDatabase {
  readonly analyze: string
  /** What `work` read: rows and entries of indexes. */
  read(work: () => Promise<unknown>): Promise<number>
}

const counting = (database: SqlDatabase, analyze: string, count: () => Promise<number>): Counting => ({
  ...database,
  analyze,
  async read(work) {
    const before = await count()
    await work()
    return (await count()) - before
  },
})

const DATABASES: Record<string, { engine: EngineName; open(): Promise<Counting> }> = {
  PostgreSQL: {
    engine: 'postgresql',
    async open() {
      const server = await sharedPostgres()
      // One connection, so that what it counts is at hand when it is asked.
      const pool = server.pool({ max: 1 })
      const sum = `SELECT (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes)
        + (SELECT sum(seq_tup_read) FROM pg_stat_user_tables) AS n`
      return counting(postgresOn(pool, { stop: server.stop }), 'VACUUM ANALYZE', async () => {
        await pool.query('SELECT pg_stat_force_next_flush()')
        return Number((await pool.query(sum)).rows[0].n)
      })
    },
  },
  MariaDB: {
    engine: 'mariadb',
    async open() {
      const database = await openMariadb()
      return counting(database, `ANALYZE TABLE ${TABLES}`, async () => {
        const status = "SHOW GLOBAL STATUS LIKE 'Handler_read%'"
        const [rows] = await (database.pool as mysql.Pool).query<mysql.RowDataPacket[]>(status)
        return rows.reduce((sum, { Value }) => sum + Number(Value), 0)
      })
    },
  },
  // No driver counts rows: its plans say whether it goes through all live sessions. Statistics of values, which mislead it,
  // are compiled into better-sqlite3 and node:sqlite.
  SQLite: {
    engine: 'better-sqlite3',
    async open() {
      let scans = 0
      const explained = (file: SqliteDatabase): SqliteDatabase => ({
        exec: sql => file.exec(sql),
        prepare(text) {
          const statement = file.prepare(text) as any
          const plan = file.prepare(`EXPLAIN QUERY PLAN ${text}`)
          const first =
            (method: 'run' | 'get' | 'all') =>
            (...values: unknown[]): any => {
              for (const { detail } of plan.all(...values) as { detail: string }[])
                if (/SCAN coatcheck|expires_at>/.test(detail)) scans += LIVE
              return statement[method](...values)
            }
          return { run: first('run'), get: first('get'), all: first('all'), raw: () => statement.raw() } as never
        },
      })
      return counting(await openFile('better-sqlite3', explained), 'ANALYZE', async () => scans)
    },
  },
  // And bills.
  D1: {
    engine: 'd1',
    async open() {
      let sum = 0
      const metered = (binding: D1Client): D1Client => ({
        prepare: sql => binding.prepare(sql),
        async batch(statements) {
          const answers = await binding.batch(statements)
          for (const { meta } of answers) sum += (meta as { rows_read: number }).rows_read
          return answers
        },
      })
      return counting(await openD1(metered), 'ANALYZE', async () => sum)
    },
  },
}

for (const [name, { engine, open }] of Object.entries(DATABASES))
  describeEngine(engine, `rows that ${name} reads`, () => {
    let database: Counting
    beforeAll(async () => {
      database = await open()
      const { fill, run, analyze } = database
      await database.open().migrate()
      if (name === 'PostgreSQL')
        for (const table of TABLES) await run(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`)
      // The statistics are of a time when nothing that is live now was there: it takes live sessions for very few.
      await fill({ prefix: 'past', count: 9 * OWN, user: '1000000 + n', expiresAt: `${NOW - 9e8}` })
      await fill({ prefix: 'mine', count: OWN, user: BUSY, expiresAt: `${NOW - 9e8}` })
      await run(analyze)
      await fill({ prefix: 'live', count: LIVE, user: '2000000 + n', expiresAt: `${LATER} + n` })
    }, 120_000)
    afterAll(() => database?.stop())
    const few = async (verb: string, work: () => Promise<unknown>) =>
      expect(await database.read(work), verb).toBeLessThan(1000)

    it('reads what is the user’s, however many others are live', { timeout: 120_000 }, async () => {
      const { read } = database
      const store = database.open()
      // As often as a server may plan a statement for its values before it keeps a plan.
      for (let time = 0; time < 7; time++)
        expect(await read(() => store.listUser(BUSY, 'session', call())), 'listUser').toBeLessThan(LIVE / 2)
      const everywhere = () => store.deleteUser(BUSY, { minPasswordVersionUntil: LATER }, call())
      // Rows are looked at and then removed, and their entries in three indexes.
      expect(await read(everywhere), 'deleteUser').toBeLessThan(LIVE)
      expect(await store.listUser(BUSY, 'session', call())).toEqual([])
    })

    it('reads no more sessions than it is asked for', { timeout: 120_000 }, async () => {
      const store = database.open()
      for (let time = 0; time < 7; time++) {
        const userId = `${5_000_000 + time}`
        const parent = record({ kind: 'remember', userId, expiresAt: LATER })
        const [one, next] = [record(), record()].map(each => ({
          ...each,
          userId,
          parent: parent.key,
          expiresAt: LATER,
        }))
        await few('create of a series', () => store.create(parent, call()))
        await few('create', async () => expect(await store.create(one!, call())).toBe('created'))
        await few('update', async () => expect(await store.update(one!.key, 1, change(), call())).toBe('updated'))
        await few('touch', () => store.touch(one!.key, NOW + 1, LATER + 1, call()))
        await few('replace', async () =>
          expect(await store.replace(one!.key, 2, next!, { forward }, call())).toBe('created'),
        )
        await few('create again', async () => expect(await store.create(next!, call())).toBe('created'))
        const many = Array.from({ length: 200 }, (_, i) => keyOf(100 * i, 'live'))
        await few('200 reads', () => Promise.all(many.map(async key => store.read(key, call()))))
        await few('a page of a walk', () => store.scan(keyOf(LIVE / 2, 'live'), 100, call()))
        await few('delete', async () => expect(await store.delete(one!.key, call())).toBe(true))
      }
    })

    it('sweeps by what has expired, and reads none of the live ones', { timeout: 120_000 }, async () => {
      const { fill, run, analyze } = database
      const store = database.open()
      for (const table of TABLES) await run(`DELETE FROM ${table}`)
      const alive = `${Date.now() + 9e6} + n`
      await fill({ prefix: 'live', count: LIVE, user: '2000000 + n', expiresAt: alive })
      await fill({ prefix: 'past', count: 10, user: '1000000 + n', expiresAt: `${NOW} + n` })
      for (const [from, expiresAt] of [
        ['live', alive],
        ['past', `${NOW} + 1`],
      ])
        await run(`INSERT INTO coatcheck_sessions_users (namespace, user_id, min_password_version, min_password_version_until, expires_at)
          SELECT '', user_id, 1, 0, ${expiresAt!.replace(' + n', ' + 1')} FROM coatcheck_sessions WHERE id LIKE '${from}%'`)
      await run(analyze)
      for (const swept of [20, 0])
        await few('sweep', async () =>
          expect(await store.sweep(500, { now: Date.now(), deadline: soon() })).toBe(swept),
        )
    })
  })
