// Requests of browsers at the same time: tabs with one jar of cookies, and others who copied its cookies. What must hold
// is seen from the browser: whose session it has in the end, and whether a logout that was acknowledged stays.
import assert from 'node:assert/strict'
import type { SessionId, SessionManager } from 'coatcheck'
import { onlyHost } from '../../support/only-host.ts'
import {
  type AnyVisit,
  checkEnding,
  type Ending,
  Jar,
  prepared,
  steps,
  type Scene as Tabs,
} from '../../support/parallel.ts'
import type { Scene } from './search.ts'
import type { Data, World } from './world.ts'

export const BEFORE = Object.keys(prepared)
export const STEPS = Object.keys(steps)

/** Whether responses arrive in the order of their heads, or in any order and perhaps never. */
type Arrival = 'in order' | 'in any order'

export interface RequestScene {
  readonly before: string
  readonly requests: readonly string[]
  /** Which process answers each. @default all the same */
  readonly processes?: readonly number[]
  readonly arrival?: Arrival
  readonly faults?: number
  /** Each request asks the manager for the same tenant. */
  readonly isTenant?: boolean
}

const isLogIn = (name: string) => name.startsWith('a login')
const isLogOut = (name: string) => name === 'a logout'

/** A request of a browser: what it does, and what its response does to the cookies. Answers the lines of its head. */
export function request(world: World, name: string, visit: AnyVisit, jar: Jar, run: () => Promise<unknown>): string[] {
  const lines: string[] = []
  world.act(name, run, () => {
    lines.push(...visit.finish().headers.getSetCookie())
    world.canonical(lines.join())
    return () => jar.apply(lines)
  })
  return lines
}

/** A failed request is an error of one of the codes that are expected of it. */
export function checkFailures(world: World, expected: (name: string, index: number) => readonly string[]): void {
  for (const [index, { name, error }] of world.actors.entries()) {
    if (error === undefined) continue
    const { code, stack } = error as { code?: string; stack?: string }
    const isOutage = code === 'ERR_SESSION_STORE' && world.faults > 0
    assert.ok(isOutage || expected(name, index).includes(code ?? ''), `${name} fails with ${code ?? stack}`)
  }
}

export const noAlarm = ({ events }: World) =>
  assert.ok(!events.some(({ type }) => type === 'remember-theft'), 'an alarm, and no thief')

/** The name of a scene, with what sets it apart. */
export const titled = (name: string, ...details: readonly (string | false)[]): string =>
  [name, ...details.filter(Boolean)].join(', ')

/** Tabs of one browser. */
export function tabsOf(scene: RequestScene): Scene {
  const { before, requests, processes, arrival = 'in order', faults = 0, isTenant = false } = scene
  const isTwo = processes?.includes(1) ?? false
  let tabs: Tabs
  let heads: string[][]
  return {
    name: titled(
      `a browser with ${before}: ${requests.join(' | ')}`,
      isTwo && 'two processes',
      isTenant && 'of a tenant',
      arrival !== 'in order' && arrival,
      faults > 0 && `${faults} faults`,
    ),
    options: { faults, arrivesAtOnce: arrival === 'in order' },
    async prepare(world) {
      tabs = await begun(world, before, isTenant)
      heads = requests.map((name, index) => {
        const visit = tabs.visit(undefined, { node: processes?.[index] ?? 0 } as object)
        return request(world, name, visit, tabs.jar, () => steps[name]!(visit, tabs))
      })
    },
    async judge(world) {
      for (const [index, { name, error }] of world.actors.entries()) {
        // G7: an outage clears no cookie, and nothing but a logout does.
        const clears = heads[index]!.some(line => line.startsWith('session_id=;'))
        if (clears) assert.ok(isLogOut(name) && error === undefined, `${name} clears the cookie`)
      }
      const found = await endingOf(world, tabs)
      // Beside a good remember token a new anonymous session and what the token begins are both right: the browser keeps
      // the one whose cookie comes last, and the other one expires.
      const isEither = requests.includes('a new anonymous session') && found.series.length > 0 && found.held !== null
      const ending = isEither ? { ...found, live: [found.held!.key] } : found
      // `create` in place of a live session is a beginning of its own: beside a logout the cookie that comes last decides.
      const begins = requests.some(isLogIn) || requests.includes('a new anonymous session')
      if (arrival === 'in order' && requests.some(isLogOut) && !isTwo && faults === 0 && !begins)
        assert.equal(tabs.jar.header, '', 'the browser keeps a cookie of what it logged out of')
      if (arrival === 'in order' && !isTwo && faults === 0) await checkEnding(requests as [string, string], ending)
      else await checkAny(world, tabs, requests, ending)
    },
  }
}

/** A browser that has this before its requests begin. */
async function begun(world: World, before: string, isTenant = false): Promise<Tabs> {
  const tabs = openTabs(world, isTenant)
  await prepared[before]!(tabs)
  world.canonical(tabs.jar.header)
  return tabs
}

export function openTabs(world: World, isTenant = false): Tabs {
  const roots = [world.manager(), world.manager()] as const
  const manager = (node: number) => (isTenant ? roots[node]!.namespace('shop') : roots[node]!)
  const jar = new Jar()
  const clock = Object.assign(() => world.now, {
    advance: (ms: number) => world.advance(ms),
    skewed: () => () => world.now,
  })
  world.notes = {
    get jar() {
      return jar.header
    },
  }
  const visit: Tabs['visit'] = (cookie = jar.header, request = {}) => {
    const { node = 0, ...more } = request as { node?: number }
    return world.library.openVisit(manager(node) as SessionManager<Data>, {
      method: 'POST',
      secure: true,
      header: onlyHost,
      cookie,
      ...more,
    })
  }
  return {
    sessions: manager(0),
    other: manager(1),
    store: null as never,
    clock,
    jar,
    events: world.events,
    ada: { id: 42n, name: 'ada' },
    max: { id: 43n, name: 'max' },
    visit,
  }
}

async function endingOf(world: World, tabs: Tabs): Promise<Ending> {
  const live = [...world.store.records.values()].filter(({ expiresAt }) => expiresAt > world.now)
  const held = await tabs.sessions.get((tabs.jar.cookies.get('session_id') ?? null) as SessionId | null, {
    touch: false,
  })
  return {
    scene: tabs,
    outcomes: world.actors.map(({ value, error }) =>
      error === undefined ? { status: 'fulfilled', value } : { status: 'rejected', reason: error },
    ),
    heads: world.actors.map((_, index) => index),
    trace: '',
    live: live.flatMap(({ key, kind }) => (kind === 'session' ? key : [])),
    series: live.flatMap(({ key, kind }) => (kind === 'remember' ? key : [])),
    held,
  }
}

/** What holds whatever the network does with the responses, whichever process answers, and whatever the store refuses. */
async function checkAny(world: World, tabs: Tabs, requests: readonly string[], ending: Ending): Promise<void> {
  const { held } = ending
  checkFailures(world, name => (name === 'a new anonymous session' ? ['ERR_SESSION_CONFLICT'] : []))
  let isOut = false
  let isIn = false
  for (const [index, name] of requests.entries()) {
    const { error, isLost } = world.actors[index]!
    const failure = (error ?? {}) as { operation?: string; outcome?: string; cause?: { outcome?: string } }
    // Of a later step of the login the cause says what became of the step itself.
    const outcome = failure.cause?.outcome ?? failure.outcome
    const isRefused = isLogIn(name) && outcome === 'not-applied' && /^(?:create|replace)$/.test(failure.operation ?? '')
    if (isRefused && requests.length === 1 && tabs.jar.cookies.has('remember_token')) {
      assert.notEqual(ending.series.length, 0, 'a login that failed took the remember token')
      // A second fault may leave what the login has made.
      if (world.faults < 2) assert.equal(ending.series.length, 1, 'a login that failed left a series of its own')
    }
    if (error !== undefined) continue
    if (isLogOut(name)) isOut = true
    else if (isLogIn(name) && !isLost) isIn = true
  }
  const isOfAda = held !== null && held.user?.id === tabs.ada.id
  if (isOut || isIn) {
    assert.ok(!isOfAda, 'the browser is in the session of the user before')
    assert.deepEqual(await tabs.sessions.list(tabs.ada.id), [], 'the user before is still logged in')
  }
  if (isOut && !requests.some(isLogIn)) {
    assert.equal(held?.user ?? null, null, 'the logout was undone')
    assert.deepEqual(ending.series, [], 'a series outlives the logout')
  }
  noAlarm(world)
}

/** Handshakes of a socket, through `fetchVisits`: their responses carry no cookies. */
export function handshakesOf(before: string, requests: readonly string[]): Scene {
  let tabs: Tabs
  return {
    name: `a browser with ${before}: ${['a handshake', ...requests].join(' | ')}`,
    options: { faults: 0, arrivesAtOnce: true },
    async prepare(world) {
      tabs = await begun(world, before)
      const { header } = tabs.jar
      const visits = world.library.fetchVisits(tabs.sessions as SessionManager<Data>)
      const headers = { cookie: header, upgrade: 'websocket', connection: 'Upgrade' }
      world.act('a handshake', async () => {
        await visits.handle(new Request('https://shop.example/live', { headers }), async visit => {
          await visit.get()
          return undefined
        })
      })
      for (const name of requests) {
        const visit = tabs.visit()
        request(world, name, visit, tabs.jar, () => steps[name]!(visit, tabs))
      }
    },
    async judge(world) {
      checkFailures(world, () => [])
      const { live, held } = await endingOf(world, tabs)
      assert.deepEqual(live, held === null ? [] : [held.key], 'a session lives that no response brought to the browser')
      if (requests.some(name => isLogIn(name) || isLogOut(name))) return
      const visit = tabs.visit()
      const session = await visit.get()
      tabs.jar.apply(visit.finish().headers.getSetCookie())
      if (/^a (?:session|remember)/.test(before))
        assert.equal(session?.user?.id, tabs.ada.id, 'the browser is logged out')
      noAlarm(world)
    },
  }
}

export interface TheftScene {
  /** What was copied: the session's cookie, the remember token that the browser has, or one that it has spent. */
  readonly stolen: 'a session' | 'a token' | 'a spent token'
  readonly request: string
  readonly thief: string
}

/** A browser, and a thief with a copy of its cookies; both act at once. */
export function theftOf({ stolen, request: asked, thief }: TheftScene): Scene {
  let tabs: Tabs
  let copied: Jar
  return {
    name: `a thief with ${stolen} of a browser: ${asked} | ${thief} of the thief`,
    options: { faults: 0, arrivesAtOnce: true },
    async prepare(world) {
      tabs = await begun(world, stolen === 'a session' ? 'a session and a remember token' : 'a remember token alone')
      copied = new Jar()
      for (const [name, value] of tabs.jar.cookies)
        if (stolen !== 'a session' || name === 'session_id') copied.cookies.set(name, value)
      if (stolen === 'a spent token') {
        // The browser uses its token, comes back with what it got, and time passes.
        for (const minutes of [1, 20]) {
          const visit = tabs.visit()
          await visit.get()
          tabs.jar.apply(visit.finish().headers.getSetCookie())
          world.advance(minutes * 60_000)
        }
      }
      const { jar } = tabs
      world.notes = {
        get jars() {
          return [jar.header, copied.header]
        },
      }
      world.canonical(jar.header + copied.header)
      for (const [name, own] of [
        [asked, jar],
        [thief, copied],
      ] as const) {
        const visit = tabs.visit(own.header)
        request(world, name, visit, own, () => steps[name]!(visit, tabs))
      }
    },
    async judge(world) {
      checkFailures(world, () => ['ERR_SESSION_CONFLICT'])
      const sees = async (jar: Jar) => {
        const visit = tabs.visit(jar.header)
        const session = await visit.get({ touch: false })
        jar.apply(visit.finish().headers.getSetCookie())
        return session?.user?.id ?? null
      }
      const alarms = world.events.filter(({ type }) => type === 'remember-theft').length
      if (stolen === 'a spent token') {
        assert.equal(await sees(copied), null, 'a spent token still leads somewhere')
        assert.ok(alarms <= 1, 'one theft, several alarms')
        // The browser's own login or logout may have ended the series before, and so may a new session in its place.
        const left = isLogIn(asked) || isLogOut(asked) || asked === 'a new anonymous session'
        if (!left) assert.equal(alarms, 1, 'a theft without an alarm')
        assert.deepEqual(await tabs.sessions.list(tabs.ada.id), [], 'what the stolen series began lives on')
      } else if (isLogIn(asked) || isLogOut(asked)) {
        assert.equal(await sees(copied), null, 'the copy still leads somewhere')
        assert.deepEqual(await tabs.sessions.list(tabs.ada.id), [], 'the session that was left lives on')
      }
      if (isLogIn(asked)) assert.equal(await sees(tabs.jar), tabs.max.id, 'the browser is not logged in')
    },
  }
}
