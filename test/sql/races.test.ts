import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import type mysql from 'mysql2/promise'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type CompiledWorker, compileWorker } from '../support/compile-worker.ts'
import { describeEngine } from '../support/services/engines.ts'
import { type MariadbDatabase, sharedMariadb } from '../support/services/mariadb.ts'
import { type PostgresDatabase, sharedPostgres } from '../support/services/postgres.ts'
import { openSqlite, sqliteFile } from '../support/services/sqlite.ts'
import { MISTAKES, type Mistake } from './naive.ts'
import { type Contestants, type Race, race, startContestants } from './race.ts'

const LONG = process.env.COATCHECK_LONG === '1'
const ROUNDS = LONG ? 400 : 6
// A wrong store shows itself in the first rounds; after so many it counts as right.
const PATIENCE = 400
const TIMEOUT = LONG ? 590_000 : 60_000
const table = 'sessions'

let worker: CompiledWorker
let contestants: Contestants
beforeAll(async () => {
  worker = await compileWorker('sql/race-worker')
  contestants = startContestants(worker.path)
})
afterAll(() => {
  contestants?.stop()
  worker?.remove()
})

/** The races of one database; `prepare` is called when its server runs. */
function races(
  isolations: readonly (string | undefined)[],
  mistakes: readonly { mistake: Mistake; isolation?: string; passwordVersion?: number; pieces?: number }[],
  prepare: () => Pick<Race, 'contestant' | 'store' | 'survivors'>,
  inPieces = true,
) {
  const run = (options: Partial<Race> & Pick<Race, 'rounds'>, change: Partial<Race['contestant']>) => {
    const { contestant, ...rest } = prepare()
    return race({ ...rest, contestants, ...options, contestant: { ...contestant, ...change } })
  }
  for (const isolation of isolations)
    describe(isolation === undefined ? 'at the default isolation level' : `at ${isolation}`, () => {
      const change = isolation === undefined ? {} : { isolation }
      it.each([
        { what: 'no session of an older password version lives after a logout everywhere', passwordVersion: 2 },
        { what: 'no session from before, and none renewed from it, lives after a logout everywhere' },
        ...(inPieces
          ? [
              { what: 'no session of an older version lives after one in pieces', passwordVersion: 2, pieces: 5 },
              { what: 'no session from before, and none renewed from it, lives after one in pieces', pieces: 5 },
            ]
          : []),
      ])('$what', { timeout: TIMEOUT }, async ({ passwordVersion, ...pieces }) => {
        const version = passwordVersion ? { passwordVersion } : {}
        const result = await run({ rounds: ROUNDS, ...version }, { ...change, ...pieces })
        if (LONG) console.log(isolation ?? 'default', passwordVersion ?? '-', JSON.stringify(result))
        expect(result).toEqual({ survivors: 0, errors: [], rounds: ROUNDS })
      })
    })
  it.each(mistakes.map(each => ({ ...each, name: MISTAKES[each.mistake] })))(
    'notices $name',
    { timeout: TIMEOUT },
    async ({ mistake, isolation, passwordVersion, ...pieces }) => {
      const result = await run(
        { rounds: LONG ? ROUNDS : PATIENCE, stopAtFirst: !LONG, ...(passwordVersion ? { passwordVersion } : {}) },
        { mistake, ...(isolation === undefined ? {} : { isolation }), ...pieces },
      )
      if (LONG) console.log(mistake, JSON.stringify({ ...result, errors: result.errors.length }))
      expect(result.survivors).toBeGreaterThan(0)
    },
  )
}

describeEngine('postgresql', 'a logout everywhere on PostgreSQL', () => {
  let server: PostgresDatabase
  let pool: pg.Pool
  beforeAll(async () => {
    server = await sharedPostgres()
    pool = server.pool()
    await new PostgresStore(pool, { table }).migrate()
  })
  afterAll(() => server?.stop())
  races(
    // The default is READ COMMITTED.
    [undefined, 'REPEATABLE READ'],
    [
      { mistake: 'no-lock', passwordVersion: 2 },
      { mistake: 'one-statement', passwordVersion: 2 },
      { mistake: 'no-transaction' },
      // It takes hundreds of rounds to be caught: the next piece mostly finds what this one missed.
      ...(LONG ? [{ mistake: 'lock-once', pieces: 16 } as const] : []),
    ],
    () => ({
      contestant: { database: 'postgres', url: server.url(), table },
      store: new PostgresStore(pool, { table }),
      survivors: async (user, data) => {
        const condition = data === null ? '' : `AND data = '${data}'`
        const sql = `SELECT count(*) FROM ${table} WHERE user_id = $1 AND moved_to IS NULL ${condition}`
        return Number((await pool.query(sql, [user])).rows[0].count)
      },
    }),
  )
})

describeEngine('mariadb', 'a logout everywhere on MariaDB', () => {
  let server: MariadbDatabase
  let pool: mysql.Pool
  beforeAll(async () => {
    server = await sharedMariadb()
    pool = server.pool()
    await new MysqlStore(pool, { table }).migrate()
  })
  afterAll(() => server?.stop())
  races(
    // The default is REPEATABLE READ, whose gap locks hide both mistakes.
    [undefined, 'READ COMMITTED'],
    [
      { mistake: 'no-lock', isolation: 'READ COMMITTED', passwordVersion: 2 },
      { mistake: 'no-transaction', isolation: 'READ COMMITTED' },
    ],
    () => ({
      contestant: { database: 'mysql', url: server.url(), table },
      store: new MysqlStore(pool, { table }),
      survivors: async (user, data) => {
        const condition = data === null ? '' : `AND data = '${data}'`
        const sql = `SELECT count(*) AS count FROM ${table} WHERE user_id = ? AND moved_to IS NULL ${condition}`
        return Number(((await pool.query(sql, [user])) as any)[0][0].count)
      },
    }),
  )
})

describeEngine('libsql', 'a logout everywhere on one SQLite file', () => {
  const { file, remove } = sqliteFile()
  afterAll(remove)
  races(
    [undefined],
    [{ mistake: 'two-steps', passwordVersion: 2 }],
    () => {
      const database = openSqlite('libsql', file)
      const store = new SqliteStore(database, { table })
      const survivors = async (user: string, data: string | null) => {
        const sql = `SELECT count(*) AS count FROM ${table} WHERE user_id = ? AND moved_to IS NULL AND data = COALESCE(?, data)`
        return Number((database.prepare(sql).get(user, data) as any).count)
      }
      return { contestant: { database: 'sqlite', url: file, table, driver: 'libsql' }, store, survivors }
    },
    false,
  )
  beforeAll(async () => {
    await new SqliteStore(openSqlite('libsql', file), { table }).migrate()
  })
})
