// What applications and middleware give that nobody would recommend.
import { createHash } from 'node:crypto'
import { SessionManager } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { APPS, type ConnectBrowser, startApp } from './apps.ts'
import { HANDLERS, makeStore, queryOf, serve, sidOf, userOf } from './service.ts'

const DAY = 86_400_000
const SID = sidOf('one browser')

describe('connectStore', () => {
  it('takes a manager, and no option of another store', () => {
    const { sessions } = makeStore()
    expect(() => connectStore({} as never)).toThrow('connectStore: expected a SessionManager')
    expect(() => connectStore(sessions, { ttl: 60 } as never)).toThrow('idleTimeout and absoluteTimeout')
    expect(() => connectStore(sessions, { userOf: 'user' } as never)).toThrow('userOf: expected a function')
  })

  it('takes no store that keeps each user on a shard of its own, and says how to get one that does not', () => {
    const shards = (shard: (user: string) => string) => Object.assign(new MemoryStore(), { shard })
    const make = (shard: (user: string) => string) =>
      connectStore(new SessionManager({ store: shards(shard), sweepInterval: false }))
    expect(() => make(user => `00${user}`)).toThrow('new RedisStore(client, { singleSlot: true })')
    expect(make(() => '000').idOf(SID)).toMatch(/^000[\w-]{40}$/)
  })
})

describe('an ID of the middleware', () => {
  const set = (store: ReturnType<typeof connectStore>, sid: string) => store.set(sid, { cookie: {} })

  it('that is short is refused, with the reason and without the ID', async () => {
    const { store, calls } = makeStore()
    const error = await set(store, 'abc123').catch(String)
    expect(error).toBe(
      'TypeError: genid: expected a random ID of at least 20 characters, got one of 6: anyone who guesses a session ID takes over the session',
    )
    expect(calls).toEqual([])
  })

  it('that counts, or tells the time, is refused', async () => {
    for (const next of [
      (n: number) => String(n).padStart(32, '0'),
      (n: number) => `session-${1_800_000_000_000 + n}-x`,
    ]) {
      const { store } = makeStore()
      await set(store, next(1))
      await expect(set(store, next(2))).rejects.toThrow('got two that differ in 1 characters')
    }
  })

  it('that begins with the time and goes on at random is taken, such as a UUID of version 7 each in one millisecond', async () => {
    const { store } = makeStore()
    for (let n = 0; n < 2000; n += 1) {
      // A counter and 42 random bits, as the package uuid makes them.
      const random = createHash('sha256').update(String(n)).digest('hex')
      const counter = (0x7000 + n).toString(16)
      await set(store, `0190a1b2-c3d4-7a51-${counter}-1${random.slice(0, 11)}`)
    }
    expect(await store.length()).toBe(2000)
  })

  it('that another session has is refused: nobody gets that session', async () => {
    const { browser, errors, sessions } = await serve(HANDLERS, { middleware: { genid: () => SID } })
    await browser().go('/write?key=diary&value=secret')
    const other = browser()
    await other.go('/write?key=a&value=1')
    expect(errors).toMatchObject([{ code: 'ERR_SESSION_ID_COLLISION' }])
    const all: unknown[] = []
    for await (const { data } of sessions.all()) all.push(data)
    expect(all).toMatchObject([{ diary: 'secret' }])
  })

  it.each(['', ' '.repeat(40), 'ü'.repeat(40), '../'.repeat(20), 'a\0b', 'x'.repeat(10_000)])(
    'that no middleware draws finds nothing: %j',
    async sid => {
      const { store } = makeStore()
      expect(await store.get(sid)).toBeNull()
      await store.destroy(sid)
      expect(store.idOf(sid)).toMatch(/^[\w-]{43}$/)
    },
  )
})

describe('data', () => {
  it.each([
    [
      'a cycle',
      () => {
        const data: Record<string, unknown> = { cookie: {} }
        data.self = data
        return data
      },
    ],
    ['a bigint', () => ({ cookie: {}, n: 1n })],
    ['nothing', () => undefined],
    ['text', () => 'text'],
    ['a list', () => [1]],
    ['a key named __proto__', () => JSON.parse('{"cookie":{},"__proto__":{"isAdmin":true}}')],
    ['a key named constructor', () => ({ cookie: {}, deep: { constructor: 1 } })],
    ['a megabyte', () => ({ cookie: {}, large: 'x'.repeat(1_000_000) })],
  ])('that is %s is an error, and nothing is stored', async (_name, data) => {
    const { store, calls } = makeStore()
    await expect(store.set(SID, data())).rejects.toMatchObject({ code: 'ERR_SESSION_DATA' })
    expect(calls).toEqual([])
    await store.set(SID, { cookie: {}, a: 1 })
    const loaded = await store.get(SID)
    if (typeof data() === 'object' && !Array.isArray(data())) {
      Object.defineProperties(loaded, Object.getOwnPropertyDescriptors(data()))
      await expect(store.set(SID, loaded)).rejects.toMatchObject({ code: 'ERR_SESSION_DATA' })
    }
    expect(await store.get(SID)).toEqual({ cookie: {}, a: 1 })
  })

  it.each(Object.keys(APPS))('may have a key that the store gives %s for itself', async name => {
    const { store } = makeStore({ userIds: 'string' } as never)
    const { browser, close } = await startApp(name, store)
    const one = browser()
    await one.go('/login?user=ada')
    // @fastify/session has our mark under this name in its own object: without it the save is refused.
    expect((await one.go('/write?key=~loaded&value=x')).status).toBe(name.startsWith('@fastify') ? 500 : 200)
    await one.go('/write?key=b&value=y')
    expect((await one.go('/read')).body).toMatchObject({ user: 'ada', b: 'y' })
    await close()
  })

  it('is what JSON.stringify makes of it, as with any store of express-session', async () => {
    const { store } = makeStore()
    const data = {
      cookie: {},
      at: new Date(0),
      no: undefined,
      not: Number.NaN,
      f: () => 1,
      own: { toJSON: () => 'own' },
    }
    await store.set(SID, data)
    expect(await store.get(SID)).toEqual(JSON.parse(JSON.stringify(data)))
  })

  it('may be a megabyte if the manager says so', async () => {
    const { store } = makeStore({ maxDataBytes: 1_048_576 })
    await store.set(SID, { cookie: {}, large: 'x'.repeat(1_000_000) })
    expect((await store.get(SID)).large).toHaveLength(1_000_000)
  })

  it('without a cookie gets that of the middleware', async () => {
    const { browser, sessions, store } = await serve(HANDLERS, {
      middleware: { rolling: true, cookie: { maxAge: DAY, sameSite: 'lax' } },
    })
    for (const cookie of [undefined, null, 'text', {}]) {
      const one = browser()
      const sid = (await one.go('/write?key=a&value=1')).body
      await sessions.update((await sessions.get(store.idOf(sid)))!, { cookie })
      const reply = await one.go('/read')
      expect(JSON.parse(reply.body)).toEqual({ a: '1' })
      expect(reply.cookies[0]).toContain('; Path=/; ')
      expect(reply.cookies[0]).toContain('; HttpOnly')
      await one.go('/write?key=b&value=2')
      expect(JSON.parse((await one.go('/read')).body)).toEqual({ a: '1', b: '2' })
    }
  })

  it('that says a user the manager cannot have is an error that says what to do', async () => {
    const { store } = makeStore()
    await expect(store.set(SID, { cookie: {}, user: '550e8400-e29b' })).rejects.toThrow("userIds: 'string'")
    const passport = makeStore({}, {}).store
    await expect(passport.set(SID, { cookie: {}, passport: { user: { sub: 'x' } } })).rejects.toThrow('userOf: data =>')
    const nobody = makeStore({}, { userOf: ({ user }) => ({ id: user }) }).store
    await expect(nobody.set(SID, { cookie: {} })).rejects.toThrow('null if nobody is logged in')
    const later = makeStore({}, { userOf: (async () => null) as never }).store
    await expect(later.set(SID, { cookie: {} })).rejects.toThrow('no promise')
  })
})

describe('a cookie', () => {
  const handlers = {
    ...HANDLERS,
    '/max-age': async (request: any, response: any) => {
      request.session.cookie.maxAge = Number(queryOf(request).get('ms'))
      response.end()
    },
    '/cookie': (request: any, response: any) =>
      void response.end(JSON.stringify({ ...request.session.cookie.data, left: request.session.cookie.maxAge })),
  }

  it.each([60_000, DAY, 3650 * DAY])('with a maxAge of %i ms is as the middleware made it', async maxAge => {
    const { browser } = await serve(handlers, { middleware: { cookie: { maxAge } } })
    const one = browser()
    await one.go('/login?user=42')
    const cookie = JSON.parse((await one.go('/cookie')).body)
    expect(cookie).toMatchObject({ originalMaxAge: maxAge, path: '/', httpOnly: true })
    expect(Date.parse(cookie.expires)).toBeGreaterThan(Date.now())
    expect(cookie.left).toBeLessThanOrEqual(maxAge)
  })

  it('with a maxAge beyond all dates has no date', async () => {
    const { store } = makeStore()
    await store.set(SID, { cookie: { originalMaxAge: 9e15 } })
    expect(await store.get(SID)).toEqual({ cookie: { originalMaxAge: 9e15, expires: null } })
  })

  it('that a request changes is kept, also if it changes nothing else', async () => {
    const { browser } = await serve(handlers, { middleware: { cookie: { maxAge: DAY } } })
    const one = browser()
    await one.go('/login?user=42')
    await one.go(`/max-age?ms=${30 * DAY}`)
    expect(JSON.parse((await one.go('/cookie')).body)).toMatchObject({ originalMaxAge: 30 * DAY })
  })

  it('that is over ends the session', async () => {
    const { browser, sessions } = await serve(handlers)
    const one = browser()
    await one.go('/login?user=42')
    await one.go('/max-age?ms=-1')
    await one.go('/write?key=a&value=1')
    const { store } = makeStore()
    await store.set(SID, { cookie: { originalMaxAge: null, expires: new Date(Date.now() + DAY) }, a: 1 })
    expect(await store.get(SID)).toMatchObject({ a: 1 })
    await store.set(SID, { cookie: { originalMaxAge: null, expires: new Date(Date.now() - 1).toISOString() }, a: 1 })
    expect(await store.get(SID)).toBeNull()
    expect(await sessions.count()).toBeLessThanOrEqual(1)
  })

  it('with a date of its own and no maxAge ends the session then', async () => {
    const { store, sessions } = makeStore()
    await store.set(SID, { cookie: { originalMaxAge: null, expires: new Date(Date.now() + DAY) } })
    const session = (await sessions.get(store.idOf(SID)))!
    await sessions.update(session, {
      cookie: { originalMaxAge: null, expires: new Date(Date.now() - 1).toISOString() },
    })
    expect(await store.get(SID)).toBeNull()
    await sessions.update(session, { cookie: { originalMaxAge: null, expires: 'no date' } })
    expect(await store.get(SID)).toMatchObject({ cookie: { expires: 'no date' } })
  })
})

describe('one store', () => {
  it('serves two middlewares of one kind, each with cookies of its own', async () => {
    const made = makeStore()
    const [shop, admin] = [
      await serve(HANDLERS, { middleware: { name: 'shop', cookie: { maxAge: DAY } } }, made),
      await serve(HANDLERS, { middleware: { name: 'admin' } }, made),
    ]
    const [customer, clerk] = [shop.browser(), admin.browser()]
    await customer.go('/login?user=1')
    await clerk.go('/login?user=2')
    await customer.go('/write?key=cart&value=tea')
    await clerk.go('/write?key=page&value=orders')
    expect(JSON.parse((await customer.go('/read')).body)).toEqual({ user: '1', cart: 'tea' })
    expect(JSON.parse((await clerk.go('/read')).body)).toEqual({ user: '2', page: 'orders' })
    await customer.go('/logout')
    expect(await made.sessions.list(1n)).toEqual([])
    expect(await made.sessions.list(2n)).toHaveLength(1)
  })

  it('serves two kinds of middleware, whichever comes first', async () => {
    const pairs = Object.keys(APPS).flatMap((first, _index, names) => names.map(second => [first, second] as const))
    for (const [first, second] of pairs.filter(([one, other]) => one !== other)) {
      const { store, sessions } = makeStore({ userIds: 'string' } as never)
      const apps = [await startApp(first, store), await startApp(second, store)]
      for (const [index, { browser }] of apps.entries()) {
        const one: ConnectBrowser = browser()
        await one.go(`/login?user=user-${index}`)
        await one.go('/write?key=a')
        await one.go('/write?key=b')
        expect((await one.go('/read')).body).toMatchObject({ user: `user-${index}`, a: 'written', b: 'written' })
        await one.go('/logout')
        expect(await sessions.list(`user-${index}` as never)).toEqual([])
      }
      for (const { close } of apps) await close()
    }
  })

  it('of another namespace has other sessions', async () => {
    const { sessions } = makeStore()
    const [one, two] = ['one', 'two'].map(name => connectStore(sessions.namespace(name), { userOf: userOf as never }))
    await one!.set(SID, { cookie: {}, user: '42' })
    expect(await two!.get(SID)).toBeNull()
    expect(await one!.get(SID)).toEqual({ cookie: {}, user: '42' })
    expect(await sessions.namespace('one').list(42n)).toHaveLength(1)
    expect(await sessions.list(42n)).toEqual([])
  })
})
