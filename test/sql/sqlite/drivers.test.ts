// What may be passed to SqliteStore, and what its errors say.
import { inspect } from 'node:util'
import { createClient } from '@libsql/client'
import { SessionStoreError, type Store } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import { afterAll, describe, expect, it } from 'vitest'
import { describeEngine } from '../../support/services/engines.ts'
import { openSqlite, SQLITE_DRIVERS, sqliteFile } from '../../support/services/sqlite.ts'
import { NOW, newWriteId, record } from '../records.ts'

const nothing = () => {}
const late = async () => ({})
const connection = { prepare: nothing, exec: nothing }

describe('SqliteStore refuses what is no connection, and says what to pass instead of', () => {
  const given: [what: string, database: unknown, advice: RegExp][] = [
    ['a path', 'sessions.db', /got "sessions\.db": open it, new Database\(path\), and pass the connection/],
    ['a promise', Promise.resolve(connection), /got a promise: await it/],
    ['a class', class Database {}, /got a function: pass a connection that it opened/],
    [
      'sqlite3',
      { ...connection, each: nothing, parallelize: nothing },
      /answers come later \(it has parallelize\(\)\)/,
    ],
    ['the package sqlite', { ...connection, getDatabaseInstance: nothing }, /answers come later/],
    [
      'Cloudflare D1',
      { prepare: nothing, exec: late, batch: late, dump: late },
      /got a D1 database: pass it to D1Store$/,
    ],
    [
      '@libsql/client for a remote database',
      createClient({ url: 'http://127.0.0.1:1' }),
      /got the client of @libsql\/client: .* for a database on a network see the page on SQLite$/,
    ],
    [
      '@libsql/client for a file',
      createClient({ url: ':memory:' }),
      /got the client of @libsql\/client: open the file with the package libsql, new Database\('sessions\.db'\)/,
    ],
    ['Drizzle', { $client: connection, select: nothing }, /got an object around one: pass its \$client/],
    ['a connection without exec()', { prepare: nothing }, /got an object without exec\(\)$/],
    ['an empty object', {}, /got an object without prepare\(\) and exec\(\)$/],
    ['nothing', undefined, /got undefined$/],
    ['null', null, /got null$/],
  ]
  it.each(given)('%s', (_, database, advice) => {
    const open = () => new SqliteStore(database as never)
    expect(open).toThrow(TypeError)
    expect(open).toThrow(advice)
    expect(open).toThrow('SqliteStore expects a connection of better-sqlite3, libsql, node:sqlite or bun:sqlite')
  })

  it('a URL, without showing its password', () => {
    const open = () => new SqliteStore('libsql://user:hunter2@db.example' as never)
    expect(open).toThrow(/got a URL \(not shown/)
    expect(open).not.toThrow(/hunter2/)
  })

  const lateOnes: [what: string, database: unknown][] = [
    ['a promise for exec()', { prepare: nothing, exec: () => Promise.reject(new Error('late')) }],
    ['a promise for prepare()', { prepare: late, exec: nothing }],
    ['no rows at once', { prepare: () => ({ run: late, get: late, all: late }), exec: nothing }],
  ]
  it.each(lateOnes)('a driver that gives %s', async (_, database) => {
    const store = new SqliteStore(database as never)
    await expect(store.migrate()).rejects.toThrow(TypeError)
    await expect(store.migrate()).rejects.toThrow(/that answer at once; its (exec|prepare|all)\(\) gives/)
    const error = await store.touch(record().key, NOW, NOW, { now: NOW }).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'ERR_SESSION_STORE', outcome: 'not-applied', cause: expect.any(TypeError) })
  })
})

describeEngine('libsql', 'SqliteStore beside an application that uses @libsql/client', () => {
  const { file, remove } = sqliteFile()
  afterAll(remove)

  it('shares the file with that client, in both directions', async () => {
    const client = createClient({ url: `file:${file}` })
    const database = openSqlite('libsql', file)
    const store = new SqliteStore(database)
    await store.migrate()
    const [one, other] = [record({ userId: '42' }), record({ userId: '42' })]
    for (const each of [one, other]) expect(await store.create(each, { now: NOW })).toBe('created')
    const { rows } = await client.execute("SELECT id FROM coatcheck_sessions WHERE user_id = '42' ORDER BY id")
    expect(rows.map(row => row.id)).toEqual([one.key, other.key].sort())
    await client.execute({ sql: 'DELETE FROM coatcheck_sessions WHERE id = ?', args: [one.key] })
    expect(await store.read(one.key, { now: NOW })).toBe(null)
    expect(await store.listUser('42', 'session', { now: NOW })).toEqual([other])
    client.close()
    database.close()
  })
})

describe('an option that there is not', () => {
  const wrong = (options: object) => options as never
  it('is refused by SqliteStore with the nearest one and all that there are', () => {
    const message = /SqliteStore: "tabl" is not an option \(there are: table, schema\)/
    expect(() => new SqliteStore(connection as never, wrong({ tabl: 'x' }))).toThrow(message)
    expect(() => SqliteStore.ddl(wrong({ tabl: 'x' }))).toThrow(message)
    expect(() => new SqliteStore(connection as never, wrong([]))).toThrow(/expected an object of options, got an array/)
    expect(() => SqliteStore.ddl(wrong({ userIds: 'bigint' }))).toThrow('the SessionManager has it')
  })

  it('is refused by MemoryStore with those that there are', () => {
    for (const name of ['maxRecord', 'checkPeriod', 'max'])
      expect(() => new MemoryStore(wrong({ [name]: 5 }))).toThrow(`"${name}" is not an option`)
    expect(() => new MemoryStore(wrong({ max: 5 }))).toThrow('maxRecords')
    expect(() => new MemoryStore(null as never)).toThrow(TypeError)
    expect(() => new MemoryStore(undefined)).not.toThrow()
  })
})

const NEUTRAL = /^the session store failed in [a-zA-Z]+$/

async function errorOf(call: Promise<unknown>): Promise<SessionStoreError> {
  const error = await call.then(
    () => expect.unreachable('the call succeeded'),
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(SessionStoreError)
  return error as SessionStoreError
}

for (const driver of SQLITE_DRIVERS)
  describeEngine(driver, `an error of SQLite with ${driver}`, () => {
    const { file, remove } = sqliteFile()
    afterAll(remove)

    it('says nothing of the database in its message, and nothing of the session anywhere', async () => {
      const database = openSqlite(driver, file)
      const store: Store = new SqliteStore(database)
      await new SqliteStore(database).migrate()
      const secret = { username: 'Ada Lovelace-King', data: '{"card":"4111-1111"}', userId: '31337' }
      const one = record(secret)
      await store.create(one, { now: NOW })
      const change = { data: secret.data, seenAt: NOW, expiresAt: NOW + 9e6, writeId: newWriteId() }
      const deadline = () => performance.now() + 60
      const verbs: (() => Promise<unknown>)[] = [
        () => store.create(record(secret), { now: NOW, deadline: deadline() }),
        () => store.update(one.key, 1, change, { now: NOW, deadline: deadline() }),
        () => store.touch(one.key, NOW + 5, NOW + 9e6, { now: NOW, deadline: deadline() }),
        () => store.replace(one.key, 1, record(secret), {}, { now: NOW, deadline: deadline() }),
        () => store.delete(one.key, { now: NOW, deadline: deadline() }),
        () =>
          store.deleteUser(
            secret.userId,
            { minPasswordVersion: 1, minPasswordVersionUntil: NOW + 9 },
            { now: NOW, deadline: deadline() },
          ),
      ]
      const other = openSqlite(driver, file)
      const faults: [begin: string, end: string][] = [
        ['PRAGMA query_only = 1', 'PRAGMA query_only = 0'],
        ["CREATE TRIGGER t BEFORE INSERT ON coatcheck_sessions BEGIN SELECT RAISE(ABORT, 'no'); END", 'DROP TRIGGER t'],
        ['ALTER TABLE coatcheck_sessions RENAME TO elsewhere', 'ALTER TABLE elsewhere RENAME TO coatcheck_sessions'],
      ]
      const errors: SessionStoreError[] = []
      other.exec('BEGIN IMMEDIATE')
      for (const verb of verbs) errors.push(await errorOf(verb()))
      other.exec('COMMIT')
      for (const [begin, end] of faults) {
        database.exec(begin)
        for (const verb of begin.includes('INSERT') ? verbs.slice(0, 1) : verbs) errors.push(await errorOf(verb()))
        database.exec(end)
      }
      other.close()
      database.close()
      for (const verb of verbs) errors.push(await errorOf(verb()))
      expect(errors.length).toBeGreaterThan(20)
      for (const error of errors) {
        expect(error.message).toMatch(NEUTRAL)
        expect(error.cause).toBeInstanceOf(Error)
        const printed = inspect(error, { depth: 20, showHidden: true, getters: true })
        for (const part of ['Ada Lovelace', '4111-1111', '31337', one.key]) expect(printed).not.toContain(part)
      }
    })
  })
