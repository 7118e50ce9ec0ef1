// Three nodes of one service while sessions move: the requests of one node are stopped before each call that they make of
// either store, or the old store fails at it; another node, or an old one, answers a whole request in between, and the old
// node saves late. `npm run proof -- orders` walks through all orders of the calls.
import { SessionManager, type Store } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { APPS, type ConnectBrowser, startApp } from './apps.ts'
import { OldConnectStore } from './old-store.ts'
import { userOf } from './service.ts'

/** Before the calls that one node makes: the next one but so many waits, or fails. */
class Stops {
  #left = Number.POSITIVE_INFINITY
  #act: () => unknown = () => {}
  #isOfOld = false
  arm(skipped: number, act: () => unknown, isOfOld = false): void {
    this.#left = skipped
    this.#act = act
    this.#isOfOld = isOfOld
  }
  disarm(): void {
    this.#left = Number.POSITIVE_INFINITY
  }
  async pass(isOld: boolean): Promise<void> {
    if (this.#isOfOld && !isOld) return
    this.#left -= 1
    if (this.#left === -1) await this.#act()
  }
}

const stoppable = <T extends object>(inner: T, verbs: readonly (keyof T)[], stops: Stops): T =>
  Object.assign(
    Object.create(inner),
    Object.fromEntries(
      verbs.map(verb => [
        verb,
        async (...args: unknown[]) => {
          await stops.pass(false)
          return (inner[verb] as (...args: unknown[]) => unknown).apply(inner, args)
        },
      ]),
    ),
  )

const REFUSED = 'refused'
type Act = { readonly at: 'old' | 'new'; go(one: ConnectBrowser, port: number, user: string): Promise<unknown> }
const ok = async (asked: Promise<{ status: number; body: any }>) => {
  const { status, body } = await asked
  if (status !== 200) throw new Error(`status ${status}`)
  return body
}
const ACTS = {
  looks: { at: 'new', go: async (one, port) => (await ok(one.go('/read', port)))?.user ?? null },
  'writes a': { at: 'new', go: (one, port) => ok(one.go('/write?key=a', port)) },
  'writes b': { at: 'new', go: (one, port) => ok(one.go('/write?key=b', port)) },
  'logs out': { at: 'new', go: (one, port) => ok(one.go('/logout', port)) },
  // As the same user: refused if another request has ended the session meanwhile.
  'gets a new ID': {
    at: 'new',
    go: async (one, port, user) => {
      const asked = await one.go(`/login?user=${user}`, port)
      return asked.status === 401 ? REFUSED : ok(Promise.resolve(asked))
    },
  },
  'looks at an old node': { at: 'old', go: (one, port) => ok(one.go('/read', port)) },
  'logs out at an old node': { at: 'old', go: (one, port) => ok(one.go('/logout', port)) },
} satisfies Record<string, Act>
type Name = keyof typeof ACTS
const ENDS: readonly Name[] = ['logs out', 'gets a new ID']
const FIRST = ['looks', 'writes a', 'logs out', 'gets a new ID'] as const

let users = 0

/** express-session 1.18 makes the same calls as 1.19. */
const FRAMEWORKS = Object.keys(APPS).filter(name => !name.startsWith('express-session 1.18'))

describe.each(FRAMEWORKS)('%s', name => {
  const memory = new MemoryStore()
  const old = new OldConnectStore()
  const stops = new Stops()
  const sessions = new SessionManager({ store: memory, sweepInterval: false })
  const nodes: Record<'old' | 'one' | 'two' | 'three', number> = { old: 0, one: 0, two: 0, three: 0 }
  const closing: (() => unknown)[] = []
  let browser: () => ConnectBrowser

  async function start(store: unknown): Promise<number> {
    const app = await startApp(name, store)
    closing.push(app.close)
    browser = app.browser
    return app.port
  }
  function moving(store: Store, oldStore: OldConnectStore): Promise<number> {
    const manager = new SessionManager({ store, sweepInterval: false })
    return start(connectStore(manager, { userOf: userOf as never, oldStore }))
  }
  beforeAll(async () => {
    nodes.old = await start(old)
    const verbs = ['create', 'read', 'update', 'touch', 'replace', 'delete'] as const
    const stopped = stoppable<MemoryStore>(memory, verbs, stops)
    // The old store calls back: it is stopped before it begins.
    const stoppedOld = new OldConnectStore()
    stoppedOld.get = (sid: string, callback?: unknown) =>
      void stops.pass(true).then(() => old.get(sid, callback), callback as never)
    stoppedOld.destroy = (sid: string, callback?: unknown) =>
      void stops.pass(true).then(() => old.destroy(sid, callback), callback as never)
    nodes.one = await moving(stopped, stoppedOld)
    nodes.two = await moving(memory, old)
    nodes.three = await moving(memory, old)
  })
  afterAll(async () => {
    for (const close of closing) await close()
  })

  /** A browser that has logged in at the old service, and what that has of it. */
  async function login() {
    users += 1
    old.records.clear()
    const one = browser()
    await one.go(`/login?user=${users}`, nodes.old)
    return { one, user: `${users}`, record: [...old.records][0]! }
  }
  const run = (act: Name, one: ConnectBrowser, port: number, user: string): Promise<unknown> =>
    ACTS[act].go(one.copy(), ACTS[act].at === 'old' ? nodes.old : port, user)
  const look = async (one: ConnectBrowser, at: 'two' | 'three' | 'one'): Promise<any> =>
    (await one.copy().go('/read', nodes[at])).body ?? {}

  /** What the acknowledged acts promise. */
  async function judge(
    where: string,
    acts: readonly Name[],
    { one, user, record }: Awaited<ReturnType<typeof login>>,
    isOut = acts.some(act => ENDS.includes(act)),
    refused = 0,
  ): Promise<void> {
    if (isOut) {
      expect((await look(one, 'two')).user, `${where}: logged in again`).toBeUndefined()
      // An old node that had the session saves it late.
      if (!acts.includes('logs out at an old node')) old.records.set(...record)
    }
    for (const at of ['two', 'one', 'three'] as const) {
      const found = await look(one, at)
      expect(found.user, `${where}, at ${at}`).toBe(isOut ? undefined : user)
      for (const key of ['a', 'b'])
        if (!isOut && acts.includes(`writes ${key}` as Name))
          expect(found[key], `${where}: a change is lost`).toBe('written')
    }
    const stored = await sessions.list(BigInt(user))
    const hasNew = acts.filter(act => act === 'gets a new ID').length
    expect(stored.length, where).toBe((isOut ? 0 : 1) + hasNew - refused)
  }

  it.each(FIRST)('one that %s, stopped before each call, beside whole requests of other nodes', async first => {
    for (const second of Object.keys(ACTS) as Name[]) {
      for (let stop = 0, isStopped = true; isStopped; stop += 1) {
        const where = `${first}, ${second}, stop ${stop}`
        const made = await login()
        let reach = () => {}
        let resume = () => {}
        const reached = new Promise<boolean>(resolve => {
          reach = () => resolve(true)
        })
        stops.arm(stop, () => {
          reach()
          return new Promise<void>(resolve => {
            resume = resolve
          })
        })
        const running = run(first, made.one, nodes.one, made.user)
        isStopped = await Promise.race([reached, running.then(() => false)])
        const seen = await run(second, made.one, nodes.two, made.user)
        const hasMoved = (await sessions.list(BigInt(made.user))).length > 0
        if (ENDS.includes(second)) expect((await look(made.one, 'three')).user, `${where}, at once`).toBeUndefined()
        resume()
        const alsoSeen = await running
        stops.disarm()
        const acts = [first, second]
        const refused = [seen, alsoSeen].filter(each => each === REFUSED).length
        // One of those that end it was first.
        const isEnded = second === 'logs out at an old node' || (ENDS.includes(first) && ENDS.includes(second))
        expect(refused, where).toBeLessThanOrEqual(isEnded ? 1 : 0)
        if (second === 'logs out at an old node' && !ENDS.includes(first)) {
          // Once it has moved, a logout there may come too late.
          await judge(where, acts, made, !hasMoved || (await look(made.one, 'three')).user === undefined)
          continue
        }
        if (!acts.some(act => ENDS.includes(act)))
          for (const each of second === 'looks at an old node' ? [alsoSeen] : [seen, alsoSeen])
            expect(each, `${where}: logged out by the move`).toBe(made.user)
        await judge(where, acts, made, undefined, refused)
      }
    }
  })

  it.each(FIRST)('one that %s while the old store fails at each call', async first => {
    for (let at = 0, hasFailed = true; hasFailed; at += 1) {
      const where = `${first}, fails at ${at}`
      const made = await login()
      hasFailed = false
      stops.arm(
        at,
        () => {
          hasFailed = true
          throw new Error('ECONNRESET')
        },
        true,
      )
      const done: Name[] = []
      const attempt = () => run(first, made.one, nodes.one, made.user).then(() => done.push(first))
      await attempt().catch(() => {})
      stops.disarm()
      if (done.length === 0 && ENDS.includes(first)) {
        // Nothing was promised; a repeated logout is acknowledged.
        await attempt()
      }
      if (first === 'gets a new ID') {
        expect((await look(made.one, 'two')).user, where).toBeUndefined()
        continue
      }
      await judge(where, done, made)
    }
  })
})
