// Pages of a walk over all that is stored, and a count of it.
import type { Store } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import { beforeEach, expect, it } from 'vitest'
import { describeEngine } from '../support/services/engines.ts'
import { openSqlite } from '../support/services/sqlite.ts'
import { DIALECTS, keyOf, onEach, type SqlStore } from './databases.ts'
import { anonymous, NOW, newKey } from './records.ts'

const call = { now: NOW }
/** A row under an ID that is no key, made by hand. */
const byHand = (id: string) => `INSERT INTO coatcheck_sessions
  (id, kind, namespace, data, version, write_id, created_at, seen_at, expires_at, absolute_expires_at)
  VALUES (${id}, 'session', '', '{}', 1, 'w', 0, 0, ${NOW + 9}, ${NOW + 9})`
/** A key that begins so, in the order of the bytes: `-` 0 A _ a. */
const keyFrom = (start: string) => start + newKey().slice(start.length)

/** The keys that the pages of a walk show. */
async function walk(store: SqlStore, limit: number) {
  const records: SessionRecord[] = []
  for (let cursor: string | null = null; ; ) {
    const page = await store.scan(cursor, limit, call)
    records.push(...page.records)
    expect(page.forwards).toEqual([])
    if (page.next === null) return records.map(({ key }) => key)
    cursor = page.next
  }
}

onEach(DIALECTS, 'a walk over', (get, name) => {
  beforeEach(() => get().run('DELETE FROM coatcheck_sessions'))

  it('goes on behind rows that a hand has put under what is no key', async () => {
    const { open, run } = get()
    const store = open()
    const [first, last] = [anonymous({ key: keyFrom('A') }), anonymous({ key: keyFrom('z') })]
    for (const one of [first, last]) await store.create(one, call)
    for (const id of ['', '{', ...Array.from({ length: 9 }, (_, i) => `M ${i}`)]) await run(byHand(`'${id}'`))
    for (const limit of [1, 2, 5, 100]) expect(await walk(store, limit)).toEqual([first.key, last.key])
  })

  it('comes to an end also where no rows are asked for, and shows 1,000 in a page at most', async () => {
    const { open, fill } = get()
    await fill({ count: 1003, expiresAt: `${NOW + 9}` })
    const store = open()
    const most = name === 'SQLite' ? 250 : 1000
    expect((await store.scan(null, 1e9, call)).records).toHaveLength(most)
    expect(await walk(store, 1e9)).toHaveLength(1003)
    for (const limit of [0, -1]) expect((await store.scan(keyOf(1000), limit, call)).records).toHaveLength(1)
  })

  if (name === 'MariaDB')
    it('is the only way to count: the server would read the whole table for it', () => {
      expect((get().open() as Store).count).toBe(undefined)
    })
})

for (const driver of ['better-sqlite3', 'node:sqlite'] as const)
  describeEngine(driver, `a walk over SQLite with ${driver}`, () => {
    // libsql ends the process where it reads bytes that are no text.
    it('passes over bytes that are no text, and ends behind them', async () => {
      const database = openSqlite(driver, ':memory:')
      const store = new SqliteStore(database)
      await store.migrate()
      const one = anonymous({ key: keyFrom('z') })
      await store.create(one, call)
      const texts = ['410042', '41fe', '7bfe'].map(bytes => `CAST(x'${bytes}' AS TEXT)`)
      for (const id of [...texts, "x'41ff'", "x'ffff'"]) database.exec(byHand(id))
      for (const limit of [1, 3, 100]) expect(await walk(store, limit)).toEqual([one.key])
      database.close()
    })
  })
