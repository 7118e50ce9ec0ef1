// The libraries as they are on npm, with our store: what overlaps neither revives a session nor loses a write.
import { EventEmitter } from 'node:events'
import { SessionManager } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import expressSession from 'express-session'
import { afterEach, describe, expect, it } from 'vitest'
import { APPS, countLost, countRevived, startApp } from './apps.ts'

/** `COATCHECK_CONNECT_TRIES=1000` asks as often as the documentation says. */
const TRIES = Number(process.env.COATCHECK_CONNECT_TRIES ?? 20)

const open: (() => unknown)[] = []
afterEach(async () => {
  while (open.length > 0) await open.pop()!()
})

describe.each(Object.keys(APPS))('%s', name => {
  async function start(options?: object) {
    const sessions = new SessionManager({ store: new MemoryStore() })
    const store = connectStore(sessions, { userOf: ({ user }) => (user === undefined ? null : { id: user }) })
    const service = await startApp(name, store, options)
    open.push(service.close, () => sessions.close())
    return { sessions, store, ...service }
  }

  it('does both with a store that keeps what it is given: so the counts can fail', async () => {
    const kept = new Map<string, unknown>()
    const callback = (args: unknown[], error: null, value?: unknown) => {
      const last = args.at(-1)
      if (typeof last === 'function') last(error, value)
      return Promise.resolve(value)
    }
    const store = Object.assign(new EventEmitter(), expressSession.Store.prototype, {
      get: (sid: string, ...args: unknown[]) => callback(args, null, JSON.parse(String(kept.get(sid) ?? 'null'))),
      set: (sid: string, session: unknown, ...args: unknown[]) =>
        callback([kept.set(sid, JSON.stringify(session)), ...args], null),
      destroy: (sid: string, ...args: unknown[]) => callback([kept.delete(sid), ...args], null),
    })
    const service = await startApp(name, store)
    open.push(service.close)
    expect([await countRevived(service, 3), await countLost(service, 3)]).toEqual([3, 3])
  })

  it('revives no session that was logged out', async () => {
    expect(await countRevived(await start(), TRIES)).toBe(0)
  })

  it('loses no key of parallel requests', async () => {
    expect(await countLost(await start(), TRIES)).toBe(0)
  })

  it.each([{ rolling: true }, { resave: true }, { saveUninitialized: true }])('does so with %o', async options => {
    const service = await start(options)
    expect([await countRevived(service, TRIES / 4), await countLost(service, TRIES / 4)]).toEqual([0, 0])
  })
})

describe('express-session with the store that it brings along, as docs/connect.md tells', () => {
  const NAME = 'express-session 1.19, Express 5'
  /** A request of user 1 waits before it writes; another of this browser comes, then it goes on. */
  async function late(path: string, meanwhile: string) {
    const service = await startApp(NAME, new expressSession.MemoryStore())
    open.push(service.close)
    const browser = service.browser()
    await browser.go('/login?user=1')
    const [under, old] = [browser.copy(), browser.copy()]
    const writing = under.go(`${path}gate=late`)
    await service.gates.arrived('late')
    await browser.go(meanwhile)
    service.gates.open('late')
    await writing
    const userOf = async (each: typeof browser) => (await each.go('/read')).body.user
    return { browser: await userOf(browser), under: await userOf(under), old: await userOf(old) }
  }

  it('logs a user in again by a late new ID', async () => {
    expect(await late('/new-id?', '/logout')).toEqual({ browser: undefined, under: '1', old: undefined })
  })

  it('keeps a late save under the old ID, which lives again, or in the place of the next user', async () => {
    expect(await late('/write?key=a&', '/login?user=2')).toEqual({ browser: '2', under: '1', old: '1' })
    expect((await late('/write?key=a&', '/login-in-place?user=2')).browser).toBe('1')
  })
})
