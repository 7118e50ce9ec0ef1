// What the stores that are published for express-session are asked in their own tests, asked of ours: connect-redis 9
// (set, get, touch, length, all, destroy, clear, an expiry in the past) and connect-pg-simple 10 (an Express application with a
// session for each visitor). IDs are random here, since ours refuses others.
import { fromExpressSession } from 'coatcheck/import'
import { MemoryStore } from 'coatcheck/stores/memory'
import { RedisStore } from 'connect-redis'
import { describe, expect, it } from 'vitest'
import { HANDLERS, makeStore, serve } from './service.ts'

const DAY = 86_400_000
const sids = Array.from({ length: 1003 }, () => crypto.randomUUID())
const cookieUntil = (ms: number) => ({ originalMaxAge: null, expires: new Date(Date.now() + ms) })

describe('what connect-redis is asked', () => {
  it('is answered by promises', async () => {
    const { store } = makeStore()
    const [first, second, third, ...others] = sids as [string, string, string, ...string[]]
    await store.clear()
    const session = { foo: 'bar', cookie: { originalMaxAge: null } }
    await store.set(first, session)
    expect(await store.get(first)).toEqual(session)
    await store.set(second, { cookie: cookieUntil(60_000) })
    const later = cookieUntil(90_000)
    await store.touch(second, { cookie: later })
    expect(await store.get(second)).toEqual({ cookie: { originalMaxAge: null, expires: later.expires.toISOString() } })
    expect(await store.length()).toBe(2)
    expect(await store.all()).toEqual(expect.arrayContaining([session, { cookie: JSON.parse(JSON.stringify(later)) }]))
    await store.destroy(second)
    expect(await store.length()).toBe(1)
    await store.clear()
    expect(await store.length()).toBe(0)
    for (const sid of others) await store.set(sid, { cookie: cookieUntil(1000) })
    expect(await store.length()).toBe(1000)
    await store.clear()
    expect(await store.length()).toBe(0)
    await store.set(third, { cookie: cookieUntil(90_000) })
    expect(await store.length()).toBe(1)
    await store.set(third, { cookie: cookieUntil(-90_000) })
    expect(await store.length()).toBe(0)
  })

  it('is answered by callbacks', async () => {
    const { store } = makeStore()
    const ask = (verb: 'set' | 'get' | 'touch' | 'length' | 'all' | 'destroy' | 'clear', ...args: unknown[]) =>
      new Promise<unknown>((resolve, reject) => {
        ;(store[verb] as any)(...args, (error: unknown, value: unknown) => (error ? reject(error) : resolve(value)))
      })
    const [sid] = sids
    await ask('set', sid, { foo: 'bar', cookie: {} })
    expect(await ask('get', sid)).toMatchObject({ foo: 'bar', cookie: {} })
    expect(JSON.stringify(await ask('get', sid))).toBe('{"foo":"bar","cookie":{}}')
    await ask('touch', sid, { cookie: {} })
    expect(await ask('length')).toBe(1)
    expect(await ask('all')).toEqual([{ foo: 'bar', cookie: {} }])
    await ask('destroy', sid)
    expect(await ask('get', sid)).toBeNull()
    await ask('clear')
  })

  it('has the same methods, but for the IDs, which are not stored', () => {
    const { store } = makeStore()
    const methods = Object.getOwnPropertyNames(RedisStore.prototype).filter(
      name => typeof (store as any)[name] !== 'function',
    )
    expect(methods.sort()).toEqual(['getAllKeys', 'getTTL', 'ids', 'scanIterator'])
  })
})

it('is a store that sessions are imported from, for the step to coatcheck/express-session', async () => {
  const { store } = makeStore()
  await store.set(sids[0]!, { cookie: {}, user: '42' })
  const { data } = (await fromExpressSession({ secret: 's', store }).read(sids[0]!))!
  expect(Object.entries(data)).toEqual([['user', '42']])
})

describe('what connect-pg-simple is asked', () => {
  const middleware = { rolling: true, saveUninitialized: true, cookie: { maxAge: 30 * DAY } }
  const manager = { idleTimeout: '30d', absoluteTimeout: '365d' } as const
  const start = () => serve(HANDLERS, { middleware, manager: { ...manager, store: new MemoryStore() } })

  it('stores one session for a first visit, and tells the browser', async () => {
    const { browser, sessions } = await start()
    expect(await sessions.count()).toBe(0)
    const one = browser()
    await one.go('/read')
    expect(await sessions.count()).toBe(1)
    expect(one.cookies.get('connect.sid')).toMatch(/^s%3A/)
  })

  it('goes on with it for the same browser, and begins another for another', async () => {
    const { browser, sessions } = await start()
    const one = browser()
    await one.go('/read')
    await one.go('/read')
    expect(await sessions.count()).toBe(1)
    await browser().go('/read')
    expect(await sessions.count()).toBe(2)
  })

  it('prolongs it at each visit, and forgets those that are too old', async () => {
    const { browser, sessions, clock } = await start()
    const one = browser()
    await Promise.all([one.go('/read'), browser().go('/read')])
    for (const expected of [2, 1]) {
      clock.now += 18 * DAY
      await sessions.sweep()
      expect(await sessions.count()).toBe(expected)
      await one.go('/read')
    }
    expect(await sessions.count()).toBe(1)
  })
})
