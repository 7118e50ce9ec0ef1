import type { Store } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { modelTest } from 'coatcheck/custom-store/testing'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import fc from 'fast-check'
import type mysql from 'mysql2/promise'
import type pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type D1StoreServer, startD1Store } from './d1-store.ts'
import { describeEngine } from '../support/services/engines.ts'
import { type MariadbDatabase, sharedMariadb } from '../support/services/mariadb.ts'
import { type PostgresDatabase, sharedPostgres } from '../support/services/postgres.ts'
import { openSqlite, SQLITE_DRIVERS } from '../support/services/sqlite.ts'
import { NOW, newKey, record } from './records.ts'

const MAX = '18446744073709551615'
const NUMBERS = [
  MAX,
  '18446744073709551614',
  '9223372036854775807',
  '9223372036854775808',
  '9007199254740993',
  '1',
  '0',
]
// Equal to some collation or padding rule, or to a number parser, each.
const TEXTS = [
  'bob',
  'bob ',
  'BOB',
  'böb',
  'bo\u0308b',
  'ｂｏｂ',
  '42',
  '042',
  '4.2e1',
  "o'hara \\",
  '😀',
  '😁',
  'a\t42',
  'b\t42',
]

/** Each user has one session, and only that: found, listed and ended alone. */
async function isolated(store: Store, users: readonly string[]): Promise<void> {
  for (const userId of users) await store.deleteUser(userId, { minPasswordVersionUntil: 0 }, { now: NOW })
  const records = users.map(userId => record({ userId }))
  for (const each of records) expect(await store.create(each, { now: NOW })).toBe('created')
  for (const each of records) {
    expect(await store.read(each.key, { now: NOW })).toEqual(each)
    expect(await store.listUser(each.userId!, 'session', { now: NOW })).toEqual([each])
  }
  for (const [i, each] of records.entries()) {
    expect(
      await store.deleteUser(
        each.userId!,
        { minPasswordVersion: 7, minPasswordVersionUntil: NOW + 1000 },
        { now: NOW },
      ),
    ).toBe(1)
    const left = await Promise.all(records.map(({ key }) => store.read(key, { now: NOW })))
    expect(left.map(found => found !== null)).toEqual(records.map((_, place) => place > i))
    const others = users[(i + 1) % users.length] as string
    const stale = record({ userId: each.userId, passwordVersion: 6 })
    expect(await store.create(stale, { now: NOW })).toBe('stale-login')
    if (i + 1 < users.length)
      expect(await store.create(record({ userId: others, passwordVersion: 6, kind: 'remember' }), { now: NOW })).toBe(
        'created',
      )
  }
}

async function tellsCaseApart(store: Store): Promise<void> {
  const key = `aA${newKey().slice(2, 44)}bB`
  const swapped = key.replace(/[a-z]/gi, c => (c === c.toLowerCase() ? c.toUpperCase() : c.toLowerCase()))
  const [one, other] = [record({ key, data: '1' }), record({ key: swapped, data: '2' })]
  for (const each of [one, other]) expect(await store.create(each, { now: NOW })).toBe('created')
  expect(await store.read(key, { now: NOW })).toEqual(one)
  expect(await store.delete(swapped, { now: NOW })).toBe(true)
  expect(await store.read(key, { now: NOW })).toEqual(one)
}

/** A sweep that took local time for universal time would be hours off, one way or the other. */
async function sweepsByUniversalTime(store: Store): Promise<void> {
  const now = Date.now()
  const put = async (expiresAt: number) => {
    const each = record({ createdAt: now, seenAt: now, expiresAt, absoluteExpiresAt: now + 1e8 })
    await store.create(each, { now })
    return each.key
  }
  const [dead, fresh, live] = [await put(now - 400_000), await put(now - 200_000), await put(now + 1000)]
  await store.sweep?.(100_000, { now: now + 86_400_000 })
  const stored = async (key: string) => (await store.read(key, { now: now - 1e7 })) as SessionRecord | null
  expect(await stored(dead)).toBe(null)
  expect(await stored(fresh)).not.toBe(null)
  expect(await stored(live)).not.toBe(null)
}

let tables = 0
// Floors of one case must not meet the users of the next.
const newTable = () => `sessions_${++tables}`

const like = (open: () => Promise<Store>) => modelTest(fc, open, undefined, { runs: 8 })

describeEngine('postgresql', 'exactness on PostgreSQL', () => {
  let server: PostgresDatabase
  let pool: pg.Pool
  beforeAll(async () => {
    server = await sharedPostgres()
    pool = server.pool()
  })
  afterAll(() => server?.stop())
  const open = async (through: pg.Pool) => {
    const store = new PostgresStore(through, { table: newTable() })
    await store.migrate()
    return store
  }

  it('takes no number for another', async () => isolated(await open(pool), NUMBERS))
  it('takes no text for another', async () => isolated(await open(pool), TEXTS))
  it('compares keys by their case', async () => tellsCaseApart(await open(pool)))
  it('is not misled by an application that lets pg parse numbers', async () => {
    const types = { getTypeParser: () => Number.parseFloat as any }
    await isolated(await open(server.pool({ types } as pg.PoolConfig)), NUMBERS)
  })
  it.each(['America/New_York', 'Asia/Tokyo'])('does not depend on the time zone %s', async zone => {
    const abroad = server.pool({ options: `-c timezone=${zone}` })
    await sweepsByUniversalTime(await open(abroad))
    await like(() => open(abroad))
  })
  it('joins with the table of the application', async () => {
    await pool.query('CREATE TABLE people (id numeric PRIMARY KEY, name text)')
    await pool.query(`INSERT INTO people VALUES (${MAX}, 'max'), (18446744073709551614, 'other')`)
    await (await open(pool)).create(record({ userId: MAX }), { now: NOW })
    const { rows } = await pool.query(
      `SELECT DISTINCT name FROM people p JOIN sessions_${tables} s ON s.user_id = p.id::text`,
    )
    expect(rows).toEqual([{ name: 'max' }])
  })
})

describeEngine('mariadb', 'exactness on MariaDB', () => {
  let server: MariadbDatabase
  let pool: mysql.Pool
  beforeAll(async () => {
    server = await sharedMariadb()
    pool = server.pool()
  })
  afterAll(() => server?.stop())
  const open = async (through: mysql.Pool) => {
    const store = new MysqlStore(through, { table: newTable() })
    await store.migrate()
    return store
  }
  const poolWith = (setting: string, options: mysql.PoolOptions = {}) => {
    const other = server.pool(options)
    other.on('connection', connection => connection.query(`SET SESSION ${setting}`))
    return other
  }

  it('takes no number for another', async () => isolated(await open(pool), NUMBERS))
  it('takes no text for another', async () => isolated(await open(pool), TEXTS))
  it.each(['utf8mb4_general_ci', 'utf8mb4_unicode_ci', 'latin1_swedish_ci'])(
    'compares by bytes in a database of the collation %s',
    async collation => {
      await pool.query(`CREATE DATABASE \`${collation}\` CHARACTER SET ${collation.split('_')[0]} COLLATE ${collation}`)
      const store = await open(server.pool({ uri: server.url({ database: collation }) }))
      await tellsCaseApart(store)
      await isolated(store, TEXTS)
    },
  )
  it.each<[string, mysql.PoolOptions]>([
    ['gives big numbers as text', { supportBigNumbers: true, bigNumberStrings: true }],
    ['gives decimals as numbers', { decimalNumbers: true }],
    ['casts nothing', { typeCast: false }],
    ['casts everything its own way', { typeCast: () => 'x' }],
    ['gives rows as arrays', { rowsAsArray: true }],
    ['counts changed rows instead of found ones', { flags: ['-FOUND_ROWS'] }],
  ])('does not depend on a pool that %s', async (_, options) => {
    const store = await open(server.pool(options))
    await isolated(store, NUMBERS)
    await like(async () => store)
  })
  it.each([
    "time_zone = '-05:00'",
    "time_zone = '+09:00'",
    "sql_mode = ''",
    "sql_mode = 'ANSI,TRADITIONAL,NO_BACKSLASH_ESCAPES'",
    "sql_mode = 'PAD_CHAR_TO_FULL_LENGTH,NO_UNSIGNED_SUBTRACTION,NO_ZERO_DATE,IGNORE_SPACE,HIGH_NOT_PRECEDENCE'",
    "sql_mode = 'ORACLE'",
  ])('does not depend on %s', async setting => {
    const store = await open(poolWith(setting))
    await sweepsByUniversalTime(store)
    await isolated(store, NUMBERS)
    await like(async () => store)
  })
  it('accepts a pool of mysql2 with callbacks', async () => {
    const store = await open(server.pool().pool as unknown as mysql.Pool)
    await isolated(store, NUMBERS)
  })
  it('joins with the table of the application', async () => {
    await pool.query('CREATE TABLE people (id BIGINT UNSIGNED PRIMARY KEY, name VARCHAR(20))')
    await pool.query(`INSERT INTO people VALUES (${MAX}, 'max'), (18446744073709551614, 'other')`)
    await (await open(pool)).create(record({ userId: MAX }), { now: NOW })
    const [rows] = await pool.query(
      `SELECT DISTINCT name FROM people p JOIN sessions_${tables} s ON s.user_id = CAST(p.id AS CHAR)`,
    )
    expect(rows).toEqual([{ name: 'max' }])
  })
})

for (const driver of SQLITE_DRIVERS)
  describeEngine(driver, `exactness on SQLite with ${driver}`, () => {
    const open = async (prepare = (_: any) => {}) => {
      const database = openSqlite(driver, ':memory:')
      prepare(database)
      const store = new SqliteStore(database, { table: newTable() })
      await store.migrate()
      return { store, database }
    }
    it('takes no number for another', async () => isolated((await open()).store, NUMBERS))
    it('takes no text for another', async () => isolated((await open()).store, TEXTS))
    it('compares keys by their case', async () => tellsCaseApart((await open()).store))
    it('sweeps by universal time', async () => sweepsByUniversalTime((await open()).store))
    it('is not misled by a connection that gives big integers', async () => {
      const { store } = await open(database => database.defaultSafeIntegers?.(true))
      await isolated(store, NUMBERS)
    })
    it('joins with the table of the application', async () => {
      const { store, database } = await open()
      database.exec("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO people VALUES (42, 'ada')")
      await store.create(record(), { now: NOW })
      const sql = `SELECT name FROM people p JOIN sessions_${tables} s ON s.user_id = CAST(p.id AS TEXT)`
      expect(database.prepare(sql).all()).toHaveLength(1)
    })
  })

describeEngine('d1', 'exactness on D1', () => {
  let server: D1StoreServer
  beforeAll(async () => {
    server = await startD1Store()
  })
  afterAll(() => server?.stop())
  const open = async () => {
    const store = server.open({ table: newTable() })
    await store.migrate()
    return store
  }
  it('takes no number for another', async () => isolated(await open(), NUMBERS))
  it('takes no text for another', async () => isolated(await open(), TEXTS))
  it('compares keys by their case', async () => tellsCaseApart(await open()))
  it('sweeps by universal time', async () => sweepsByUniversalTime(await open()))
})
