// Whom the data of a session names, as Passport leaves it there, or as the application's userOf reads it.
import type { SessionOptions } from 'coatcheck'
import { type ConnectStoreOptions, connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { makeManager, sidOf } from './service.ts'

const SID = sidOf('one browser')

/** As express-session gives it: the request is no part of the data. */
class Session {
  constructor(passport: unknown, request: object) {
    Object.assign(this, { cookie: {}, passport })
    Object.defineProperty(this, 'req', { value: request })
  }
}

interface Setup {
  readonly manager?: Partial<SessionOptions> | object
  readonly userOf?: unknown
}

/** Saves a session with this `passport`, by a request that has `more`; answers who that is, and what was refused. */
async function saved(passport: unknown, more: object = {}, { manager = {}, userOf }: Setup = {}) {
  const { sessions } = makeManager(manager)
  const store = connectStore(sessions, { ...(userOf !== undefined && { userOf: userOf as never }) })
  const error: Error | undefined = await store.set(SID, new Session(passport, more)).catch((failed: Error) => failed)
  return { error: error?.message, user: (await sessions.get(store.idOf(SID)))?.user ?? null }
}
const loggedIn = (stored: unknown, more?: object, setup?: Setup) => saved({ user: stored }, more, setup)
const shown = (value: unknown) => JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? `${each}n` : each))

describe('the user whom Passport stored', () => {
  it('is text, a number or an object with an id, also without an object around it as of @fastify/passport', async () => {
    for (const [stored, id] of [
      ['42', 42n],
      [42, 42n],
      [{ id: '42' }, 42n],
      [{ id: 42, more: [1] }, 42n],
      [0, 0n],
      [{ id: 0 }, 0n],
      ['18446744073709551615', 18446744073709551615n],
    ] as const)
      expect((await loggedIn(stored)).user, shown(stored)).toEqual({ id, name: '' })
    for (const passport of ['42', 42, { id: '42' }, { id: 42, user: 'ada' }])
      expect((await saved(passport)).user?.id, shown(passport)).toBe(42n)
  })

  it('is none where Passport would find none', async () => {
    for (const stored of ['', null, false]) expect(await loggedIn(stored)).toEqual({ error: undefined, user: null })
  })

  it('is refused where it has no ID that a manager takes', async () => {
    for (const stored of [{ id: null }, { id: ['42'] }, true, [42]])
      expect((await loggedIn(stored)).error).toContain('passport.user: expected text, a number or an object with an id')
    for (const id of ['042', '-1', '4 2', '18446744073709551616', 1.5, 'ada'])
      expect(await loggedIn(id), String(id)).toEqual({ error: expect.stringContaining('user ID'), user: null })
  })

  it.each([
    ['string', '42', '42'],
    ['string', 42, '42'],
    ['string', '042', '042'],
    ['string', 1.5, undefined],
    ['number', '42', 42],
    ['number', 42, 42],
    ['number', '042', undefined],
  ])('is of the kind that the manager has: a %s of %j is %j', async (userIds, stored, id) => {
    expect((await loggedIn(stored, {}, { manager: { userIds } })).user?.id).toBe(id)
  })

  it('is named by what was stored, else by the user of the request', async () => {
    const user = { displayName: 'Ada L.' }
    for (const [stored, more, name] of [
      [{ id: 42, username: 'ada', name: 'Ada' }, { user: { username: 'other' } }, 'ada'],
      [{ id: 42, name: 'Ada', username: 7 }, { user: { username: 'other' } }, 'Ada'],
      [42, { user: { username: 'ada', name: 'Ada', ...user } }, 'ada'],
      [42, { user: { name: 'Ada', ...user } }, 'Ada'],
      [42, { user }, 'Ada L.'],
      [42, { user: { username: '' } }, ''],
      [42, { user: 'ada' }, ''],
      [42, { user: null }, ''],
      [42, { _userProperty: 'account', account: { name: 'Ada' }, user: { name: 'other' } }, 'Ada'],
      // koa-passport has it in the state of the context.
      [42, { state: { user: { name: 'Ada' } } }, 'Ada'],
    ] as const)
      expect((await loggedIn(stored, more)).user?.name, shown([stored, more])).toBe(name)
  })

  it('has the password version of what was stored, else of the user of the request; what is no number is none', async () => {
    for (const [stored, more, isIn] of [
      [{ id: 42, passwordVersion: 2 }, {}, true],
      [{ id: 42, passwordVersion: 1 }, { user: { passwordVersion: 2 } }, false],
      [{ id: 42 }, { user: { passwordVersion: 2 } }, true],
      [42, { user: { passwordVersion: 1 } }, false],
      [42, {}, false],
      [42, { user: { passwordVersion: '2' } }, false],
    ] as const)
      expect((await loggedIn(stored, more, { manager: await atVersion2() })).user !== null, shown([stored, more])).toBe(
        isIn,
      )
    for (const passwordVersion of ['2', null, {}])
      expect((await loggedIn(42, { user: { passwordVersion } })).user?.id).toBe(42n)
  })

  it('says a password version at the login, where the application compares it: null if there is none', async () => {
    const manager = { getPasswordVersion: () => 0 }
    for (const user of [{}, { passwordVersion: '2' }])
      expect(await loggedIn(42, { user }, { manager })).toEqual({
        error: expect.stringContaining(
          'user.passwordVersion: expected the version that was read with the password hash',
        ),
        user: null,
      })
    for (const passwordVersion of [null, 0, 3])
      expect((await loggedIn(42, { user: { passwordVersion } }, { manager })).user?.id).toBe(42n)
  })

  it('need not say it again at a later save, such as of a route without Passport', async () => {
    const { sessions } = makeManager({ getPasswordVersion: () => 3 })
    const store = connectStore(sessions)
    const ctx = { state: { user: { passwordVersion: 3 } } }
    await store.set(SID, { passport: { user: 42 } }, 60_000, { changed: true, ctx })
    const later = { ctx: {} }
    const loaded = await store.get(SID, 60_000, later)
    await store.set(SID, { ...loaded, cart: 'tea' }, 60_000, later)
    expect(await store.get(SID)).toMatchObject({ cart: 'tea' })
  })
})

/** A manager's options over a store where ada's password has version 2. */
async function atVersion2(): Promise<Partial<SessionOptions>> {
  const store = new MemoryStore()
  await makeManager({ store }).sessions.invalidateUser(42n, { minPasswordVersion: 2 })
  return { store }
}

describe('a userOf of the application', () => {
  it('says null or undefined for none', async () => {
    for (const none of [null, undefined])
      expect(await loggedIn(42, {}, { userOf: () => none })).toEqual({ error: undefined, user: null })
  })

  it('says an ID, and a name and a password version if there are', async () => {
    for (const id of ['7', 7, 7n])
      expect((await loggedIn(42, {}, { userOf: () => ({ id }) })).user).toEqual({ id: 7n, name: '' })
    for (const [passwordVersion, name] of [
      [1, undefined],
      [2, 'ada'],
    ]) {
      const userOf = () => ({ id: 42, name: 'ada', passwordVersion })
      expect((await loggedIn(42, {}, { manager: await atVersion2(), userOf })).user?.name).toBe(name)
    }
  })

  it('is refused where it answers a promise, or what is no user', async () => {
    for (const answer of [Promise.resolve({ id: 42 }), 42, '42', true, { id: undefined }])
      expect(await loggedIn(42, {}, { userOf: () => answer })).toEqual({
        error: expect.stringContaining('null if nobody is logged in, and no promise, got'),
        user: null,
      })
  })
})

it.each([
  ['writes', { theme: 'dark' }],
  ['logs in', { user: '42' }],
])('a session where an older version of the application %s keeps what a newer one stored', async (_, change) => {
  const store = new MemoryStore()
  const known = { cookie: z.any().optional(), user: z.string().optional(), theme: z.string().optional() }
  const userOf: NonNullable<ConnectStoreOptions['userOf']> = ({ user }) => user && { id: user }
  const node = (schema: z.ZodObject) =>
    connectStore(makeManager({ store, schema } as never).sessions, { userOf: userOf as never })
  const [old, young] = [node(z.object(known)), node(z.object({ ...known, locale: z.string().optional() }))]
  await young.set(SID, { cookie: {}, locale: 'fr' })
  await old.set(SID, Object.assign((await old.get(SID))!, change))
  expect(await young.get(SID)).toMatchObject({ ...change, locale: 'fr' })
})
