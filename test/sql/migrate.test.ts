import { fork } from 'node:child_process'
import { once } from 'node:events'
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
import type { Contestant } from './contestant.ts'
import { isLive, NOW, record } from './records.ts'

let worker: CompiledWorker
beforeAll(async () => {
  worker = await compileWorker('sql/migrate-worker')
})
afterAll(() => worker?.remove())

/** Ten processes that call `migrate()` at once. */
async function tenProcesses(contestant: Contestant): Promise<unknown[]> {
  const children = Array.from({ length: 10 }, () => fork(worker.path, { stdio: 'inherit' }))
  await Promise.all(children.map(child => once(child, 'message')))
  const answers = children.map(child => once(child, 'message').then(([answer]) => answer))
  for (const child of children) child.send(contestant)
  const all = await Promise.all(answers)
  for (const child of children) child.disconnect()
  return all
}

/** What holds for every dialect. `run` executes DDL as the administrator. */
function migrations(
  database: () => {
    open(options: { table?: string; schema?: string; userIds?: 'bigint' | 'number' | 'string' }): {
      migrate(): Promise<void>
      isMigrated(): Promise<boolean>
    } & Parameters<typeof isLive>[0]
    run(sql: string): Promise<unknown>
    contestant: Contestant
    schema(options: { table: string }): string
  },
) {
  it('creates nothing when a store is made, and a call without tables says what to call', async () => {
    const store = database().open({ table: 'untouched' })
    const cause = { message: expect.stringMatching(/untouched.*call `await store\.migrate\(\)`/) }
    await expect(store.read(record().key, { now: NOW })).rejects.toMatchObject({ cause })
    await expect(store.create(record(), { now: NOW })).rejects.toMatchObject({ cause })
  })

  it('is looked for without creating anything', async () => {
    const { open, run } = database()
    const store = open({ table: 'looked_for' })
    for (let count = 0; count < 2; count++) expect(await store.isMigrated()).toBe(false)
    await store.migrate()
    expect(await store.isMigrated()).toBe(true)
    await run('CREATE TABLE looks_alike (id INTEGER NOT NULL)')
    await expect(open({ table: 'looks_alike' }).isMigrated()).rejects.toThrow(/column kind is missing/)
  })

  it('keeps what is there when it is called again', async () => {
    const store = database().open({ table: 'twice' })
    await store.migrate()
    const one = record()
    await store.create(one, { now: NOW })
    await store.migrate()
    expect(await isLive(store, one.key)).toBe(true)
  })

  it('works when ten processes call it at once', { timeout: 60_000 }, async () => {
    const { contestant, open } = database()
    expect(await tenProcesses({ ...contestant, table: 'ten' })).toEqual(Array(10).fill('done'))
    await open({ table: 'ten' }).migrate()
  })

  it('finds nothing to do where the printed schema was run by hand', async () => {
    const { open, run, schema } = database()
    for (const statement of schema({ table: 'printed' }).split(';\n')) if (statement.trim()) await run(statement)
    const store = open({ table: 'printed' })
    await store.migrate()
    expect(await store.create(record(), { now: NOW })).toBe('created')
  })

  it('names what is different in a table of another schema', async () => {
    const { open, run } = database()
    await run('CREATE TABLE older (id INTEGER NOT NULL, kind INTEGER, must_have INTEGER NOT NULL)')
    await expect(open({ table: 'older' }).migrate()).rejects.toThrow(
      /table .*older.* has another schema.*column id is .*; column kind is .*; column parent_key is missing;.*column must_have is unknown, NOT NULL, and has no default/,
    )
  })

  it('accepts columns of the application that a login can leave out, and no others', async () => {
    const { open, run } = database()
    const store = open({ table: 'wider' })
    await store.migrate()
    await run('ALTER TABLE wider ADD COLUMN shop VARCHAR(9)')
    await run('ALTER TABLE wider ADD COLUMN visits INTEGER NOT NULL DEFAULT 0')
    await store.migrate()
    expect(await store.create(record(), { now: NOW })).toBe('created')
    await run('CREATE TABLE narrow (id INTEGER, shop INTEGER NOT NULL, visits INTEGER NOT NULL DEFAULT 0)')
    const refused = open({ table: 'narrow' }).isMigrated()
    await expect(refused).rejects.toThrow(/column shop is unknown, NOT NULL, and has no default$/)
  })

  it('says that migrate() is needed when a column is missing at run time', async () => {
    const { open, run } = database()
    await run('CREATE TABLE ancient (id VARCHAR(46) NOT NULL)')
    const failure = open({ table: 'ancient' }).read(record().key, { now: NOW })
    await expect(failure).rejects.toMatchObject({
      code: 'ERR_SESSION_STORE',
      operation: 'read',
      outcome: 'not-applied',
    })
    await expect(failure).rejects.toMatchObject({ cause: { message: expect.stringContaining('kind') } })
  })

  it('works with words of the language as names', async () => {
    const store = database().open({ table: 'order' })
    await store.migrate()
    expect(await store.create(record(), { now: NOW })).toBe('created')
    expect(await store.deleteUser('42', { minPasswordVersionUntil: NOW }, { now: NOW })).toBe(1)
  })
}

describe('names of tables', () => {
  const pool = { connect: () => Promise.reject(new Error('not used')) }
  it.each(['x"; DROP TABLE users; --', 'a`b', 'nul\0', 'a.b', '', ' x', '1x', 'ö', 'x'.repeat(49), 42, null])(
    'refuses %j',
    name => {
      expect(() => new PostgresStore(pool, { table: name as string })).toThrow(/table: expected 1 to 48 letters/)
      expect(() => PostgresStore.ddl({ schema: name as string })).toThrow(/schema: expected 1 to 48 letters/)
      expect(() => MysqlStore.ddl({ table: name as string })).toThrow(TypeError)
      expect(() => SqliteStore.ddl({ table: name as string })).toThrow(TypeError)
    },
  )
  it('quotes what it prints', () => {
    expect(PostgresStore.ddl({ schema: 'auth', table: 'user' })).toContain('"auth"."user"')
    expect(MysqlStore.ddl({ schema: 'auth', table: 'user' })).toContain('`auth`.`user`')
    expect(SqliteStore.ddl({ table: 'user' })).toContain('"user"')
  })
})

describeEngine('postgresql', 'migrate() on PostgreSQL', () => {
  let server: PostgresDatabase
  let pool: pg.Pool
  beforeAll(async () => {
    server = await sharedPostgres()
    pool = server.pool()
  })
  afterAll(() => server?.stop())
  migrations(() => ({
    open: options => new PostgresStore(pool, options),
    run: sql => pool.query(sql),
    contestant: { database: 'postgres', url: server.url(), table: '' },
    schema: PostgresStore.ddl,
  }))

  it('names a collation that does not compare keys by bytes', async () => {
    const ddl = PostgresStore.ddl({ table: 'collated' }).replace('id text COLLATE "C"', 'id text')
    await pool.query(ddl)
    const failure = new PostgresStore(pool, { table: 'collated' }).migrate()
    await expect(failure).rejects.toThrow('column id is text, not text COLLATE "C"')
  })
  it('accepts a column of the application that the server numbers by itself', async () => {
    const store = new PostgresStore(pool, { table: 'numbered' })
    await store.migrate()
    await pool.query('ALTER TABLE numbered ADD COLUMN number bigint GENERATED ALWAYS AS IDENTITY')
    expect(await store.isMigrated()).toBe(true)
    expect(await store.create(record(), { now: NOW })).toBe('created')
  })
  it('uses a schema of its own', async () => {
    await pool.query('CREATE SCHEMA auth')
    const store = new PostgresStore(pool, { schema: 'auth' })
    await store.migrate()
    expect(await store.create(record(), { now: NOW })).toBe('created')
    expect((await pool.query('SELECT count(*) FROM auth.coatcheck_sessions')).rows[0].count).toBe('1')
  })
})

describeEngine('mariadb', 'migrate() on MariaDB', () => {
  let server: MariadbDatabase
  let pool: mysql.Pool
  beforeAll(async () => {
    server = await sharedMariadb()
    pool = server.pool()
  })
  afterAll(() => server?.stop())
  migrations(() => ({
    open: options => new MysqlStore(pool, options),
    run: sql => pool.query(sql),
    contestant: { database: 'mysql', url: server.url(), table: '' },
    schema: MysqlStore.ddl,
  }))

  it('uses a database of its own', async () => {
    await pool.query('CREATE DATABASE auth')
    const store = new MysqlStore(pool, { schema: 'auth' })
    await store.migrate()
    expect(await store.create(record(), { now: NOW })).toBe('created')
  })
})

describeEngine('libsql', 'migrate() on SQLite', () => {
  const { file, remove } = sqliteFile()
  const database = openSqlite('libsql', file)
  afterAll(() => {
    database.close()
    remove()
  })
  migrations(() => ({
    open: options => new SqliteStore(database, options),
    run: async sql => database.exec(sql),
    contestant: { database: 'sqlite', url: file, table: '', driver: 'libsql' },
    schema: SqliteStore.ddl,
  }))
})
