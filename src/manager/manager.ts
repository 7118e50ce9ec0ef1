import { SessionStoreError } from '../contract/errors.ts'
import type { Change } from '../data/change.ts'
import { unseal } from '../data/meta.ts'
import { isTouchDue, isUnvisited } from '../session/expiry.ts'
import { isKey, type SessionKey } from '../session/id.ts'
import { type Current, recordOf, type Session, type SessionInfo, type UserSession } from '../session/session.ts'
import type { UserIdInput, UserIds } from '../session/user-id.ts'
import { checkLogin, type Login, NOBODY, passwordVersionOf } from '../session/users.ts'
import { checkOptionNames } from '../text/check-options.ts'
import { type Duration, milliseconds } from '../text/duration.ts'
import { quote } from '../text/quote.ts'
import { begin, logIn, reissue } from './begin.ts'
import { refuseCallbacks } from './callbacks.ts'
import { Context } from './context.ts'
import { takeKey, writeData } from './edit.ts'
import { type Found, find, heldRecord, idOf, storedRecord } from './lookup.ts'
import type { SessionOptions } from './options.ts'
import { Recent } from './recent.ts'
import { type Recalled, Remember } from './remember.ts'
import { endSeries } from './series.ts'

const NAMESPACE_NAME = /^[A-Za-z0-9_.-]{1,32}$/
/** How many tenants are kept at hand: the name may be a client's choice. */
const MAX_TENANTS = 1000

// Registered, because a process may hold several copies of this package (its ESM and its CommonJS build, or one in each
// bundle of a framework) and keep one manager for all. The number rises when edges need something else of a context.
const CONTEXT = Symbol.for('coatcheck.context.1')

/**
 * For the edges, not for users: what is behind a manager, whichever copy of the package it is from.
 * @throws TypeError for anything else
 */
export function contextOf<D extends object, I extends UserIds, In extends object>(
  sessions: SessionManager<D, I, In>,
): Context<D, I, In> {
  const context = (sessions as { [CONTEXT]?: Context<D, I, In> } | null | undefined)?.[CONTEXT]
  if (context === undefined)
    throw new TypeError(
      `expected a SessionManager, got ${quote(sessions)} (two versions of coatcheck in one process do not know each other: npm ls coatcheck)`,
    )
  return context
}

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
  static {
    refuseCallbacks('sessions', SessionManager.prototype, { update: 1, except: ['isFresh', 'namespace'] })
  }

  readonly #context: Context<D, I, In>
  readonly #remember: Remember<D, I>
  readonly #tenants = new Recent<SessionManager<D, I, In>>(Number.POSITIVE_INFINITY, MAX_TENANTS / 2)

  /** @throws TypeError that names the option and says what would be right */
  constructor(
    options: SessionOptions<D, I, In> &
      // biome-ignore lint/complexity/noBannedTypes: whether an empty object would do as data is the question
      ({} extends D ? unknown : { initial: () => D } | { schema: NonNullable<SessionOptions<D, I, In>['schema']> }),
  ) {
    const given: unknown = options
    // A tenant is made from its parent's context, see `namespace`.
    this.#context = given instanceof Context ? given : Context.from<D, I, In>(options)
    this.#remember = new Remember(this.#context)
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
    const context = this.#context
    if (typeof start !== 'object' || start === null)
      throw new TypeError(`create: expected { user, data }, { data } or nothing, got ${quote(start)}`)
    checkLogin('create', start)
    // `{ user: undefined }` is a mistake, not a visitor.
    const owner = 'user' in start ? context.users.ownerOf(start, context.now()) : NOBODY
    if (owner === NOBODY && 'verifiedAt' in start) throw new TypeError('verifiedAt: only a login with a user has one')
    return begin(context, owner, context.firstData(start, null), context.deadline())
  }

  /**
   * The live session of this request, or `null`. One read; at most once per touch interval also one write, which a
   * poll, a socket or a job declines with `touch: false`.
   * @throws SessionStoreError where the store cannot say: not a log-out
   */
  async get(current: Current<D, I>, options?: { touch?: boolean }): Promise<Session<D, I> | null> {
    const context = this.#context
    if (options !== undefined && options.touch === undefined) checkOptionNames('get', options, ['touch'])
    const id = idOf(context, current)
    if (id === null) return null
    const deadline = context.deadline()
    const now = context.now()
    const found = await find(context, id, now, deadline)
    if (found === null) {
      if (typeof current === 'object' && current !== null) this.#noticeExpiry(current, now)
      return null
    }
    const { record } = found
    const isDue = isTouchDue(record.seenAt, now, context.options) || isUnvisited(record)
    if (options?.touch === false || !isDue) return this.#show(found, id)
    return this.#touch(id, found, now, deadline)
  }

  /**
   * Writes data: sets the keys of a patch (`undefined` removes one), or runs a function on fresh data, again after a
   * conflict. The session with the new data, or `null` where it is gone.
   * @throws SessionError ERR_SESSION_DATA (nothing was written), ERR_SESSION_CONFLICT
   * @throws SessionStoreError with outcome 'unknown': the change may have been written; it is not run again
   */
  async update<R>(session: Session<D, I>, change: Change<D, R>): Promise<Session<D, I> | null> {
    return writeData(this.#context, session, change)
  }

  /** Reads and removes one key atomically: flash messages, OAuth state. Of many takers one gets the value. */
  async take<N extends keyof D & string>(session: Session<D, I>, name: N): Promise<D[N] | undefined> {
    return (await takeKey(this.#context, session, name)).value
  }

  /**
   * Gives a session a new ID. With a login: ends the session that was there (whoever's) and begins the user's, in one
   * atomic step; without: the same session goes on under a new ID, `null` where it is gone.
   * @throws SessionError ERR_SESSION_STALE_LOGIN where the password was changed after it was verified, ERR_SESSION_LIMIT
   */
  regenerate(current: Current<D, I>): Promise<Session<D, I> | null>
  regenerate(current: Current<D, I>, login: Login<D, I, In>): Promise<UserSession<D, I>>
  async regenerate(current: Current<D, I>, login?: Login<D, I, In>): Promise<Session<D, I> | null> {
    if (login === undefined) return reissue(this.#context, current, null)
    if (typeof login !== 'object' || login === null || !('user' in login))
      throw new TypeError('regenerate: expected { user, data } for a login, or nothing')
    checkLogin('regenerate', login)
    return logIn(this.#context, current, login)
  }

  /**
   * Periodic rotation: a new ID for the same session. For the grace time (at most 2 minutes), and 5 minutes more since
   * clocks differ, the old ID leads to the new session, so that parallel requests get the same new cookie. Never at a
   * login: there `regenerate`.
   */
  async rotate(current: Current<D, I>, options: { grace: Duration }): Promise<Session<D, I> | null> {
    if (options !== undefined) checkOptionNames('rotate', options, ['grace'])
    const grace = milliseconds(options?.grace, 'grace')
    if (grace > 120_000) throw new TypeError(`grace: expected at most '2m', got ${quote(options.grace)}`)
    return reissue(this.#context, current, grace)
  }

  /**
   * Log-out: ends the session for good, its successor too where the ID was replaced a moment ago, and the remember-me
   * series that the session was born from (for that an ID alone is looked up first, where `remember` is on).
   * @throws SessionStoreError keep the cookie, answer 503: the call may be repeated
   */
  async destroy(current: Current<D, I>): Promise<void> {
    const context = this.#context
    const id = idOf(context, current)
    if (id === null) return
    const deadline = context.deadline()
    const key = context.keyOf(id)
    let record = typeof current === 'object' && current !== null ? recordOf(current) : null
    // Before the answers: even where they are lost, a slow response must not send this cookie again.
    context.endings.end(key, 'left')
    if (record === null && context.options.remember !== null) record = await storedRecord(context, key, deadline)
    // First: a token that is still good must not bear the session again.
    if (record?.parent) await endSeries(context, { ...record, key: record.parent }, 'logout', deadline, record.key)
    await context.end(key, record?.userId ?? null, 'logout', deadline)
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
    const context = this.#context
    const user = context.users.toText(userId)
    checkOptionNames('invalidateUser', options, ['except', 'passwordVersion'])
    const passwordVersion = passwordVersionOf(options.passwordVersion, 'passwordVersion')
    const exceptKey = keyOfExcept(context, options.except)
    return context.endUser(
      user,
      { ...(exceptKey !== null && { exceptKey }), ...(passwordVersion !== null && { passwordVersion }) },
      context.deadline(),
    )
  }

  /** The user's live sessions, the latest seen first. */
  async list(userId: UserIdInput<I>): Promise<SessionInfo<D, I>[]> {
    const context = this.#context
    const user = context.users.toText(userId)
    const deadline = context.deadline()
    const records = await context.calls.listUser(user, 'session', { now: context.now(), deadline })
    const theirs = records.filter(record => record.userId === user && record.kind === 'session')
    const version = theirs.length === 0 ? 0 : await context.versionNow(user, deadline)
    return theirs
      .filter(record => (record.passwordVersion ?? 0) >= version)
      .map(record => context.info(record))
      .sort((a, b) => b.seenAt - a.seenAt)
  }

  /**
   * Ends one session of this user by its key, and the remember-me series of that device. `false` where the user has no
   * such session, whoever else may have it.
   */
  async revoke(userId: UserIdInput<I>, key: string): Promise<boolean> {
    const context = this.#context
    const user = context.users.toText(userId)
    if (!isKey(key)) return false
    const deadline = context.deadline()
    const record = await storedRecord(context, key, deadline)
    if (record?.userId !== user || record.kind !== 'session') return false
    await this.#remember.endDevice(record, deadline)
    return context.end(record.key, user, 'revoked', deadline)
  }

  /**
   * A remember token for the device of this session: to be sent once, as a cookie of its own.
   * @throws SessionError ERR_SESSION_UNAUTHENTICATED where the session ended meanwhile
   */
  async remember(session: UserSession<D, I>): Promise<string> {
    return this.#remember.issue(heldRecord(this.#context, session), this.#context.deadline())
  }

  /**
   * Redeems a remember token: the session born from it and, where it was rotated, the token that replaces it. `null`
   * where it is worth nothing: unknown, expired, invalidated, or stolen; or where the user is at a limit that refuses:
   * then it works again as soon as a session is free.
   */
  recall(token: string): Promise<Recalled<D, I> | null> {
    return this.#remember.redeem(token, this.#context.deadline())
  }

  /** Ends the series of a remember token; nothing where there is none. */
  forget(token: string): Promise<void> {
    return this.#remember.forget(token, this.#context.deadline())
  }

  /**
   * Fresh authentication, for what a borrowed browser must not do: a password (not a remember token) was verified at
   * most `within` ago (OWASP ASVS 5.0, 7.5.1).
   */
  isFresh(session: Session<D, I> | null, within: Duration): boolean {
    const limit = milliseconds(within, 'within')
    if (session?.user == null || session.remembered) return false
    const { data, createdAt } = heldRecord(this.#context, session)
    const { verifiedAt = createdAt } = unseal(data).meta
    return verifiedAt !== null && this.#context.now() - verifiedAt <= limit
  }

  /**
   * The same manager for one tenant: its keys and user IDs meet no other tenant's. To be called at each request: what this
   * process remembers is its parent's.
   */
  namespace(name: string): SessionManager<D, I, In> {
    if (typeof name !== 'string' || !NAMESPACE_NAME.test(name))
      throw new TypeError(`namespace: expected 1 to 32 of the characters A-Z a-z 0-9 _ . -, got ${quote(name)}`)
    if (this.#context.namespace !== null) throw new TypeError('namespace: a namespace has no namespaces of its own')
    const known = this.#tenants.get(name, 0)
    if (known !== undefined) return known
    const tenant = new SessionManager<D, I, In>(this.#context.tenant(name) as never)
    this.#tenants.set(name, tenant, 0)
    return tenant
  }

  /** Removes what has been expired for 5 minutes, in small steps; answers how many. 0 where the store does so itself. */
  sweep(): Promise<number> {
    return this.#context.sweep()
  }

  /** Stops the sweep timer and closes the store (which leaves the application's database client open). */
  close(): Promise<void> {
    return this.#context.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #show(found: Found, asked: string): Session<D, I> {
    const wasRenewed = found.id !== asked
    return this.#context.session(found.record, found.id, wasRenewed, wasRenewed)
  }

  /** Writes the visit down, once per interval in this process, however many requests run in parallel. */
  async #touch(asked: string, found: Found, now: number, deadline: number): Promise<Session<D, I> | null> {
    const { calls, options, touched } = this.#context
    const { record } = found
    const last = touched.get(record.key, now)
    if (last !== undefined && now >= last && now - last < options.touchInterval) return this.#show(found, asked)
    touched.set(record.key, now, now)
    const seen = this.#context.seen(record, now)
    try {
      if (record.parent !== null && isUnvisited(record)) await this.#remember.noteVisit(record, deadline)
      if ((await calls.touch(record.key, seen.seenAt, seen.expiresAt, { now, deadline })) === 'gone') {
        const again = await find(this.#context, found.id, now, deadline)
        return again === null ? null : this.#show(again, asked)
      }
    } catch (error) {
      if (!(error instanceof SessionStoreError)) throw error
      // Told as an event by the guard: a visit that could not be written down is no reason to refuse the visitor. Tried
      // again soon: else one failure with a long interval would be a log-out.
      touched.set(record.key, now - Math.floor(options.touchInterval * 0.9), now)
      return this.#show(found, asked)
    }
    return this.#context.session({ ...record, ...seen }, found.id, true, found.id !== asked)
  }

  #noticeExpiry(session: Session<D, I>, now: number): void {
    if (session.expiresAt <= now)
      this.#context.emit({ type: 'expired', key: session.key, userId: session.user?.id ?? null })
  }

  static {
    // Not a declared member: types show no way to it.
    Object.defineProperty(this.prototype, CONTEXT, {
      get(this: object) {
        return #context in this ? this.#context : undefined
      },
    })
  }
}

function keyOfExcept(
  context: Context<any, any, any>,
  except: Session<any, any> | SessionKey | null | undefined,
): string | null {
  if (except === null || except === undefined) return null
  if (typeof except === 'object') return heldRecord(context, except).key
  // Not quoted: it may be a session ID.
  if (!isKey(except)) throw new TypeError('except: expected a session or its key')
  return except
}

/** The type of the sessions of a manager. */
export type SessionOf<M> = M extends SessionManager<infer D, infer I, any> ? Session<D, I> : never
