// A SQLite file that another connection has locked: which calls wait, which give up, and what they leave. The time in which
// they do so is not the machine's: a busy one waits no longer, and tries no less often.
import type { Store } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { type SqliteDatabase, SqliteStore } from 'coatcheck/stores/sqlite'
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { within } from '../../support/deadlines.ts'
import { failure } from '../../support/failure.ts'
import { describeEngine } from '../../support/services/engines.ts'
import {
  type OpenDatabase,
  openSqlite,
  SQLITE_DRIVERS,
  type SqliteDriver,
  sqliteFile,
} from '../../support/services/sqlite.ts'
import { call, change, isLive, NOW, newKey, record } from '../records.ts'
import { LATE, WHENEVER, type Write } from '../writes.ts'

const WRITES: Record<string, Write> = {
  ...LATE,
  ...WHENEVER,
  sweep: (store, _one, _other, when) => store.sweep!(10, when!),
}
const READS: Record<string, Write> = {
  read: async (store, one, _, when = call()) => store.read(one.key, when),
  listUser: (store, one, _, when = call()) => store.listUser(one.userId!, 'session', when),
}

let users = 1000
const newUser = () => `${users++}`
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms)
/** What comes of calls that wait while so much time passes. */
async function while150ms<T>(calls: Promise<T>): Promise<T> {
  await pass(150)
  return calls
}
const giveUp = (work: Write, store: Store, one: SessionRecord) =>
  while150ms(failure(work(store, one, record(), { now: NOW, deadline: within(150) })))

/** Opens a store, its connection and another one to a file in this journal mode. */
function opener(driver: SqliteDriver) {
  const { file, remove } = sqliteFile()
  const opened: OpenDatabase[] = []
  const database = (mode: 'WAL' | 'DELETE') => {
    opened.push(openSqlite(driver, `${file}-${mode}`, mode))
    return opened.at(-1)!
  }
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  })
  afterAll(() => {
    for (const each of opened) each.close()
    remove()
  })
  return async (mode: 'WAL' | 'DELETE' = 'WAL') => {
    const connection = database(mode)
    const store = new SqliteStore(connection)
    await store.migrate()
    return { store, connection, other: database(mode) }
  }
}

for (const driver of SQLITE_DRIVERS)
  describeEngine(driver, `a lock of another connection on SQLite with ${driver}`, () => {
    const open = opener(driver)
    describe.each(['WAL', 'DELETE'] as const)('with the journal mode %s', mode => {
      it.each(Object.entries(WRITES))('leaves nothing open after a %s that gave up', async (_, write) => {
        const { store, connection, other } = await open(mode)
        const one = record({ userId: newUser() })
        await store.create(one, call())
        other.exec('BEGIN IMMEDIATE')
        expect(await giveUp(write, store, one)).toMatchObject({ outcome: 'not-applied' })
        other.exec('COMMIT')
        const { inTransaction, isTransaction } = connection as { inTransaction?: boolean; isTransaction?: boolean }
        expect(inTransaction ?? isTransaction).toBe(false)
        expect(await store.read(one.key, call())).toEqual(one)
        for (const next of ['login', 'update', 'logout', 'login', 'logout everywhere'])
          expect(['updated', true, 0, 'created']).toContainEqual(await WRITES[next]!(store, one, record()))
        other.exec('BEGIN IMMEDIATE; COMMIT')
      })

      it.each(Object.entries(READS))('keeps no lock and no old state after a %s that gave up', async (_, read) => {
        const { store, other } = await open(mode)
        const [one, two] = [record({ userId: newUser() }), record({ userId: newUser() })]
        for (const each of [one, two]) await store.create(each, call())
        other.exec('BEGIN EXCLUSIVE')
        // In WAL mode a reader need not wait.
        if (mode === 'DELETE') expect(await giveUp(read, store, one)).toMatchObject({ outcome: 'not-applied' })
        else await read(store, one, two)
        other.exec('COMMIT')
        // Nor has the next reader the session of the one before.
        expect(await store.read(newKey(), call())).toBe(null)
        expect(await store.read(two.key, call())).toEqual(two)
        expect(await WRITES.update!(store, one, two)).toBe('updated')
        other.exec(`UPDATE coatcheck_sessions SET data = '"theirs"' WHERE id = '${one.key}'`)
        expect(await store.read(one.key, call())).toMatchObject({ data: '"theirs"' })
        expect(await WRITES['logout everywhere']!(store, one, two)).toBe(1)
      })

      it('lets a login wait for another connection that reads, and makes it once', async () => {
        const { store, other } = await open(mode)
        const one = record({ userId: newUser() })
        other.exec('BEGIN')
        other.prepare('SELECT count(*) FROM coatcheck_sessions').get()
        const waiting = store.create(one, call())
        await pass(50)
        other.exec('COMMIT')
        await pass(50)
        expect(await waiting).toBe('created')
        expect(await store.listUser(one.userId!, 'session', call())).toEqual([one])
      })
    })

    it('waits for a transaction that the application has open on the same connection', async () => {
      const { store, connection } = await open()
      const one = record({ userId: newUser() })
      connection.exec('BEGIN')
      const waiting = store.create(one, call())
      await pass(50)
      connection.exec('ROLLBACK')
      await pass(50)
      expect(await waiting).toBe('created')
      expect(await isLive(store, one.key)).toBe(true)
    })
  })

/** A connection that counts its transactions; each turn of the event loop in which it was refused twice is crowded. */
function counted(database: OpenDatabase) {
  const counts = { begun: 0, refused: 0, crowded: 0 }
  let refusedNow = false
  const connection: SqliteDatabase = {
    prepare: sql => database.prepare(sql),
    exec(sql) {
      if (sql === 'BEGIN IMMEDIATE') counts.begun++
      try {
        database.exec(sql)
      } catch (error) {
        counts.refused++
        // SQLite's own waiting blocks the loop. Not told here: the store would hear it.
        if (refusedNow) counts.crowded++
        refusedNow = true
        setImmediate(() => {
          refusedNow = false
        })
        throw error
      }
    },
  }
  return { connection, counts }
}

describeEngine('libsql', 'calls that wait for the lock of a file', () => {
  const open = opener('libsql')

  /** So many sessions in a file that is locked, and a store whose transactions are counted. */
  async function locked(count: number) {
    const { store: free, connection, other } = await open()
    const watched = counted(connection)
    const records = Array.from({ length: count }, () => record({ userId: newUser() }))
    for (const one of records) await free.create(one, call())
    other.exec('BEGIN IMMEDIATE')
    return { free, other, records, counts: watched.counts, store: new SqliteStore(watched.connection) }
  }

  it('let one of 200 try for all of them, and run none that was given up', async () => {
    const { free, other, records, counts, store } = await locked(200)
    const when = { now: NOW, deadline: within(1500) }
    const errors = Promise.all(records.map(one => failure(store.update(one.key, 1, change(), when))))
    await pass(1500)
    for (const error of await errors) expect(error).toMatchObject({ outcome: 'not-applied' })
    // The pause between two tries grows to 12 ms at least, and it does so with the fourth.
    expect(counts.crowded).toBe(0)
    expect(counts.refused).toBeGreaterThan(1)
    expect(counts.refused).toBeLessThan(5 + 1500 / 12)
    const { begun } = counts
    other.exec('COMMIT')
    await pass(60)
    expect(counts.begun).toBe(begun)
    for (const one of records) expect(await free.read(one.key, call())).toEqual(one)
  })

  it('have it in the order in which they asked', async () => {
    const { other, records, counts, store } = await locked(50)
    const done: number[] = []
    const waiting = records.map(async (one, place) => {
      expect(await store.update(one.key, 1, change(), call())).toBe('updated')
      done.push(place)
    })
    // Who asks for less gives up by its own deadline, in the midst of the queue.
    expect(await giveUp(WRITES.touch!, store, records[0]!)).toMatchObject({ outcome: 'not-applied' })
    // Nor do those that wait hold up a page that is seen, and the logout of what has ended.
    expect(await isLive(store, records[1]!.key)).toBe(true)
    expect(await store.delete(newKey(), call())).toBe(false)
    expect(done).toEqual([])
    other.exec('COMMIT')
    await pass(150)
    await Promise.all(waiting)
    expect(done).toEqual(records.map((_, place) => place))
    // A timer that is left would keep the process from its end.
    expect(vi.getTimerCount()).toBe(0)
    expect(counts.crowded).toBe(0)
  })
})
