// What a session shows to code, JSON and logs.
import { inspect } from 'node:util'
import { stringify } from 'coatcheck'
import { describe, expect, it, vi } from 'vitest'
import { setUp as memory } from '../support/manager-kit.ts'

const user = { id: 2n ** 64n - 1n, name: 'max' }
const setUp = (options: object = {}) => memory({ rememberFor: '30d', ...options }).sessions

describe('the user of a session', () => {
  it('is a plain object with an ID and a name, wherever it comes from', async () => {
    const sessions = setUp()
    const created = await sessions.create({ user: { ...user, passwordVersion: 3 } })
    const token = await sessions.issueRememberToken(created)
    const found = [
      created,
      await sessions.get(created.secret),
      (await sessions.list(user.id))[0],
      (await sessions.redeemRememberToken(token))?.session,
      await sessions.update(created, { a: 1 }),
      await sessions.regenerate(created),
    ]
    for (const session of found) {
      expect(session?.user).toStrictEqual({ id: user.id, name: 'max' })
      expect(Object.getPrototypeOf(session?.user)).toBe(Object.prototype)
      expect(Reflect.ownKeys(session?.user as object)).toEqual(['id', 'name', 'passwordVersion', 'toJSON'])
      expect(session?.user?.passwordVersion).toBe(3)
    }
  })

  it('shows no password version to JSON, spread, loops, clones and inspect, and cannot be changed', async () => {
    const { user: shown } = await setUp().create({ user: { id: 7, name: 'ada', passwordVersion: 3 } })
    const plain = { id: 7n, name: 'ada' }
    for (const copy of [
      { ...shown },
      structuredClone(shown),
      Object.assign({}, shown),
      Object.fromEntries(Object.entries(shown)),
    ])
      expect(copy).toStrictEqual(plain)
    expect(stringify(shown)).toBe('{"id":7,"name":"ada"}')
    expect(inspect(shown)).toBe(inspect(plain))
    for (const change of [
      () => Object.assign(shown, { id: 8n }),
      () => Object.assign(shown, { passwordVersion: 4 }),
      () => Object.defineProperty(shown, 'passwordVersion', { enumerable: true }),
      () => Object.assign(shown, { more: 1 }),
    ])
      expect(change).toThrow(TypeError)
  })

  it('passes what SvelteKit and React ask of what they send to a browser', async () => {
    const { user: shown } = await setUp().create({ user })
    // devalue 5 (is_plain_object, enumerable symbols) and react-server 19 (renderModelDestructive).
    const prototype = Object.getPrototypeOf(shown)
    expect(prototype === Object.prototype || prototype === null || Object.getPrototypeOf(prototype) === null).toBe(true)
    expect(Object.getOwnPropertySymbols(shown)).toEqual([])
    expect(Object.prototype.toString.call(shown)).toBe('[object Object]')
    // React asks toJSON: a spread has none, and its bigint arrives as one.
    expect('toJSON' in { ...shown }).toBe(false)
  })

  it('is written by JSON.stringify alone and in what contains it, and has no method for that if its ID needs none', async () => {
    const sessions = setUp()
    const session = await sessions.create({ user: { id: 42n, name: 'ada' } })
    expect(JSON.stringify(session.user)).toBe('{"id":42,"name":"ada"}')
    expect(JSON.parse(JSON.stringify({ session, list: await sessions.list(42n) }))).toMatchObject({
      session: { user: { id: 42, name: 'ada' } },
      list: [{ user: { id: 42, name: 'ada' } }],
    })
    const texts = setUp({ userIds: 'string' })
    expect('toJSON' in (await texts.create({ user: { id: 'u_1' as never, name: '' } })).user!).toBe(false)
  })

  it('is written to the last digit by stringify and by JSON.rawJSON; without that JSON.stringify throws', async () => {
    const { user: shown } = await setUp().create({ user })
    const exact = '{"id":18446744073709551615,"name":"max"}'
    if ('rawJSON' in JSON) expect(JSON.stringify(shown)).toBe(exact)
    vi.stubGlobal('JSON', { stringify: JSON.stringify })
    try {
      expect(() => JSON.stringify({ user: shown })).toThrow(TypeError)
      expect(() => JSON.stringify(shown)).toThrow(TypeError)
      expect(stringify(shown)).toBe(exact)
    } finally {
      vi.unstubAllGlobals()
    }
  })
})

it('a session is frozen and shows the same, whether there is something in its data or not', async () => {
  const sessions = setUp()
  for (const data of [{}, { theme: 'dark' }]) {
    const { secret } = await sessions.create({ user, data })
    const session = (await sessions.get(secret))!
    expect({ ...session }.data).toEqual(data)
    expect(JSON.parse(stringify(session)).data).toEqual(data)
    expect(structuredClone({ ...session }).data).toEqual(data)
    expect(Object.keys(session)).toEqual([
      'key',
      'user',
      'createdAt',
      'seenAt',
      'expiresAt',
      'absoluteExpiresAt',
      'remembered',
      'data',
    ])
    expect(Object.isFrozen(session) && Object.isFrozen(session.data)).toBe(true)
    for (const change of [{ data: {} }, { extra: 1 }, { secret: 'x' }])
      expect(() => Object.assign(session, change)).toThrow(TypeError)
    expect(() => Object.assign(session.data, { a: 1 })).toThrow(TypeError)
    expect(session.data).toBe(session.data)
  }
})

it('inspect names the class and shows no secret', async () => {
  const session = await setUp().create({ user })
  expect(inspect(session)).toMatch(/^Session \{/)
  for (const shown of [session.key, 'max', '18446744073709551615n']) expect(inspect(session)).toContain(shown)
  expect(inspect(session)).not.toContain(session.secret)
})

it('inspect tells a session from what list and the walk over all of them show', async () => {
  const sessions = setUp()
  await sessions.create({ user })
  expect(inspect((await sessions.list(user.id))[0])).toMatch(/^SessionInfo \{/)
  for await (const stored of sessions.all()) {
    expect(inspect(stored)).toMatch(/^SessionInfo \{/)
    expect(inspect(stored)).toContain('namespace: null')
  }
})

it('the CSRF token is bound to the session: the same at each look and after a new ID, another one after a login', async () => {
  const sessions = setUp()
  const session = await sessions.create()
  expect((await sessions.get(session.secret))?.csrfToken).toBe(session.csrfToken)
  expect(session.csrfToken).not.toContain(session.secret.slice(3))
  const rotated = (await sessions.regenerate(session))!
  expect(rotated.csrfToken).toBe(session.csrfToken)
  expect((await sessions.logIn(rotated, { user })).csrfToken).not.toBe(session.csrfToken)
  expect((await sessions.create()).csrfToken).not.toBe(session.csrfToken)
})
