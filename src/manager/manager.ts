import type { Change } from '../data/change.ts'
import { unseal } from '../data/meta.ts'
import { lifetimeOf } from '../session/expiry.ts'
import { isKey, type SessionKey } from '../session/id.ts'
import {
  recordOf,
  type Session,
  type SessionInfo,
  type SessionRef,
  type StoredSession,
  type UserSession,
} from '../session/session.ts'
import type { UserIdInput, UserIds } from '../session/user-id.ts'
import { ANONYMOUS, checkLogin, type Login, passwordVersionOf } from '../session/users.ts'
import { checkOptions, type OptionPlace } from '../text/check-options.ts'
import { type Duration, milliseconds } from '../text/duration.ts'
import { quote } from '../text/quote.ts'
import { afterWrite } from './after-write.ts'
import { begin, logIn } from './begin.ts'
import { Context } from './context.ts'
import { contextOf, keepContext, offerContexts } from './context-of.ts'
import { takeKey, writeData } from './edit.ts'
import { endSession, endUser } from './end.ts'
import { anExcept, keyOfExcept } from './except.ts'
import { offerToVisits } from './for-visits.ts'
import { type InvalidateAllOptions, invalidateAllSessions } from './invalidate-all.ts'
import { find, heldRecord, idOf, storedRecord } from './lookup.ts'
import { allSessions, countSessions } from './operations.ts'
import { GET_OPTIONS, REGENERATE_OPTIONS, type SessionOptions } from './options.ts'
import { recordsOfUser } from './password-version.ts'
import { firstData } from './records.ts'
import { forgetToken, issueToken, type Redeemed, redeemToken } from './remember.ts'
import { reissue } from './rotate.ts'
import { endSeries, endWithDevice } from './series-end.ts'
import { touch } from './touch.ts'
import { updateSessionsOfUser } from './update-user.ts'

const NAMESPACE_NAME = /^[A-Za-z0-9_.-]{1,32}$/

const INVALIDATE_OPTIONS: OptionPlace<{ except: unknown; minPasswordVersion: unknown }> = {
  where: 'invalidateUser',
  rules: { except: anExcept, minPasswordVersion: passwordVersionOf },
}

/**
 * The story of a session: created at the first need, found at each request, updated, given a new ID at each login, and
 * destroyed for good. Verbs answer `null` for a session that is not live and throw `SessionStoreError` where the store
 * cannot say.
 */
export class SessionManager<
  D extends object = Record<string, unknown>,
  I extends UserIds = 'bigint',
  In extends object = D,
> {
  /** Not there at run time: the types that `SessionOf`, `VisitOf` and the visits objects take from a manager. */
  declare readonly '~types'?: { readonly data: D; readonly userIds: I; readonly input: In }

  static {
    offerContexts(SessionManager.prototype)
    offerToVisits(SessionManager.prototype)
  }

  /** @throws TypeError that names the option and says what would be right */
  constructor(
    options: SessionOptions<D, I, In> &
      // biome-ignore lint/complexity/noBannedTypes: whether an empty object would do as data is the question
      ({} extends D ? unknown : { initial: () => D } | { schema: NonNullable<SessionOptions<D, I, In>['schema']> }),
  ) {
    keepContext(this, Context.from<D, I, In>(options))
  }

  /**
   * Begins a session: of a user whose credentials were verified just now, or an anonymous one.
   * At a login in a browser use `logIn`, which ends the session that was there before.
   * @throws SessionError ERR_SESSION_STALE_LOGIN, ERR_SESSION_LIMIT, ERR_SESSION_DATA
   * @throws SessionStoreError with outcome 'unknown': no cookie was set, log in again
   */
  create(login: Login<D, I, In>): Promise<UserSession<D, I>>
  create(anonymous?: { data?: Partial<In> }): Promise<Session<D, I>>
  async create(start: Login<D, I, In> | { data?: Partial<In> } = {}): Promise<Session<D, I>> {
    const context = contextOf<D, I, In>(this)
    if (typeof start !== 'object' || start === null)
      throw new TypeError(`create: expected { user, data }, { data } or nothing, got ${quote(start)}`)
    checkLogin('create', start)
    // `{ user: undefined }` is a mistake, not a visitor.
    const owner = 'user' in start ? context.users.ownerOf(start, context.now()) : ANONYMOUS
    if (owner === ANONYMOUS)
      for (const name of ['verifiedAt', 'idleTimeout', 'absoluteTimeout'])
        if (name in start) throw new TypeError(`${name}: only a login with a user has one`)
    const lifetime = owner === ANONYMOUS ? undefined : lifetimeOf(start as Login<D, I, In>, context.options)
    return begin(context, owner, firstData(context, start, null), context.deadline(), lifetime)
  }

  /**
   * The live session of this request, or `null`. One read; at most once per touch interval also one write, which a
   * poll, a socket or a job declines with `touch: false`. A whole Cookie header is no ID: it finds nothing, and the
   * compiler refuses it. A visits object reads the header, and `sessionId(value)` makes an ID of the value of a cookie.
   * @throws SessionStoreError where the store cannot say: not a logout
   */
  async get(current: SessionRef<D, I>, options?: { touch?: boolean }): Promise<Session<D, I> | null> {
    const context = contextOf<D, I, In>(this)
    if (options !== undefined && typeof options?.touch !== 'boolean') checkOptions(GET_OPTIONS, options)
    const id = idOf(context, current)
    if (id === null) return null
    const deadline = context.deadline()
    const now = context.now()
    const looking = find(context, id, now, deadline)
    const found = looking instanceof Promise ? await looking : looking
    if (found === null) {
      if (typeof current === 'object' && current !== null) noticeExpiry(context, current, now)
      return null
    }
    const touching = options?.touch === false ? null : touch(context, found, now, deadline)
    return touching ?? context.session(found)
  }

  /**
   * Writes data: sets the keys of a patch (`undefined` removes one), or runs a function on fresh data, again after a
   * conflict. The session with the new data, or `null` where it is gone.
   * @throws SessionError ERR_SESSION_DATA (nothing was written), ERR_SESSION_CONFLICT
   * @throws SessionStoreError with outcome 'unknown': the change may have been written; it is not run again
   */
  async update<R>(session: Session<D, I>, change: Change<D, R>): Promise<Session<D, I> | null> {
    return writeData(contextOf<D, I, In>(this), session, change)
  }

  /** Reads and removes one key atomically: flash messages, OAuth state. Of many takers one gets the value. */
  async take<N extends keyof D & string>(session: Session<D, I>, name: N): Promise<D[N] | undefined> {
    return (await takeKey(contextOf<D, I, In>(this), session, name)).value
  }

  /**
   * Logs in a user whose credentials you have just checked: ends whatever session is there (anyone's) and starts the
   * user's, with a new ID, in one atomic step.
   * @throws SessionError ERR_SESSION_STALE_LOGIN if the password was changed after it was checked, ERR_SESSION_LIMIT,
   * ERR_SESSION_DATA
   * @throws SessionStoreError with outcome 'unknown': no cookie was set, log in again
   */
  async logIn(current: SessionRef<D, I>, login: Login<D, I, In>): Promise<UserSession<D, I>> {
    if (typeof login !== 'object' || login === null || !('user' in login))
      throw new TypeError('logIn: expected { user, data }')
    checkLogin('logIn', login)
    return logIn(contextOf<D, I, In>(this), current, login) as Promise<UserSession<D, I>>
  }

  /**
   * Gives the same session a new ID; `null` if it has ended. The old ID is dead at once. With `grace` (at most 2 minutes)
   * it leads to the new session that long, and 5 minutes more since clocks differ, so that parallel requests get the same
   * new cookie. To log someone in use `logIn`.
   */
  async regenerate(current: SessionRef<D, I>, options: { grace?: Duration } = {}): Promise<Session<D, I> | null> {
    checkOptions(REGENERATE_OPTIONS, options)
    const { grace } = options
    return reissue(contextOf<D, I, In>(this), current, grace === undefined ? null : milliseconds(grace, 'grace'))
  }

  /**
   * Logout: ends the session for good, its successor too where the ID was replaced a moment ago, and the remember-me
   * series that it began with (for that an ID alone is looked up first, where `remember` is on).
   * @throws SessionStoreError keep the cookie, answer 503: the call may be repeated
   */
  async destroy(current: SessionRef<D, I>): Promise<void> {
    const context = contextOf<D, I, In>(this)
    const id = idOf(context, current)
    if (id === null) return
    const deadline = context.deadline()
    const key = context.keyOf(id)
    let record = typeof current === 'object' && current !== null ? recordOf(current) : null
    // Before the answers: even where they are lost, a slow response must not send this cookie again.
    context.endings.end(key, 'left')
    if (record === null && context.options.rememberFor !== null) record = await storedRecord(context, key, deadline)
    // Delete the remember series first: while it lives, its token could start this session again.
    const end = () => endSession(context, key, record?.userId ?? null, 'logout', deadline)
    if (record?.parent) {
      await endSeries(context, { ...record, key: record.parent }, 'logout', deadline, record.key)
      await afterWrite(end)
    } else await end()
  }

  /**
   * Logout-everywhere: when it resolves, every session and remember token of the user that existed when it was called
   * is dead, with what was derived from them meanwhile. With `minPasswordVersion`, a login that verified an older password
   * gets no session, however late it finishes. Answers how many sessions it ended.
   * @throws SessionStoreError repeat it until it resolves, before telling the user
   */
  async invalidateUser(
    userId: UserIdInput<I>,
    options: { except?: Session<D, I> | SessionKey | null; minPasswordVersion?: number } = {},
  ): Promise<number> {
    const context = contextOf<D, I, In>(this)
    const user = context.users.toText(userId)
    checkOptions(INVALIDATE_OPTIONS, options)
    const minPasswordVersion = passwordVersionOf(options.minPasswordVersion, 'minPasswordVersion')
    const exceptKey = keyOfExcept(context, options.except)
    return endUser(
      context,
      user,
      { ...(exceptKey !== null && { exceptKey }), ...(minPasswordVersion !== null && { minPasswordVersion }) },
      context.deadline(),
    )
  }

  /** The user's live sessions, the latest seen first. */
  async list(userId: UserIdInput<I>): Promise<SessionInfo<D, I>[]> {
    const context = contextOf<D, I, In>(this)
    const user = context.users.toText(userId)
    const records = await recordsOfUser(context, user, context.deadline())
    return records.map(record => context.info(record)).sort((a, b) => b.seenAt - a.seenAt)
  }

  /**
   * Writes to the data of all live sessions of a user, as `update` does to one: a role that was given or taken. Commit it
   * to your own table of users first; a session that begins while this runs may have the change or not. Each other one has
   * it exactly once, under whatever ID, also where a login carries its data over with a function; none is prolonged.
   * Answers how many sessions were written to.
   * @throws SessionError ERR_SESSION_DATA where one session cannot hold the change (the others have it),
   * ERR_SESSION_CONFLICT
   * @throws SessionStoreError some sessions may have the change: keys to set may be set again
   */
  async updateUserSessions<R>(userId: UserIdInput<I>, change: Change<D, R>): Promise<number> {
    const context = contextOf<D, I, In>(this)
    return updateSessionsOfUser(context, context.users.toText(userId), change)
  }

  /**
   * Ends one session of this user by its key, and the remember-me series of that device: which the session began with, or
   * which it asked for. One that was asked for before a login by `logIn` is not among them: `revokeRememberToken` ends it, as
   * `visit.logIn` does. `false` where the user has no such session, even where another user has it.
   */
  async revoke(userId: UserIdInput<I>, key: string): Promise<boolean> {
    const context = contextOf<D, I, In>(this)
    const user = context.users.toText(userId)
    if (!isKey(key)) return false
    const deadline = context.deadline()
    const record = await storedRecord(context, key, deadline)
    if (record?.userId !== user || record.kind !== 'session') return false
    return endWithDevice(context, record, () => endSession(context, record.key, user, 'revoked', deadline), deadline)
  }

  /**
   * A remember token for the device of this session: to be sent once, as a cookie of its own. The session may have got a
   * new ID by a rotation whose grace lasts.
   * @throws SessionError ERR_SESSION_UNAUTHENTICATED where the session ended meanwhile
   */
  async issueRememberToken(session: UserSession<D, I>): Promise<string> {
    const context = contextOf<D, I, In>(this)
    return issueToken(context, session, context.deadline())
  }

  /**
   * Redeems a remember token: the session that begins with it and, where it was rotated, the token that replaces it. `null`
   * where it is worth nothing: unknown, expired, invalidated, or stolen; or where the user is at a limit that refuses:
   * then it works again as soon as a session is free.
   */
  redeemRememberToken(token: string): Promise<Redeemed<D, I> | null> {
    const context = contextOf<D, I, In>(this)
    return redeemToken(context, token, context.deadline())
  }

  /** Ends the series of a remember token; nothing where there is none. */
  revokeRememberToken(token: string): Promise<void> {
    const context = contextOf<D, I, In>(this)
    return forgetToken(context, token, context.deadline())
  }

  /**
   * Fresh authentication, for what a borrowed browser must not do: a password (not a remember token) was verified at
   * most `within` ago (OWASP ASVS 5.0, 7.5.1).
   */
  isFresh(session: Session<D, I> | null, within: Duration): boolean {
    const limit = milliseconds(within, 'within')
    if (session?.user == null || session.remembered) return false
    const context = contextOf<D, I, In>(this)
    const { data, createdAt } = heldRecord(context, session)
    const { verifiedAt = createdAt } = unseal(data).meta
    return verifiedAt !== null && context.now() - verifiedAt <= limit
  }

  /**
   * The same manager for one tenant: its keys and user IDs meet no other tenant's. To be called at each request: what this
   * process remembers is its parent's.
   */
  namespace(name: string): SessionManager<D, I, In> {
    if (typeof name !== 'string' || !NAMESPACE_NAME.test(name))
      throw new TypeError(`namespace: expected 1 to 32 of the characters A-Z a-z 0-9 _ . -, got ${quote(name)}`)
    const context = contextOf<D, I, In>(this)
    if (context.namespace !== null) throw new TypeError('namespace: a namespace has no namespaces of its own')
    const known = context.tenants.get(name, 0) as SessionManager<D, I, In> | undefined
    if (known !== undefined) return known
    // Not made by the constructor, which takes options: the same verbs, with a context made from this one's.
    const tenant: SessionManager<D, I, In> = Object.create(SessionManager.prototype)
    keepContext(tenant, context.tenant(name))
    context.tenants.set(name, tenant, 0)
    return tenant
  }

  /**
   * How many live sessions there are, anonymous ones too; of a tenant, those of its users alone. Where the store cannot
   * count by itself, and for a tenant, it walks over all that is stored: then a session that gets a new ID, begins or ends
   * meanwhile may count or not. `signal` ends the walk after the page under way, with its reason.
   * @throws TypeError where the store has neither `count` nor `scan`
   */
  async count(options: { signal?: AbortSignal | undefined } = {}): Promise<number> {
    return countSessions(contextOf<D, I, In>(this), options)
  }

  /**
   * All live sessions, page by page, in an order of the store's own: of all tenants, with anonymous ones; of a tenant,
   * those of its users alone. Each is shown as it was when its page was read, and one that gets a new ID meanwhile under
   * the old key, the new one, both, or neither. The option `getPasswordVersion` is not asked. You may take your time between
   * two sessions, and leave the loop at any time.
   * @param options - `pageSize`: how many the store is asked for at once, 1 to 1000, by default 500; `signal` ends the
   * walk with its reason
   * @throws TypeError where the store has no `scan`
   */
  all(
    options: { signal?: AbortSignal | undefined; pageSize?: number | undefined } = {},
  ): AsyncGenerator<StoredSession<D, I>, void, void> {
    return allSessions(contextOf<D, I, In>(this), options)
  }

  /**
   * Logs everyone out: when it resolves, every session and every remember token that existed when it was called is dead,
   * with what was derived from them meanwhile. Who logs in while it runs stays logged in or not. Of a tenant it ends the
   * sessions of its users; anonymous ones cannot be told apart. Answers how many live sessions it ended.
   * @throws TypeError where the store has no `scan`
   * @throws SessionStoreError some are ended: repeat it until it resolves. The message says how many.
   */
  async invalidateAll(options: InvalidateAllOptions = {}): Promise<number> {
    return invalidateAllSessions(contextOf<D, I, In>(this), options)
  }

  /** Removes what has been expired for 5 minutes, in small steps; answers how many. 0 where the store does so itself. */
  sweep(): Promise<number> {
    return contextOf<D, I, In>(this).sweeper.sweep()
  }

  /** Stops the sweep timer and closes the store (which leaves the application's database client open). */
  close(): Promise<void> {
    return contextOf<D, I, In>(this).close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

function noticeExpiry<D extends object, I extends UserIds>(
  context: Context<D, I>,
  session: Session<D, I>,
  now: number,
): void {
  if (session.expiresAt <= now) context.emit({ type: 'expired', key: session.key, userId: session.user?.id ?? null })
}

/** The type of the sessions of a manager: `SessionOf<typeof sessions>`. */
export type SessionOf<M> = M extends SessionManager<infer D, infer I, infer _> ? Session<D, I> : never
