// A SQLite file that another connection has locked: which calls wait, which give up, and what they leave.

import type { Store } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { type SqliteDatabase, SqliteStore } from 'coatcheck/stores/sqlite'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { collectGarbage } from '../../support/collect-garbage.ts'
import { soon, within } from '../../support/deadlines.ts'
import { describeEngine } from '../../support/services/engines.ts'
import {
  type OpenDatabase,
  openSqlite,
  SQLITE_DRIVERS,
  type SqliteDriver,
  sqliteFile,
} from '../../support/services/sqlite.ts'
import { isLive, NOW, newKey, newWriteId, record } from '../records.ts'

/** How long a call waits that is to be given up, in ms. */
const TIMEOUT = 150
/** A call that must succeed. */
const at = () => ({ now: NOW, deadline: soon() })
const change = () => ({ data: '"new"', seenAt: NOW, expiresAt: NOW + 9e6, writeId: newWriteId() })
const everybody = { minPasswordVersion: 1, minPasswordVersionUntil: NOW + 1e9 }
const turn = () => new Promise<void>(resolve => setImmediate(resolve))

const WRITES: Record<string, (store: Store, one: SessionRecord, deadline: number) => Promise<unknown>> = {
  create: (store, _, deadline) => store.create(record(), { now: NOW, deadline }),
  update: (store, one, deadline) => store.update(one.key, 1, change(), { now: NOW, deadline }),
  touch: (store, one, deadline) => store.touch(one.key, NOW + 5, NOW + 9e6, { now: NOW, deadline }),
  replace: (store, one, deadline) =>
    store.replace(one.key, 1, { ...record(), userId: one.userId }, {}, { now: NOW, deadline }),
  delete: (store, one, deadline) => store.delete(one.key, { now: NOW, deadline }),
  deleteUser: (store, one, deadline) => store.deleteUser(one.userId!, everybody, { now: NOW, deadline }),
  sweep: (store, _, deadline) => store.sweep!(10, { now: NOW, deadline }),
}
const READS: typeof WRITES = {
  read: async (store, one, deadline) => store.read(one.key, { now: NOW, deadline }),
  listUser: (store, one, deadline) => store.listUser(one.userId!, 'session', { now: NOW, deadline }),
}

let users = 1000
const newUser = () => `${users++}`

/** A connection that counts its transactions. */
function counted(database: OpenDatabase) {
  const counts = { begun: 0, refused: 0, crowded: 0, committed: 0, turns: new Set<number>() }
  let now = 0
  let spinning = true
  const spin = () => {
    now++
    if (spinning) setImmediate(spin)
  }
  spin()
  const connection: SqliteDatabase = {
    prepare: sql => database.prepare(sql),
    exec(sql) {
      if (sql === 'BEGIN IMMEDIATE') counts.begun++
      try {
        database.exec(sql)
      } catch (error) {
        counts.refused++
        // Two refusals in one turn of the event loop block it for both. Not told here: the store would hear it.
        if (counts.turns.has(now)) counts.crowded++
        counts.turns.add(now)
        throw error
      }
      if (sql === 'COMMIT') counts.committed++
    },
  }
  return {
    connection,
    counts,
    stop() {
      spinning = false
    },
  }
}

function locks(driver: SqliteDriver) {
  const { file, remove } = sqliteFile()
  const opened: OpenDatabase[] = []
  const database = (mode: 'WAL' | 'DELETE' = 'WAL') => {
    opened.push(openSqlite(driver, `${file}-${mode}`, mode))
    return opened.at(-1)!
  }
  afterAll(() => {
    for (const each of opened) each.close()
    remove()
  })
  const open = async (mode: 'WAL' | 'DELETE' = 'WAL') => {
    const connection = database(mode)
    const store = new SqliteStore(connection)
    await store.migrate()
    return { store, connection, other: database(mode) }
  }

  for (const mode of ['WAL', 'DELETE'] as const)
    describe(`with the journal mode ${mode}`, () => {
      it.each(Object.keys(WRITES))(
        'leaves nothing open after a %s that gave up: everything works again',
        async verb => {
          const { store, connection, other } = await open(mode)
          const one = record({ userId: newUser() })
          await store.create(one, at())
          other.exec('BEGIN IMMEDIATE')
          await expect(WRITES[verb]!(store, one, within(TIMEOUT))).rejects.toMatchObject({ outcome: 'not-applied' })
          other.exec('COMMIT')
          const { inTransaction, isTransaction } = connection as { inTransaction?: boolean; isTransaction?: boolean }
          expect(inTransaction ?? isTransaction).toBe(false)
          expect(await store.read(one.key, at())).toEqual(one)
          for (const next of ['create', 'update', 'delete', 'create', 'deleteUser'])
            expect(['updated', true, 0, 'created']).toContainEqual(await WRITES[next]!(store, one, soon()))
          other.exec('BEGIN IMMEDIATE; COMMIT')
        },
      )

      it.each(Object.keys(READS))('keeps no lock and no old state after a %s that gave up', async verb => {
        const { store, other } = await open(mode)
        const one = record({ userId: newUser() })
        await store.create(one, at())
        other.exec('BEGIN EXCLUSIVE')
        // In WAL mode a reader need not wait.
        await READS[verb]!(store, one, within(TIMEOUT)).catch(error =>
          expect(error).toMatchObject({ outcome: 'not-applied' }),
        )
        other.exec('COMMIT')
        for (const next of ['update', 'touch'] as const)
          expect(await WRITES[next]!(store, one, soon())).toBe(`${next}${next === 'touch' ? 'ed' : 'd'}`)
        other.exec(`UPDATE coatcheck_sessions SET data = '"theirs"' WHERE id = '${one.key}'`)
        expect(await store.read(one.key, at())).toMatchObject({ data: '"theirs"' })
        expect(await WRITES.deleteUser!(store, one, soon())).toBe(1)
      })

      it('gives no caller the session of another whose read gave up', async () => {
        const { store, other } = await open(mode)
        const [one, two] = [record({ userId: newUser() }), record({ userId: newUser() })]
        for (const each of [one, two]) await store.create(each, at())
        other.exec('BEGIN EXCLUSIVE')
        await READS.read!(store, one, within(TIMEOUT)).catch(error =>
          expect(error).toMatchObject({ outcome: 'not-applied' }),
        )
        other.exec('COMMIT')
        expect(await store.read(two.key, at())).toEqual(two)
        expect(await store.read(newKey(), at())).toBe(null)
        expect(await store.read(one.key, at())).toEqual(one)
      })

      it('lets a login wait for another connection that reads, and makes it once', async () => {
        const { store, other } = await open(mode)
        const one = record({ userId: newUser() })
        other.exec('BEGIN')
        other.prepare('SELECT count(*) FROM coatcheck_sessions').get()
        const waiting = store.create(one, at())
        for (let turns = 0; turns < 20; turns++) await turn()
        other.exec('COMMIT')
        expect(await waiting).toBe('created')
        expect(await store.listUser(one.userId!, 'session', at())).toEqual([one])
      })
    })

  it('lets one of 200 waiting updates try for all of them, and runs none that was given up', async () => {
    const { store: free, connection, other } = await open()
    const { connection: watched, counts, stop } = counted(connection)
    const store = new SqliteStore(watched)
    const records = Array.from({ length: 200 }, () => record({ userId: newUser() }))
    for (const one of records) await free.create(one, at())
    other.exec('BEGIN IMMEDIATE')
    // On a busy machine 150 ms are over after the first try.
    const time = 10 * TIMEOUT
    const end = within(time)
    const answers = await Promise.allSettled(
      records.map(one => store.update(one.key, 1, change(), { now: NOW, deadline: end })),
    )
    for (const answer of answers)
      expect(answer).toMatchObject({
        status: 'rejected',
        reason: { code: 'ERR_SESSION_STORE', outcome: 'not-applied' },
      })
    // The pause between two tries grows to 12 ms at least, and it does so with the fourth.
    expect(counts.crowded).toBe(0)
    expect(counts.refused).toBeGreaterThan(1)
    expect(counts.refused).toBeLessThan(5 + time / 12)
    const { begun } = counts
    other.exec('COMMIT')
    await new Promise(resolve => setTimeout(resolve, 60))
    expect(counts.begun).toBe(begun)
    for (const one of records) expect(await store.read(one.key, at())).toEqual(one)
    stop()
  })

  it('lets those who wait for a lock have it in the order in which they asked', async () => {
    const { store: free, connection, other } = await open()
    const { connection: watched, counts, stop } = counted(connection)
    const store = new SqliteStore(watched)
    const records = Array.from({ length: 50 }, () => record({ userId: newUser() }))
    for (const one of records) await free.create(one, at())
    other.exec('BEGIN IMMEDIATE')
    const done: number[] = []
    const waiting = records.map(async (one, place) => {
      expect(await store.update(one.key, 1, change(), at())).toBe('updated')
      done.push(place)
    })
    // Who asks for less gives up by its own deadline, in the midst of the queue.
    const hurried = store.touch(records[0]!.key, NOW, NOW + 9e6, { now: NOW, deadline: performance.now() + 30 })
    await expect(hurried).rejects.toMatchObject({ outcome: 'not-applied' })
    expect(done).toEqual([])
    other.exec('COMMIT')
    await Promise.all(waiting)
    expect(done).toEqual(records.map((_, place) => place))
    expect(counts.crowded).toBe(0)
    stop()
  })

  it('lets a page be seen while updates wait for a lock', async () => {
    const { store, other } = await open()
    const one = record({ userId: newUser() })
    await store.create(one, at())
    other.exec('BEGIN IMMEDIATE')
    const waiting = store.update(one.key, 1, change(), at())
    expect(await isLive(store, one.key)).toBe(true)
    expect(await store.delete(newKey(), at())).toBe(false)
    other.exec('COMMIT')
    expect(await waiting).toBe('updated')
  })

  it('keeps nothing of 10,000 calls that were given up while the file is still locked', async () => {
    const { store, other } = await open('DELETE')
    const heap = () => {
      collectGarbage()
      return process.memoryUsage().heapUsed
    }
    other.exec('BEGIN EXCLUSIVE')
    await READS.read!(store, record(), within(TIMEOUT)).catch(() => {})
    const before = heap()
    const end = within(1000)
    let givenUp = 0
    const calls: Promise<void>[] = []
    for (let number = 0; number < 10_000; number++) {
      const call = async () =>
        number % 2 === 0
          ? store.read(newKey(), { now: NOW, deadline: end })
          : store.update(newKey(), 1, change(), { now: NOW, deadline: end })
      calls.push(
        call().then(
          () => {},
          () => {
            givenUp++
          },
        ),
      )
    }
    await Promise.all(calls.splice(0))
    expect(givenUp).toBe(10_000)
    expect((heap() - before) / 1e6).toBeLessThan(10)
    other.exec('COMMIT')
    expect(await store.read(newKey(), at())).toBe(null)
  })

  describe('a logout everywhere of many sessions', () => {
    const many = async () => {
      const { store: free, connection, other } = await open()
      const userId = newUser()
      const template = record({ userId })
      await free.create(template, at())
      const start = template.key.slice(0, 36)
      // The rest of the rows is the same; keys are made of the number.
      const columns =
        'kind, parent_key, namespace, user_id, user_name, password_version, data, version, write_id, created_at, seen_at, expires_at, absolute_expires_at, moved_to'
      connection.exec(`INSERT INTO coatcheck_sessions (id, ${columns})
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1099)
        SELECT '${start}' || printf('%010d', i), ${columns} FROM coatcheck_sessions, n WHERE id = '${template.key}'`)
      const key = (number: number) => `${start}${`${number}`.padStart(10, '0')}`
      const left = () =>
        Number(
          Object.values(
            other.prepare('SELECT count(*) FROM coatcheck_sessions WHERE user_id = ?').get(userId) as object,
          )[0],
        )
      return { free, connection, other, userId, template, key, left }
    }

    it('is done in small pieces, and the event loop runs in between', async () => {
      const { connection, userId, left } = await many()
      const { connection: watched, counts, stop } = counted(connection)
      const store = new SqliteStore(watched)
      let turns = 0
      const spin = () => {
        turns++
        if (turns > 0) setImmediate(spin)
      }
      spin()
      expect(await store.deleteUser(userId, everybody, at())).toBe(1100)
      expect(counts.committed).toBeGreaterThan(4)
      expect(turns).toBeGreaterThanOrEqual(counts.committed - 1)
      turns = Number.NEGATIVE_INFINITY
      stop()
      expect(left()).toBe(0)
    })

    it('raises the minimum password version first, keeps what it did when time runs out, and ends when it is repeated', async () => {
      const { free, connection, userId, left } = await many()
      const real = performance.now.bind(performance)
      const clock = vi.spyOn(performance, 'now')
      let commits = 0
      const slow: SqliteDatabase = {
        prepare: sql => connection.prepare(sql),
        exec(sql) {
          connection.exec(sql)
          // The second piece takes longer than anyone waits.
          if (sql === 'COMMIT' && ++commits === 2) clock.mockImplementation(() => real() + 60_000)
        },
      }
      const call = new SqliteStore(slow).deleteUser(userId, everybody, at())
      await expect(call)
        .rejects.toMatchObject({ operation: 'deleteUser', outcome: 'unknown' })
        .finally(() => clock.mockRestore())
      expect(commits).toBe(2)
      const rest = left()
      expect(rest).toBeLessThan(1100)
      expect(rest).toBeGreaterThan(0)
      expect(await free.create(record({ userId }), at())).toBe('stale-login')
      expect(await free.deleteUser(userId, everybody, at())).toBe(rest)
      expect(left()).toBe(0)
    })

    it('ends what is renewed between two pieces, and spares the excepted session that is renewed', async () => {
      const { free: store, userId, template, key, left } = await many()
      const forward = { salt: '', until: NOW + 60_000 }
      const spared = record({ userId })
      await store.create(spared, at())
      const ending = store.deleteUser(userId, { minPasswordVersionUntil: NOW, exceptKey: spared.key }, at())
      let excepted = spared
      let renewed = 0
      for (let round = 0; round < 3; round++) {
        await turn()
        const old = { ...template, key: key(1099 - round) }
        const next = { ...old, key: newKey(), writeId: newWriteId() }
        if ((await store.replace(old.key, 1, next, { forward }, at())) === 'created') renewed++
        const mine = { ...excepted, key: newKey(), writeId: newWriteId() }
        expect(await store.replace(excepted.key, 1, mine, { forward }, at())).toBe('created')
        excepted = mine
      }
      expect(renewed).toBeGreaterThan(0)
      expect(await ending).toBe(1100)
      expect(await store.listUser(userId, 'session', at())).toEqual([excepted])
      expect(left()).toBe(1)
    })
  })
}

for (const driver of SQLITE_DRIVERS)
  describeEngine(driver, `a lock of another connection on SQLite with ${driver}`, () => locks(driver))
