// Two browsers of one user, both honest: what one of them does concerns the other only where it says so, as a logout of all
// devices does, or a password change that spares the browser which asked for it.
import assert from 'node:assert/strict'
import type { UserSession } from 'coatcheck'
import { type AnyVisit, Jar, prepared, steps, type Scene as Tabs } from '../../support/parallel.ts'
import { checkFailures, noAlarm, openTabs, request, titled } from './requests.ts'
import type { Scene } from './search.ts'
import type { Data, Manager, World } from './world.ts'

const ada = { id: 42n, name: 'ada', passwordVersion: 1 }
const withNewPassword = { ...ada, passwordVersion: 2 }

type Step = (visit: AnyVisit, sessions: Manager) => Promise<unknown>

/** Each browser has its own session of the user, whom all of these concern. */
const ACCOUNT = {
  'a login with the old password': visit => visit.logIn({ user: ada }),
  'a login with the new password': visit => visit.logIn({ user: withNewPassword }),
  // As the guide does it.
  'a password change': async (visit, sessions) => {
    await visit.requireUser()
    return changed(visit, sessions)
  },
  'logout of all other devices': async (visit, sessions) => {
    const session = await visit.requireUser()
    return sessions.invalidateUser(ada.id, { except: session })
  },
  'logout of all devices': async (visit, sessions) => {
    await sessions.invalidateUser(ada.id)
    return visit.logOut()
  },
} satisfies Record<string, Step>

async function changed(visit: AnyVisit, sessions: Manager): Promise<unknown> {
  const session: UserSession<Data> = await visit.logIn({ user: withNewPassword })
  return sessions.invalidateUser(ada.id, { except: session, minPasswordVersion: 2 })
}

const VERBS = ['a page view', 'a save', 'a rotation', 'a new ID', 'a login', 'a logout'] as const
export type BrowserRequest = (typeof VERBS)[number] | keyof typeof ACCOUNT

export interface BrowserScene {
  /** What the first browser has; the second one has a session and a remember token. */
  readonly before: 'a session' | 'a session and a remember token' | 'a remember token alone'
  /** One of the first browser, and then one of the second. */
  readonly requests: readonly [BrowserRequest, BrowserRequest]
  /** Which process answers each: 0 or 1. @default both the same */
  readonly processes?: readonly [number, number]
  readonly faults?: number
}

const SPARING: readonly BrowserRequest[] = ['a password change', 'logout of all other devices']
const FOR_ALL: readonly BrowserRequest[] = [...SPARING, 'logout of all devices']

export const BROWSER_PAIRS: readonly BrowserScene[] = (
  ['a session', 'a session and a remember token', 'a remember token alone'] as const
).flatMap(before => [
  ...[...VERBS, ...(Object.keys(ACCOUNT) as BrowserRequest[])].flatMap(first =>
    FOR_ALL.map((second): BrowserScene => ({ before, requests: [first, second] })),
  ),
  ...VERBS.flatMap(first =>
    (['a save', 'a rotation', 'a logout'] as const).map(
      (second): BrowserScene => ({ before, requests: [first, second] }),
    ),
  ),
])

export function browsersOf(scene: BrowserScene): Scene {
  const { before, requests, processes = [0, 0], faults = 0 } = scene
  let browsers: readonly Tabs[]
  return {
    name: titled(
      `a browser with ${before}: ${requests[0]} | ${requests[1]} of another browser of the user`,
      processes.includes(1) && 'in two processes',
      faults > 0 && `${faults} faults`,
    ),
    options: { faults, arrivesAtOnce: true },
    async prepare(world) {
      const one = { ...openTabs(world), ada }
      const jar = new Jar()
      const other: Tabs = { ...one, jar, visit: (cookie = jar.header, more) => one.visit(cookie, more) }
      browsers = [one, other]
      await prepared[before]!(one)
      await prepared['a session and a remember token']!(other)
      world.notes = {
        get jars() {
          return browsers.map(each => each.jar.header)
        },
      }
      world.canonical(browsers.map(each => each.jar.header).join())
      for (const [index, name] of requests.entries()) {
        const tabs = browsers[index]!
        const visit = visitOf(tabs, processes[index]!)
        const sessions = processes[index] === 0 ? tabs.sessions : tabs.other
        request(world, name, visit, tabs.jar, () => stepOf(name)(visit, sessions, tabs))
      }
    },
    judge: world => judge(world, browsers, { before, requests, processes, faults }),
  }
}

const visitOf = (tabs: Tabs, node: number): AnyVisit => tabs.visit(undefined, { node } as object)
const stepOf = (name: BrowserRequest): ((visit: AnyVisit, sessions: Manager, tabs: Tabs) => Promise<unknown>) =>
  name in ACCOUNT ? ACCOUNT[name as keyof typeof ACCOUNT] : (visit, _, tabs) => steps[name]!(visit, tabs)

async function judge(
  world: World,
  browsers: readonly Tabs[],
  { requests, processes }: Required<BrowserScene>,
): Promise<void> {
  const { actors } = world
  const [one] = browsers as [Tabs, Tabs]
  const isCalm = world.faults === 0
  checkFailures(world, (name, index) => {
    const other = requests[1 - index]!
    if (name === 'a login with the old password' && other === 'a password change') return ['ERR_SESSION_STALE_LOGIN']
    // The other browser ends all but itself.
    const mayBeOut = SPARING.includes(name as 'a password change') && FOR_ALL.includes(other)
    return mayBeOut ? ['ERR_SESSION_UNAUTHENTICATED'] : []
  })

  // What failed is repeated until it is acknowledged, as the user is told to; who is logged out by then logs in again.
  for (const [index, actor] of actors.entries()) {
    const name = requests[index]!
    const { code } = (actor.error ?? {}) as { code?: string }
    if (code !== 'ERR_SESSION_STORE' || !(FOR_ALL.includes(name) || name === 'a logout')) continue
    const tabs = browsers[index]!
    const visit = visitOf(tabs, processes[index]!)
    const sessions = processes[index] === 0 ? tabs.sessions : tabs.other
    if (name === 'a password change') await changed(visit, sessions)
    else
      await stepOf(name)(visit, sessions, tabs).catch((error: { code?: string }) => {
        assert.equal(error.code, 'ERR_SESSION_UNAUTHENTICATED', 'nothing fails any more')
      })
    tabs.jar.apply(visit.finish().headers.getSetCookie())
    actor.error = undefined
  }

  const users: (bigint | null)[] = []
  const held: string[] = []
  const saved: unknown[] = []
  for (const tabs of browsers) {
    const visit = visitOf(tabs, 0)
    const session = await visit.get({ touch: false })
    tabs.jar.apply(visit.finish().headers.getSetCookie())
    users.push(session?.user?.id ?? null)
    saved.push(session?.data.saved)
    if (session !== null) held.push(session.key)
  }
  const listed = (await one.sessions.list(ada.id)).map(({ key }) => key)
  if (isCalm)
    for (const key of listed) assert.ok(held.includes(key), 'a session of the user lives that neither browser holds')

  for (const [index, name] of requests.entries()) {
    const other = requests[1 - index]!
    const { error } = actors[index]!
    const sees = users[index]
    const isAlone = !FOR_ALL.includes(other) || actors[1 - index]!.error !== undefined
    const isAgain = name.startsWith('a login with')
    if (isAlone) {
      // What the other browser does is none of its business.
      if (error === undefined) {
        const expected =
          name === 'a login' ? one.max.id : name === 'a logout' || name === 'logout of all devices' ? null : ada.id
        if (isCalm || expected !== ada.id)
          assert.equal(sees, expected, `${name}, and the browser sees another user, or none`)
        if (name === 'a save' && sees === ada.id && isCalm) assert.equal(saved[index], 1, 'a save is lost')
      } else if (name === 'a page view' || name === 'a save') assert.equal(sees, ada.id, 'an outage is a logout')
    } else if (!isAgain && !SPARING.includes(name)) {
      assert.notEqual(sees, ada.id, `${other} leaves the other browser logged in`)
      if (name === 'a login' && error === undefined && isCalm)
        assert.equal(sees, one.max.id, 'a login of another user is gone')
    } else if (name === 'a login with the old password' && other === 'a password change')
      assert.equal(sees, null, 'a login with the old password lives')
    // Who asked for it goes on, unless the other browser asked for the same.
    if (SPARING.includes(name) && error === undefined && isAlone && isCalm)
      assert.equal(sees, ada.id, `${name} logs out the browser that asks for it`)
  }
  noAlarm(world)
}
