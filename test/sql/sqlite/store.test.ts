// What SqliteStore asks of its connection: by which statements, with which locks, and what its failures are called.
import { createClient } from '@libsql/client'
import { type SqliteDatabase, SqliteStore } from 'coatcheck/stores/sqlite'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { failure } from '../../support/failure.ts'
import { describeEngine } from '../../support/services/engines.ts'
import { type OpenDatabase, openSqlite, SQLITE_DRIVERS, sqliteFile } from '../../support/services/sqlite.ts'
import { isExact } from '../exact.ts'
import { call, NOW, newKey, record } from '../records.ts'

describeEngine('libsql', 'the SQLite store', () => {
  let file: string
  let database: OpenDatabase
  let asked: string[]
  let store: SqliteStore
  let remove: () => void
  beforeEach(async () => {
    ;({ file, remove } = sqliteFile())
    // In this mode a writer stops readers as well.
    database = openSqlite('libsql', file, 'DELETE')
    asked = []
    const noting = (sql: string) => {
      asked.push(sql)
      return sql
    }
    const connection: SqliteDatabase = {
      prepare: sql => database.prepare(noting(sql)),
      exec: sql => database.exec(noting(sql)),
    }
    store = new SqliteStore(connection)
    await store.migrate()
  })
  afterEach(() => {
    database.close()
    remove()
  })

  it('takes the lock of the file for a logout of what is there, and for none of what is not', async () => {
    const one = record()
    const locks = () => asked.splice(0).filter(sql => sql.startsWith('BEGIN')).length
    locks()
    await store.create(one, call())
    expect(locks()).toBe(1)
    expect(await store.delete(newKey(), call())).toBe(false)
    expect(locks()).toBe(0)
    expect(await store.delete(one.key, call())).toBe(true)
    expect(locks()).toBe(1)
  })

  it.each(['ABORT', 'ROLLBACK'])(
    'ends a session and forgets what led to it, or does neither and says why (%s)',
    async resolution => {
      const [one, next] = [record(), record()]
      await store.create(one, call())
      await store.replace(one.key, 1, next, { forward: { salt: '', until: NOW + 9e6 } }, call())
      database.exec(`CREATE TRIGGER refuse BEFORE DELETE ON coatcheck_sessions WHEN OLD.moved_to IS NOT NULL
        BEGIN SELECT RAISE(${resolution}, 'not this one'); END`)
      const error = await failure(store.delete(one.key, call()))
      expect(error).toMatchObject({
        outcome: 'not-applied',
        cause: { message: expect.stringContaining('not this one') },
      })
      expect(await store.read(next.key, call())).toEqual(next)
      database.exec('DROP TRIGGER refuse')
      expect(await store.delete(one.key, call())).toBe(true)
      expect(await store.read(one.key, call())).toBe(null)
    },
  )

  it('answers a read that had to wait for a lock with what is there then', async () => {
    const one = record()
    await store.create(one, call())
    const other = openSqlite('libsql', file, 'DELETE')
    other.exec('BEGIN EXCLUSIVE')
    const [here, absent] = [store.read(one.key, call()), store.read(newKey(), call())]
    other.exec(`UPDATE coatcheck_sessions SET data = '"theirs"' WHERE id = '${one.key}'`)
    other.exec('COMMIT')
    other.close()
    expect(await here).toEqual({ ...one, data: '"theirs"' })
    expect(await absent).toBe(null)
  })

  it('shares its file with an application that uses @libsql/client, in both directions', async () => {
    const client = createClient({ url: `file:${file}` })
    const [one, other] = [record(), record()]
    for (const each of [one, other]) expect(await store.create(each, call())).toBe('created')
    const { rows } = await client.execute("SELECT id FROM coatcheck_sessions WHERE user_id = '42' ORDER BY id")
    expect(rows.map(row => row.id)).toEqual([one.key, other.key].sort())
    await client.execute({ sql: 'DELETE FROM coatcheck_sessions WHERE id = ?', args: [one.key] })
    client.close()
    expect(await store.read(one.key, call())).toBe(null)
    expect(await store.listUser('42', 'session', call())).toEqual([other])
  })
})

for (const driver of SQLITE_DRIVERS)
  describeEngine(driver, `the SQLite store with ${driver}`, () => {
    const open = async () => {
      const database = openSqlite(driver, ':memory:')
      const store = new SqliteStore(database)
      await store.migrate()
      return { database, store }
    }

    it('is exact, also where the application has told its connection to give big integers', async () => {
      const { database, store } = await open()
      ;(database as { defaultSafeIntegers?(on: boolean): void }).defaultSafeIntegers?.(true)
      await isExact(store)
    })

    it('says that nothing was written to a full or read-only file', async () => {
      const { database, store } = await open()
      const big = () => store.create(record({ data: 'x'.repeat(1_000_000) }), call())
      database.exec('PRAGMA max_page_count = 1')
      expect(await failure(big())).toMatchObject({ outcome: 'not-applied' })
      database.exec('PRAGMA max_page_count = 1000000')
      expect(await big()).toBe('created')
      database.exec('PRAGMA query_only = 1')
      expect(await failure(big())).toMatchObject({ outcome: 'not-applied' })
      expect(await store.listUser('42', 'session', call())).toHaveLength(1)
      database.close()
    })
  })
