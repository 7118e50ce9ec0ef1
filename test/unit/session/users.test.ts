import { MemoryStore } from 'coatcheck/stores/memory'
import { expect, it } from 'vitest'
import { checkAnonymous, namespaceOf, Users } from '../../../src/session/users.ts'

const users = (namespace: string | null, shard?: unknown) =>
  new Users({ userIds: 'bigint', store: Object.assign(new MemoryStore(), shard ? { shard } : {}) as never }, namespace)

it('the user of a tenant is stored under the name of the tenant, tells it, and is found by no other', () => {
  for (const name of ['acme', 'a']) {
    const stored = users(name).toText(7)
    expect([users(name).fromText(stored), namespaceOf(stored)]).toEqual([7n, name])
    for (const other of [null, 'acm', 'acme2']) expect(users(other).fromText(stored)).toBeNull()
    expect(users(name).fromText('7')).toBeNull()
  }
  expect(namespaceOf(users(null).toText(7))).toBeNull()
})

it('first data of an anonymous session is no login, and the refusal says how one begins', () => {
  expect(() => checkAnonymous({ data: { a: 1 } })).not.toThrow()
  expect(() => checkAnonymous({ user: { id: 1, name: 'ada' } })).toThrow(
    'create: "user" is not an option; a visit starts a session with a user by logIn({ user }) (there are: data)',
  )
})

it('a login was verified at an instant in milliseconds, at most as far ahead as clocks differ', () => {
  const now = Date.UTC(2026, 0, 1)
  const at = (verifiedAt: unknown, clock = now) =>
    users(null).ownerOf({ user: { id: 1, name: 'ada' }, verifiedAt } as never, clock)
  for (const right of [undefined, null, now, now + 300_000, 1e11]) expect(() => at(right)).not.toThrow()
  for (const wrong of [now + 300_001, -1, 1.5, Number.NaN, '1', new Date(now), now / 1000])
    expect(() => at(wrong)).toThrow(/^verifiedAt: expected epoch milliseconds/)
  // What seconds come to in the year 5138, and milliseconds in March 1973.
  expect(() => at(1e11 - 1)).toThrow('which looks like seconds: multiply by 1000')
  // A clock of a test may begin at 0.
  expect(() => at(0, 1000)).not.toThrow()
})

it('the shard of a user is what the store says, 3 characters of an ID: another ID would never find its session', () => {
  const shardOf = (shard: unknown, userId: string | null = '7') => users(null, () => shard).shardOf(userId)
  expect([shardOf('a-_'), shardOf('abc', null), users(null).shardOf('7')]).toEqual(['a-_', undefined, undefined])
  for (const wrong of ['ab', 'abcd', 'a b', 'ab\n', '', 7, null, ['abc']])
    expect(() => shardOf(wrong)).toThrow(/^shard: expected 3 of the characters A-Z a-z 0-9 _ - from the store, got/)
})
