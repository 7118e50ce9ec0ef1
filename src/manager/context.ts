// The state of one manager: its options, its store, and the memory of this process. Also how a session ends: in the store, in
// that memory, and as an event.
import type { ReplaceOutcome, SessionRecord } from '../contract/store.ts'
import { unpackMeta } from '../data/meta.ts'
import { DataShape, deepFreeze, type Frozen } from '../data/schema.ts'
import { StoreCalls } from '../guard/store-calls.ts'
import { WriteQueue } from '../guard/write-queue.ts'
import { emitTo, type SessionEvent, type WriteRefusal } from '../session/events.ts'
import { keyOf, type SessionKey } from '../session/id.ts'
import { type AnySession, makeInfo, makeSession, type SessionInfo, type SessionParts } from '../session/session.ts'
import { namespaceOf, type Owner, type UserId, type UserIds, Users } from '../session/users.ts'
import { quote } from '../text/quote.ts'
import { Recent } from '../time/recent.ts'
import { type AnyOptions, type ResolvedOptions, resolveOptions } from './options.ts'
import { RecentlyEnded } from './recently-ended.ts'
import { makeSweeper, type Sweeper } from './sweeper.ts'

/** How many managers of namespaces are kept: the name may be a client's choice. `Recent` has two generations. */
const MAX_NAMESPACES = 1000

export type EndReason = Extract<SessionEvent, { type: 'destroyed' }>['reason']

/** A session record under the ID that leads to it now. */
export interface Found {
  readonly id: string
  readonly record: SessionRecord
  /** `null` in an anonymous session. */
  readonly userId: UserId<UserIds> | null
  /** Whether it was found under an old ID whose grace has not run out. */
  readonly isByOldId: boolean
}

/** What the contexts of a manager and its namespaces share. */
type Shared = Pick<Context, 'options' | 'calls' | 'shape' | 'recentlyEnded' | 'sweeper' | 'local'>

/** What this process remembers beside `recentlyEnded`. */
const localOf = ({ store, touchInterval, idle }: ResolvedOptions) => ({
  /** Writers to one session wait for each other. */
  writers: new WriteQueue(store.isPerRequest),
  /** When this process last wrote down that a session was used, by key. */
  touched: new Recent<number>(touchInterval),
  /** When sessions end whose cookie a response could not send again, epoch ms, by key; 0 once it was sent. */
  owed: new Recent<number>(idle),
  /** The managers of namespaces, by name. */
  namespaces: new Recent<object>(Number.POSITIVE_INFINITY, MAX_NAMESPACES / 2),
})

/** Knows no types of data and user IDs: the methods of the manager add them. */
export class Context {
  readonly options: ResolvedOptions
  readonly calls: StoreCalls
  readonly shape: DataShape<object>
  readonly recentlyEnded: RecentlyEnded
  readonly sweeper: Sweeper
  readonly local: ReturnType<typeof localOf>
  readonly users: Users<UserIds>
  /** Of the method that runs, on the scale of `performance.now()`. Before a method begins, there is no time for any call. */
  readonly deadline: number

  // Field by field: with prototypes V8 would know each namespace's contexts apart, and a read would take three times as long.
  private constructor(shared: Shared, users: Users<UserIds>, deadline: number) {
    this.options = shared.options
    this.calls = shared.calls
    this.shape = shared.shape
    this.recentlyEnded = shared.recentlyEnded
    this.sweeper = shared.sweeper
    this.local = shared.local
    this.users = users
    this.deadline = deadline
  }

  static of(given: AnyOptions): Context {
    const options = resolveOptions(given)
    const { store, sweepInterval, onEvent } = options
    const calls = new StoreCalls(store, options, error => emitTo(onEvent, { type: 'store-error', error }))
    const sweep = (limit: number, now: number) => calls.sweep(limit, { now, deadline: calls.deadline() })
    const shared: Shared = {
      options,
      calls,
      shape: new DataShape<object>(options),
      recentlyEnded: new RecentlyEnded(),
      sweeper: makeSweeper(store.sweep ? sweep : null, () => root.now(), sweepInterval),
      local: localOf(options),
    }
    const root: Context = new Context(shared, new Users<UserIds>(options, null), 0)
    return root
  }

  /** The context of a namespace, which has users and keys of its own. */
  forNamespace(namespace: string): Context {
    const users = new Users<UserIds>(this.options, namespace)
    return new Context(this, users, this.deadline)
  }

  /** This context for a method that begins now. The first use of a manager starts its sweeper. */
  begin(): Context {
    this.sweeper.start()
    return new Context(this, this.users, this.calls.deadline())
  }

  get namespace(): string | null {
    return this.users.namespace
  }

  /** Keeps the keys of namespaces apart. */
  get keySpace(): string {
    return this.users.keySpace
  }

  /** The context of the namespace that a stored user names: events and user IDs are its own. */
  ofUser(userId: string | null): Context {
    const namespace = userId === null ? null : namespaceOf(userId)
    return namespace === null || namespace === this.namespace ? this : this.forNamespace(namespace)
  }

  now(): number {
    const now = this.options.now === undefined ? Date.now() : this.options.now()
    if (!Number.isFinite(now)) throw new TypeError(`now: expected epoch milliseconds, got ${quote(now)}`)
    return Math.floor(now)
  }

  /** The last argument of a store call that begins now. */
  call(now = this.now()): { readonly now: number; readonly deadline: number } {
    return { now, deadline: this.deadline }
  }

  async close(): Promise<void> {
    // The namespaces of one manager share its store.
    if (this.namespace !== null) return
    this.sweeper.stop()
    await this.calls.close(this.calls.deadline())
  }

  emit(event: SessionEvent): void {
    const { namespace } = this
    emitTo(this.options.onEvent, namespace === null ? event : { ...event, namespace })
  }

  /** An event for each login or write that is refused; `key` and `userId` as the record has them. */
  reportRefused(reason: WriteRefusal, { key, userId }: { key: string | null; userId: string | null }): void {
    this.emit({ type: 'write-refused', reason, key: key as SessionKey | null, userId: this.userIdOf({ userId }) })
  }

  /** Deletes a session, and the successor that its key leads to. `owner`: `null` if it was not found, or is not known. */
  async endSession(key: string, owner: Pick<Owner, 'userId'> | null, reason: EndReason): Promise<boolean> {
    // Before the answer: even if it is lost, a slow response must not send this cookie again.
    if (reason === 'logout') this.recentlyEnded.addEnd(key, owner !== null)
    const existed = await this.calls.delete(key, this.call())
    const userId = owner && this.userIdOf(owner)
    if (existed) this.emit({ type: 'destroyed', key: key as SessionKey, userId, reason })
    return existed
  }

  /** Reports a login that is refused. `key`: the session that it would have replaced. */
  reportOutcome(outcome: ReplaceOutcome | 'limit', { userId }: Pick<Owner, 'userId'>, key: string | null = null): void {
    if (outcome === 'limit' || outcome === 'stale-login') this.reportRefused(outcome, { key, userId })
  }

  /** Ends everything of a user, except what is under one key. */
  async endUser(user: string, exceptKey: string | null, minPasswordVersion: number | null = null): Promise<number> {
    const call = this.call()
    const options = {
      minPasswordVersionUntil: call.now + this.options.minPasswordVersionLifetime,
      ...(exceptKey !== null && { exceptKey }),
      ...(minPasswordVersion !== null && { minPasswordVersion }),
    }
    const count = await this.calls.deleteUser(user, options, call)
    const userId = this.users.fromText(user)
    // A user of another kind is another application's, and no event of ours can name that one.
    if (userId !== null) this.emit({ type: 'invalidated', userId, count })
    return count
  }

  keyOf(id: string): SessionKey {
    return keyOf(id, this.keySpace)
  }

  /**
   * Follows the forwards from a key to their end, as a store's `delete` does: the keys on the way, and the live record under
   * the last one; not the end if a key of the way is among `keys` already. For logout and revocation; requests use `find`.
   */
  async chainFrom(
    start: string,
    now: number,
    keys = new Set<string>(),
  ): Promise<{ readonly keys: ReadonlySet<string>; readonly record: SessionRecord | null; readonly isEnd: boolean }> {
    // No store makes a circle. If one has a circle anyway, the call still ends.
    for (let key = start; !keys.has(key); ) {
      keys.add(key)
      const { record, forward, corrupt } = await this.calls.read(key, this.call(now))
      if (corrupt !== null) this.emit({ type: 'corrupt-record', key: key as SessionKey, cause: corrupt })
      if (forward === null) return { keys, record, isEnd: true }
      this.recentlyEnded.addNewId(key, forward.movedTo, forward.until - now)
      key = forward.movedTo
    }
    return { keys, record: null, isEnd: false }
  }

  /** The record stored under a key, following forwards. For logout and revocation; requests use `find`. */
  async storedRecord(key: string, now = this.now()): Promise<SessionRecord | null> {
    return (await this.chainFrom(key, now)).record
  }

  /**
   * The session of a record that was just stored, and the event that tells of it. `oldKey`: of the record whose place it took,
   * at a login or a new ID.
   */
  begun(id: string, record: SessionRecord, oldKey: string | null = null): AnySession {
    const session = this.session(this.foundAs(record, id))
    const { key, user, remembered } = session
    const userId = user?.id ?? null
    if (oldKey === null) this.emit({ type: 'created', key, userId, remembered })
    else this.emit({ type: 'regenerated', key, oldKey: oldKey as SessionKey, userId })
    return session
  }

  /** A record that is not looked for by an ID: it was just stored, or is listed, and then its ID is not known. */
  foundAs(record: SessionRecord, id = ''): Found {
    return { id, record, userId: this.userIdOf(record), isByOldId: false }
  }

  session(found: Found, isCookieDue = false): AnySession {
    return makeSession(this.parts(found, isCookieDue), found.id)
  }

  /** Without the ID; `more` is what a listing adds. */
  info<More extends object>(record: SessionRecord, more: More): SessionInfo<object, UserIds> & More {
    return makeInfo(this.parts(this.foundAs(record)), more)
  }

  private parts({ record, userId, isByOldId }: Found, isCookieDue = false): SessionParts<object, UserIds> {
    return { record, userId, isByOldId, isCookieDue, data: this.shape.known(record.data), manager: this }
  }

  userIdOf({ userId }: Pick<SessionRecord, 'userId'>): UserId<UserIds> | null {
    return userId === null ? null : this.users.fromText(userId)
  }

  /** The data of a record, to show. */
  decode(record: SessionRecord): Frozen<object> {
    return deepFreeze(this.draftOf(record))
  }

  /** The data of a record, to edit. An event tells where it could not be read, or no longer fits, and was started anew. */
  draftOf(record: SessionRecord): object {
    const { data, reset } = this.shape.decode(unpackMeta(record.data).text)
    if (reset) this.emit({ type: 'data-reset', key: record.key as SessionKey, cause: reset })
    return data
  }
}

// Registered, because a process may hold several copies of this package (its ESM and its CommonJS build, or one in each
// bundle of a framework) and keep one manager for all. Raise the number when the members of a context change.
const CONTEXT = Symbol.for('coatcheck.context.1')

/** Not a declared member: types show no way to it, and those of two copies of the package fit each other. */
export function keepContext<Manager extends object>(sessions: Manager, context: Context): Manager {
  return Object.defineProperty(sessions, CONTEXT, { value: context })
}

/**
 * The context of a manager, whichever copy of the package it is from.
 * @throws TypeError for anything else
 */
export function contextOf(sessions: object, where = ''): Context {
  if (typeof sessions === 'object' && sessions !== null && Object.hasOwn(sessions, CONTEXT)) {
    const { [CONTEXT]: context } = sessions as { [CONTEXT]?: Context }
    if (context !== undefined) return context
  }
  throw new TypeError(
    `${where}expected a SessionManager, got ${quote(sessions)}; pass new SessionManager({ store }) (if it is one, two versions of coatcheck are installed: check \`npm ls coatcheck\`)`,
  )
}
