// What applications and middleware give that nobody would recommend.
import { createHash } from 'node:crypto'
import { SessionManager } from 'coatcheck'
import { type ConnectStore, connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { makeStore, serve, sidOf } from './service.ts'

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
  const set = (store: ConnectStore, sid: string) => store.set(sid, { cookie: {} })

  it('that is short is refused, with the reason and without the ID', async () => {
    const { store, calls } = makeStore()
    const error = await set(store, 'abc123').catch(String)
    expect(error).toBe(
      'TypeError: genid: expected a random ID of at least 20 characters, got one of 6: anyone who guesses a session ID takes over the session',
    )
    expect(calls).toEqual([])
  })

  it.each([
    ['counts', (n: number) => String(n).padStart(32, '0')],
    ['tells the time', (n: number) => `session-${1_800_000_000_000 + n}-x`],
  ])('that %s is refused', async (_, next) => {
    const { store } = makeStore()
    await set(store, next(1))
    await expect(set(store, next(2))).rejects.toThrow('got two that differ in 1 characters')
  })

  it('that begins with the time and goes on at random is taken, such as a UUID of version 7 each in one millisecond', async () => {
    const { store } = makeStore()
    for (let n = 0; n < 500; n += 1) {
      // A counter and 42 random bits, as the package uuid makes them.
      const random = createHash('sha256').update(String(n)).digest('hex')
      const counter = (0x7000 + n).toString(16)
      await set(store, `0190a1b2-c3d4-7a51-${counter}-1${random.slice(0, 11)}`)
    }
    expect(await store.length()).toBe(500)
  })

  it('that another session has is refused: nobody gets that session', async () => {
    const { browser, errors, sessions } = await serve({}, { middleware: { genid: () => SID } })
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
  const cyclic: Record<string, unknown> = { cookie: {} }
  cyclic.self = cyclic
  it.each([
    ['a cycle', () => cyclic],
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

  it('is what JSON.stringify makes of it, as with any store of express-session', async () => {
    const { store } = makeStore()
    const odd = { at: new Date(0), no: undefined, not: Number.NaN, f: () => 1, own: { toJSON: () => 'own' } }
    const data = { cookie: {}, ...odd }
    await store.set(SID, data)
    expect(await store.get(SID)).toEqual(JSON.parse(JSON.stringify(data)))
  })

  it('without a cookie gets that of the middleware', async () => {
    const { browser, sessions, store } = await serve(
      {},
      {
        middleware: { rolling: true, cookie: { maxAge: DAY, sameSite: 'lax' } },
      },
    )
    for (const cookie of [undefined, null, 'text', {}]) {
      const one = browser()
      const sid = (await one.go('/write?key=a&value=1')).body
      await sessions.update((await sessions.get(store.idOf(sid)))!, { cookie })
      const reply = await one.go('/read')
      expect(reply.body).toEqual({ a: '1' })
      expect(reply.cookies[0]).toContain('; Path=/; ')
      expect(reply.cookies[0]).toContain('; HttpOnly')
      await one.go('/write?key=b&value=2')
      expect(await one.read()).toEqual({ a: '1', b: '2' })
    }
  })
})
