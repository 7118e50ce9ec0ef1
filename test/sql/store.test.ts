// What the SQL stores decide by themselves, by what the statements answered.
import { SessionStoreError, type Store } from 'coatcheck'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { type SqliteDatabase, SqliteStore } from 'coatcheck/stores/sqlite'
import { describe, expect, it } from 'vitest'
import { failure } from '../support/failure.ts'
import { describeEngine } from '../support/services/engines.ts'
import { openSqlite } from '../support/services/sqlite.ts'
import { COLUMNS_BUT_ID, change, everybody, forward, NOW, newKey, record } from './records.ts'

const CALL = { now: NOW }
const never = () => expect.unreachable('the database was asked')
const UNASKED: [string, Store][] = [
  ['SQLite', new SqliteStore({ prepare: never, exec: never })],
  ['PostgreSQL', new PostgresStore({ connect: never } as never)],
  ['MySQL', new MysqlStore({ getConnection: never } as never)],
]

describe.each(UNASKED)('%s', (_, store) => {
  it('is not asked for what is no key', async () => {
    // Not even where the time is over: there is nothing to wait for.
    const over = { ...CALL, deadline: 0 }
    for (const key of ['', 'x', `${newKey()} `, `${newKey().slice(1)}\0`, "' OR '1'='1", '\ud800', 'ключ']) {
      expect(await store.read(key, over)).toBe(null)
      expect(await store.touch(key, NOW, NOW, over)).toBe('gone')
      expect(await store.update(key, 1, change(), over)).toBe('gone')
      expect(await store.delete(key, over)).toBe(false)
    }
  })
})

/** A store in memory whose statements go through `answer`, which may change what the driver gives. */
async function through(answer: (text: string, method: 'run' | 'get' | 'all', given: () => unknown) => unknown) {
  const database = openSqlite('libsql', ':memory:')
  const plain = new SqliteStore(database)
  await plain.migrate()
  const wrapped: SqliteDatabase = {
    exec: sql => answer(sql, 'run', () => database.exec(sql)),
    prepare(text) {
      const statement = database.prepare(text) as any
      const through =
        (method: 'run' | 'get' | 'all') =>
        (...values: unknown[]) =>
          answer(text, method, () => statement[method](...values)) as never
      return {
        raw: (on: boolean) => statement.raw(on),
        run: through('run'),
        get: through('get'),
        all: through('all'),
      } as never
    },
  }
  /** Makes so many more of this one, whose keys are numbers. */
  const copy = ({ key }: { key: string }, count: number) =>
    database.exec(`INSERT INTO coatcheck_sessions (id, ${COLUMNS_BUT_ID})
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
      SELECT printf('%046d', i), ${COLUMNS_BUT_ID} FROM coatcheck_sessions, n WHERE id = '${key}'`)
  return { database, plain, store: new SqliteStore(wrapped), copy }
}

/** How often the event loop turns meanwhile. */
async function turnsOf(work: () => Promise<unknown>): Promise<number> {
  let turns = 0
  const turn = () => {
    turns += 1
    next = setImmediate(turn)
  }
  let next = setImmediate(turn)
  await work()
  clearImmediate(next)
  return turns
}

describeEngine('libsql', 'a store through a driver of SQLite', () => {
  it('hands no session to the reader of another, whatever the driver answers', async () => {
    const other = record()
    const rows: unknown[] = []
    const { plain, store } = await through((_, method, given) => {
      if (method !== 'get') return given()
      if (rows.length === 0) rows.push(given())
      return rows[0]
    })
    await plain.create(other, CALL)
    expect(await store.read(other.key, CALL)).toEqual(other)
    const key = newKey()
    const refusal = { outcome: 'not-applied', cause: { message: 'the driver answered for another key' } }
    const reading = Promise.resolve().then(() => store.read(key, CALL))
    await expect(reading).rejects.toMatchObject({ operation: 'read', ...refusal })
    expect(await plain.read(other.key, CALL)).toEqual(other)
  })

  it('names the call that failed, also where it was a read that had to remove a damaged row', async () => {
    const full = Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' })
    const { plain, store, database } = await through((text, method, given) => {
      if (method === 'run' && text.startsWith('DELETE')) throw full
      return given()
    })
    const one = record()
    await plain.create(one, CALL)
    database.exec('UPDATE coatcheck_sessions SET version = -1')
    const failure = { outcome: 'not-applied', cause: { message: full.message } }
    await expect(store.read(one.key, CALL)).rejects.toMatchObject({ operation: 'read', ...failure })
    await expect(store.delete(one.key, CALL)).rejects.toMatchObject({ operation: 'delete', ...failure })
    await expect(store.sweep!(1, CALL)).rejects.toMatchObject({ operation: 'sweep', ...failure })
    expect(await plain.read(one.key, CALL)).toEqual({ corrupt: 'version is not a positive number' })
    expect(await plain.read(one.key, CALL)).toBe(null)
  })

  it('ends nothing by a forward to a session that has ended, and forgets the forward', async () => {
    const { store, database } = await through((_, __, given) => given())
    const [one, next] = [record(), record()]
    await store.create(one, CALL)
    await store.replace(one.key, 1, next, { forward }, CALL)
    expect(await store.delete(next.key, CALL)).toBe(true)
    expect(await store.delete(one.key, CALL)).toBe(false)
    expect(database.prepare('SELECT id FROM coatcheck_sessions').all()).toEqual([])
  })

  it('deletes in another turn what another call made between two of its statements', async () => {
    const missed: string[] = []
    const { plain, store } = await through((text, method, given) => {
      if (method !== 'run' || !text.startsWith('DELETE') || missed.length > 0) return given()
      missed.push(text)
      return { changes: 0 }
    })
    const one = record()
    await plain.create(one, CALL)
    expect(await store.delete(one.key, CALL)).toBe(true)
    expect(await plain.read(one.key, CALL)).toBe(null)
    expect(missed.length).toBe(1)
  })

  it('lets no logout without a password version make an older minimum version last longer', async () => {
    const { store } = await through((_, __, given) => given())
    const older = (changes = {}) => record({ userId: '7', passwordVersion: 1, ...changes })
    await store.deleteUser('7', { minPasswordVersion: 5, minPasswordVersionUntil: NOW + 10 }, CALL)
    await store.deleteUser('7', { minPasswordVersionUntil: NOW + 1000 }, CALL)
    expect(await store.create(older(), { now: NOW + 9 })).toBe('stale-login')
    expect(await store.create(older(), { now: NOW + 10 })).toBe('created')
  })

  it('ends a logout where someone has made forwards into a circle', async () => {
    const { store, database } = await through((_, __, given) => given())
    const [one, second, other] = [record(), record(), record()]
    for (const each of [one, second, other]) await store.create(each, CALL)
    const way = [
      [one.key, second.key],
      [second.key, one.key],
    ]
    for (const [from, to] of way) database.exec(`UPDATE coatcheck_sessions SET moved_to = '${to}' WHERE id = '${from}'`)
    expect(await store.deleteUser('42', { minPasswordVersionUntil: 0, exceptKey: one.key }, CALL)).toBe(1)
    expect(await store.delete(one.key, CALL)).toBe(false)
  })
})

describeEngine('libsql', 'a logout everywhere in pieces', () => {
  const MANY = 600

  async function crowded(fail: (commits: number) => unknown) {
    let commits = 0
    let watched = false
    const made = await through((text, _, given) => {
      if (watched && text === 'COMMIT') {
        const error = fail(commits++)
        if (error !== undefined) throw error
      }
      return given()
    })
    const one = record({ userId: '7' })
    await made.plain.create(one, CALL)
    made.copy(one, MANY - 1)
    watched = true
    const left = async () => (await made.plain.listUser('7', 'session', CALL)).length
    return { ...made, left, commits: () => commits }
  }

  it('ends 250 sessions in each, counts all, and lets the event loop run in between', async () => {
    const { store, left, commits } = await crowded(() => undefined)
    const turns = await turnsOf(async () => expect(await store.deleteUser('7', everybody, CALL)).toBe(MANY))
    expect([commits(), await left()]).toEqual([3, 0])
    expect(turns).toBeGreaterThanOrEqual(2)
  })

  it('has done nothing where the first one fails, and something where a later one does', async () => {
    const full = Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' })
    for (const [failing, outcome, rest] of [
      [0, 'not-applied', MANY],
      [1, 'unknown', MANY - 250],
    ] as const) {
      const { store, left } = await crowded(commits => (commits === failing ? full : undefined))
      const error = await failure(store.deleteUser('7', everybody, CALL))
      expect(error).toMatchObject({ operation: 'deleteUser', outcome, cause: { message: full.message } })
      expect(await left()).toBe(rest)
    }
  })
})

describeEngine('libsql', 'a sweep in batches', () => {
  const dead = (key: string) => record({ key, expiresAt: NOW - 1e6 })

  async function filled(rows: number, failing = -1) {
    const batches: number[] = []
    const made = await through((text, method, given) => {
      const isDelete = method === 'run' && text.startsWith('DELETE')
      if (isDelete && batches.length === failing) throw new Error('disk I/O error')
      const answer = given()
      if (isDelete) batches.push((answer as { changes: number }).changes)
      return answer
    })
    const one = dead('0'.repeat(46))
    await made.plain.create(one, { now: one.expiresAt - 1 })
    made.copy(one, rows - 1)
    return { ...made, batches }
  }

  it('removes 250 rows in each, until nothing is left of sessions and users, and lets the event loop run', async () => {
    const { store, plain, batches } = await filled(600)
    await plain.deleteUser('7', { minPasswordVersion: 1, minPasswordVersionUntil: NOW - 1e6 }, { now: NOW - 2e6 })
    const turns = await turnsOf(async () => expect(await store.sweep!(1e6, CALL)).toBe(601))
    expect(batches).toEqual([250, 250, 100, 0, 1, 0])
    expect(turns).toBeGreaterThanOrEqual(3)
  })

  it('says how many it has removed where a later one fails, and fails where it has removed none', async () => {
    expect(await (await filled(600, 1)).store.sweep!(1e6, CALL)).toBe(250)
    await expect((await filled(600, 0)).store.sweep!(1e6, CALL)).rejects.toMatchObject({ operation: 'sweep' })
  })
})

describeEngine('libsql', 'a migration of SQLite', () => {
  it('rejects with what the driver said, since no verb of a request has failed', async () => {
    const database = openSqlite('libsql', ':memory:')
    const refusing = (word: string) => {
      const refuse = (sql: string) => {
        if (sql.startsWith(word)) throw Object.assign(new Error(`no ${word}`), { code: 'SQLITE_READONLY' })
        return sql
      }
      const connection: SqliteDatabase = {
        exec: sql => database.exec(refuse(sql)),
        prepare: sql => database.prepare(refuse(sql)),
      }
      return new SqliteStore(connection)
    }
    for (const word of ['SELECT', 'CREATE']) {
      const error = await refusing(word)
        .migrate()
        .catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({ message: `no ${word}`, code: 'SQLITE_READONLY' })
      expect(error).not.toBeInstanceOf(SessionStoreError)
    }
    await expect(refusing('SELECT').isMigrated()).rejects.toMatchObject({ code: 'SQLITE_READONLY' })
    expect(await new SqliteStore(database).isMigrated()).toBe(false)
  })

  it('looks at both tables once more when it has created one of them', async () => {
    const database = openSqlite('libsql', ':memory:')
    const store = new SqliteStore(database)
    const columns = 'namespace TEXT, user_id TEXT, min_password_version_until INTEGER, expires_at INTEGER'
    database.exec(`CREATE TABLE coatcheck_sessions_users (${columns})`)
    await expect(store.migrate()).rejects.toThrow(
      /coatcheck_sessions_users has another schema .*: column min_password_version is missing$/,
    )
    database.exec('ALTER TABLE coatcheck_sessions_users ADD COLUMN min_password_version INTEGER')
    await store.migrate()
    expect(await store.isMigrated()).toBe(true)
  })
})
