// What SqliteStore asks of its connection: by which statements, with which locks, and what its failures are called.
import type { Store } from 'coatcheck'
import { type SqliteDatabase, SqliteStore } from 'coatcheck/stores/sqlite'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { soon } from '../../support/deadlines.ts'
import { describeEngine } from '../../support/services/engines.ts'
import { type OpenDatabase, openSqlite, sqliteFile } from '../../support/services/sqlite.ts'
import { NOW, newKey, record } from '../records.ts'

const call = () => ({ now: NOW, deadline: soon() })

describeEngine('libsql', 'the SQLite store', () => {
  let database: OpenDatabase
  let asked: string[]
  /** The connection, which notes what it is asked. */
  let noting: SqliteDatabase
  let other: OpenDatabase
  let remove: () => void
  beforeEach(() => {
    const file = sqliteFile()
    remove = file.remove
    // In this mode a writer stops readers as well.
    database = openSqlite('libsql', file.file, 'DELETE')
    other = openSqlite('libsql', file.file, 'DELETE')
    asked = []
    noting = {
      prepare(sql) {
        asked.push(sql)
        return database.prepare(sql)
      },
      exec(sql) {
        asked.push(sql)
        return database.exec(sql)
      },
    }
  })
  afterEach(() => {
    database.close()
    other.close()
    remove()
  })
  const migrated = async () => {
    const store = new SqliteStore(noting)
    await store.migrate()
    asked = []
    return store
  }

  it('asks nothing about what can be no key', async () => {
    const store = new SqliteStore(noting)
    expect(await store.read('x', call())).toBe(null)
    expect(await store.delete('x', call())).toBe(false)
    expect(asked).toEqual([])
  })

  it('takes the lock of the file for a logout of what is there, and for none of what is not', async () => {
    const store = await migrated()
    const one = record()
    await store.create(one, call())
    const locks = () => asked.splice(0).filter(sql => sql.startsWith('BEGIN')).length
    expect(locks()).toBe(1)
    expect(await store.delete(newKey(), call())).toBe(false)
    expect(locks()).toBe(0)
    expect(await store.delete(one.key, call())).toBe(true)
    expect(locks()).toBe(1)
  })

  it.each(['ABORT', 'ROLLBACK'])(
    'ends a session and forgets what led to it, or does neither and says why (%s)',
    async resolution => {
      const store = await migrated()
      const [one, next] = [record(), record()]
      await store.create(one, call())
      await store.replace(one.key, 1, next, { forward: { salt: '', until: NOW + 9e6 } }, call())
      database.exec(`CREATE TRIGGER refuse BEFORE DELETE ON coatcheck_sessions WHEN OLD.moved_to IS NOT NULL
        BEGIN SELECT RAISE(${resolution}, 'not this one'); END`)
      await expect(store.delete(one.key, call())).rejects.toMatchObject({
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
    const store = await migrated()
    const one = record()
    await store.create(one, call())
    other.exec('BEGIN EXCLUSIVE')
    const [here, absent] = [store.read(one.key, call()), store.read(newKey(), call())]
    other.exec(`UPDATE coatcheck_sessions SET data = '"theirs"' WHERE id = '${one.key}'`)
    other.exec('COMMIT')
    expect(await here).toEqual({ ...one, data: '"theirs"' })
    expect(await absent).toBe(null)
  })

  it.each<[string, (store: Store) => unknown]>([
    ['read', store => store.read(newKey(), call())],
    ['delete', store => store.delete(newKey(), call())],
    ['sweep', store => store.sweep!(1, call())],
    ['scan', store => store.scan!(null, 1, call())],
  ])('names what failed, by a rejection: %s', async (operation, ask) => {
    const answer = ask(new SqliteStore(noting))
    await expect(answer).rejects.toMatchObject({
      operation,
      message: `the session store failed in ${operation}`,
      outcome: 'not-applied',
      cause: { message: expect.stringContaining('no such table') },
    })
  })

  it('lives in tables whose names are words of SQL', async () => {
    const store = new SqliteStore(database, { table: 'group' })
    await store.migrate()
    const one = record()
    await store.create(one, call())
    expect(await store.read(one.key, call())).toEqual(one)
    expect((await store.scan(null, 10, call())).records).toEqual([one])
  })
})
