// Whom the data of a session names, as Passport leaves it there, or as the application's userOf reads it.
import type { SessionOptions } from 'coatcheck'
import { type ConnectStoreOptions, connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { APPS, startApp } from './apps.ts'
import { called, makeManager, serve, sidOf } from './service.ts'

/** Logs in by a request that leaves `stored` in the data, beside `more` at the request; answers who that is. */
async function loggedIn(
  stored: unknown,
  more: object = {},
  { manager = {}, userOf }: { manager?: Partial<SessionOptions>; userOf?: ConnectStoreOptions['userOf'] } = {},
) {
  const made = makeManager(manager)
  const store = connectStore(made.sessions, { ...(userOf && { userOf: userOf as never }) })
  const { browser } = await serve(
    {
      '/': async (request, response) => {
        Object.assign(request, more)
        request.session.passport = { user: stored }
        const error = await called(callback => request.session.save(callback)).catch((failed: Error) => failed)
        response.end(JSON.stringify([error instanceof Error ? error.message : 'in', request.sessionID]))
      },
    },
    {},
    { ...made, store },
  )
  const [body, sid] = JSON.parse((await browser().go('/')).body)
  const session = await made.sessions.get(store.idOf(sid))
  return { body, user: session?.user ?? null }
}

describe('the user whom Passport stored', () => {
  it('is text, a number or an object with an id', async () => {
    for (const stored of ['42', 42, { id: '42' }, { id: 42 }, { id: 42, more: [1] }])
      expect((await loggedIn(stored)).user).toEqual({ id: 42n, name: '' })
    for (const zero of [0, '0', { id: 0 }]) expect((await loggedIn(zero)).user).toEqual({ id: 0n, name: '' })
    expect((await loggedIn('18446744073709551615')).user?.id).toBe(18446744073709551615n)
  })

  it('is none where Passport would find none', async () => {
    for (const stored of ['', null, false]) expect(await loggedIn(stored)).toMatchObject({ body: 'in', user: null })
  })

  it('is there without an object around it in @fastify/passport: text, a number, or an object with an id', async () => {
    for (const passport of ['42', 42, { id: '42' }, { id: 42, user: 'ada' }]) {
      const { sessions } = makeManager()
      const store = connectStore(sessions)
      await store.set(sidOf('fastify'), { cookie: {}, passport })
      expect((await sessions.get(store.idOf(sidOf('fastify'))))?.user?.id, JSON.stringify(passport)).toBe(42n)
      expect(await sessions.invalidateUser(42n)).toBe(1)
    }
  })

  it('says a password version at the login, where the application compares it: null if there is none', async () => {
    const manager = { getPasswordVersion: () => 0 }
    for (const user of [{}, { passwordVersion: '2' }]) {
      const { body, user: found } = await loggedIn(42, { user }, { manager })
      expect(body).toContain('user.passwordVersion: expected the version that was read with the password hash')
      expect(found).toBeNull()
    }
    for (const passwordVersion of [null, 0, 3])
      expect(await loggedIn(42, { user: { passwordVersion } }, { manager })).toMatchObject({
        body: 'in',
        user: { id: 42n },
      })
  })

  it('need not say it again at a later save, such as of a route without Passport', async () => {
    const { sessions } = makeManager({ getPasswordVersion: () => 3 })
    const store = connectStore(sessions)
    const ctx = { state: { user: { passwordVersion: 3 } } }
    await store.set(sidOf('later'), { passport: { user: 42 } }, 60_000, { changed: true, ctx })
    const later = { ctx: {} }
    const loaded = await store.get(sidOf('later'), 60_000, later)
    await store.set(sidOf('later'), { ...loaded, cart: 'tea' }, 60_000, later)
    expect(await store.get(sidOf('later'))).toMatchObject({ cart: 'tea' })
  })

  it('is refused where it has no ID that a manager takes', async () => {
    for (const stored of [{ id: null }, { id: ['42'] }, true, [42]])
      expect((await loggedIn(stored)).body).toContain('passport.user: expected text, a number or an object with an id')
    for (const id of ['042', '-1', '4 2', '18446744073709551616', 1.5, 'ada']) {
      const { body, user } = await loggedIn(id)
      expect(body, String(id)).toContain('user ID')
      expect(user).toBeNull()
    }
  })

  it('is named by what was stored, else by the user of the request', async () => {
    const user = { displayName: 'Ada L.' }
    const names = [
      [{ id: 42, username: 'ada', name: 'Ada' }, { user: { username: 'other' } }, 'ada'],
      [{ id: 42, name: 'Ada', username: 7 }, { user: { username: 'other' } }, 'Ada'],
      [42, { user: { username: 'ada', name: 'Ada', ...user } }, 'ada'],
      [42, { user: { name: 'Ada', ...user } }, 'Ada'],
      [42, { user }, 'Ada L.'],
      [42, { user: { username: '' } }, ''],
      [42, { user: 'ada' }, ''],
      [42, { user: null }, ''],
      [42, { _userProperty: 'account', account: { name: 'Ada' }, user: { name: 'other' } }, 'Ada'],
    ] as const
    for (const [stored, more, name] of names) expect((await loggedIn(stored, more)).user?.name).toBe(name)
  })

  it('has the password version of what was stored, else of the user of the request', async () => {
    const cases = [
      [{ id: 42, passwordVersion: 2 }, {}, true],
      [{ id: 42, passwordVersion: 1 }, { user: { passwordVersion: 2 } }, false],
      [{ id: 42 }, { user: { passwordVersion: 2 } }, true],
      [42, { user: { passwordVersion: 1 } }, false],
      [42, {}, false],
      // What is no number is none, and none is older than all.
      [42, { user: { passwordVersion: '2' } }, false],
    ] as const
    for (const [stored, more, isIn] of cases) {
      const { user } = await loggedIn(stored, more, { manager: await floored() })
      expect(user !== null, JSON.stringify([stored, more])).toBe(isIn)
    }
  })

  it('has none where that is no number', async () => {
    for (const passwordVersion of ['2', null, {}])
      expect(await loggedIn(42, { user: { passwordVersion } })).toMatchObject({ body: 'in', user: { id: 42n } })
  })

  it('has the kind of ID that the manager has', async () => {
    for (const stored of ['42', 42])
      for (const [userIds, id] of [
        ['number', 42],
        ['string', '42'],
      ] as const)
        expect((await loggedIn(stored, {}, { manager: { userIds } as never })).user?.id).toBe(id)
    expect((await loggedIn('042', {}, { manager: { userIds: 'string' } as never })).user?.id).toBe('042')
    expect((await loggedIn('042', {}, { manager: { userIds: 'number' } as never })).user).toBeNull()
    expect((await loggedIn(1.5, {}, { manager: { userIds: 'string' } as never })).user).toBeNull()
  })
})

/** A manager's options over a store where ada's password has version 2. */
async function floored(): Promise<Partial<SessionOptions>> {
  const store = new MemoryStore()
  const { sessions } = makeManager({ store })
  await sessions.invalidateUser(42n, { minPasswordVersion: 2 })
  return { store }
}

describe('a userOf of the application', () => {
  it('says null or undefined for none', async () => {
    for (const none of [null, undefined])
      expect(await loggedIn(42, {}, { userOf: () => none })).toMatchObject({ body: 'in', user: null })
  })

  it('says an ID, and a name and a password version if there are', async () => {
    for (const id of ['7', 7, 7n]) {
      const { user } = await loggedIn(42, {}, { userOf: () => ({ id }) as never })
      expect(user).toEqual({ id: 7n, name: '' })
    }
    const old = { userOf: () => ({ id: 42, name: 'ada', passwordVersion: 1 }) }
    expect((await loggedIn(42, {}, { manager: await floored(), ...old })).user).toBeNull()
    const current = { userOf: () => ({ id: 42, name: 'ada', passwordVersion: 2 }) }
    expect((await loggedIn(42, {}, { manager: await floored(), ...current })).user?.name).toBe('ada')
  })

  it('is refused where it answers a promise, or what is no object', async () => {
    for (const answer of [Promise.resolve({ id: 42 }), 42, '42', true]) {
      const { body, user } = await loggedIn(42, {}, { userOf: () => answer as never })
      expect(body).toContain(
        'userOf: expected it to return { id, name }, or null if nobody is logged in, and no promise, got',
      )
      expect(user).toBeNull()
    }
  })
})

describe.each(Object.keys(APPS))('a userOf over %s', name => {
  it('gets the request with the data, a context in Koa', async () => {
    const { sessions } = makeManager({ userIds: 'string' } as never)
    const userOf: ConnectStoreOptions['userOf'] = ({ user }, request) => user && { id: user, name: request.url }
    const { browser, close } = await startApp(name, connectStore(sessions, { userOf: userOf as never }))
    await browser().go('/login?user=ada')
    expect(await sessions.list('ada' as never)).toMatchObject([{ user: { name: '/login?user=ada' } }])
    await close()
  })
})

describe('Passport’s user', () => {
  it('is found in the state of a context of Koa', async () => {
    const { sessions } = makeManager()
    const store = connectStore(sessions)
    const ctx = { state: { user: { username: 'ada', passwordVersion: 3 } } }
    await store.set(sidOf('koa'), { passport: { user: 42 } }, 60_000, { changed: true, ctx })
    const [session] = await sessions.list(42n)
    expect(session!.user).toEqual({ id: 42n, name: 'ada' })
    expect(session!.user!.passwordVersion).toBe(3)
  })
})

it.each(['writes', 'logs in'])(
  'a session where an older version of the application %s keeps what a newer one stored',
  async how => {
    const store = new MemoryStore()
    const known = { cookie: z.any().optional(), user: z.string().optional(), theme: z.string().optional() }
    const node = (schema: z.ZodObject) =>
      connectStore(makeManager({ store, schema } as never).sessions, {
        userOf: ({ user }) => (user ? { id: user as string, name: '' } : null),
      })
    const [old, young] = [node(z.object(known)), node(z.object({ ...known, locale: z.string().optional() }))]
    await young.set(sidOf('one'), { cookie: {}, locale: 'fr' })
    const change = how === 'writes' ? { theme: 'dark' } : { user: '42' }
    await old.set(sidOf('one'), Object.assign((await old.get(sidOf('one')))!, change))
    expect(await young.get(sidOf('one'))).toMatchObject({ ...change, locale: 'fr' })
  },
)
