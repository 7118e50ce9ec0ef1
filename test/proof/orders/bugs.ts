// Mistakes that the library had, or that one of its peers has, each with the scene that shows it: the library is walked
// through each scene and keeps its promises. Some mistakes are made by a store, and there the search has to meet them.
import type { RecordChange, ReplaceOptions, SessionRecord, StoreCall } from 'coatcheck/custom-store'
import { ReferenceStore } from '../../../src/custom-store/reference.ts'
import { browsersOf } from './browsers.ts'
import { sceneOf } from './calls.ts'
import { importOf } from './imports.ts'
import { handshakesOf, oneVisitOf, plantedLogOutOf, plantedOf, tabsOf } from './requests.ts'
import type { Scene } from './search.ts'

export interface Bug {
  readonly name: string
  /** A store that makes the mistake. */
  readonly store?: new () => ReferenceStore
  readonly scene: Scene
  /** The library as it is cannot be walked through in this scene within the time of a test. */
  readonly isLarge?: boolean
}

/** Revives what has ended, as stores do that write without a condition. */
class Reviving extends ReferenceStore {
  readonly #ended = new Map<string, SessionRecord>()
  override async create(record: SessionRecord, call: StoreCall) {
    this.#ended.set(record.key, record)
    return super.create(record, call)
  }
  override async update(key: string, version: number, change: RecordChange, call: StoreCall) {
    const outcome = await super.update(key, version, change, call)
    const ended = this.#ended.get(key)
    if (outcome !== 'gone' || ended === undefined || this.forwards.has(key)) return outcome
    this.records.set(key, { ...ended, data: change.data, version: version + 1 })
    return 'updated'
  }
}
class WithoutForward extends ReferenceStore {
  override async replace(
    old: string,
    version: number,
    record: SessionRecord,
    { forward: _, ...options }: ReplaceOptions,
    call: StoreCall,
  ) {
    return super.replace(old, version, record, options, call)
  }
}
class WithoutVersion extends ReferenceStore {
  override async replace(
    old: string,
    version: number,
    record: SessionRecord,
    options: ReplaceOptions,
    call: StoreCall,
  ) {
    return super.replace(old, this.live(old, call.now)?.version ?? version, record, options, call)
  }
}
class WithoutFloor extends ReferenceStore {
  override isStale(): boolean {
    return false
  }
}
class WithoutSuccessor extends ReferenceStore {
  override successor(key: string | undefined): string | undefined {
    return key
  }
}

export const BUGS: readonly Bug[] = [
  {
    name: 'B1: a logout leaves what a remember token began beside it',
    scene: tabsOf({ before: 'a remember token alone', requests: ['a page view', 'a logout'] }),
  },
  {
    name: 'B1: a slow response sends the cookie of a session that ended',
    scene: tabsOf({ before: 'an anonymous session whose cookie is due again', requests: ['a page view', 'a login'] }),
  },
  {
    name: 'B1: a slow response sends the remember token of a series that ended',
    scene: tabsOf({ before: 'a remember token alone', requests: ['a page view', 'a logout'] }),
  },
  {
    name: 'B2: a late save begins a session in place of one that was left',
    scene: tabsOf({ before: 'an anonymous session', requests: ['a save', 'a login'] }),
  },
  {
    name: 'B2: a session that began while its browser logged in stays',
    scene: tabsOf({ before: 'a dead session', requests: ['a save', 'a login'] }),
  },
  {
    name: 'B3: the successor of an ID is not known to have ended',
    scene: tabsOf({ before: 'a session', requests: ['a new ID', 'a login'] }),
  },
  {
    name: 'B4: the writing verbs of one visit run at once',
    scene: oneVisitOf('a dead session', ['a save', 'a save']),
  },
  {
    name: 'B5: a remember token is used beside ambiguous cookies',
    scene: plantedOf(1),
  },
  {
    name: 'B6: a login that fails has ended the remember token',
    scene: tabsOf({ before: 'a remember token alone', requests: ['a login'], faults: 1 }),
  },
  {
    name: 'B6: a login that gets no remember token has ended the one before',
    scene: tabsOf({ before: 'a remember token alone', requests: ['a login to be remembered'], faults: 1 }),
  },
  {
    name: 'B7: a handshake begins a session whose cookie its response cannot carry',
    scene: handshakesOf('a remember token alone', []),
  },
  {
    name: 'B8: a token of a user at a limit is an error',
    scene: sceneOf({ before: 'a session', calls: ['recall', 'logout'], isLimited: true }),
  },
  {
    name: 'B9: a new ID has a CSRF token of its own',
    scene: sceneOf({ before: 'a session', calls: ['rotate', 'get'] }),
  },
  {
    name: 'B10: logout-everywhere ends the session that it spares, where that gets a new ID',
    store: WithoutSuccessor,
    scene: sceneOf({ before: 'a session', calls: ['regenerate', 'invalidateUser but this'] }),
  },
  {
    name: 'B11: a tenant that is asked for at each request remembers nothing of what ended',
    scene: tabsOf({ before: 'an anonymous session', requests: ['a save', 'a login'], isTenant: true }),
  },
  {
    name: 'B12: a take lets the visit read again',
    scene: oneVisitOf('an anonymous session', ['a take', 'a take']),
  },
  {
    name: 'B13: two logins with one old ID leave two sessions',
    scene: tabsOf({ before: 'an anonymous session', requests: ['a login', 'a login'] }),
  },
  {
    name: "C1: theft is judged by one node's clock",
    scene: sceneOf({ before: 'a token alone', calls: ['recall', 'recall'], processes: [0, 1], skew: 120_000 }),
  },
  {
    name: 'C10: a password version that the application never says is waited for without an end',
    scene: sceneOf({ before: 'a session', calls: ['get'], isAsked: true, faults: 1 }),
  },
  {
    name: 'C15: a logout with planted cookies costs as many store calls as there are cookies',
    scene: plantedLogOutOf(12),
  },
  {
    name: 'D: a save that was acknowledged is lost in a login',
    store: WithoutVersion,
    scene: sceneOf({ before: 'an anonymous session', calls: ['update', 'login'], processes: [0, 1] }),
  },
  {
    name: 'D: a save that was acknowledged is lost in a new ID',
    store: WithoutVersion,
    scene: sceneOf({ before: 'a session', calls: ['update', 'regenerate'], processes: [0, 1] }),
  },
  {
    name: "D: a login inherits another user's data",
    scene: sceneOf({ before: 'a session', calls: ['login of another user', 'get'] }),
  },
  {
    name: 'G1: a write revives a session that was logged out',
    store: Reviving,
    scene: sceneOf({ before: 'a session', calls: ['update', 'logout'] }),
  },
  {
    name: 'G1: a new ID leaves no forward, so that a late logout misses its session',
    store: WithoutForward,
    scene: sceneOf({ before: 'a session', calls: ['regenerate', 'logout'] }),
  },
  {
    name: 'G3: no floor stands against a login that verified the old password',
    store: WithoutFloor,
    scene: sceneOf({ before: 'a session', calls: ['login', 'invalidateUser, version 2'] }),
  },
  {
    name: 'G4: a login that finds nothing under its ID leaves what that leads to',
    scene: sceneOf({ before: 'a session', calls: ['regenerate', 'login'] }),
  },
  {
    name: 'G7: a touch that fails fails the visit',
    scene: sceneOf({ before: 'a session', calls: ['touch'], faults: 1 }),
  },
  {
    name: 'A login leaves what a save began while the answer to it was under way',
    scene: tabsOf({ before: 'an anonymous session', requests: ['a save', 'a login'] }),
  },
  {
    name: 'What began in place of a series that ends lives on, and its cookie is held back',
    scene: tabsOf({
      before: 'a remember token alone',
      requests: ['a new anonymous session', 'a new anonymous session'],
    }),
    isLarge: true,
  },
  {
    name: 'G3: the end of a series that failed on the way is not finished by a repeated call',
    scene: sceneOf({ before: 'a token alone', calls: ['recall', 'forget'], processes: [0, 1], faults: 1 }),
    isLarge: true,
  },
  {
    name: 'The end of all sessions removes what says that a session of another library is over',
    scene: importOf({ before: 'a session that was imported', requests: ['a page view', 'invalidateAll'] }),
  },
  {
    name: 'A session of another library is imported after its store was emptied and all sessions were ended',
    scene: importOf({
      before: 'an old session',
      requests: ['a page view', 'the old store is emptied, then invalidateAll'],
    }),
  },
  {
    name: 'A login whose cookie is held back beside a logout of all devices leaves a session',
    scene: browsersOf({
      before: 'a session',
      requests: ['a login with the old password', 'logout of all other devices'],
    }),
  },
  {
    name: 'A17: a session that was imported passes for a fresh login',
    scene: importOf({ before: 'an old session', requests: ['a page view', 'a page view'] }),
  },
  {
    name: 'Each request with the cookie of another library begins a session of its own',
    scene: importOf({ before: 'an old session', requests: ['a page view', 'a page view'], processes: [0, 1] }),
    isLarge: true,
  },
  {
    name: 'A session of another library that is being imported outlives a logout everywhere',
    scene: importOf({ before: 'an old session', requests: ['a page view', 'logout everywhere'] }),
  },
  {
    name: 'invalidateAll does not spare the session that it excepts under its new ID',
    scene: sceneOf({ before: 'an anonymous session', calls: ['regenerate', 'invalidateAll but this'] }),
  },
  {
    name: 'A response removes the cookie of another library, and the one in its place is held back',
    scene: importOf({
      before: 'a session that was imported',
      requests: ['a page view', 'a rotation'],
      faults: 1,
    }),
    isLarge: true,
  },
]
