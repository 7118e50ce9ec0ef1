// What the stores that are published for express-session are asked in their own tests, asked of ours: connect-redis 9
// (set, get, touch, length, all, destroy, clear, an expiry in the past) and connect-pg-simple 10 (an Express application with a
// session for each visitor). IDs are random here, since ours refuses others.
import { SessionManager, type SessionOptions, type Store } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { describe, expect, it } from 'vitest'
import { EXPRESS, startApp } from '../support/connect/apps.ts'

const DAY = 86_400_000
const cookieUntil = (ms: number) => ({ originalMaxAge: null, expires: new Date(Date.now() + ms) })

/** `open` may answer the same store each time: what is in it is ended. */
export function askWhatPublishedStoresAreAsked(open: () => Store): void {
  async function make(options: Partial<SessionOptions> = {}) {
    const clock = { ahead: 0 }
    const now = () => Date.now() + clock.ahead
    const sessions = new SessionManager({ store: open(), now, storeTimeout: '30s', sweepInterval: false, ...options })
    const store = connectStore(sessions)
    await store.clear()
    return { sessions, store, clock }
  }

  it('answers what connect-redis is asked, by promises', async () => {
    const { store } = await make()
    const [first, second, third, ...others] = Array.from({ length: 603 }, () => crypto.randomUUID()) as [
      ...[string, string, string],
      ...string[],
    ]
    const session = { foo: 'bar', cookie: { originalMaxAge: null } }
    await store.set(first, session)
    expect(await store.get(first)).toEqual(session)
    await store.set(second, { cookie: cookieUntil(60_000) })
    const later = cookieUntil(90_000)
    await store.touch(second, { cookie: later })
    expect(await store.get(second)).toEqual({ cookie: { originalMaxAge: null, expires: later.expires.toISOString() } })
    expect(await store.length()).toBe(2)
    const all = await store.all()
    expect(all).toEqual(expect.arrayContaining([session, { cookie: JSON.parse(JSON.stringify(later)) }]))
    expect(all.some(Object.isFrozen), 'the caller may write into them').toBe(false)
    await store.destroy(second)
    expect(await store.length()).toBe(1)
    await store.clear()
    expect(await store.length()).toBe(0)
    await Promise.all(others.map(sid => store.set(sid, { cookie: cookieUntil(90_000) })))
    expect(await store.length()).toBe(600)
    await store.clear()
    expect(await store.length()).toBe(0)
    await store.set(third, { cookie: cookieUntil(90_000) })
    expect(await store.length()).toBe(1)
    await store.set(third, { cookie: cookieUntil(-90_000) })
    expect(await store.length()).toBe(0)
  })

  it('answers what connect-redis is asked, by callbacks', async () => {
    const { store } = await make()
    const ask = (verb: 'set' | 'get' | 'touch' | 'length' | 'all' | 'destroy' | 'clear', ...args: unknown[]) =>
      new Promise<unknown>((resolve, reject) => {
        ;(store[verb] as any)(...args, (error: unknown, value: unknown) => (error ? reject(error) : resolve(value)))
      })
    const sid = crypto.randomUUID()
    await ask('set', sid, { foo: 'bar', cookie: {} })
    expect(await ask('get', sid)).toMatchObject({ foo: 'bar', cookie: {} })
    expect(JSON.stringify(await ask('get', sid))).toBe('{"foo":"bar","cookie":{}}')
    await ask('touch', sid, { cookie: {} })
    expect(await ask('length')).toBe(1)
    expect(await ask('all')).toEqual([{ foo: 'bar', cookie: {} }])
    await ask('destroy', sid)
    expect(await ask('get', sid)).toBeNull()
  })

  describe('answers what connect-pg-simple is asked: a session', () => {
    async function serve() {
      const made = await make({ idleTimeout: '30d', absoluteTimeout: '365d' })
      const options = { rolling: true, saveUninitialized: true, cookie: { maxAge: 30 * DAY } }
      return { ...made, ...(await startApp(EXPRESS.start, made.store, options)) }
    }

    it('is stored at a first visit, goes on for that browser, and is another one for another', async () => {
      const { browser, sessions, close } = await serve()
      expect(await sessions.count()).toBe(0)
      const one = browser()
      await one.go('/read')
      expect(await sessions.count()).toBe(1)
      expect(one.cookies.get('connect.sid')).toMatch(/^s%3A/)
      await one.go('/read')
      expect(await sessions.count()).toBe(1)
      await browser().go('/read')
      expect(await sessions.count()).toBe(2)
      await close()
    })

    it('is prolonged at each visit, and forgotten if it is too old', async () => {
      const { browser, sessions, clock, close } = await serve()
      const one = browser()
      await Promise.all([one.go('/read'), browser().go('/read')])
      for (const expected of [2, 1]) {
        clock.ahead += 18 * DAY
        await sessions.sweep()
        expect(await sessions.count()).toBe(expected)
        await one.go('/read')
      }
      expect(await sessions.count()).toBe(1)
      await close()
    })
  })
}
