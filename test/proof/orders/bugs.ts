// Mistakes that the library had, or that one of its peers has: each put back as a change of a line, or into the store, and
// the scene in which the search has to meet it. A change whose line is gone from the sources fails: then it has to move.
import type { CreateOptions, RecordChange, SessionRecord, StoreCall } from 'coatcheck/custom-store'
import { ReferenceStore } from '../../../testing/reference.ts'
import { adoptOf } from './adopts.ts'
import { browsersOf } from './browsers.ts'
import { sceneOf } from './calls.ts'
import { devicesOf } from './devices.ts'
import type { Patch } from './library.ts'
import { handshakesOf, oneVisitOf, plantedLogOutOf, plantedOf, tabsOf } from './requests.ts'
import type { Scene } from './search.ts'

export interface Bug {
  readonly name: string
  /** In a source, or in a store. */
  readonly patch?: Patch
  readonly store?: new () => ReferenceStore
  readonly scene: Scene
  /** The library as it is cannot be walked through in this scene within the time of a test. */
  readonly isLarge?: boolean
}

const change = (file: string, from: string, to: string): Patch => ({ file: `src/${file}`, from, to })

/** Revives what has ended, as stores do that write without a condition. */
class Reviving extends ReferenceStore {
  readonly #ended = new Map<string, SessionRecord>()
  override async create(record: SessionRecord, options: CreateOptions, call: StoreCall) {
    this.#ended.set(record.key, record)
    return super.create(record, options, call)
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
    { forward: _, ...options }: CreateOptions,
    call: StoreCall,
  ) {
    return super.replace(old, version, record, options, call)
  }
}
class WithoutVersion extends ReferenceStore {
  override async replace(old: string, version: number, record: SessionRecord, options: CreateOptions, call: StoreCall) {
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
    patch: change(
      'manager/series-end.ts',
      'else await endChildren(context, series, isThis(exceptKey), reason, deadline)',
      '',
    ),
    scene: tabsOf({ before: 'a remember token alone', requests: ['a page view', 'a logout'] }),
  },
  {
    name: 'B1: a slow response sends the cookie of a session that ended',
    patch: change('edge/ended-here.ts', 'return !this.#context.endings.has(session)', 'return session !== null'),
    scene: tabsOf({ before: 'an anonymous session whose cookie is due again', requests: ['a page view', 'a login'] }),
  },
  {
    name: 'B1: a slow response sends the remember token of a series that ended',
    patch: change(
      'edge/ended-here.ts',
      'return !endings.isOver(parseToken(namespace, token)!.key)',
      'return parseToken(namespace, token) !== null',
    ),
    scene: tabsOf({ before: 'a remember token alone', requests: ['a page view', 'a logout'] }),
  },
  {
    name: 'B2: a late save begins a session in place of one that was left',
    patch: change(
      'edge/ended-here.ts',
      'if (this.#hasEnded || keys.some(key => endings.isLeft(key))) return null',
      'if (keys.length < 99) return create()',
    ),
    scene: tabsOf({ before: 'an anonymous session', requests: ['a save', 'a login'] }),
  },
  {
    name: 'B2: a session that began while its browser logged in stays',
    patch: change('edge/ended-here.ts', 'if (mayStay.every(Boolean)) return session', 'if (mayStay) return session'),
    scene: tabsOf({ before: 'a dead session', requests: ['a save', 'a login'] }),
  },
  {
    name: 'B3: the successor of an ID is not known to have ended',
    patch: change(
      'manager/endings.ts',
      'moved(from: string, to: string): void {',
      'moved(from: string, to: string): void {\n    if (from !== to) return',
    ),
    scene: tabsOf({ before: 'a session', requests: ['a new ID', 'a login'] }),
  },
  {
    name: 'B4: the writing verbs of one visit run at once',
    patch: change(
      'edge/request-visit.ts',
      'this.#turn === null ? verb(opened) : this.#turn.then(() => verb(opened))',
      'verb(opened)',
    ),
    scene: oneVisitOf('a dead session', ['a save', 'a save']),
  },
  {
    name: 'B5: a remember token is used beside ambiguous cookies',
    patch: change(
      'edge/arrival.ts',
      'this.isInsecure || this.isAmbiguous ? null : token',
      'this.isInsecure ? null : token',
    ),
    scene: plantedOf(1),
  },
  {
    name: 'B6: a login that fails has ended the remember token',
    patch: change(
      'edge/request-visit.ts',
      'const begun = await this.#sessions.regenerate(current, keeping)',
      'await opened.endSeries()\n        const begun = await this.#sessions.regenerate(current, keeping)',
    ),
    scene: tabsOf({ before: 'a remember token alone', requests: ['a login'], faults: 1 }),
  },
  {
    name: 'B6: a login that gets no remember token has ended the one before',
    patch: change(
      'edge/request-visit.ts',
      'const made = await',
      'await opened.endSeries()\n        const made = await',
    ),
    scene: tabsOf({ before: 'a remember token alone', requests: ['a login to be remembered'], faults: 1 }),
  },
  {
    name: 'B7: a handshake begins a session whose cookie its response cannot carry',
    patch: change('edge/fetch.ts', '!this.isSent && !this.isHandshake', '!this.isSent'),
    scene: handshakesOf('a remember token alone', []),
  },
  {
    name: 'B8: a token of a user at a limit is an error',
    patch: change(
      'manager/begin.ts',
      "if (answer.outcome !== 'collision') return null",
      "if (answer.outcome !== 'collision') throw new Error(answer.outcome)",
    ),
    scene: sceneOf({ before: 'a session', calls: ['recall', 'logout'], isLimited: true }),
  },
  {
    name: 'B9: a new ID has a CSRF token of its own',
    patch: change('manager/rotate.ts', 'data: withCsrfToken(record.data, id, nextId)', 'data: record.data'),
    scene: sceneOf({ before: 'a session', calls: ['rotate', 'get'] }),
  },
  {
    name: 'B10: logout-everywhere ends the session that it spares, where that gets a new ID',
    store: WithoutSuccessor,
    scene: sceneOf({ before: 'a session', calls: ['regenerate', 'invalidateUser but this'] }),
  },
  {
    name: 'B11: a tenant that is asked for at each request remembers nothing of what ended',
    patch: change(
      'manager/manager.ts',
      'keepContext(tenant, context.tenant(name))\n    context.tenants.set(name, tenant, 0)',
      'keepContext(tenant, Context.from<D, I, In>(context.given).tenant(name))',
    ),
    scene: tabsOf({ before: 'an anonymous session', requests: ['a save', 'a login'], isTenant: true }),
  },
  {
    name: 'B12: a take lets the visit read again',
    patch: change(
      'edge/request-visit.ts',
      'opened.goOn(session)\n      return value',
      'opened.known.know(undefined as never)\n      return value',
    ),
    scene: oneVisitOf('an anonymous session', ['a take', 'a take']),
  },
  {
    name: 'B13: two logins with one old ID leave two sessions',
    patch: change(
      'edge/parallel-logins.ts',
      'const joined = earlier === null ? null : await joinOrEnd(this.#sessions, earlier, login, remember, isTwin)',
      'const joined = earlier === null || joinOrEnd !== null ? null : earlier',
    ),
    scene: tabsOf({ before: 'an anonymous session', requests: ['a login', 'a login'] }),
  },
  {
    name: "C1: theft is judged by one node's clock",
    patch: change(
      'manager/remember.ts',
      'const isStolen = isSpent ? series.visitedAt !== null && age > GRACE :',
      'const isStolen = isSpent ? age > 60_000 :',
    ),
    scene: sceneOf({ before: 'a token alone', calls: ['recall', 'recall'], processes: [0, 1], skew: 120_000 }),
  },
  {
    name: 'C10: a password version that the application never says is waited for without an end',
    patch: change(
      'manager/password-version.ts',
      "return deadlines.within(deadline, asked(), () => calls.fail('read', 'not-applied', late))",
      "return asked().catch(() => Promise.reject(calls.fail('read', 'not-applied', late)))",
    ),
    scene: sceneOf({ before: 'a session', calls: ['get'], isAsked: true, faults: 1 }),
  },
  {
    name: 'C15: a logout with planted cookies costs as many store calls as there are cookies',
    patch: change(
      'edge/arrival.ts',
      'return endsOf(this.#cookie.candidates(this.#header).filter(isId), FIRST_IDS, LAST_IDS)',
      'return this.#cookie.candidates(this.#header).filter(isId)',
    ),
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
    patch: change('manager/begin.ts', 'isOthers ? null : before', 'isOthers ? before : before'),
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
    patch: change(
      'manager/begin.ts',
      "await endSession(context, context.keyOf(id), null, 'logout', deadline)\n    return afterWrite(beginAfresh)",
      'return beginAfresh()',
    ),
    scene: sceneOf({ before: 'a session', calls: ['regenerate', 'login'] }),
  },
  {
    name: 'G7: a touch that fails fails the visit',
    patch: change('manager/touch.ts', 'if (!(error instanceof SessionStoreError)) throw error', 'throw error'),
    scene: sceneOf({ before: 'a session', calls: ['touch'], faults: 1 }),
  },
  {
    name: 'An anonymous session in place of one that was left meanwhile stays',
    patch: change(
      'manager/begin.ts',
      'if (session !== null && !context.endings.isOver(session.key)) return session',
      'if (session !== null) return session',
    ),
    scene: tabsOf({ before: 'an anonymous session', requests: ['a new anonymous session', 'a logout'] }),
  },
  {
    name: 'A login leaves what a save began while the answer to it was under way',
    patch: change('manager/begin.ts', 'for (const each of began) await', 'for (const each of [] as string[]) await'),
    scene: tabsOf({ before: 'an anonymous session', requests: ['a save', 'a login'] }),
  },
  {
    name: 'What began in place of a series that ends lives on, and its cookie is held back',
    patch: change(
      'manager/series-end.ts',
      'for (const each of began) await writes.run(() => endSession(context, each, null, reason, deadline))',
      'void began',
    ),
    scene: tabsOf({
      before: 'a remember token alone',
      requests: ['a new anonymous session', 'a new anonymous session'],
    }),
    isLarge: true,
  },
  {
    name: 'G3: the end of a series that failed on the way is not finished by a repeated call',
    patch: change(
      'manager/series-end.ts',
      'await move(context, found, reason, deadline)',
      'await context.calls.delete(series.key, { now: context.now(), deadline })',
    ),
    scene: sceneOf({ before: 'a token alone', calls: ['recall', 'forget'], processes: [0, 1], faults: 1 }),
    isLarge: true,
  },
  {
    name: 'A refresh beside a new ID makes the browser forget its key',
    patch: change(
      'device-bound/refresh.ts',
      'keys.length > 1 && record !== null',
      'keys.length > 9 && record !== null',
    ),
    scene: devicesOf({ before: 'a bound session', requests: ['a refresh', 'a new ID'] }),
  },
  {
    name: 'A second registration takes the place of the first',
    patch: change(
      'device-bound/register.ts',
      "if (offerOf({ record }, now) !== offer) return { value: 'taken' }",
      "if (record.userId === null) return { value: 'taken' }",
    ),
    scene: devicesOf({
      before: 'a session that may be bound',
      requests: ['a registration', 'a registration of another key'],
    }),
  },
  {
    name: 'An update drops the binding',
    patch: change(
      'manager/records.ts',
      'seal(unseal(record.data).meta, context.shape.encode(draft))',
      'seal({}, context.shape.encode(draft))',
    ),
    scene: devicesOf({ before: 'a bound session', requests: ['a refresh', 'a save'] }),
  },
  {
    name: 'The end of all sessions removes what says that a session of another library is over',
    patch: change('manager/invalidate-all.ts', "userId === null && kind === 'session'", "userId === null && kind !== 'none'"),
    scene: adoptOf({ before: 'a session that was taken over', requests: ['a page view', 'invalidateAll'] }),
  },
  {
    name: 'A session of another library is taken over after its store was emptied and all sessions were ended',
    patch: change(
      'adopt/taking.ts',
      'if ((await this.#old.read(ticket.id, deadline)) === null) {',
      'if (record.key === "") {',
    ),
    scene: adoptOf({ before: 'an old session', requests: ['a page view', 'the old store is emptied, then invalidateAll'] }),
  },
  {
    name: 'A login whose cookie is held back beside a logout of all devices leaves a session',
    patch: change('manager/end.ts', 'if (watch.hasLoggedIn) count', 'if (count < 0) count'),
    scene: browsersOf({
      before: 'a session',
      requests: ['a login with the old password', 'logout of all other devices'],
    }),
  },
  {
    name: 'A17: a session that was taken over passes for a fresh login',
    patch: change('adopt/taking.ts', 'verifiedAt = null, ...rest', 'verifiedAt = this.#context.now(), ...rest'),
    scene: adoptOf({ before: 'an old session', requests: ['a page view', 'a page view'] }),
  },
  {
    name: 'Each request with the cookie of another library begins a session of its own',
    patch: change('adopt/taking.ts', 'if (!isFirst) {', 'if (!isFirst && record.key === "") {'),
    scene: adoptOf({ before: 'an old session', requests: ['a page view', 'a page view'], processes: [0, 1] }),
    isLarge: true,
  },
  {
    name: 'A session of another library that is being taken over outlives a logout everywhere',
    patch: change(
      'adopt/taking.ts',
      'if (record.userId !== null && (await this.#marks.hasUserEnded(record.userId, known, deadline)))',
      'if (record.userId === "")',
    ),
    scene: adoptOf({ before: 'an old session', requests: ['a page view', 'logout everywhere'] }),
  },
  {
    name: 'A logout at a node of the old service leaves the session that was lent',
    patch: change(
      'adopt/taking.ts',
      "await endSession(this.#context, mark.key, null, 'logout', deadline)\n      return { id, session: null, isLent: true }",
      'return { id, session: await this.#sessions.get(id), isLent: true }',
    ),
    scene: adoptOf({
      before: 'an old session',
      requests: ['a page view', 'a logout at an old node'],
      processes: [1, 0],
      lending: [0, 1],
    }),
  },
  {
    name: 'invalidateAll does not spare the session that it excepts under its new ID',
    patch: change('manager/invalidate-all.ts', '(await this.#chainFrom(this.#exceptKey)).keys', '[this.#exceptKey]'),
    scene: sceneOf({ before: 'an anonymous session', calls: ['regenerate', 'invalidateAll but this'] }),
  },
  {
    name: 'A response removes the cookie of another library, and the one in its place is held back',
    patch: change(
      'edge/outgoing-cookies.ts',
      "return this.#session === 'send' && this",
      "return this.#session !== 'send' && this",
    ),
    scene: adoptOf({
      before: 'a session that was taken over',
      requests: ['a page view', 'a rotation'],
      faults: 1,
    }),
    isLarge: true,
  },
]
