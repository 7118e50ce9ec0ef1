import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { checkAnonymous, checkLogin, namespaceOf, Users } from '../../../src/session/users.ts'

const users = (namespace: string | null) => new Users({ userIds: 'bigint', store: new MemoryStore() }, namespace)

describe('the user of a tenant', () => {
  it('is stored under the name of the tenant, and found by no other', () => {
    const stored = users('acme').toText(7)
    expect(users('acme').fromText(stored)).toBe(7n)
    for (const other of [users(null), users('acm'), users('acme2')]) expect(other.fromText(stored)).toBeNull()
    expect(users('acme').fromText('7')).toBeNull()
  })

  it('tells its tenant, also one whose name has one character; a user of no tenant tells none', () => {
    expect(namespaceOf(users('acme').toText(7))).toBe('acme')
    expect(namespaceOf(users('a').toText(7))).toBe('a')
    expect(namespaceOf(users(null).toText(7))).toBeNull()
  })
})

describe('first data of an anonymous session', () => {
  it('may be there or not', () => {
    for (const right of [{}, { data: { a: 1 } }]) expect(() => checkAnonymous(right)).not.toThrow()
  })

  it('is no login, and says how one begins', () => {
    expect(() => checkAnonymous({ user: { id: 1, name: 'ada' } })).toThrow(
      new TypeError(
        'create: "user" is not an option; a visit starts a session with a user by logIn({ user }) (there are: data)',
      ),
    )
  })

  it('is an object that has data alone', () => {
    for (const wrong of [null, 'cart', 7]) expect(() => checkAnonymous(wrong as never)).toThrow(/^create: expected/)
    expect(() => checkAnonymous({ idleTimeout: '5m' })).toThrow(/^create: .*idle.*data/)
  })
})

describe('a login', () => {
  it('is an object, whatever is in it', () => {
    const login = { user: { id: 1, name: 'ada' } }
    expect(() => checkLogin('logIn', login)).not.toThrow()
    for (const wrong of [null, undefined, 'ada', 7])
      expect(() => checkLogin('logIn', wrong as never)).toThrow(
        /^logIn: expected { user, data }, got (?:null|undefined|"ada"|7)$/,
      )
  })

  it('has these options, and says what to do instead of others', () => {
    const right = { user: {}, data: {}, verifiedAt: 1, idleTimeout: '5m', absoluteTimeout: '1h' }
    expect(() => checkLogin('create', right)).not.toThrow()
    for (const [wrong, advice] of [
      [
        'remember',
        'sessions.issueRememberToken(session) makes the token, and visit.logIn({ user, remember: true }) sends it',
      ],
      ['passwordVersion', 'it belongs to user: { id, name, passwordVersion }'],
    ] as const)
      expect(() => checkLogin('create', { user: {}, [wrong]: 1 }), wrong).toThrow(advice)
  })

  it('was verified at an instant in milliseconds, at most as far ahead as clocks differ', () => {
    const now = Date.UTC(2026, 0, 1)
    const at = (verifiedAt: unknown) => users(null).ownerOf({ user: { id: 1, name: 'ada' }, verifiedAt } as never, now)
    for (const right of [undefined, null, now, now + 300_000, 946_684_800_000]) expect(() => at(right)).not.toThrow()
    for (const wrong of [now + 300_001, -1, 1.5, Number.NaN, '1', new Date(now)])
      expect(() => at(wrong)).toThrow(
        /^verifiedAt: expected epoch milliseconds, not in the future, or null for never, got/,
      )
    // A clock of a test may begin at 0.
    expect(() => users(null).ownerOf({ user: { id: 1, name: 'ada' }, verifiedAt: 0 }, 1_000)).not.toThrow()
    // Seconds, as single sign-on counts them.
    expect(() => at(now / 1000)).toThrow(/^verifiedAt: /)
  })
})

describe('the shard of a user', () => {
  const shardOf = (shard: unknown, userId: string | null = '7') =>
    new Users(
      { userIds: 'bigint', store: Object.assign(new MemoryStore(), { shard: () => shard }) as never },
      null,
    ).shardOf(userId)

  it('is what the store says, and none where it says nothing or there is no user', () => {
    expect(shardOf('a-_')).toBe('a-_')
    expect(shardOf('abc', null)).toBeUndefined()
    expect(users(null).shardOf('7')).toBeUndefined()
  })

  it('is 3 characters of an ID, else an ID would never find its session again', () => {
    for (const wrong of ['ab', 'abcd', 'a b', 'ab\n', '', 7, null, ['abc']])
      expect(() => shardOf(wrong)).toThrow(/^shard: expected 3 of the characters A-Z a-z 0-9 _ - from the store, got/)
  })
})
