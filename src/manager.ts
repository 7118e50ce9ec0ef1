import type { Codec } from './data/codec.ts'
import { DataShape, type Frozen } from './data/schema.ts'
import { type Duration, milliseconds, quote } from './duration.ts'
import { SessionError } from './errors.ts'
import { emitTo, type SessionEvent } from './events.ts'
import { expiryOf, isTouchDue } from './expiry.ts'
import {
  deriveId,
  isId,
  isKey,
  keyOf,
  newId,
  newSalt,
  newWriteId,
  type SessionId,
  type SessionKey,
  shardOf,
} from './id.ts'
import { type ResolvedOptions, resolveOptions, type SessionOptions } from './options.ts'
import { Recent } from './recent.ts'
import { corruption } from './record.ts'
import { type Recalled, Remember } from './remember.ts'
import {
  type Current,
  makeInfo,
  makeSession,
  nextOrder,
  orderOf,
  recordOf,
  type Session,
  type SessionInfo,
  type SessionParts,
  type UserSession,
} from './session.ts'
import type { CreateResult, Forward, SessionRecord } from './store.ts'
import { isForward, isRecord, StoreCalls } from './store-calls.ts'
import { Sweeper } from './sweeper.ts'
import type { UserIdInput, UserIds } from './user-id.ts'
import { type Login, NOBODY, type Owner, passwordVersionOf, Users } from './users.ts'
import { WriteQueue } from './write-queue.ts'

type Sync<R> = R extends PromiseLike<unknown> ? never : R
/** Keys to set, or a function that edits fresh data and is run again on a conflict (so: synchronous, no side effects). */
export type Change<D, R> = Partial<D> | ((draft: D) => Sync<R>)

/** A live session as it was found, under the ID that leads to it now. */
interface Found {
  readonly id: string
  readonly record: SessionRecord
}

const NAMESPACE = Symbol('namespace')
const NAMESPACE_NAME = /^[A-Za-z0-9_.-]{1,32}$/
/** How many renewals in a row a late request may have missed. */
const MAX_HOPS = 8
const MAX_COLLISIONS = 5
/** How long this process remembers which keys ended here: longer than a slow response takes, in ms. */
const ENDED_LIFETIME = 300_000

type AnyManager = SessionManager<any, any, any>
// For the edges, not for users: what they need to know of a manager without a public name for it.
/** Whether this session ended in this process within the last minutes, so that its cookie must not be sent any more. */
export let endedHere: (sessions: AnyManager, session: Session<any, any>) => boolean
/** The manager's clock, epoch ms. */
export let clockOf: (sessions: AnyManager) => number
/** The life of a remember token in ms, or `null` where they are off. */
export let rememberOf: (sessions: AnyManager) => number | null
export let emitOf: (sessions: AnyManager, event: SessionEvent<any>) => void

/**
 * The story of a session: created at the first need, found at each request, updated, given a new ID at each login, and
 * destroyed for good. Verbs answer `null` for a session that is not live and throw `SessionStoreError` where the store
 * cannot say.
 */
export class SessionManager<
  D extends object = Record<string, unknown>,
  I extends UserIds = 'u64',
  In extends object = D,
> {
  readonly #given: SessionOptions<D, I, In>
  readonly #options: ResolvedOptions<I>
  readonly #calls: StoreCalls
  readonly #shape: DataShape<D, In>
  readonly #users: Users<I>
  readonly #space: string
  readonly #lines = new WriteQueue()
  readonly #touched: Recent<number>
  readonly #ended = new Recent<true>(ENDED_LIFETIME)
  readonly #invalidated = new Recent<{ order: number; exceptKey: string | null }>(ENDED_LIFETIME)
  readonly #remember: Remember<D, I>
  readonly #sweeper: Sweeper | null

  /** @throws TypeError that names the option and says what would be right */
  constructor(
    options: SessionOptions<D, I, In> &
      ({} extends D ? unknown : { initial: () => D } | { schema: NonNullable<SessionOptions<D, I, In>['schema']> }),
  ) {
    const resolved = resolveOptions(options)
    const namespace = (options as { [NAMESPACE]?: string })[NAMESPACE] ?? null
    this.#given = options
    this.#options = resolved
    this.#space = namespace === null ? '' : `namespace\0${namespace}`
    this.#users = new Users(resolved.userIds, namespace, resolved.store)
    this.#calls = new StoreCalls(resolved.store, resolved.storeTimeout, error =>
      this.#emit({ type: 'store-error', error }),
    )
    this.#shape = new DataShape({
      schema: options.schema,
      initial: options.initial,
      codec: options.codec as Codec | undefined,
      maxDataBytes: resolved.maxDataBytes,
    })
    this.#touched = new Recent(resolved.touchInterval)
    this.#remember = new Remember(this.#rememberParts(namespace))
    // The tenants of one manager share its store: one sweeper does for all.
    this.#sweeper =
      resolved.sweepEvery !== null && namespace === null ? new Sweeper(resolved.sweepEvery, () => this.sweep()) : null
  }

  /**
   * Begins a session: of a user whose credentials were verified just now, or an anonymous one.
   * At a login in a browser use `regenerate`, which ends the session that was there before.
   * @throws SessionError ERR_SESSION_STALE_LOGIN, ERR_SESSION_LIMIT, ERR_SESSION_DATA
   * @throws SessionStoreError with outcome 'unknown': no cookie was set, log in again
   */
  create(login: Login<D, I, In>): Promise<UserSession<D, I>>
  create(anonymous?: { data?: Partial<In> }): Promise<Session<D, I>>
  async create(start: Login<D, I, In> | { data?: Partial<In> } = {}): Promise<Session<D, I>> {
    const owner = this.#ownerOf(start)
    return this.#begin(owner, this.#firstData(start.data, null), this.#calls.deadline())
  }

  /**
   * The live session of this request, or `null`. One read; at most once per touch interval also one write, which a
   * poll, a socket or a job declines with `touch: false`.
   * @throws SessionStoreError where the store cannot say: not a log-out
   */
  async get(current: Current<D, I>, options?: { touch?: boolean }): Promise<Session<D, I> | null> {
    const id = this.#idOf(current)
    if (id === null) return null
    const deadline = this.#calls.deadline()
    const now = this.#now()
    const found = await this.#find(id, now, deadline)
    if (found === null || found === 'moved') {
      this.#noticeExpiry(current, now)
      return null
    }
    if (options?.touch === false || !isTouchDue(found.record.seenAt, now, this.#options))
      return this.#session(found.record, found.id, found.id !== id)
    return this.#touch(id, found, now, deadline)
  }

  /**
   * Writes data: sets the keys of a patch (`undefined` removes one), or runs a function on fresh data, again after a
   * conflict. The session with the new data, or `null` where it is gone.
   * @throws SessionError ERR_SESSION_DATA (nothing was written), ERR_SESSION_CONFLICT
   * @throws SessionStoreError with outcome 'unknown': the change may have been written; it is not run again
   */
  async update<R>(session: Session<D, I>, change: Change<D, R>): Promise<Session<D, I> | null> {
    if (typeof change !== 'function' && (typeof change !== 'object' || change === null))
      throw new TypeError(`update: expected keys to set or a function that edits them, got ${quote(change)}`)
    const edited = await this.#edit(session, draft => {
      if (typeof change !== 'function') return { draft: { ...draft, ...change }, value: undefined }
      const value: unknown = change(draft)
      if (typeof (value as { then?: unknown } | null | undefined)?.then === 'function') {
        Promise.resolve(value).catch(() => {})
        throw new TypeError('update: the function must be synchronous: it may run again after a conflict')
      }
      return { draft, value: undefined }
    })
    return edited === null ? null : edited.session
  }

  /** Reads and removes one key atomically: flash messages, OAuth state. Of many takers one gets the value. */
  async take<N extends keyof D & string>(session: Session<D, I>, name: N): Promise<D[N] | undefined> {
    const edited = await this.#edit(session, draft => {
      const { [name]: value, ...rest } = draft
      if (value === undefined) return { draft: null, value }
      const start = this.#shape.start()
      return { draft: Object.hasOwn(start, name) ? { ...rest, [name]: start[name] } : rest, value }
    })
    return edited?.value
  }

  /**
   * Gives a session a new ID. With a login: ends the session that was there (whoever's) and begins the user's, in one
   * atomic step; without: the same session goes on under a new ID, `null` where it is gone.
   * @throws SessionError ERR_SESSION_STALE_LOGIN where the password was changed after it was verified, ERR_SESSION_LIMIT
   */
  regenerate(current: Current<D, I>): Promise<Session<D, I> | null>
  regenerate(current: Current<D, I>, login: Login<D, I, In>): Promise<UserSession<D, I>>
  async regenerate(current: Current<D, I>, login?: Login<D, I, In>): Promise<Session<D, I> | null> {
    return login === undefined ? this.#reissue(current, null) : this.#login(current, login)
  }

  /**
   * Periodic rotation: a new ID for the same session. For the grace time (at most 2 minutes) the old ID leads to the
   * new session, so that parallel requests get the same new cookie. Never at a login: there `regenerate`.
   */
  async renew(current: Current<D, I>, options: { grace: Duration }): Promise<Session<D, I> | null> {
    const grace = milliseconds(options?.grace, 'grace')
    if (grace > 120_000) throw new TypeError(`grace: expected at most '2m', got ${quote(options.grace)}`)
    return this.#reissue(current, grace)
  }

  /**
   * Log-out: ends the session for good, its successor too where the ID was renewed a moment ago, and the remember-me
   * series that the session was born from.
   * @throws SessionStoreError keep the cookie, answer 503: the call may be repeated
   */
  async destroy(current: Current<D, I>): Promise<void> {
    const id = this.#idOf(current)
    if (id === null) return
    const deadline = this.#calls.deadline()
    const record = typeof current === 'object' && current !== null ? recordOf(current) : null
    // First: a token that is still good must not bear the session again.
    if (record?.parent) await this.#calls.delete(record.parent, deadline)
    await this.#end(keyOf(id, this.#space), record?.userId ?? null, 'logout', deadline)
  }

  /**
   * Log-out-everywhere: when it resolves, every session and remember token of the user that existed when it was called
   * is dead, with what was derived from them meanwhile. With `passwordVersion`, a login that verified an older password
   * gets no session, however late it finishes. Answers how many sessions it ended.
   * @throws SessionStoreError repeat it until it resolves, before telling the user
   */
  async invalidateUser(
    userId: UserIdInput<I>,
    options: { except?: Session<D, I> | SessionKey | null; passwordVersion?: number } = {},
  ): Promise<number> {
    const user = this.#users.toText(userId)
    const passwordVersion = passwordVersionOf(options.passwordVersion, 'passwordVersion')
    const exceptKey = this.#keyOfExcept(options.except)
    const now = this.#now()
    const count = await this.#calls.deleteUser(
      user,
      {
        now,
        floorUntil: now + this.#options.floorLifetime,
        ...(exceptKey !== null && { exceptKey }),
        ...(passwordVersion !== null && { passwordVersion }),
      },
      this.#calls.deadline(),
    )
    this.#invalidated.set(user, { order: nextOrder(), exceptKey }, performance.now())
    this.#emit({ type: 'invalidated', userId: this.#users.fromText(user)!, count })
    return count
  }

  /** The user's live sessions, the latest seen first. */
  async list(userId: UserIdInput<I>): Promise<SessionInfo<D, I>[]> {
    const user = this.#users.toText(userId)
    const records = await this.#calls.listUser(user, 'session', this.#now(), this.#calls.deadline())
    return records
      .filter(record => record.userId === user && record.kind === 'session' && corruption(record) === null)
      .map(record => makeInfo(this.#parts(record)))
      .sort((a, b) => b.seenAt - a.seenAt)
  }

  /**
   * Ends one session of this user by its key, and the remember-me series of that device. `false` where the user has no
   * such session, whoever else may have it.
   */
  async revoke(userId: UserIdInput<I>, key: string): Promise<boolean> {
    const user = this.#users.toText(userId)
    if (!isKey(key)) return false
    const deadline = this.#calls.deadline()
    let where: string = key
    for (let hops = 0; hops < MAX_HOPS; hops += 1) {
      const answer = await this.#calls.read(where, this.#now(), deadline)
      if (answer === null) return false
      if (isForward(answer)) {
        where = answer.movedTo
        continue
      }
      if (!isRecord(answer) || answer.userId !== user || answer.kind !== 'session') return false
      await this.#remember.endDevice(answer, deadline)
      return this.#end(where, user, 'revoked', deadline)
    }
    return false
  }

  /**
   * A remember token for the device of this session: to be sent once, as a cookie of its own.
   * @throws SessionError ERR_SESSION_UNAUTHENTICATED where the session ended meanwhile
   */
  remember(session: UserSession<D, I>): Promise<string> {
    return this.#remember.issue(session, this.#recordOf(session), this.#calls.deadline())
  }

  /**
   * Redeems a remember token: the session born from it and, where it was rotated, the token that replaces it. `null`
   * where it is worth nothing: unknown, expired, invalidated, or stolen.
   */
  recall(token: string): Promise<Recalled<D, I> | null> {
    return this.#remember.redeem(token, this.#calls.deadline())
  }

  /** Ends the series of a remember token; nothing where there is none. */
  forget(token: string): Promise<void> {
    return this.#remember.forget(token, this.#calls.deadline())
  }

  /**
   * Fresh authentication, for what a borrowed browser must not do: a password (not a remember token) was verified at
   * most `within` ago (OWASP ASVS 5.0, 7.5.1).
   */
  isFresh(session: Session<D, I> | null, within: Duration): boolean {
    const limit = milliseconds(within, 'within')
    return session?.user != null && !session.remembered && this.#now() - session.createdAt <= limit
  }

  /** The same manager for one tenant: its keys and user IDs meet no other tenant's. */
  namespace(name: string): SessionManager<D, I, In> {
    if (typeof name !== 'string' || !NAMESPACE_NAME.test(name))
      throw new TypeError(`namespace: expected 1 to 32 of the characters A-Z a-z 0-9 _ . -, got ${quote(name)}`)
    if (this.#space !== '') throw new TypeError('namespace: a namespace has no namespaces of its own')
    return new SessionManager<D, I, In>({ ...this.#given, [NAMESPACE]: name } as ConstructorParameters<
      typeof SessionManager<D, I, In>
    >[0])
  }

  /** Removes what has been expired for 5 minutes, in small steps; answers how many. 0 where the store does so itself. */
  async sweep(): Promise<number> {
    if (!this.#options.store.sweep) return 0
    return Sweeper.sweepAll(limit => this.#calls.sweep(this.#now(), limit, this.#calls.deadline()))
  }

  /** Stops the sweep timer and closes the store (which leaves the application's database client open). */
  async close(): Promise<void> {
    this.#sweeper?.stop()
    if (this.#space === '') await this.#options.store.close?.()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  // From here on: how the verbs are done.

  #now(): number {
    const now = this.#options.now()
    if (!Number.isFinite(now)) throw new TypeError(`now: expected epoch milliseconds, got ${quote(now)}`)
    return Math.floor(now)
  }

  #emit(event: SessionEvent<I>): void {
    emitTo(this.#given.onEvent, event)
  }

  /** The ID to look for; `null` for nothing and for what cannot be one (which never reaches the store). */
  #idOf(current: Current<D, I>): string | null {
    if (current === null || current === undefined) return null
    if (typeof current === 'string') return isId(current) ? current : null
    this.#recordOf(current)
    return current.secret
  }

  #recordOf(session: Session<D, I>): SessionRecord {
    const record = typeof session === 'object' && session !== null ? recordOf(session) : null
    if (record === null || typeof session.secret !== 'string')
      throw new TypeError('session: expected a session from this library (not a copy of one, nor an entry of list())')
    return record
  }

  #keyOfExcept(except: Session<D, I> | SessionKey | null | undefined): string | null {
    if (except === null || except === undefined) return null
    if (typeof except === 'object') return this.#recordOf(except).key
    // Not quoted: it may be a session ID.
    if (!isKey(except)) throw new TypeError('except: expected a session or its key')
    return except
  }

  #ownerOf(start: Login<D, I, In> | { data?: unknown }): Owner {
    if (typeof start !== 'object' || start === null)
      throw new TypeError(`create: expected { user, data }, { data } or nothing, got ${quote(start)}`)
    // `{ user: undefined }` is a mistake, not a visitor.
    return 'user' in start ? this.#users.ownerOf(start.user) : NOBODY
  }

  #firstData(data: Login<D, I, In>['data'], before: SessionRecord | null): string {
    if (typeof data !== 'function') return this.#shape.first(data)
    return this.#shape.first(data(before === null ? this.#shape.start() : this.#thaw(before)))
  }

  #thaw(record: SessionRecord): D {
    const { data, reset } = this.#shape.thaw(record.data)
    if (reset) this.#reportReset(record, reset)
    return data
  }

  #reportReset(record: SessionRecord, cause: Error): void {
    this.#emit({ type: 'data-reset', key: record.key as SessionKey, cause })
  }

  readonly #decode = (record: SessionRecord): Frozen<D> =>
    this.#shape.freeze(record.data, cause => this.#reportReset(record, cause))

  #parts(record: SessionRecord): SessionParts<D, I> {
    const userId = record.userId === null ? null : this.#users.fromText(record.userId)
    return { record, userId, order: nextOrder(), decode: this.#decode }
  }

  #session(record: SessionRecord, id: string, renewed: boolean): Session<D, I> {
    return makeSession(this.#parts(record), id, renewed)
  }

  #newRecord(id: string, owner: Owner, data: string, now: number): SessionRecord {
    const absoluteExpiresAt = now + this.#options.absolute
    return {
      key: keyOf(id, this.#space),
      kind: 'session',
      parent: null,
      ...owner,
      data,
      version: 1,
      writeId: newWriteId(),
      createdAt: now,
      seenAt: now,
      expiresAt: expiryOf(now, absoluteExpiresAt, this.#options),
      absoluteExpiresAt,
    }
  }

  #limitFor(owner: Owner) {
    return this.#options.limit !== null && owner.userId !== null ? { limit: this.#options.limit } : null
  }

  /** Stores a record that did not exist before, under a new ID. */
  async #begin(owner: Owner, data: string, deadline: number): Promise<Session<D, I>> {
    for (let tries = 0; tries < MAX_COLLISIONS; tries += 1) {
      const id = newId(this.#users.shardOf(owner.userId))
      const now = this.#now()
      const record = this.#newRecord(id, owner, data, now)
      const { outcome, ended } = await this.#calls.create(record, { now, ...this.#limitFor(owner) }, deadline)
      this.#noticeLimit(ended, owner)
      if (outcome === 'created') {
        const session = this.#session(record, id, true)
        this.#emit({ type: 'created', key: session.key, userId: session.user?.id ?? null })
        return session
      }
      if (outcome !== 'collision') throw this.#refusal(outcome)
    }
    throw new SessionError(
      'ERR_SESSION_CONFLICT',
      'new session IDs collide: the random generator or the store is broken',
    )
  }

  #refusal(outcome: Exclude<CreateResult['outcome'], 'created' | 'collision'>): SessionError {
    if (outcome === 'stale-login')
      return new SessionError('ERR_SESSION_STALE_LOGIN', 'the password was changed after it was verified: log in again')
    if (outcome === 'limit')
      return new SessionError(
        'ERR_SESSION_LIMIT',
        `the user has ${this.#options.limit?.max} sessions already: end one first`,
      )
    return new SessionError(
      'ERR_SESSION_UNAUTHENTICATED',
      'what this session was to be born from has ended: log in again',
    )
  }

  #noticeLimit(ended: readonly string[], owner: Owner): void {
    for (const key of ended) this.#noticeEnd(key, owner.userId, 'limit')
  }

  #noticeEnd(key: string, userId: string | null, reason: Extract<SessionEvent, { type: 'destroyed' }>['reason']): void {
    this.#ended.set(key, true, performance.now())
    this.#emit({
      type: 'destroyed',
      key: key as SessionKey,
      userId: userId === null ? null : this.#users.fromText(userId),
      reason,
    })
  }

  #noticeExpiry(current: Current<D, I>, now: number): void {
    if (typeof current !== 'object' || current === null || current.expiresAt > now) return
    this.#emit({ type: 'expired', key: current.key, userId: current.user?.id ?? null })
  }

  async #end(
    key: string,
    userId: string | null,
    reason: 'logout' | 'revoked' | 'theft',
    deadline: number,
  ): Promise<boolean> {
    this.#ended.set(key, true, performance.now())
    const existed = await this.#calls.delete(key, deadline)
    if (existed) this.#noticeEnd(key, userId, reason)
    return existed
  }

  /**
   * The live session that an ID leads to, over renewals within their grace; 'moved' where the ID was given up for a new
   * one and nobody may follow.
   */
  async #find(start: string, now: number, deadline: number): Promise<Found | 'moved' | null> {
    let id = start
    for (let hops = 0; hops < MAX_HOPS; hops += 1) {
      const key = keyOf(id, this.#space)
      const answer = await this.#calls.read(key, now, deadline)
      if (answer === null) return null
      if (isRecord(answer)) return this.#accept(id, key, answer, now, deadline)
      if (!isForward(answer)) {
        this.#emit({ type: 'corrupt-record', key, cause: answer.corrupt })
        return null
      }
      const next = this.#follow(id, answer, now)
      if (next === null) return 'moved'
      id = next
    }
    return 'moved'
  }

  #follow(id: string, { salt, until, movedTo }: Forward, now: number): string | null {
    if (salt === '' || until <= now) return null
    const next = deriveId(shardOf(id), id, 'renew', salt)
    return keyOf(next, this.#space) === movedTo ? next : null
  }

  /** Believes a record only where it is what was asked for. */
  async #accept(
    id: string,
    key: SessionKey,
    record: SessionRecord,
    now: number,
    deadline: number,
  ): Promise<Found | null> {
    if (record.key !== key) throw this.#calls.fail('read', 'not-applied', 'read: the store answered another record')
    if (record.kind !== 'session' || !(record.expiresAt > now)) return null
    const wrong =
      record.userId !== null && this.#users.fromText(record.userId) === null
        ? `user ID is not of kind '${this.#options.userIds}'`
        : corruption(record)
    if (wrong !== null) {
      await this.#calls.delete(key, deadline)
      this.#emit({ type: 'corrupt-record', key, cause: wrong })
      return null
    }
    return (await this.#isOutdated(record)) ? null : { id, record }
  }

  async #isOutdated(record: SessionRecord): Promise<boolean> {
    const { passwordVersion } = this.#given
    if (!passwordVersion || record.userId === null) return false
    const current = passwordVersionOf(await passwordVersion(this.#users.fromText(record.userId)!), 'passwordVersion()')
    return (record.passwordVersion ?? 0) < (current ?? 0)
  }

  /** Writes the visit down, once per interval in this process, however many requests run in parallel. */
  async #touch(id: string, found: Found, now: number, deadline: number): Promise<Session<D, I> | null> {
    const { record } = found
    const last = this.#touched.get(record.key)
    if (last !== undefined && now >= last && now - last < this.#options.touchInterval)
      return this.#session(record, found.id, found.id !== id)
    this.#touched.set(record.key, now, now)
    const expiresAt = Math.max(record.expiresAt, expiryOf(now, record.absoluteExpiresAt, this.#options))
    try {
      if (this.#remember.isFirstVisit(record)) await this.#remember.noteVisit(record, deadline)
      if ((await this.#calls.touch(record.key, now, expiresAt, now, deadline)) === 'gone') {
        const again = await this.#find(found.id, now, deadline)
        return again === null || again === 'moved' ? null : this.#session(again.record, again.id, again.id !== id)
      }
    } catch {
      // Told as an event by the guard: a visit that could not be written down is no reason to refuse the visitor.
      return this.#session(record, found.id, found.id !== id)
    }
    return this.#session({ ...record, seenAt: now, expiresAt }, found.id, true)
  }

  /** Reads, edits and writes until no other writer came between; `draft: null` leaves the data as it is. */
  #edit<V>(
    session: Session<D, I>,
    change: (draft: D) => { draft: object | null; value: V },
  ): Promise<{ session: Session<D, I>; value: V } | null> {
    const held = this.#recordOf(session)
    const deadline = this.#calls.deadline()
    return this.#inLine('update', held.key, deadline, async line => {
      let id = session.secret
      let record = newer(line.latest, held)
      for (let attempt = 0; ; attempt += 1) {
        const { draft, value } = change(this.#thaw(record))
        if (draft === null) return { session: this.#session(record, id, session.renewed), value }
        const now = this.#now()
        const isDue = isTouchDue(record.seenAt, now, this.#options)
        const written = {
          data: this.#shape.encode(draft),
          seenAt: isDue ? now : record.seenAt,
          expiresAt: isDue
            ? Math.max(record.expiresAt, expiryOf(now, record.absoluteExpiresAt, this.#options))
            : record.expiresAt,
          writeId: newWriteId(),
        }
        const outcome = await this.#calls.update(record.key, record.version, written, now, deadline)
        if (outcome === 'updated') {
          line.latest = { ...record, ...written, version: record.version + 1 }
          return { session: this.#session(line.latest, id, isDue || session.renewed || id !== session.secret), value }
        }
        const again = await this.#findAgain(id, outcome, attempt, deadline)
        if (again === null) return null
        id = again.id
        record = again.record
      }
    })
  }

  #inLine<T>(
    operation: 'update' | 'replace',
    key: string,
    deadline: number,
    job: (line: { latest: SessionRecord | null }) => Promise<T>,
  ): Promise<T> {
    return this.#lines.run(key, deadline, job, () =>
      this.#calls.fail(
        operation,
        'not-applied',
        `${operation}: earlier writers of this session took all of storeTimeout`,
      ),
    )
  }

  /** After 'conflict' or 'gone': the session as it is now, after a short wait that keeps many writers apart. */
  async #findAgain(id: string, outcome: string, attempt: number, deadline: number): Promise<Found | null> {
    if (outcome === 'conflict' && attempt > 0) {
      // Full jitter: 100 writers need 13 tries each with it, and 70 without.
      const wait = Math.random() * Math.min(100, 2 ** attempt)
      if (performance.now() + wait >= deadline)
        throw new SessionError(
          'ERR_SESSION_CONFLICT',
          'other writers kept changing this session for all of storeTimeout',
        )
      await new Promise(resolve => setTimeout(resolve, wait))
    }
    const found = await this.#find(id, this.#now(), deadline)
    return found === 'moved' ? null : found
  }

  /** What a verb works on: the snapshot that the caller holds, else what the store has. */
  async #foundFor(current: Current<D, I>, deadline: number): Promise<Found | 'moved' | null> {
    const id = this.#idOf(current)
    if (id === null) return null
    if (typeof current === 'object' && current !== null) return { id, record: this.#recordOf(current) }
    return this.#find(id, this.#now(), deadline)
  }

  /** The same session under a new ID: derived from the old one where there is a grace, random otherwise. */
  async #reissue(current: Current<D, I>, grace: number | null): Promise<Session<D, I> | null> {
    const deadline = this.#calls.deadline()
    const start = await this.#foundFor(current, deadline)
    if (start === null || start === 'moved') return null
    const asked = this.#idOf(current)
    // A parallel request renewed it already: everybody gets the same new cookie.
    if (grace !== null && start.id !== asked) return this.#session(start.record, start.id, true)
    return this.#inLine('replace', start.record.key, deadline, async line => {
      let { id } = start
      let record = newer(line.latest, start.record)
      for (let attempt = 0; ; attempt += 1) {
        const now = this.#now()
        const salt = grace === null ? '' : newSalt()
        const nextId = grace === null ? newId(shardOf(id)) : deriveId(shardOf(id), id, 'renew', salt)
        const next: SessionRecord = {
          ...record,
          key: keyOf(nextId, this.#space),
          version: 1,
          writeId: newWriteId(),
          seenAt: Math.max(record.seenAt, now),
          expiresAt: Math.max(record.expiresAt, expiryOf(now, record.absoluteExpiresAt, this.#options)),
        }
        const forward = { salt, until: now + (grace ?? 0) }
        const { outcome } = await this.#calls.replace(record.key, record.version, next, { now, forward }, deadline)
        if (outcome === 'created') return this.#regenerated(record.key, next, nextId)
        if (outcome === 'collision') continue
        if (outcome !== 'conflict' && outcome !== 'gone') throw this.#refusal(outcome)
        const again = await this.#findAgain(id, outcome, attempt, deadline)
        if (again === null) return null
        if (grace !== null && again.id !== id) return this.#session(again.record, again.id, true)
        id = again.id
        record = again.record
      }
    })
  }

  #regenerated(oldKey: string, record: SessionRecord, id: string): Session<D, I> {
    this.#ended.set(oldKey, true, performance.now())
    const session = this.#session(record, id, true)
    this.#emit({
      type: 'regenerated',
      key: session.key,
      oldKey: oldKey as SessionKey,
      userId: session.user?.id ?? null,
    })
    return session
  }

  /** A new identity: the old session, whoever's, ends in the same step in which the new one begins. */
  async #login(current: Current<D, I>, login: Login<D, I, In>): Promise<Session<D, I>> {
    if (!('user' in login)) throw new TypeError('regenerate: expected { user, data } for a login')
    const owner = this.#ownerOf(login)
    const deadline = this.#calls.deadline()
    const id = this.#idOf(current)
    const start = await this.#foundFor(current, deadline)
    const afresh = () => this.#begin(owner, this.#firstData(login.data, null), deadline)
    if (id === null || start === null) return afresh()
    if (start === 'moved') {
      await this.#end(keyOf(id, this.#space), null, 'logout', deadline)
      return afresh()
    }
    return this.#inLine('replace', start.record.key, deadline, async line => {
      let record = newer(line.latest, start.record)
      for (let attempt = 0; ; attempt += 1) {
        const isOthers = record.userId !== null && record.userId !== owner.userId
        const data = this.#firstData(login.data, isOthers ? null : record)
        const now = this.#now()
        const nextId = newId(this.#users.shardOf(owner.userId))
        const next = this.#newRecord(nextId, owner, data, now)
        const options = { now, ...this.#limitFor(owner) }
        const { outcome, ended } = await this.#calls.replace(record.key, record.version, next, options, deadline)
        this.#noticeLimit(ended, owner)
        if (outcome === 'created') return this.#regenerated(record.key, next, nextId)
        if (outcome === 'collision') continue
        if (outcome !== 'conflict' && outcome !== 'gone') throw this.#refusal(outcome)
        const again = outcome === 'conflict' ? await this.#findAgain(start.id, outcome, attempt, deadline) : null
        if (again === null) {
          // Ended or renewed by a parallel request: its successor ends too, then this login begins on its own.
          await this.#end(record.key, record.userId, 'logout', deadline)
          return afresh()
        }
        record = again.record
      }
    })
  }

  #rememberParts(namespace: string | null): ConstructorParameters<typeof Remember<D, I>>[0] {
    return {
      options: this.#options,
      calls: this.#calls,
      users: this.#users,
      space: namespace === null ? 'remember' : `remember\0${namespace}`,
      now: () => this.#now(),
      emit: event => this.#emit(event),
      isOutdated: record => this.#isOutdated(record),
      end: (key, userId, deadline) => this.#end(key, userId, 'theft', deadline),
      refusal: outcome => this.#refusal(outcome),
      find: async (id, deadline) => {
        const found = await this.#find(id, this.#now(), deadline)
        return found === null || found === 'moved' ? null : this.#session(found.record, found.id, true)
      },
      keyOf: id => keyOf(id, this.#space),
      begin: async (id, owner, parent, deadline) => {
        const now = this.#now()
        const record = this.#newRecord(id, owner, this.#shape.first(undefined), now)
        // Stored as not yet seen, so that its first visit is written down: that tells a lost response from a theft.
        const born = { ...record, parent, seenAt: now - this.#options.touchInterval }
        const { outcome, ended } = await this.#calls.create(born, { now, ...this.#limitFor(owner) }, deadline)
        this.#noticeLimit(ended, owner)
        if (outcome !== 'created') return outcome
        const session = this.#session(born, id, true)
        this.#emit({ type: 'created', key: session.key, userId: session.user?.id ?? null })
        return session
      },
    }
  }

  static {
    endedHere = (sessions, session) => {
      if (sessions.#ended.get(session.key)) return true
      if (session.user === null) return false
      const end = sessions.#invalidated.get(sessions.#users.toText(session.user.id))
      return end !== undefined && orderOf(session) < end.order && session.key !== end.exceptKey
    }
    clockOf = sessions => sessions.#now()
    rememberOf = sessions => sessions.#options.remember
    emitOf = (sessions, event) => sessions.#emit(event)
  }
}

/** The type of the sessions of a manager. */
export type SessionOf<M> = M extends SessionManager<infer D, infer I, any> ? Session<D, I> : never

function newer(latest: SessionRecord | null, held: SessionRecord): SessionRecord {
  return latest !== null && latest.key === held.key && latest.version > held.version ? latest : held
}
