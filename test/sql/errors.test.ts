// What the error of a store says: to a client nothing of the database, to a log nothing of the session.
import { inspect } from 'node:util'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { expect, it } from 'vitest'
import { soon, within } from '../support/deadlines.ts'
import { failure } from '../support/failure.ts'
import { leaked } from '../support/scan.ts'
import { describeEngine } from '../support/services/engines.ts'
import { openSqlite, SQLITE_DRIVERS, sqliteFile } from '../support/services/sqlite.ts'
import { onEach, SERVERS } from './databases.ts'
import { NOW, newKey, newWriteId, record } from './records.ts'

const call = () => ({ now: NOW, deadline: soon() })
const SECRET = { userId: '31337', userName: 'Grace Hopper', data: '{"cart":"a secret book"}' }
const SECRETS = [SECRET.userName, 'a secret book']

onEach(SERVERS, 'an error of', (get, name) => {
  it('names neither table nor host to a client, and no value of the statement to a log', async () => {
    const { open, run } = get()
    const table = 'strict_sessions'
    const store = open({ table })
    expect((await failure(store.read(newKey(), call()))).message).toBe('the session store failed in read')
    await store.migrate()
    const refuse = { PostgreSQL: `ADD CHECK (user_name <> '${SECRET.userName}')`, MariaDB: 'MODIFY user_name INT' }
    await run(`ALTER TABLE ${table} ${refuse[name as keyof typeof refuse]}`)
    const one = record(SECRET)
    const error = await failure(store.create(one, call()))
    expect(error.message).toBe('the session store failed in create')
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
    expect(refused.message).toBe('the session store failed in read')
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
      const change = { data: SECRET.data, seenAt: NOW, expiresAt: NOW + 9e6, writeId: newWriteId() }
      const short = () => ({ now: NOW, deadline: within(60) })
      const writes = [
        () => store.create(record(SECRET), short()),
        () => store.update(one.key, 1, change, short()),
        () => store.replace(one.key, 1, record(SECRET), {}, short()),
        () => store.deleteUser(SECRET.userId, { minPasswordVersionUntil: 0 }, short()),
      ]
      const faults: [begin: () => unknown, end: () => unknown][] = [
        [() => other.exec('BEGIN IMMEDIATE'), () => other.exec('COMMIT')],
        [() => database.exec('PRAGMA query_only = 1'), () => database.exec('PRAGMA query_only = 0')],
        [
          () => database.exec('ALTER TABLE coatcheck_sessions RENAME TO elsewhere'),
          () => database.exec('ALTER TABLE elsewhere RENAME TO coatcheck_sessions'),
        ],
        [() => [database.close(), other.close()], remove],
      ]
      for (const [begin, end] of faults) {
        begin()
        for (const write of writes) {
          const error = await failure(write())
          expect(error).toMatchObject({ outcome: 'not-applied', cause: expect.any(Error) })
          expect(error.message).toMatch(/^the session store failed in [a-zA-Z]+$/)
          const printed = inspect(error, { depth: 20, showHidden: true, getters: true })
          for (const part of [...SECRETS, SECRET.userId, one.key]) expect(printed).not.toContain(part)
        }
        end()
      }
    })
  })
