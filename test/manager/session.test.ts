// What a session shows to code, JSON and logs.
import { inspect } from 'node:util'
import { type SessionManager, stringify } from 'coatcheck'
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
    expect(() => JSON.stringify({ user: shown })).toThrow(TypeError)
    expect(() => JSON.stringify(shown)).toThrow(TypeError)
    expect(stringify(shown)).toBe(exact)
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
    const shown = 'key user createdAt seenAt expiresAt absoluteExpiresAt remembered data'
    expect(Object.keys(session)).toEqual(shown.split(' '))
    expect(Object.isFrozen(session) && Object.isFrozen(session.data)).toBe(true)
    for (const change of [{ data: {} }, { extra: 1 }, { secret: 'x' }])
      expect(() => Object.assign(session, change)).toThrow(TypeError)
    expect(() => Object.assign(session.data, { a: 1 })).toThrow(TypeError)
    expect(session.data).toBe(session.data)
  }
})

it('inspect names the class and shows no secret, and tells what a list and a walk over all sessions show', async () => {
  const sessions = setUp()
  const session = await sessions.create({ user })
  expect(inspect(session)).toMatch(/^Session \{/)
  for (const shown of [session.key, 'max', '18446744073709551615n']) expect(inspect(session)).toContain(shown)
  expect(inspect(session)).not.toContain(session.secret)
  expect(inspect((await sessions.list(user.id))[0])).toMatch(/^SessionInfo \{/)
  for await (const stored of sessions.all()) expect(inspect(stored)).toMatch(/^SessionInfo \{[\s\S]*namespace: null/)
})

describe('what is handed to a method in place of a session', () => {
  type Method = [string, (sessions: SessionManager, session: never) => Promise<unknown>]
  const needing: Method[] = [
    ['update', (sessions, session) => sessions.update(session, { n: 1 })],
    ['take', (sessions, session) => sessions.take(session, 'n')],
    ['issueRememberToken', (sessions, session) => sessions.issueRememberToken(session)],
  ]
  const methods: Method[] = [
    ...needing,
    ['get', (sessions, session) => sessions.get(session)],
    ['regenerate', (sessions, session) => sessions.regenerate(session)],
    ['logIn', (sessions, session) => sessions.logIn(session, { user })],
    ['destroy', (sessions, session) => sessions.destroy(session)],
    ['invalidateUser', (sessions, session) => sessions.invalidateUser(1, { except: session })],
  ]

  it.each(methods)(
    '%s refuses a copy, an entry of a list and another tenant’s, and asks the store nothing',
    async (_, run) => {
      const { sessions, store } = memory({ rememberFor: '30d' })
      const session = await sessions.create({ user })
      const [listed] = await sessions.list(user.id)
      const theirs = await sessions.namespace('acme').create({ user })
      store.reset()
      for (const wrong of [{ ...session }, listed, Object.create(session), {}, Buffer.from(session.secret)])
        await expect(run(sessions, wrong as never)).rejects.toThrow(
          'session: expected the object that get() or logIn() returned, not a copy and not an entry of list() (if it is that, two versions of coatcheck are installed: check `npm ls coatcheck`)',
        )
      await expect(run(sessions, 7 as never)).rejects.toThrow(TypeError)
      await expect(run(sessions, theirs as never)).rejects.toThrow('session: belongs to another namespace')
      expect(store.calls).toEqual([])
    },
  )

  it.each(needing)('%s needs one: neither nothing nor an ID will do', async (_, run) => {
    const { sessions } = memory({ rememberFor: '30d' })
    const { secret } = await sessions.create({ user })
    for (const wrong of [null, undefined, 7, true, secret])
      await expect(run(sessions, wrong as never)).rejects.toThrow(
        'session: expected the object that get() or logIn() returned',
      )
  })
})
