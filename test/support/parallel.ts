// Two parallel requests of one browser, in every order of their store calls and of the moments when their heads are
// written. The browser's jar applies Set-Cookie in the order of the heads. What must hold in the end: the browser has the
// session of the login, no logout that was acknowledged is undone, and nothing lives that nobody holds.
import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import type { SessionId, SessionManager, SessionOptions, Store, Visit } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { it } from 'vitest'
import { barrierManagers } from './barrier-managers.ts'
import { type BarrierStore, VERBS, type Verb } from './barrier-store.ts'
import { newUser } from './guarantee-kit.ts'
import { onlyHost } from './only-host.ts'
import { HOUR, MINUTE, type TestClock } from './test-clock.ts'

type Data = Record<string, unknown>
export type AnyVisit = Visit<Data, 'bigint', Data>
export type Manager = SessionManager<Data>

const turn = () => new Promise<void>(resolve => setImmediate(resolve))

/** The cookies of one browser. */
export class Jar {
  readonly cookies = new Map<string, string>()

  apply(setCookies: readonly string[]): void {
    for (const line of setCookies) {
      const [pair = '', ...attributes] = line.split('; ')
      const at = pair.indexOf('=')
      if (attributes.some(each => each === 'Max-Age=0')) this.cookies.delete(pair.slice(0, at))
      else this.cookies.set(pair.slice(0, at), pair.slice(at + 1))
    }
  }

  get header(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  }
}

export interface Scene {
  readonly sessions: Manager
  /** Another process on the same store. */
  readonly other: Manager
  readonly store: BarrierStore
  readonly clock: TestClock
  readonly jar: Jar
  readonly events: { type: string }[]
  readonly ada: { id: bigint; name: string }
  readonly max: { id: bigint; name: string }
  /** A request with the cookies of the jar, or with these. */
  visit(cookie?: string, request?: { canSend?: () => boolean }): AnyVisit
}

export type Outcome = PromiseSettledResult<any>
export type Step = (visit: AnyVisit, scene: Scene) => Promise<unknown>

async function openScene(open: () => Store | Promise<Store>, options: Partial<SessionOptions<Data, 'bigint', Data>>) {
  const at = barrierManagers(await open(), { rememberFor: '30d', storeTimeout: '20s', ...options })
  const jar = new Jar()
  const visit: Scene['visit'] = (cookie = jar.header, request = {}) =>
    openVisit(at.sessions, { method: 'POST', secure: true, header: onlyHost, cookie, ...request })
  const [ada, max] = ['ada', 'max'].map(name => ({ id: newUser(), name })) as [Scene['ada'], Scene['max']]
  return { ...at, other: at.manager(), jar, ada, max, visit }
}

/** Sends a request whose answer the browser takes. */
export async function send(scene: Scene, step: (visit: AnyVisit, scene: Scene) => unknown): Promise<void> {
  const visit = scene.visit()
  await step(visit, scene)
  scene.jar.apply(visit.finish().headers.getSetCookie())
}

/** Answers `choose` from a list of earlier answers, and counts on from there: a depth-first walk through all of them. */
function* allChoices(limit: number): Generator<(options: number) => number> {
  let path: { choice: number; options: number }[] = []
  for (let runs = 0; runs < limit; runs += 1) {
    let at = 0
    const taken: typeof path = []
    yield options => {
      const choice = Math.min(path[at]?.choice ?? 0, options - 1)
      at += 1
      taken.push({ choice, options })
      return choice
    }
    while (taken.length > 0 && taken.at(-1)!.choice + 1 >= taken.at(-1)!.options) taken.pop()
    const last = taken.pop()
    if (last === undefined) return
    path = [...taken, { ...last, choice: last.choice + 1 }]
  }
}

/** Random answers, the same for the same seed. */
function* someChoices(count: number, seed: number): Generator<(options: number) => number> {
  let state = seed | 0
  for (let runs = 0; runs < count; runs += 1)
    yield options => {
      state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5) | 0
      return ((state ^ (state >>> 12)) >>> 0) % options
    }
}

export interface Ending {
  readonly scene: Scene
  readonly outcomes: readonly Outcome[]
  /** Which request's head was written when: indices. */
  readonly heads: readonly number[]
  /** What happened, in order, for the message of a failure. */
  readonly trace: string
  /** Keys of the live sessions, and of the live series, that were made in this scene. */
  readonly live: readonly string[]
  readonly series: readonly string[]
  /** The live session that the browser's cookie leads to. */
  readonly held: Awaited<ReturnType<Manager['get']>>
}

export interface Plan {
  readonly open: () => Store | Promise<Store>
  /** Every order, at most so many; or so many random ones. */
  readonly orders: { readonly all: number } | { readonly random: number; readonly seed: number }
  readonly options?: Partial<SessionOptions<Data, 'bigint', Data>>
  /** Fills the jar. */
  readonly prepare: (scene: Scene) => Promise<void>
  readonly requests: readonly Step[]
  /** Whether the steps are of one request, whose only head is written last. */
  readonly inOneVisit?: boolean
}

const whose = new AsyncLocalStorage<number>()

/** Runs the plan in its orders and hands each end to `check`; answers how many orders there were. */
export async function inEveryOrder(plan: Plan, check: (ending: Ending) => Promise<void>): Promise<number> {
  const { orders } = plan
  let count = 0
  for (const choose of 'all' in orders ? allChoices(orders.all) : someChoices(orders.random, orders.seed)) {
    count += 1
    await check(await runOnce(plan, choose))
  }
  return count
}

async function runOnce(plan: Plan, choose: (options: number) => number): Promise<Ending> {
  const scene = await openScene(plan.open, plan.options ?? {})
  await plan.prepare(scene)
  const made = new Set<string>()
  const note = () => {
    for (const { verb, args } of scene.store.calls)
      if (verb === 'create') made.add(args[0].key)
      else if (verb === 'replace') made.add(args[2].key)
  }
  const trace: string[] = []
  const waiting: { request: number; verb: Verb | 'start'; go: () => Promise<void> }[] = []
  for (const verb of VERBS)
    scene.store.every(
      verb,
      proceed =>
        new Promise((resolve, reject) => {
          const go = () => proceed().then(resolve, reject)
          waiting.push({ request: whose.getStore() ?? 0, verb, go })
        }),
    )

  const shared = plan.inOneVisit ? scene.visit() : null
  const visits = plan.requests.map(() => shared ?? scene.visit())
  const outcomes: Outcome[] = []
  let open = plan.requests.length
  const unwritten = new Set<number>()
  for (const [index, request] of plan.requests.entries())
    whose.run(index, () => {
      // Its handler may begin late, with the cookies that the browser had when it was sent.
      const start = new Promise<void>(resolve =>
        waiting.push({ request: index, verb: 'start', go: async () => resolve() }),
      )
      start
        .then(() => request(visits[index]!, scene))
        .then(
          value => ({ status: 'fulfilled', value }) as const,
          (reason: unknown) => ({ status: 'rejected', reason }) as const,
        )
        .then(outcome => {
          outcomes[index] = outcome
          open -= 1
          if (!plan.inOneVisit) unwritten.add(index)
          else if (open === 0) unwritten.add(0)
        })
    })

  const heads: number[] = []
  for (let idle = 0; open > 0 || unwritten.size > 0 || waiting.length > 0; ) {
    await turn()
    // One call of each request may go on (those of one request keep their order), or a head may be written.
    const first = new Map<number, (typeof waiting)[number]>()
    for (const call of waiting) if (!first.has(call.request)) first.set(call.request, call)
    const steps = [...first.values(), ...unwritten]
    if (steps.length === 0) {
      idle += 1
      assert.ok(idle < 5000, `nothing goes on any more: ${trace}`)
      if (idle > 2) await new Promise(resolve => setTimeout(resolve, 1))
      continue
    }
    idle = 0
    const step = steps[choose(steps.length)]!
    if (typeof step === 'number') {
      unwritten.delete(step)
      heads.push(step)
      trace.push(`${step}: head`)
      scene.jar.apply(visits[step]!.headers.getSetCookie())
    } else {
      waiting.splice(waiting.indexOf(step), 1)
      trace.push(`${step.request}: ${step.verb}`)
      await step.go()
    }
  }
  // What a head set off may still be under way.
  for (let quiet = 0; quiet < 3; quiet += 1) {
    await turn()
    if (waiting.length === 0) continue
    quiet = 0
    await waiting.shift()!.go()
  }
  for (const verb of VERBS) scene.store.every(verb, null)
  note()
  const now = scene.clock()
  const live: string[] = []
  const series: string[] = []
  for (const key of made) {
    const found = await scene.store.inner.read(key, { now })
    if (found !== null && 'kind' in found) (found.kind === 'session' ? live : series).push(key)
  }
  const held = await scene.sessions.get((scene.jar.cookies.get('session_id') ?? null) as SessionId | null, {
    touch: false,
  })
  return { scene, outcomes, heads, trace: trace.join(', '), live, series, held }
}

export const prepared: Record<string, (scene: Scene) => Promise<void>> = {
  'an anonymous session': scene => send(scene, visit => visit.create({ data: { cart: 'tea' } })),
  'an anonymous session whose cookie is due again': async scene => {
    await prepared['an anonymous session']!(scene)
    scene.clock.advance(10 * MINUTE)
  },
  'a session': async scene => {
    await send(scene, visit => visit.logIn({ user: scene.ada }))
    scene.clock.advance(10 * MINUTE)
  },
  'a session and a remember token': async scene => {
    await send(scene, visit => visit.logIn({ user: scene.ada, remember: true }))
    scene.clock.advance(10 * MINUTE)
  },
  'a remember token alone': async scene => {
    await prepared['a session and a remember token']!(scene)
    scene.jar.cookies.delete('session_id')
    scene.clock.advance(24 * HOUR)
  },
  'a session that was never used, and its next token': async scene => {
    await prepared['a remember token alone']!(scene)
    await send(scene, visit => visit.get())
    scene.clock.advance(MINUTE / 2)
  },
  'a dead session': async scene => {
    await prepared['an anonymous session']!(scene)
    scene.clock.advance(24 * HOUR)
  },
}

export const steps: Record<string, Step> = {
  'a page view': visit => visit.get(),
  'a save': visit =>
    visit.update(draft => {
      draft.saved = ((draft.saved as number | undefined) ?? 0) + 1
    }),
  'a take': visit => visit.take('cart'),
  'a new anonymous session': visit => visit.create(),
  'a new ID': visit => visit.regenerate(),
  'a new ID, used at once': async visit => {
    await visit.regenerate()
    return visit.update({ later: 1 })
  },
  'a rotation': visit => visit.regenerate({ grace: '1m' }),
  'a login': (visit, { max }) => visit.logIn({ user: max }),
  'a login to be remembered': (visit, { max }) => visit.logIn({ user: max, remember: true }),
  'a logout': visit => visit.logOut(),
}

const isLogIn = (name: string) => name.startsWith('a login')
const isLogOut = (name: string) => name === 'a logout'

/** What must hold after two requests of these names. */
export async function checkEnding(names: readonly [string, string], ending: Ending): Promise<void> {
  const { scene, outcomes, trace, held, live, series } = ending
  const where = `${names.join(' beside ')}: ${trace}`
  for (const [index, name] of names.entries()) {
    const outcome = outcomes[index]!
    if (outcome.status === 'fulfilled') continue
    assert.equal(outcome.reason?.code, 'ERR_SESSION_CONFLICT', `${where} ${outcome.reason?.stack}`)
    // Said, and not done: a new session in place of one that was left.
    assert.equal(name, 'a new anonymous session', where)
  }
  const logsIn = names.some(isLogIn)
  const logsOut = names.some(isLogOut)
  // It begins an anonymous session for good where one is live, whenever its head is written.
  const isReplaced = names.includes('a new anonymous session')
  const begins = names.some(name => BEGINS.has(name))
  if (logsIn && !logsOut && !isReplaced)
    assert.equal(held?.user?.id, scene.max.id, `the browser is not logged in: ${where}`)
  if (logsOut && !logsIn) {
    assert.equal(isReplaced ? (held?.user ?? null) : held, null, `the logout was undone: ${where}`)
    assert.deepEqual(series, [], `a series outlived the logout: ${where}`)
  }
  if (logsIn && logsOut && held !== null) assert.equal(held.user?.id, scene.max.id, where)
  if (logsIn || logsOut)
    assert.deepEqual(await scene.sessions.list(scene.ada.id), [], `the user before is still logged in: ${where}`)
  if (logsIn) assert.ok(series.length <= names.filter(isLogIn).length, `series that nobody holds: ${where}`)
  assert.ok(!scene.events.some(({ type }) => type === 'remember-theft'), `an alarm: ${where}`)
  // Requests of a browser that has no live session cannot be told from those of several browsers.
  if (held?.user === null && !logsIn && !logsOut && names.every(name => BEGINS.has(name))) return
  // Two logins begin two sessions. A login beside a logout, or an anonymous session beside either, may have been answered
  // first: what the browser does not keep ends when it is idle.
  if (logsIn || (begins && logsOut)) {
    assert.ok(live.length <= 2 && (held === null || live.includes(held.key)), where)
    return
  }
  assert.deepEqual(live, held === null ? [] : [held.key], `lives on, and nobody holds it: ${where}`)
}

/** They begin an anonymous session where there is none. */
const BEGINS = new Set(['a save', 'a new anonymous session', 'a new ID, used at once'])

const LONG = process.env.COATCHECK_LONG === '1'

/** What must hold on every store, with its own order of calls that run at the same time. */
export function testParallel(open: () => Store | Promise<Store>): void {
  const pairs = [
    ['a remember token alone', 'a page view', 'a logout'],
    ['a remember token alone', 'a page view', 'a login'],
    ['a session that was never used, and its next token', 'a page view', 'a logout'],
    ['a dead session', 'a save', 'a login'],
    ['a session', 'a new ID', 'a login'],
    ['an anonymous session', 'a login', 'a login'],
  ] as const
  for (const [before, first, second] of pairs)
    it(`a browser with ${before} sends ${first} beside ${second}`, async () => {
      const requests = [steps[first]!, steps[second]!]
      const orders = { random: LONG ? 25 : 10, seed: 8 }
      await inEveryOrder({ open, orders, prepare: prepared[before]!, requests }, ending =>
        checkEnding([first, second], ending),
      )
    }, 60_000)

  it('what one process began with a remember token is dead after a logout at another', async () => {
    const recall: Step = (_, { other, jar }) => other.redeemRememberToken(jar.cookies.get('remember_token')!)
    const requests = [recall, steps['a logout']!]
    const orders = { random: LONG ? 40 : 15, seed: 9 }
    const prepare = prepared['a remember token alone']!
    await inEveryOrder({ open, orders, prepare, requests }, async ({ scene, series, trace }) => {
      assert.deepEqual(series, [], trace)
      assert.deepEqual(await scene.sessions.list(scene.ada.id), [], trace)
    })
  }, 60_000)

  it('what one process began with a remember token is dead after a logout at another, without any order', async () => {
    for (let round = 0; round < (LONG ? 30 : 10); round += 1)
      await inEveryOrder(
        { open, orders: { all: 1 }, prepare: prepared['a remember token alone']!, requests: [] },
        async ({ scene }) => {
          const token = scene.jar.cookies.get('remember_token')!
          await Promise.all([scene.other.redeemRememberToken(token), scene.visit().logOut()])
          assert.deepEqual(await scene.sessions.list(scene.ada.id), [])
          assert.equal(await scene.other.redeemRememberToken(token), null)
        },
      )
  }, 60_000)
}
