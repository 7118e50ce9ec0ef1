// What is searched, in the short form and in the long one.
import { BROWSER_PAIRS, browsersOf } from './browsers.ts'
import { CALLS, type CallName, type CallScene, fits, sceneOf } from './calls.ts'
import { BEFORE, handshakesOf, STEPS, tabsOf, theftOf } from './requests.ts'
import type { Scene } from './search.ts'

export interface Group {
  readonly name: string
  /** Its part of the time. */
  readonly weight: number
  readonly scenes: readonly Scene[]
  /** So many orders of each scene by lot, where there are too many for all. */
  readonly random?: number
}

const NAMES = Object.keys(CALLS) as CallName[]
const PLACES: readonly CallScene['before'][] = ['a session', 'an anonymous session', 'a token alone']

/** Each two of them, and each with itself. */
const pairs = <T>(all: readonly T[]): [T, T][] =>
  all.flatMap((first, at) => all.slice(at).map((second): [T, T] => [first, second]))

const isEndOfAll = (name: CallName) => name.startsWith('invalidateAll')

/** Pairs of calls without the end of all sessions, or those with it. */
const callPairs = (more: Omit<CallScene, 'before' | 'calls'>, endsAll = false) =>
  PLACES.flatMap(before =>
    pairs(NAMES.filter(name => fits(before, name)))
      .filter(calls => calls.some(isEndOfAll) === endsAll)
      .map(calls => sceneOf({ before, calls, ...more })),
  )

const TRIPLES: readonly [CallName, CallName, CallName][] = [
  ['update', 'regenerate', 'logout'],
  ['update', 'login', 'invalidateUser'],
  ['update', 'update', 'login'],
  ['take', 'take', 'regenerate'],
  ['touch', 'rotate', 'logout'],
  ['rotate', 'rotate', 'logout'],
  ['regenerate', 'regenerate', 'regenerate'],
  ['regenerate', 'rotate', 'invalidateUser but this'],
  ['login', 'login', 'logout'],
  ['login', 'regenerate', 'invalidateUser, version 2'],
  ['recall', 'recall', 'forget'],
  ['recall', 'logout', 'invalidateUser'],
  ['recall', 'revoke', 'touch'],
  ['remember', 'logout', 'recall'],
  ['get', 'rotate', 'the idle time passes'],
  ['touch', 'update', 'the clock is set back'],
  ['updateUserSessions', 'rotate', 'update'],
]
const triples = (more: Omit<CallScene, 'before' | 'calls'>) =>
  TRIPLES.map(calls => sceneOf({ before: 'a session', calls, ...more }))

const tabPairs = (more: Partial<Parameters<typeof tabsOf>[0]> = {}, before: readonly string[] = BEFORE) =>
  before.flatMap(each => pairs(STEPS).map(requests => tabsOf({ before: each, requests, ...more })))

const TAB_TRIPLES = [
  ['a page view', 'a save', 'a login'],
  ['a page view', 'a new ID', 'a login'],
  ['a page view', 'a rotation', 'a logout'],
  ['a save', 'a save', 'a logout'],
  ['a login', 'a login', 'a login'],
] as const

const thieves = (['a session', 'a token', 'a spent token'] as const).flatMap(stolen => {
  // The others do not present a token.
  const verbs = stolen === 'a session' ? STEPS.slice(0, 7) : ['a page view', 'a save']
  return STEPS.flatMap(request => verbs.map(thief => theftOf({ stolen, request, thief })))
})

const handshakes = BEFORE.flatMap(before => [
  handshakesOf(before, []),
  ...(['a page view', 'a rotation', 'a login', 'a logout'] as const).map(name => handshakesOf(before, [name])),
])

/** Calls beside which the application says the password version. */
const asked = NAMES.map(name => sceneOf({ before: 'a session', calls: [name], isAsked: true, faults: 1 }))

/** Where the session began with the token, a login in its place ends the series before it asks for the next token. */
const mayLose = (before: string, name: string) =>
  before === 'a session that was never used, and its next token' && name === 'a login to be remembered'

const requestAlone = (faults: number) =>
  BEFORE.flatMap(before =>
    STEPS.filter(name => !mayLose(before, name)).map(name => tabsOf({ before, requests: [name], faults })),
  )

/** Where this library, or a peer of it, once broke a promise. */
const ONCE_BROKEN = [
  // What began beside a login or a logout lives on, or a slow response sends a cookie that is over.
  tabsOf({ before: 'a remember token alone', requests: ['a page view', 'a logout'] }),
  tabsOf({ before: 'a remember token alone', requests: ['a new anonymous session', 'a new anonymous session'] }),
  tabsOf({ before: 'an anonymous session whose cookie is due again', requests: ['a page view', 'a login'] }),
  tabsOf({ before: 'an anonymous session', requests: ['a save', 'a login'] }),
  tabsOf({ before: 'an anonymous session', requests: ['a save', 'a login'], isTenant: true }),
  tabsOf({ before: 'an anonymous session', requests: ['a login', 'a login'] }),
  tabsOf({ before: 'a dead session', requests: ['a save', 'a login'] }),
  tabsOf({ before: 'a session', requests: ['a new ID', 'a login'] }),
  tabsOf({ before: 'a session', requests: ['a new ID', 'a logout'] }),
  browsersOf({ before: 'a session', requests: ['a login with the old password', 'logout of all other devices'] }),
  // A token of a user at a limit is an error; theft is judged by one node's clock; the end of a series is not finished by a
  // repeated call.
  sceneOf({ before: 'a session', calls: ['recall', 'logout'], isLimited: true }),
  sceneOf({ before: 'a token alone', calls: ['recall', 'recall'], processes: [0, 1], skew: 120_000 }),
  sceneOf({ before: 'a token alone', calls: ['recall', 'forget'], processes: [0, 1], faults: 1 }),
  // invalidateAll does not spare the session that it excepts under its new ID.
  sceneOf({ before: 'an anonymous session', calls: ['regenerate', 'invalidateAll but this'] }),
]

/** The groups of the long form, or of the short one. */
export function groupsOf(isLong: boolean): readonly Group[] {
  /** In the short form every so many, so that all kinds are among them. */
  const some = (every: number, all: readonly Scene[]) => (isLong ? all : all.filter((_, at) => at % every === 0))
  const inTwo = { processes: [0, 1] }
  const apart = { ...inTwo, skew: 240_000 }
  const inAnyOrder = { arrival: 'in any order' } as const
  const faults = isLong ? 3 : 2
  return [
    { name: 'where a promise was broken once', weight: 3, scenes: ONCE_BROKEN },
    { name: 'pairs of calls', weight: 6, scenes: callPairs({}) },
    { name: 'pairs of calls, in two processes', weight: 3, scenes: some(3, callPairs(inTwo)) },
    { name: 'pairs of calls, clocks four minutes apart', weight: 2, scenes: some(16, callPairs(apart)) },
    {
      name: 'the end of all sessions beside a call, in one process, in two whose clocks differ, and a fault',
      weight: 6,
      scenes: some(
        9,
        [{}, apart, { faults: 1 }].flatMap(more => callPairs(more, true)),
      ),
    },
    {
      name: 'calls alone, and faults',
      weight: 2,
      scenes: [...NAMES.map(name => sceneOf({ before: 'a session', calls: [name], faults })), ...asked],
    },
    { name: 'one request, and faults', weight: 1, scenes: requestAlone(isLong ? 2 : 1) },
    { name: 'pairs of calls, and a fault', weight: 9, scenes: some(11, callPairs({ faults: 1 })) },
    { name: 'pairs of calls, and two faults', weight: 9, scenes: some(99, callPairs({ faults: 2 })) },
    { name: 'three calls', weight: 9, scenes: some(5, [...triples({}), ...triples({ processes: [0, 1, 0] })]) },
    { name: 'three calls, and a fault', weight: 9, scenes: some(17, triples({ faults: 1 })) },
    { name: 'two tabs', weight: 9, scenes: some(5, tabPairs()) },
    { name: 'two tabs, in two processes', weight: 5, scenes: some(50, tabPairs(inTwo)) },
    {
      name: 'two tabs, responses in any order, and a fault',
      weight: 12,
      scenes: some(23, tabPairs({ ...inAnyOrder, faults: 1 })),
    },
    {
      name: 'three tabs',
      weight: 8,
      scenes: some(
        41,
        BEFORE.flatMap(before => TAB_TRIPLES.map(requests => tabsOf({ before, requests, ...inAnyOrder }))),
      ),
    },
    { name: 'two tabs of a tenant', weight: 6, scenes: some(41, tabPairs({ isTenant: true })) },
    { name: 'a handshake, and a request', weight: 2, scenes: handshakes },
    { name: 'a thief', weight: 4, scenes: some(5, thieves) },
    {
      name: 'two browsers of one user, in one process, in two, and a fault',
      weight: 9,
      scenes: some(
        15,
        [{}, { processes: [0, 1] as const }, { faults: 1 }].flatMap(more =>
          BROWSER_PAIRS.map(each => browsersOf({ ...each, ...more })),
        ),
      ),
    },
    {
      name: 'more than can be walked through',
      weight: 9,
      random: isLong ? 3000 : 60,
      scenes: [
        ...triples({ faults, processes: [0, 1, 0] }),
        ...(isLong ? BEFORE : ['a session and a remember token']).flatMap(before =>
          TAB_TRIPLES.map(requests => tabsOf({ before, requests, ...inAnyOrder, faults })),
        ),
      ],
    },
  ]
}
