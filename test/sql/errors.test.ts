// What the error of a store says: to a client nothing of the database, to a log nothing of the session.
import { inspect } from 'node:util'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { expect, it } from 'vitest'
import { within } from '../support/deadlines.ts'
import { failure } from '../support/failure.ts'
import { leaked } from '../support/scan.ts'
import { describeEngine } from '../support/services/engines.ts'
import { openSqlite, SQLITE_DRIVERS, sqliteFile } from '../support/services/sqlite.ts'
import { onEach, SERVERS } from './databases.ts'
import { call, change, NOW, newKey, record } from './records.ts'

const SECRET = { userId: '31337', userName: 'Grace Hopper', data: '{"cart":"a secret book"}' }
const SECRETS = [SECRET.userName, 'a secret book']

onEach(SERVERS, 'an error of', (get, name) => {
  it('names neither table nor host to a client, and no value of the statement to a log', async () => {
    const { open, run } = get()
    const table = 'strict_sessions'
    const store = open({ table })
    expect((await failure(store.read(newKey(), call()))).message).toBe('read: the store failed')
    await store.migrate()
    const refuse = { PostgreSQL: `ADD CHECK (user_name <> '${SECRET.userName}')`, MariaDB: 'MODIFY user_name INT' }
    await run(`ALTER TABLE ${table} ${refuse[name as keyof typeof refuse]}`)
    const one = record(SECRET)
    const error = await failure(store.create(one, call()))
    expect(error.message).toBe('create: the store failed')
    if (name === 'PostgreSQL') expect(error.cause).toMatchObject({ code: '23514', table })
    expect(leaked(error, [one.key, one.writeId, ...SECRETS])).toBe(null)
  })

  it('names the reason why there is no connection to a log alone', async () => {
    const nowhere = '127.0.0.1:1/x'
    const away =
      name === 'PostgreSQL'
        ? new PostgresStore(new pg.Pool({ connectionString: `postgres://ada:pw@${nowhere}` }))
        : new MysqlStore(mysql.createPool(`mysql://ada:pw@${nowhere}`))
    const refused = await failure(away.read(newKey(), call()))
    expect(refused.message).toBe('read: the store failed')
    expect(refused.cause).toMatchObject({ cause: { code: 'ECONNREFUSED' } })
  })
})

for (const driver of SQLITE_DRIVERS)
  describeEngine(driver, `an error of SQLite with ${driver}`, () => {
    it('says nothing of the database in its message, and nothing of the session anywhere', async () => {
      const { file, remove } = sqliteFile()
      const [database, other] = [openSqlite(driver, file), openSqlite(driver, file)]
      const store = new SqliteStore(database)
      await store.migrate()
      const one = record(SECRET)
      await store.create(one, call())
      const short = () => ({ now: NOW, deadline: within(60) })
      const writes = {
        create: () => store.create(record(SECRET), short()),
        update: () => store.update(one.key, 1, change({ data: SECRET.data }), short()),
        replace: () => store.replace(one.key, 1, record(SECRET), {}, short()),
        deleteUser: () => store.deleteUser(SECRET.userId, { minPasswordVersionUntil: 0 }, short()),
      }
      const all = {
        ...writes,
        read: () => store.read(one.key, short()),
        touch: () => store.touch(one.key, NOW, NOW, short()),
        delete: () => store.delete(one.key, short()),
        listUser: () => store.listUser(SECRET.userId, 'session', short()),
        sweep: () => store.sweep(10, short()),
        scan: () => store.scan(null, 10, short()),
      }
      const faults: [begin: () => unknown, end: () => unknown, calls: Record<string, () => unknown>][] = [
        [() => other.exec('BEGIN IMMEDIATE'), () => other.exec('COMMIT'), writes],
        [() => database.exec('PRAGMA query_only = 1'), () => database.exec('PRAGMA query_only = 0'), writes],
        [
          () => database.exec('ALTER TABLE coatcheck_sessions RENAME TO elsewhere'),
          () => database.exec('ALTER TABLE elsewhere RENAME TO coatcheck_sessions'),
          all,
        ],
        [() => [database.close(), other.close()], remove, all],
      ]
      for (const [begin, end, calls] of faults) {
        begin()
        for (const [operation, call] of Object.entries(calls)) {
          const error = await failure(Promise.resolve().then(call))
          expect(error).toMatchObject({ operation, outcome: 'not-applied', cause: expect.any(Error) })
          expect(error.message).toBe(`${operation}: the store failed`)
          const printed = inspect(error, { depth: 20, showHidden: true, getters: true })
          for (const part of [...SECRETS, SECRET.userId, one.key]) expect(printed).not.toContain(part)
        }
        end()
      }
    })
  })
