// All that a store does, once, and exactly: for settings of a pool or of a server, which must change nothing.
import type { SessionRecord } from 'coatcheck/custom-store'
import { expect } from 'vitest'
import { soon } from '../support/deadlines.ts'
import type { SqlStore } from './databases.ts'
import { call, change, NOW, newKey, record } from './records.ts'

/** Equal each to some collation, padding rule or parser of numbers. */
const USERS = [
  ...['18446744073709551615', '18446744073709551614', '9223372036854775808', '9007199254740993', '42', '042', '4.2e1'],
  ...['bob', 'bob ', 'BOB', 'böb', 'bo\u0308b', 'ｂｏｂ', "o'hara \\", '😀', '😁', 'a\t42', 'b\t42'],
]

/** The tables of the store are empty. */
export async function isExact(store: SqlStore): Promise<void> {
  const records = USERS.map(userId => record({ userId, passwordVersion: 4_294_967_295, data: '{"ü":"\\\\"}' }))
  for (const each of records) expect(await store.create(each, call())).toBe('created')
  const page = await store.scan(null, 100, call())
  expect(page.records.map(({ userId }) => userId).sort()).toEqual([...USERS].sort())
  for (const each of records) {
    expect(await store.read(each.key, call())).toEqual(each)
    expect(await store.listUser(each.userId!, 'session', call())).toEqual([each])
  }
  // A logout everywhere of one user after the other, each with a minimum password version of its own.
  const everybody = { minPasswordVersion: 7, minPasswordVersionUntil: NOW + 1000 }
  for (const [place, { userId }] of records.entries()) {
    expect(await store.deleteUser(userId!, everybody, call())).toBe(1)
    expect(await store.create(record({ userId, passwordVersion: 6 }), call())).toBe('stale-login')
    const left = await Promise.all(records.map(({ key }) => store.read(key, call())))
    expect(left.map(found => found !== null)).toEqual(records.map((_, other) => other > place))
  }
  await changesOne(store)
  await sweepsByUniversalTime(store)
}

/** One of two sessions whose keys differ in case alone. */
async function changesOne(store: SqlStore): Promise<void> {
  const key = `aA${newKey().slice(2, 44)}bB`
  const swapped = key.replace(/[a-z]/gi, c => (c === c.toLowerCase() ? c.toUpperCase() : c.toLowerCase()))
  const [one, other] = [record({ key, userId: '1' }), record({ key: swapped, userId: '2' })]
  for (const each of [one, other]) expect(await store.create(each, call())).toBe('created')
  const edit = change({ seenAt: NOW + 1 })
  expect(await store.update(key, 1, edit, call())).toBe('updated')
  for (let time = 0; time < 2; time++) expect(await store.touch(key, NOW + 2, NOW + 9e6, call())).toBe('touched')
  expect(await store.read(key, call())).toEqual({ ...one, ...edit, version: 2, seenAt: NOW + 2 })
  const next = record({ userId: '1' })
  const forward = { salt: 'c2FsdA', until: NOW + 1 }
  expect(await store.replace(key, 2, next, { forward }, call())).toBe('created')
  expect(await store.read(key, call())).toEqual({ movedTo: next.key, ...forward })
  expect(await store.delete(key, call())).toBe(true)
  expect(await store.read(next.key, call())).toBe(null)
  expect(await store.read(swapped, call())).toEqual(other)
}

/** One that took local time for universal time would be hours off, one way or the other. */
async function sweepsByUniversalTime(store: SqlStore): Promise<void> {
  const now = Date.now()
  const ages = [-400_000, -200_000, 1000]
  const records = ages.map(age =>
    record({ createdAt: now, seenAt: now, expiresAt: now + age, absoluteExpiresAt: now + 1e8 }),
  )
  for (const each of records) await store.create(each, { now })
  await store.sweep(100_000, { now: now + 86_400_000, deadline: soon() })
  const stored: (SessionRecord | null)[] = []
  for (const { key } of records) stored.push((await store.read(key, { now: now - 1e7 })) as SessionRecord | null)
  expect(stored.map(found => found !== null)).toEqual([false, true, true])
}
