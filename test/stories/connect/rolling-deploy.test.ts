// Nodes with the old store beside nodes with ours: a browser meets them in turn.
import { callbackify } from 'node:util'
import { SessionManager } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import expressSession from 'express-session'
import { afterEach, describe, expect, it } from 'vitest'
import { APPS, type ConnectBrowser, startApp } from '../../support/connect-apps.ts'
import { makeStore, sidOf, userOf } from './service.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  while (open.length > 0) await open.pop()!()
})

/** A store of koa-session: three functions that answer promises. */
function promisedStore() {
  const kept = new Map<string, string>()
  return {
    get: async (sid: string) => JSON.parse(kept.get(sid) ?? 'null'),
    set: async (sid: string, session: unknown) => void kept.set(sid, JSON.stringify(session)),
    destroy: async (sid: string) => void kept.delete(sid),
  }
}

describe.each(Object.keys(APPS))('%s', name => {
  /** Nodes of one service: `old` has the old store, `both` has both, `last` has ours alone. */
  async function deploy() {
    const memory = new MemoryStore()
    const isKoa = name.startsWith('koa')
    const old = isKoa ? promisedStore() : new expressSession.MemoryStore()
    const oldStore = isKoa
      ? Object.fromEntries(Object.entries(old).map(([verb, run]) => [verb, callbackify(run as () => Promise<unknown>)]))
      : old
    const node = async (kind: 'old' | 'both' | 'last') => {
      const sessions = new SessionManager({ store: memory, sweepInterval: false })
      const store =
        kind === 'old'
          ? old
          : connectStore(sessions, { userOf: userOf as never, ...(kind === 'both' && { oldStore: oldStore as never }) })
      const { close, browser, port } = await startApp(name, store)
      open.push(close)
      return { port, browser, sessions }
    }
    const nodes = {
      old: await node('old'),
      both: await node('both'),
      second: await node('both'),
      last: await node('last'),
    }
    const user = async (one: ConnectBrowser, at: keyof typeof nodes) =>
      (await one.go('/read', nodes[at].port)).body?.user ?? null
    return { nodes, user }
  }

  it('keeps a browser logged in on every node with the old store, and on those with both', async () => {
    const { nodes, user } = await deploy()
    for (const at of ['old', 'both'] as const) {
      const one = nodes.old.browser()
      await one.go('/login?user=42', nodes[at].port)
      for (const there of ['both', 'old', 'second', 'both', 'old', 'last'] as const) {
        expect(await user(one, there), `${at}, then ${there}`).toBe('42')
        if (there !== 'last') await one.go(`/write?key=${there}`, nodes[there].port)
      }
      expect((await one.go('/read', nodes.both.port)).body).toMatchObject({
        both: 'written',
        old: 'written',
        second: 'written',
      })
    }
    expect(await nodes.last.sessions.list(42n)).toHaveLength(2)
  })

  it('logs a browser out on all of them, whichever it asks', async () => {
    for (const at of ['old', 'both', 'last'] as const) {
      const { nodes, user } = await deploy()
      const one = nodes.old.browser()
      await one.go('/login?user=42', nodes.old.port)
      for (const there of ['both', 'second', 'last'] as const) expect(await user(one, there)).toBe('42')
      const copy = one.copy()
      await one.go('/logout', nodes[at].port)
      for (const there of ['both', 'second', 'last', 'both'] as const)
        expect(await user(copy.copy(), there), `${at}, then ${there}`).toBe(null)
      if (at === 'both') expect(await user(copy, 'old')).toBe(null)
      expect(await nodes.last.sessions.list(42n)).toEqual([])
    }
  })

  it('logs a browser out that began on the last kind of node and met one with both', async () => {
    const { nodes, user } = await deploy()
    const one = nodes.old.browser()
    await one.go('/login?user=42', nodes.last.port)
    await one.go('/write?key=a', nodes.both.port)
    expect(await user(one, 'second')).toBe('42')
    const copy = one.copy()
    await one.go('/logout', nodes.last.port)
    expect(await user(copy.copy(), 'both')).toBe(null)
    expect(await user(copy.copy(), 'second')).toBe(null)
  })

  it('imports a session once, however many requests come at once', async () => {
    const { nodes } = await deploy()
    const one = nodes.old.browser()
    await one.go('/login?user=42', nodes.old.port)
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => one.copy().go('/read', nodes[index % 2 === 0 ? 'both' : 'second'].port)),
    )
    expect(new Set(answers.map(({ body }) => body?.user))).toEqual(new Set(['42']))
    expect(await nodes.last.sessions.list(42n)).toHaveLength(1)
  })
})

describe('a session of the old store', () => {
  const SID = sidOf('an old session')
  const old = () => {
    const store = new expressSession.MemoryStore()
    const made = makeStore({}, { userOf, oldStore: store as never })
    return { ...made, old: store }
  }

  it('does not count as one whose password was just verified', async () => {
    const { store, sessions, old: before } = old()
    before.set(SID, { cookie: { originalMaxAge: null }, user: '42' } as never)
    expect(await store.get(SID)).toMatchObject({ user: '42' })
    expect(sessions.isFresh(await sessions.get(store.idOf(SID)), '5m')).toBe(false)
  })

  it('is prolonged in the old store by each request, if that store can', async () => {
    const { store, old: before } = old()
    const touched: unknown[] = []
    before.set(SID, { cookie: { originalMaxAge: 60_000 }, user: '42' } as never)
    const touch = async () => store.touch(SID, await store.get(SID))
    before.touch = (sid, { user }: any, callback) => {
      touched.push([sid, user])
      callback!()
    }
    await touch()
    expect(touched).toEqual([[SID, '42']])
    before.touch = undefined as never
    await touch()
  })

  it('is an error while the old store fails, and not absent', async () => {
    const { store, old: before } = old()
    before.get = (_sid, callback) => callback(new Error('the old store is down'))
    await expect(store.get(SID)).rejects.toThrow('the old store is down')
  })

  it('needs a whole store', () => {
    const { sessions } = makeStore()
    expect(() => connectStore(sessions, { oldStore: {} as never })).toThrow(
      'oldStore: expected a store with get, set and destroy',
    )
  })
})
