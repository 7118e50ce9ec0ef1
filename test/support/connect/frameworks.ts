// What docs/connect.md promises whichever middleware is in front of the store: asked of Express in test/connect, of the others
// in test/libraries, and of both before real databases.
import { once } from 'node:events'
import { Agent, get } from 'node:http'
import { text } from 'node:stream/consumers'
import { SessionManager, type SessionOptions, type Store } from 'coatcheck'
import { type ConnectStoreOptions, connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { BarrierStore, faults } from '../barrier-store.ts'
import { type ConnectBrowser, type Start, startApp } from './apps.ts'
import { OldConnectStore } from './old-store.ts'

/** `COATCHECK_CONNECT_TRIES=1000` asks as often as the documentation says. */
const TRIES = Number(process.env.COATCHECK_CONNECT_TRIES ?? 4)
const MINUTE = 60_000
const userOf: NonNullable<ConnectStoreOptions<'string'>['userOf']> = ({ user }) => user && { id: user }

interface Setup {
  /** Of the middleware. */
  readonly app?: object
  readonly manager?: Partial<SessionOptions<Record<string, unknown>, 'string'>>
  readonly connect?: ConnectStoreOptions<'string'>
}

/** A node of the service. */
async function nodeOf(start: Start, inner: Store, { app = {}, manager = {}, connect = {} }: Setup = {}) {
  const sessions = new SessionManager<Record<string, unknown>, 'string'>({
    store: inner,
    userIds: 'string',
    sweepInterval: false,
    ...manager,
  })
  const store = connectStore(sessions, { userOf, ...connect })
  const service = await startApp(start, store, app)
  onTestFinished(service.close)
  onTestFinished(() => sessions.close())
  return { sessions, store, ...service }
}
type Service = Awaited<ReturnType<typeof nodeOf>>

let users = 8_000_000

/** A request is under way and its browser logs out; then it writes and answers. Whether a copy of the cookies is logged in. */
async function isRevived({ browser, gates }: Service): Promise<boolean> {
  const user = String(++users)
  const one = browser()
  await one.go(`/login?user=${user}`)
  const [copy, late] = [one.copy(), one.copy()]
  const writing = late.go(`/write?key=a&gate=${user}`)
  await gates.arrived(user)
  await one.go('/logout')
  gates.open(user)
  expect((await writing).body, 'who was logged in when the request began').toBe(user)
  const seen = [await late.go('/read'), await copy.go('/read'), await one.go('/read')]
  return seen.some(({ body }) => body?.user !== undefined)
}

/** Two requests are under way, and each writes a key of its own that is there already. Whether one of the two is lost. */
async function isLost({ browser, gates }: Service): Promise<boolean> {
  const user = String(++users)
  const one = browser()
  await one.go(`/login?user=${user}`)
  for (const key of ['a', 'b']) await one.go(`/write?key=${key}&value=old`)
  const writing = ['a', 'b'].map(key => one.go(`/write?key=${key}&gate=${key} of ${user}`))
  for (const key of ['a', 'b']) await gates.arrived(`${key} of ${user}`)
  for (const key of ['a', 'b']) gates.open(`${key} of ${user}`)
  await Promise.all(writing)
  const { body } = await one.go('/read')
  return body?.user !== user || body.a !== 'written' || body.b !== 'written'
}

/** How many of so many are true, a hundred at once. */
async function countOf(tries: number, ask: () => Promise<boolean>): Promise<number> {
  let found = 0
  for (let left = tries; left > 0; left -= 100)
    found += (await Promise.all(Array.from({ length: Math.min(100, left) }, ask))).filter(Boolean).length
  return found
}

/** What overlaps neither revives a session, nor loses a write, nor logs a user in again. */
export function overlap(start: Start, store: () => Store): void {
  const node = (inner = store()) => nodeOf(start, inner, { manager: { storeTimeout: '30s' } })

  it(
    'revives no session that was logged out, and loses no key of parallel requests',
    async () => {
      const service = await node()
      const revived = await countOf(TRIES, () => isRevived(service))
      expect([revived, await countOf(TRIES, () => isLost(service))]).toEqual([0, 0])
    },
    60_000 + 200 * TRIES,
  )

  /** A browser that is logged in, and a request of its own that waits at a gate. */
  async function underWay(path: string) {
    const service = await node()
    users += 2
    const [user, other] = [String(users - 1), String(users)]
    const one = service.browser()
    await one.go(`/login?user=${user}`)
    const late = one.copy()
    const answer = late.go(`${path}${path.includes('?') ? '&' : '?'}gate=${user}`)
    await service.gates.arrived(user)
    const goOn = () => {
      service.gates.open(user)
      return answer
    }
    const seen = () =>
      Promise.all([late, one, one.copy()].map(async each => (await each.copy().go('/read')).body?.user))
    return { ...service, user, other, one, goOn, seen }
  }

  it.each(['logout', 'invalidateUser', 'another request’s new ID'])(
    'a request that takes a new ID late, after %s, does not log its user in again: ERR_SESSION_UNAUTHENTICATED',
    async end => {
      const { sessions, user, one, goOn, seen } = await underWay('/new-id')
      if (end === 'logout') await one.go('/logout')
      else if (end === 'invalidateUser') await sessions.invalidateUser(user)
      else expect((await one.go('/new-id')).status).toBe(200)
      const before = (await sessions.list(user)).length
      expect((await goOn()).status).toBe(401)
      expect(await sessions.list(user)).toHaveLength(before)
      if (before === 0) expect(await seen()).toEqual([undefined, undefined, undefined])
    },
  )

  it('a request that takes a new ID, and another one, stays logged in as long as its session lived', async () => {
    const { sessions, user, one, goOn } = await underWay('/new-id')
    expect((await goOn()).status).toBe(200)
    expect(await sessions.list(user)).toHaveLength(1)
    await one.go(`/login?user=${user}`)
    expect((await one.go('/new-id-twice')).body).toBe(user)
    expect((await one.go('/read')).body.user).toBe(user)
    expect(await sessions.list(user)).toHaveLength(2)
  })

  it('a login as somebody else goes on, whoever was logged out meanwhile', async () => {
    const { sessions, user, other, goOn } = await underWay(`/new-id?as=${users + 2}`)
    await sessions.invalidateUser(user)
    expect((await goOn()).status).toBe(200)
    expect(await sessions.list(other)).toHaveLength(1)
  })

  it('what a user writes late is not in the session of the next one, who logged in without a new ID', async () => {
    const { sessions, user, other, one, goOn } = await underWay('/write?key=cart&value=secret')
    await one.go(`/login-in-place?user=${other}`)
    await goOn()
    const { body } = await one.go('/read')
    expect([body.user, body.cart]).toEqual([other, undefined])
    expect(await sessions.invalidateUser(user)).toBe(0)
    expect((await one.go('/read')).body.user).toBe(other)
  })

  it('knows the user of a session that was set without a new ID, on each node, and ends it with the others', async () => {
    const inner = store()
    const { sessions, browser } = await node(inner)
    const there = await node(inner)
    const [one, user] = [browser(), String(++users)]
    await one.go('/write?key=cart&value=tea')
    await one.go(`/login-in-place?user=${user}`)
    for (const port of [undefined, there.port])
      expect((await one.go('/read', port)).body).toMatchObject({ user, cart: 'tea' })
    expect(await sessions.list(user)).toMatchObject([{ data: { cart: 'tea' } }])
    expect(await sessions.invalidateUser(user)).toBe(1)
    expect((await one.go('/read')).body?.user).toBeUndefined()
    expect(await sessions.list(user)).toEqual([])
  })
}

/** All that holds in each framework. */
export function inFramework(name: string, start: Start): void {
  overlap(start, () => new MemoryStore())

  it.each([{ rolling: true }, { resave: true }, { saveUninitialized: true }])(
    'neither revives nor loses anything with %o',
    async options => {
      const service = await nodeOf(start, new MemoryStore(), { app: options })
      expect([await isRevived(service), await isLost(service)]).toEqual([false, false])
    },
  )

  it('costs one read, and one write if something changed, though the clock goes on between any two looks at it', async () => {
    let now = Date.now()
    vi.spyOn(Date, 'now').mockImplementation(() => ++now)
    onTestFinished(() => void vi.restoreAllMocks())
    for (const rolling of [false, true]) {
      const store = BarrierStore.over(new MemoryStore())
      const { browser } = await nodeOf(start, store, { app: { rolling, cookie: { maxAge: MINUTE, secure: false } } })
      const one = browser()
      await one.go('/login?user=ada')
      // koa-session keeps the end of a rolling cookie in the data.
      const expected = rolling && name.startsWith('koa') ? ['read', 'update'] : ['read']
      for (const [path, verbs] of [
        ['/read', expected],
        ['/read', expected],
        ['/write?key=a', ['read', 'update']],
      ] as const) {
        store.reset()
        await one.go(path)
        expect(
          store.calls.map(({ verb }) => verb),
          path,
        ).toEqual(verbs)
      }
    }
  })

  it('begins anew at a login: as one whose password was verified just now', async () => {
    const { store, sessions, browser } = await nodeOf(start, new MemoryStore())
    const sids: string[] = []
    const { set } = store
    store.set = (sid, ...args) => {
      sids.push(sid)
      return set.call(store, sid, ...args)
    }
    const one = browser()
    for (const key of ['cart', 'seen']) await one.go(`/write?key=${key}`)
    const copy = one.copy()
    await one.go('/login?user=ada')
    expect((await one.go('/read')).body).toMatchObject({ user: 'ada' })
    expect((await copy.go('/read')).body?.user).toBeUndefined()
    expect(await store.get(sids[0]!)).toBeNull()
    const isLastFresh = async () => sessions.isFresh(await sessions.get(store.idOf(sids.at(-1)!)), '5m')
    expect(await isLastFresh()).toBe(true)
    await browser().go('/login-in-place?user=ada')
    expect(await isLastFresh()).toBe(true)
  })

  it('answers 503 in an outage, and the browser stays logged in', async () => {
    const barrier = BarrierStore.over(new MemoryStore())
    const { browser, sessions } = await nodeOf(start, barrier)
    const one = browser()
    await one.go('/login?user=ada')
    const cookies = new Map(one.cookies)
    for (const [verb, path] of [
      ['read', '/read'],
      ['read', '/write?key=a'],
      ['delete', '/logout'],
    ] as const) {
      barrier.every(verb, faults.rejects)
      expect((await one.go(path)).status).toBe(503)
      expect(one.cookies).toEqual(cookies)
      barrier.every(verb, null)
    }
    expect((await one.go('/read')).body).toMatchObject({ user: 'ada' })
    expect(await sessions.count()).toBe(1)
  })

  it.each([
    ['a stale login', 401],
    ['a limit', 409],
    ['an outage', 503],
    ['an outage from the start', 503],
  ] as const)('answers %s by %i, and the connection takes the next request', async (why, status) => {
    const barrier = BarrierStore.over(new MemoryStore())
    const { port, sessions } = await nodeOf(start, barrier, {
      manager: { limit: { max: 1, onLimit: 'refuse' } },
      connect: { userOf: ({ user }) => user && { id: user, passwordVersion: 1 } },
    })
    if (status === 401) await sessions.invalidateUser('ada', { minPasswordVersion: 2 })
    if (status === 409) await sessions.logIn(null, { user: { id: 'ada', name: '', passwordVersion: 1 } })
    if (why === 'an outage from the start')
      for (const verb of ['read', 'delete', 'create'] as const) barrier.every(verb, faults.rejects)
    if (why === 'an outage')
      barrier.next('create', async () => {
        // What fails next fails elsewhere.
        barrier.every('listUser', faults.rejects)
        throw new Error('down')
      })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    onTestFinished(() => void agent.destroy())
    const go = async (path: string) => {
      const request = get({ port, path, agent })
      const [response] = await once(request, 'response')
      await text(response)
      return [response.statusCode, request.reusedSocket]
    }
    expect(await go('/login?user=ada')).toEqual([status, false])
    expect(await go('/read')).toEqual([200, true])
  })

  it('lets a session be idle as long as its cookie lasts', async () => {
    const clock = { now: 1_800_000_000_000 }
    const maxAge = 20 * MINUTE
    const { browser, sessions } = await nodeOf(start, new MemoryStore(), {
      app: name.startsWith('koa') ? { maxAge } : { cookie: { maxAge, secure: false } },
      manager: { idleTimeout: '60m', now: () => clock.now },
    })
    const one = browser()
    await one.go('/login?user=ada')
    const isIn = async () => (await one.go('/read')).body?.user === 'ada'
    for (let times = 0; times < 3; times += 1) {
      clock.now += 19 * MINUTE
      expect(await isIn()).toBe(true)
    }
    clock.now += 20 * MINUTE
    expect(await isIn()).toBe(false)
    expect(await sessions.list('ada')).toEqual([])
  })

  it('gives userOf the request with the data, a context in Koa', async () => {
    const named: typeof userOf = ({ user }, request) => user && { id: user, name: request.url }
    const { browser, sessions } = await nodeOf(start, new MemoryStore(), { connect: { userOf: named } })
    await browser().go('/login?user=ada')
    expect(await sessions.list('ada')).toMatchObject([{ user: { name: '/login?user=ada' } }])
  })

  it('lets the data have a key of the name that the store uses for itself', async () => {
    const { browser } = await nodeOf(start, new MemoryStore())
    const one = browser()
    await one.go('/login?user=ada')
    // @fastify/session has our mark under this name in its own object: without it the save is refused.
    expect((await one.go('/write?key=~loaded&value=x')).status).toBe(name.startsWith('@fastify') ? 500 : 200)
    await one.go('/write?key=b&value=y')
    expect((await one.go('/read')).body).toMatchObject({ user: 'ada', b: 'y' })
  })

  describe('while sessions of another store move', () => {
    /** Nodes of one service: `old` has the old store alone, `one` and `two` move its sessions, `last` knows it no more. */
    async function deploy() {
      const memory = new MemoryStore()
      const old = new OldConnectStore()
      const moving = { connect: { oldStore: old } }
      const before = await startApp(start, old)
      onTestFinished(before.close)
      const last = await nodeOf(start, memory)
      const nodes = {
        old: before.port,
        one: (await nodeOf(start, memory, moving)).port,
        two: (await nodeOf(start, memory, moving)).port,
        last: last.port,
      }
      const user = async (one: ConnectBrowser, at: keyof typeof nodes) =>
        (await one.go('/read', nodes[at])).body?.user ?? null
      const one = before.browser()
      await one.go('/login?user=42')
      await one.go('/write?key=cart&value=tea')
      return { nodes, user, old, one, sessions: last.sessions }
    }

    it('keeps a browser logged in that comes from the old store, with what that kept', async () => {
      const { nodes, user, old, one, sessions } = await deploy()
      for (const there of ['one', 'two', 'one'] as const) {
        expect(await user(one, there), there).toBe('42')
        await one.go(`/write?key=${there}`, nodes[there])
      }
      expect((await one.go('/read', nodes.last)).body).toMatchObject({ cart: 'tea', one: 'written', two: 'written' })
      expect(await sessions.list('42')).toHaveLength(1)
      expect(old.records.size).toBe(0)
      expect(await user(one.copy(), 'old'), 'an old node sees a user logged out who has moved').toBe(null)
    })

    it.each([true, false])(
      'logs a browser out on each new node, whatever an old node saves late (it had moved: %s)',
      async hasMoved => {
        const { nodes, user, old, one, sessions } = await deploy()
        const [record] = [...old.records]
        if (hasMoved) expect(await user(one, 'one')).toBe('42')
        const copy = one.copy()
        await one.go('/logout', nodes.two)
        expect(old.records.size).toBe(0)
        old.records.set(...record!)
        for (const there of ['one', 'two', 'last', 'one'] as const)
          expect(await user(copy.copy(), there), there).toBe(null)
        expect([await sessions.list('42'), await sessions.count()]).toEqual([[], 0])
      },
    )

    it('lets a login with a new ID end the session that moved', async () => {
      const { nodes, user, old, one } = await deploy()
      const [record] = [...old.records]
      const copy = one.copy()
      await one.go('/login?user=43', nodes.one)
      old.records.set(...record!)
      expect([await user(one, 'two'), await user(copy, 'two')]).toEqual(['43', null])
    })

    it('moves a session once, however many requests come at once', async () => {
      const { nodes, one, sessions } = await deploy()
      const ports = Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? nodes.one : nodes.two))
      const answers = await Promise.all(ports.map(port => one.copy().go('/read', port)))
      expect(new Set(answers.map(({ body }) => body?.user))).toEqual(new Set(['42']))
      expect(await sessions.list('42')).toHaveLength(1)
    })

    it('logs nobody out while the old store is down, and everybody on afterwards', async () => {
      const { nodes, user, old, one } = await deploy()
      old.before = () => Promise.reject(new Error('the old store is down'))
      expect((await one.go('/read', nodes.one)).status).toBeGreaterThanOrEqual(500)
      old.before = () => {}
      expect(await user(one, 'two')).toBe('42')
    })
  })
}
