// Rows that a hand has changed: none is a session afterwards, and none is in the way of those that are sound.
import { beforeAll, expect, it } from 'vitest'
import { ALL, type DatabaseName, onEach } from './databases.ts'
import { isLive, NOW, record } from './records.ts'

const call = { now: NOW }
/** SQL assignments of a careless hand. */
const EDITS = [
  "kind = 'admin'",
  "kind = 'a|b'",
  'version = 0',
  'version = -1',
  'version = 9223372036854775807',
  'expires_at = 9223372036854775807',
  'expires_at = -1',
  'created_at = -5',
  'seen_at = 9007199254740993',
  'absolute_expires_at = 8640000000000001',
  'password_version = 4294967296',
  'user_name = NULL',
  'user_id = NULL',
  "user_id = ''",
  "parent_key = 'short'",
  "parent_key = ''",
  "moved_to = ''",
]
const NULLS = ['data = NULL', 'version = NULL']
const OTHER_TYPES = ["version = 'x'", "data = x'00ff'", "expires_at = ''", 'password_version = 1.5']
/** What one database alone lets a hand write. MariaDB takes an integer for no ID of bytes, and '' for no kind. */
const ALSO: Record<DatabaseName, readonly string[]> = {
  PostgreSQL: NULLS,
  MariaDB: [...NULLS, "kind = ''"],
  SQLite: OTHER_TYPES,
  D1: OTHER_TYPES,
}
/** As in a table that someone else made. */
const WITHOUT_NOT_NULL: Partial<Record<DatabaseName, string>> = {
  PostgreSQL: 'ALTER TABLE coatcheck_sessions ALTER data DROP NOT NULL, ALTER version DROP NOT NULL',
  MariaDB: 'ALTER TABLE coatcheck_sessions MODIFY data mediumtext NULL, MODIFY version bigint NULL',
}

onEach(ALL, 'a row edited by hand in', (get, name) => {
  beforeAll(async () => {
    const loosened = WITHOUT_NOT_NULL[name]
    if (loosened !== undefined) await get().run(loosened)
  })

  it.each([...EDITS, ...ALSO[name]])('is no session with %s: it is removed, and left out of lists', async edit => {
    const { open, run } = get()
    const store = open()
    const [one, sound] = [record(), record()]
    for (const each of [one, sound]) await store.create(each, call)
    await run(`UPDATE coatcheck_sessions SET ${edit} WHERE id = '${one.key}'`)
    const listed = (await store.listUser('42', 'session', call)).map(({ key }) => key)
    expect([listed.includes(one.key), listed.includes(sound.key)]).toEqual([false, true])
    expect(await store.read(one.key, call)).toEqual({ corrupt: expect.any(String) })
    expect(await store.read(one.key, call)).toBe(null)
    expect(await isLive(store, sound.key)).toBe(true)
    await store.delete(sound.key, call)
  })
})
