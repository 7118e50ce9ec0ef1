// What is searched: in the short form, which every run of the tests has, and in the long form.

import { BROWSER_PAIRS, browsersOf } from './browsers.ts'
import { CALLS, type CallName, type CallScene, fits, sceneOf } from './calls.ts'
import { IMPORT_PAIRS, IMPORT_TRIPLES, importOf } from './imports.ts'
import { LATE, LATE_TRIPLES } from './late.ts'
import { MOVE_PAIRS, MOVE_TRIPLES, moveOf } from './moves.ts'
import { BEFORE, handshakesOf, oneVisitOf, plantedLogOutOf, plantedOf, STEPS, tabsOf, theftOf } from './requests.ts'
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

const callPairs = (more: Omit<CallScene, 'before' | 'calls'>) =>
  PLACES.flatMap(before =>
    pairs(NAMES.filter(name => fits(before, name) && !isEndOfAll(name))).map(calls =>
      sceneOf({ before, calls, ...more }),
    ),
  )

/** The end of all sessions beside each call. */
const endAllPairs = (more: Omit<CallScene, 'before' | 'calls'>) =>
  PLACES.flatMap(before =>
    pairs(NAMES.filter(name => fits(before, name)))
      .filter(calls => calls.some(isEndOfAll))
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

const inOneVisit = BEFORE.flatMap(before => [
  ...(['a save', 'a take', 'a rotation', 'a new ID'] as const).flatMap(verb => [
    oneVisitOf(before, [verb, 'a login']),
    oneVisitOf(before, ['a logout', verb]),
  ]),
])

/** Every third of many, so that all kinds are among them. */
const some = <T>(all: readonly T[], every: number): T[] => all.filter((_, at) => at % every === 0)

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

const ofTenants = (every: number) => some(tabPairs({ isTenant: true }), every)

export const SHORT: readonly Group[] = [
  { name: 'pairs of calls', weight: 20, scenes: callPairs({}) },
  { name: 'pairs of calls, in two processes', weight: 8, scenes: some(callPairs({ processes: [0, 1] }), 3) },
  { name: 'the end of all sessions beside a call', weight: 4, scenes: some(endAllPairs({}), 3) },
  {
    name: 'calls alone, and two faults',
    weight: 3,
    scenes: [...NAMES.map(name => sceneOf({ before: 'a session', calls: [name], faults: 2 })), ...asked],
  },
  { name: 'one request, and a fault', weight: 2, scenes: requestAlone(1) },
  { name: 'pairs of calls, and a fault', weight: 8, scenes: some(callPairs({ faults: 1 }), 11) },
  { name: 'three calls', weight: 6, scenes: some(triples({}), 3) },
  { name: 'two tabs', weight: 10, scenes: some(tabPairs(), 5) },
  {
    name: 'two tabs, responses in any order',
    weight: 5,
    scenes: some(tabPairs({ arrival: 'in any order', faults: 1 }), 23),
  },
  { name: 'two tabs of a tenant', weight: 2, scenes: ofTenants(41) },
  { name: 'a handshake, and a request', weight: 2, scenes: handshakes },
  { name: 'one visit', weight: 3, scenes: [...inOneVisit, plantedOf(1), plantedOf(2), plantedLogOutOf(12)] },
  { name: 'a thief', weight: 4, scenes: some(thieves, 5) },
  { name: 'two browsers of one user', weight: 4, scenes: some(BROWSER_PAIRS.map(browsersOf), 5) },
  { name: 'a session of another library', weight: 5, scenes: some(IMPORT_PAIRS.map(importOf), 2) },
  {
    name: 'a session of the old store',
    weight: 5,
    scenes: [
      ...MOVE_PAIRS.map(moveOf),
      ...some(MOVE_PAIRS, 6).map(each => moveOf({ ...each, isKoa: true })),
      ...some(MOVE_PAIRS, 5).map(each => moveOf({ ...each, faults: 1 })),
    ],
  },
  { name: 'a request under way over connect', weight: 2, scenes: LATE },
  { name: 'three requests of a session of the old store', weight: 2, random: 60, scenes: MOVE_TRIPLES.map(moveOf) },
  {
    name: 'more than can be walked through',
    weight: 5,
    random: 60,
    scenes: [
      ...triples({ faults: 2, processes: [0, 1, 0] }),
      ...TAB_TRIPLES.map(requests =>
        tabsOf({ before: 'a session and a remember token', requests, arrival: 'in any order', faults: 2 }),
      ),
      ...IMPORT_TRIPLES.map(scene => importOf({ ...scene, faults: 2 })),
    ],
  },
]

export const LONG: readonly Group[] = [
  { name: 'pairs of calls', weight: 3, scenes: callPairs({}) },
  { name: 'pairs of calls, in two processes', weight: 3, scenes: callPairs({ processes: [0, 1] }) },
  {
    name: 'pairs of calls, clocks four minutes apart',
    weight: 2,
    scenes: callPairs({ processes: [0, 1], skew: 240_000 }),
  },
  {
    name: 'the end of all sessions beside a call, in one process, in two whose clocks differ, and a fault',
    weight: 8,
    scenes: [{}, { processes: [0, 1], skew: 240_000 }, { faults: 1 }].flatMap(endAllPairs),
  },
  {
    name: 'calls alone, and three faults',
    weight: 1,
    scenes: [...NAMES.map(name => sceneOf({ before: 'a session', calls: [name], faults: 3 })), ...asked],
  },
  { name: 'one request, and two faults', weight: 1, scenes: requestAlone(2) },
  { name: 'pairs of calls, and a fault', weight: 10, scenes: callPairs({ faults: 1 }) },
  { name: 'pairs of calls, and two faults', weight: 10, scenes: some(callPairs({ faults: 2 }), 4) },
  { name: 'three calls', weight: 10, scenes: [...triples({}), ...triples({ processes: [0, 1, 0] })] },
  { name: 'three calls, and a fault', weight: 10, scenes: triples({ faults: 1 }) },
  { name: 'two tabs', weight: 10, scenes: tabPairs() },
  { name: 'two tabs, in two processes', weight: 5, scenes: tabPairs({ processes: [0, 1] }) },
  {
    name: 'two tabs, responses in any order, and a fault',
    weight: 12,
    scenes: tabPairs({ arrival: 'in any order', faults: 1 }),
  },
  {
    name: 'three tabs',
    weight: 8,
    scenes: BEFORE.flatMap(before =>
      TAB_TRIPLES.map(requests => tabsOf({ before, requests, arrival: 'in any order' })),
    ),
  },
  { name: 'two tabs of a tenant', weight: 6, scenes: ofTenants(3) },
  { name: 'a handshake, and a request', weight: 2, scenes: handshakes },
  {
    name: 'one visit',
    weight: 2,
    scenes: [...inOneVisit, plantedOf(1), plantedOf(2), plantedOf(3), plantedLogOutOf(12)],
  },
  { name: 'a thief', weight: 4, scenes: thieves },
  {
    name: 'two browsers of one user, in one process, in two, and a fault',
    weight: 10,
    scenes: [{}, { processes: [0, 1] as const }, { faults: 1 }].flatMap(more =>
      BROWSER_PAIRS.map(each => browsersOf({ ...each, ...more })),
    ),
  },
  {
    name: 'a session of another library, in one process, in two, and a fault',
    weight: 10,
    scenes: [{}, { processes: [0, 1] }, { faults: 1 }].flatMap(more =>
      IMPORT_PAIRS.map(each => importOf({ ...each, ...more })),
    ),
  },
  { name: 'three requests with the cookie of another library', weight: 5, scenes: IMPORT_TRIPLES.map(importOf) },
  {
    name: 'a session of the old store, and a fault',
    weight: 8,
    scenes: [{}, { isKoa: true }, { faults: 1 }].flatMap(more => MOVE_PAIRS.map(each => moveOf({ ...each, ...more }))),
  },
  { name: 'three requests over connect', weight: 4, scenes: LATE_TRIPLES },
  { name: 'three requests with a session of the old store', weight: 8, scenes: MOVE_TRIPLES.map(moveOf) },
  {
    name: 'more than can be walked through',
    weight: 8,
    random: 3000,
    scenes: [
      ...triples({ faults: 3, processes: [0, 1, 0] }),
      ...BEFORE.flatMap(before =>
        TAB_TRIPLES.map(requests => tabsOf({ before, requests, arrival: 'in any order', faults: 3 })),
      ),
      ...IMPORT_TRIPLES.map(scene => importOf({ ...scene, faults: 3 })),
    ],
  },
]
