import { createClient } from '@libsql/client'
import type { Store } from 'coatcheck'
import { D1Store } from 'coatcheck/stores/d1'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { type PgPool, PostgresStore } from 'coatcheck/stores/postgres'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import mysqlCallback from 'mysql2'
import type mysql from 'mysql2/promise'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type D1StoreServer, startD1Store } from './d1-store.ts'
import { describeEngine } from '../support/services/engines.ts'
import { type MariadbDatabase, sharedMariadb } from '../support/services/mariadb.ts'
import { type PostgresDatabase, sharedPostgres } from '../support/services/postgres.ts'
import { type OpenDatabase, openSqlite, SQLITE_DRIVERS } from '../support/services/sqlite.ts'
import { isLive, NOW, newKey, newWriteId, record } from './records.ts'

const HOSTILE_KEYS = [
  "' OR '1'='1",
  'x'.repeat(47),
  '',
  'ключ',
  `${'a'.repeat(45)}\0`,
  `${'a'.repeat(45)} `,
  '%',
  '\ud800',
]
const HOSTILE_TEXTS = [
  "'; DROP TABLE sessions; --",
  '\\',
  '\\\'"`',
  '$1 ? :id ::x',
  '\u2028\u0085\u0001',
  '😀\u{10ffff}',
  ' padded ',
  'é\u0301',
]

/** Edits of a row by a careless hand, as SQL assignments; none may be live afterwards. */
const EDITS = [
  "kind = 'admin'",
  "kind = 'a|b'",
  'version = 0',
  'version = -1',
  'version = 9223372036854775807',
  'expires_at = 9223372036854775807',
  'expires_at = -1',
  'created_at = -5',
  'seen_at = 9007199254740993',
  'absolute_expires_at = 8640000000000001',
  'user_name = NULL',
  'user_id = NULL',
  "parent_key = 'short'",
  "parent_key = ''",
  "moved_to = ''",
]

function badInput(open: () => { store: Store; run(sql: string): Promise<unknown> }, edits: readonly string[]) {
  it.each(HOSTILE_KEYS)('finds nothing under the key %j', async key => {
    const { store } = open()
    expect(await store.read(key, { now: NOW })).toBe(null)
    expect(await store.touch(key, NOW, NOW, { now: NOW })).toBe('gone')
    expect(await store.delete(key, { now: NOW })).toBe(false)
    const change = { data: '', seenAt: NOW, expiresAt: NOW, writeId: newWriteId() }
    expect(await store.update(key, 1, change, { now: NOW })).toBe('gone')
  })

  it.each([...HOSTILE_TEXTS, '🧥'.repeat(4096)])('gives back exactly what it was given: %j', async text => {
    const { store } = open()
    const one = record({ data: text, userName: [...text].slice(0, 100).join('') })
    await store.create(one, { now: NOW })
    expect(await store.read(one.key, { now: NOW })).toEqual(one)
    const change = { data: `${text}${text}`, seenAt: NOW, expiresAt: one.expiresAt, writeId: newWriteId() }
    expect(await store.update(one.key, 1, change, { now: NOW })).toBe('updated')
    expect(await store.read(one.key, { now: NOW })).toEqual({ ...one, ...change, version: 2 })
  })

  it.each(edits)('takes a row with %s for none, removes it, and leaves it out of lists', async edit => {
    const { store, run } = open()
    const [one, sound] = [record(), record()]
    for (const each of [one, sound]) await store.create(each, { now: NOW })
    await run(`UPDATE bad SET ${edit} WHERE id = '${one.key}'`)
    const listed = await store.listUser('42', 'session', { now: NOW })
    expect(listed.some(({ key }) => key === one.key)).toBe(false)
    expect(listed.some(({ key }) => key === sound.key)).toBe(true)
    expect(await store.read(one.key, { now: NOW })).toEqual({ corrupt: expect.any(String) })
    expect(await store.read(one.key, { now: NOW })).toBe(null)
    expect(await isLive(store, sound.key)).toBe(true)
  })

  it('ends a walk along forwards that someone made into a circle', async () => {
    const { store, run } = open()
    const [one, other] = [record(), record()]
    for (const each of [one, other]) await store.create(each, { now: NOW })
    await run(`UPDATE bad SET moved_to = '${other.key}' WHERE id = '${one.key}'`)
    await run(`UPDATE bad SET moved_to = '${one.key}' WHERE id = '${other.key}'`)
    expect(await store.delete(one.key, { now: NOW })).toBe(false)
  })

  it('ends sessions of users that text and numbers could confuse by hand-written keys', async () => {
    const { store } = open()
    const one = record({ key: newKey() })
    await store.create(one, { now: NOW })
    expect(
      await store.deleteUser('42', { minPasswordVersionUntil: NOW, exceptKey: "' OR ''='" }, { now: NOW }),
    ).toBeGreaterThan(0)
    expect(await isLive(store, one.key)).toBe(false)
  })
}

describeEngine('postgresql', 'bad input on PostgreSQL', () => {
  let server: PostgresDatabase
  let pool: pg.Pool
  beforeAll(async () => {
    server = await sharedPostgres()
    pool = server.pool()
    await new PostgresStore(pool, { table: 'bad' }).migrate()
    // As in a table that someone else made: without NOT NULL.
    await pool.query(
      'ALTER TABLE bad ALTER data DROP NOT NULL, ALTER version DROP NOT NULL, ALTER expires_at DROP NOT NULL',
    )
  })
  afterAll(() => server?.stop())
  badInput(
    () => ({ store: new PostgresStore(pool, { table: 'bad' }), run: sql => pool.query(sql) }),
    [...EDITS, "user_id = ''", 'data = NULL', 'version = NULL', 'password_version = 4294967296'],
  )
})

describeEngine('mariadb', 'bad input on MariaDB', () => {
  let server: MariadbDatabase
  let pool: mysql.Pool
  beforeAll(async () => {
    server = await sharedMariadb()
    pool = server.pool()
    await new MysqlStore(pool, { table: 'bad' }).migrate()
    await pool.query(
      'ALTER TABLE bad MODIFY data mediumtext NULL, MODIFY version bigint NULL, MODIFY expires_at bigint NULL',
    )
  })
  afterAll(() => server?.stop())
  badInput(
    () => ({ store: new MysqlStore(pool, { table: 'bad' }), run: sql => pool.query(sql) }),
    [...EDITS, 'data = NULL', 'version = NULL', "kind = ''"],
  )
})

for (const driver of SQLITE_DRIVERS)
  describeEngine(driver, `bad input on SQLite with ${driver}`, () => {
    let database: OpenDatabase
    beforeAll(async () => {
      database = openSqlite(driver, ':memory:')
      await new SqliteStore(database, { table: 'bad' }).migrate()
    })
    badInput(
      () => ({ store: new SqliteStore(database, { table: 'bad' }), run: async sql => database.exec(sql) }),
      [...EDITS, "user_id = ''", "version = 'x'", "data = x'00ff'", "expires_at = ''", 'password_version = 1.5'],
    )
  })

describeEngine('d1', 'bad input on D1', () => {
  let server: D1StoreServer
  beforeAll(async () => {
    server = await startD1Store()
    await server.open({ table: 'bad' }).migrate()
  })
  afterAll(() => server?.stop())
  badInput(
    () => ({ store: server.open({ table: 'bad' }), run: server.run }),
    [...EDITS, "user_id = ''", "version = 'x'", "data = x'00ff'", "expires_at = ''", 'password_version = 1.5'],
  )
})

describe('an option that there is not', () => {
  const wrong = (options: object) => options as never
  const pg = { connect: async () => ({}) } as never
  const mysql = { getConnection: async () => ({}) } as never
  it('is refused by PostgresStore and MysqlStore, with the nearest one and all that there are', () => {
    const ofPostgres = /PostgresStore: "prepared" is not an option \(there are: table, .*prepare\)/
    expect(() => new PostgresStore(pg, wrong({ prepared: false }))).toThrow(ofPostgres)
    expect(() => PostgresStore.ddl(wrong({ prepared: false }))).toThrow(ofPostgres)
    expect(() => new PostgresStore(pg, wrong({ prepare: 'no' }))).toThrow('prepare: expected true or false, got "no"')
    const ofMysql = /MysqlStore: "userIds" is not an option; the SessionManager has it, .* \(there are: table, schema\)/
    expect(() => new MysqlStore(mysql, wrong({ userIds: 'string' }))).toThrow(ofMysql)
    expect(() => MysqlStore.ddl(wrong({ userIds: 'string' }))).toThrow(ofMysql)
    expect(() => new MysqlStore(mysql, wrong([]))).toThrow(/expected an object of options, got an array/)
  })

  it('is refused by D1Store, whose database has one schema', () => {
    const d1 = { prepare() {}, batch() {} } as never
    const message = /"schema" is not an option; the database has one schema \(there are: table\)/
    expect(() => new D1Store(d1, wrong({ schema: 'main' }))).toThrow(message)
    expect(() => D1Store.ddl(wrong({ schema: 'main' }))).toThrow(message)
  })
})

describe('a driver of unknown shape', () => {
  const shapes: [string, unknown][] = [
    ['nothing', undefined],
    ['null', null],
    ['a string', 'postgres://localhost/db'],
    ['an empty object', {}],
    ['a function', () => {}],
  ]
  it.each(shapes)('is refused with what is expected: %s', (_, shape) => {
    expect(() => new PostgresStore(shape as PgPool)).toThrow(/PostgresStore expects a pg.Pool/)
    expect(() => new MysqlStore(shape as never)).toThrow(/MysqlStore expects a pool of mysql2/)
    expect(() => new SqliteStore(shape as never)).toThrow(/SqliteStore expects a connection of better-sqlite3, libsql/)
    expect(() => new D1Store(shape as never)).toThrow(/D1Store expects a D1 database: the binding of a Worker/)
  })

  it('is refused where it is the driver of another database', () => {
    const mysqlPool = mysqlCallback.createPool({ host: '127.0.0.1' })
    const pgPool = new pg.Pool()
    // @ts-expect-error a wrong pool is a compile error
    expect(() => new PostgresStore(mysqlPool)).toThrow(TypeError)
    // These have a connect() too.
    expect(() => new PostgresStore(mysqlPool.promise())).toThrow(TypeError)
    expect(() => new PostgresStore(new pg.Client())).toThrow(TypeError)
    // @ts-expect-error
    expect(() => new MysqlStore(pgPool)).toThrow(TypeError)
    // @ts-expect-error
    expect(() => new SqliteStore(pgPool)).toThrow(TypeError)
    // @ts-expect-error
    expect(() => new SqliteStore(mysqlPool)).toThrow(TypeError)
    mysqlPool.end()
  })

  it('is refused where another store, or another object, is the right one', () => {
    const remote = createClient({ url: 'http://127.0.0.1:9' })
    const d1 = { prepare() {}, batch() {}, dump() {}, exec() {} }
    const sqlite = { prepare() {}, exec() {} }
    const wrong = (given: unknown) => given as never
    // @ts-expect-error a wrong client is a compile error
    expect(() => new SqliteStore(remote)).toThrow(/got the client of @libsql\/client/)
    // @ts-expect-error
    expect(() => new D1Store(remote)).toThrow(/got the client of @libsql\/client/)
    expect(() => new SqliteStore(wrong(d1))).toThrow(/pass it to D1Store/)
    expect(() => new D1Store(wrong(sqlite))).toThrow(/pass it to SqliteStore/)
    expect(() => new D1Store(wrong({ ...d1, getBookmark() {} }))).toThrow(/withSession\(\).*pass the binding itself/)
    expect(() => new D1Store(wrong({ $client: d1 }))).toThrow(/pass its \$client/)
    remote.close()
  })

  it('is told at the first call where it could not be seen before', async () => {
    const odd = { connect: async () => ({}) } as unknown as PgPool
    await expect(new PostgresStore(odd).read(newKey(), { now: NOW })).rejects.toMatchObject({
      cause: { message: expect.stringMatching(/expects a pg.Pool, whose connect\(\)/) },
    })
    const silent = { getConnection: () => undefined } as never
    await expect(new MysqlStore(silent).read(newKey(), { now: NOW })).rejects.toMatchObject({
      cause: { message: expect.stringMatching(/gives no promise: use mysql2/) },
    })
  })
})
