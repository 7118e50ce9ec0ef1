import type { SessionRecord } from '../contract/store.ts'
import type { Change } from '../data/change.ts'
import { unpackMeta } from '../data/meta.ts'
import { isPlain } from '../data/plain.ts'
import { eachWrite } from '../guard/store-calls.ts'
import { type InvalidateAllOptions, invalidateAll } from '../operations/invalidate-all.ts'
import { allSessions, countSessions } from '../operations/reading.ts'
import { updateEach } from '../operations/update-user-sessions.ts'
import { aSignal, requireScan } from '../operations/walk.ts'
import type { SessionEvent } from '../session/events.ts'
import { isKey, type SessionKey } from '../session/id.ts'
import {
  recordOf,
  type Session,
  type SessionInfo,
  type SessionRef,
  type StoredSession,
  type UserSession,
} from '../session/session.ts'
import { type Login, passwordVersionOf, type UserIdInput, type UserIds } from '../session/users.ts'
import { aFunction, checkOptions, type OptionsOf } from '../text/check-options.ts'
import { type Duration, milliseconds } from '../text/duration.ts'
import { quote } from '../text/quote.ts'
import { isThenable } from '../time/within.ts'
import { begin, beginInPlace, regenerate } from './begin.ts'
import { Context, contextOf, keepContext } from './context.ts'
import { anExcept, find, idOf, keyOfExcept, recordOfSnapshot, recordsOfUser } from './lookup.ts'
import {
  type AnyOptions,
  GET_OPTIONS,
  type ManagerOptions,
  REGENERATE_OPTIONS,
  type SessionOptions,
} from './options.ts'
import { startOf } from './records.ts'
import { issueToken, type Redeemed, redeemToken, revokeToken } from './remember.ts'
import { endSeries, logOut, seriesOfDevice } from './series.ts'
import { isTouchNow, takeKey, writeData, writeRecord, writeTouch } from './write.ts'

const NAMESPACE_NAME = /^[A-Za-z0-9_.-]{1,32}$/

const INVALIDATE_USER: OptionsOf<{ except: unknown; minPasswordVersion: unknown }> = {
  where: 'invalidateUser',
  rules: { except: anExcept, minPasswordVersion: passwordVersionOf },
}
const INVALIDATE_ALL: OptionsOf<InvalidateAllOptions> = {
  where: 'invalidateAll',
  rules: { signal: aSignal, onProgress: aFunction, except: anExcept },
}

/**
 * The story of a session: created when it is first needed, found at each request, updated, given a new ID at each login, and
 * destroyed for good. Methods answer `null` for a session that is not live, and throw `SessionStoreError` if the store cannot
 * say.
 */
export class SessionManager<
  Data extends object = Record<string, unknown>,
  Ids extends UserIds = 'bigint',
  Input extends object = Data,
> {
  /** Not there at run time: the types that `SessionOf`, `VisitOf` and visits take from a manager. */
  declare readonly '~types'?: { readonly data: Data; readonly userIds: Ids; readonly input: Input }

  /**
   * @throws TypeError that names the option and says what would be right
   * @example
   * const sessions = new SessionManager({ store: new MemoryStore(), userIds: 'string', idleTimeout: '30m' })
   */
  constructor(
    options: SessionOptions<Data, Ids, Input> &
      // biome-ignore lint/complexity/noBannedTypes: whether an empty object would do as data is the question
      ({} extends Data
        ? unknown
        : { initial: () => Data } | { schema: NonNullable<SessionOptions<Data, Ids, Input>['schema']> }),
  ) {
    keepContext(this, Context.of(options as AnyOptions))
  }

  /**
   * Starts a session without a browser: for a user whose credentials were just verified, or anonymous. In a request use
   * `visit.logIn`.
   * @throws SessionError ERR_SESSION_STALE_LOGIN, ERR_SESSION_LIMIT, ERR_SESSION_DATA
   * @throws SessionStoreError with outcome 'unknown': no cookie was set, log in again
   * @example
   * const session = await sessions.create({ user: { id: '42', name: 'ada' } })
   */
  create(login: Login<Data, Ids, Input>): Promise<UserSession<Data, Ids>>
  create(anonymous?: { data?: Partial<Input> }): Promise<Session<Data, Ids>>
  async create(start: Login<Data, Ids, Input> | { data?: Partial<Input> } = {}): Promise<Session<Data, Ids>> {
    const context = contextOf(this).begin()
    // `{ user: undefined }` is a mistake, not a visitor.
    const isLogin = typeof start === 'object' && start !== null && 'user' in start
    return await begin(context, startOf(context, 'create', start, isLogin))
  }

  /**
   * The live session, or `null`. One read; at most once per touch interval also one write, which a poll, a socket or a job
   * declines with `touch: false`. A whole Cookie header is no ID and finds nothing: `sessionId(value)` makes an ID of the
   * value of a cookie.
   * @throws SessionStoreError only if the store fails, so `null` is never an outage
   * @example
   * const session = await sessions.get(sessionId(cookie)) // the value of the cookie
   */
  async get(
    // A SessionRef, written out: TypeScript's message to `get('a text')` then names sessionId.
    session: Session<Data, Ids> | (string & { readonly 'made by sessionId(text)': true }) | null | undefined,
    options?: { touch?: boolean },
  ): Promise<Session<Data, Ids> | null> {
    const context = contextOf(this).begin()
    if (options !== undefined && typeof options?.touch !== 'boolean') checkOptions(GET_OPTIONS, options)
    const id = idOf(context, session)
    if (id === null) return null
    const now = context.now()
    const looking = find(context, id, now)
    const found = isThenable(looking) ? await looking : looking
    if (found !== null)
      return options?.touch === false || !isTouchNow(context, found.record, now, null)
        ? context.session(found)
        : writeTouch(context, found, now, null)
    if (typeof session === 'object' && session !== null && session.expiresAt <= now)
      context.emit({ type: 'expired', key: session.key, userId: session.user?.id ?? null })
    return null
  }

  /**
   * Changes the data and loses no parallel change: sets keys (`undefined` removes one), or runs a function on fresh data,
   * again after a conflict. The session with the new data, or `null` if the session has ended.
   * @throws SessionError ERR_SESSION_DATA (nothing was written), ERR_SESSION_CONFLICT
   * @throws SessionStoreError with outcome 'unknown': the change may have been written; it is not run again
   * @example
   * const changed = await sessions.update(session, { theme: 'dark' })
   */
  update<R>(session: Session<Data, Ids>, change: Change<Data, R>): Promise<Session<Data, Ids> | null> {
    return writeData(contextOf(this).begin(), session, change)
  }

  /**
   * Reads and removes one key, such as a flash message or OAuth state; of parallel callers, one gets it.
   * @example
   * const theme = await sessions.take(session, 'theme')
   */
  async take<Name extends keyof Data & string>(
    session: Session<Data, Ids>,
    name: Name,
  ): Promise<Data[Name] | undefined> {
    return (await takeKey(contextOf(this).begin(), session, name)).value as Data[Name] | undefined
  }

  /**
   * Ends whatever session is there (anyone's) and starts the user's, with a new ID, in one atomic step.
   * @throws SessionError ERR_SESSION_STALE_LOGIN if the password was changed after it was verified, ERR_SESSION_LIMIT
   * @example
   * const next = await sessions.logIn(session, { user: { id: user.id, name: user.name } })
   */
  async logIn(session: SessionRef<Data, Ids>, login: Login<Data, Ids, Input>): Promise<UserSession<Data, Ids>> {
    const context = contextOf(this).begin()
    const start = startOf(context, 'logIn', login, true)
    return (await beginInPlace(context, session, start)) as UserSession<Data, Ids>
  }

  /**
   * Gives the same session a new ID; `null` if the session has ended. The old ID dies at once, or `grace` later (at most
   * '2m', plus 5 minutes because clocks differ), so that parallel requests get the same new cookie. To log in use `logIn`.
   * @throws SessionError ERR_SESSION_CONFLICT also if the session got 32 new IDs within minutes
   * @example
   * const next = await sessions.regenerate(session, { grace: '10s' })
   */
  async regenerate(
    session: SessionRef<Data, Ids>,
    options: { grace?: Duration | undefined } = {},
  ): Promise<Session<Data, Ids> | null> {
    checkOptions(REGENERATE_OPTIONS, options)
    const grace = options.grace === undefined ? null : milliseconds(options.grace, 'grace')
    return regenerate(contextOf(this).begin(), session, grace)
  }

  /**
   * Ends this session for good, its successor too if it got a new ID a moment ago, and the remember token that it began with
   * (for that an ID alone is looked up first). Repeatable.
   * @throws SessionStoreError keep the cookie, answer 503: the call may be repeated
   * @example
   * await sessions.destroy(session)
   */
  async destroy(session: SessionRef<Data, Ids>): Promise<void> {
    const context = contextOf(this).begin()
    const id = idOf(context, session)
    if (id !== null) await logOut(context, context.keyOf(id), typeof session === 'object' ? recordOf(session!) : null)
  }

  /**
   * Logs the user out everywhere: when it resolves, every session and remember token of the user that existed when it was
   * called has ended, and so has every session that began from one of them meanwhile. With `minPasswordVersion`, a login that
   * verified an older password gets no session, even if it finishes hours later. Answers how many sessions it ended.
   * @throws SessionStoreError repeat it until it resolves, before telling the user
   * @example
   * await sessions.invalidateUser(user.id, { except: session, minPasswordVersion: 2 })
   */
  async invalidateUser(
    userId: UserIdInput<Ids>,
    options: { except?: Session<Data, Ids> | SessionKey | null; minPasswordVersion?: number } = {},
  ): Promise<number> {
    const context = contextOf(this).begin()
    const user = context.users.toText(userId)
    checkOptions(INVALIDATE_USER, options)
    return context.endUser(user, keyOfExcept(context, options.except), options.minPasswordVersion)
  }

  /**
   * The user's live sessions, last used first: for a page of devices.
   * @example
   * for (const { key, seenAt } of await sessions.list(user.id)) console.log(key, new Date(seenAt))
   */
  async list(userId: UserIdInput<Ids>): Promise<SessionInfo<Data, Ids>[]> {
    const context = contextOf(this).begin()
    const records = await recordsOfUser(context, context.users.toText(userId))
    return records.map(record => context.info(record, {}) as SessionInfo<Data, Ids>).sort((a, b) => b.seenAt - a.seenAt)
  }

  /**
   * Ends one of this user's sessions by its public key, and the remember token of that device: which the session began with,
   * or which it asked for. A token that was issued before a `logIn` is not among them: end it with `revokeRememberToken`, as
   * `visit.logIn` does. `false` if the user has no such session, even if another user has it.
   * @example
   * const isEnded = await sessions.revoke(user.id, session.key)
   */
  async revoke(userId: UserIdInput<Ids>, key: string): Promise<boolean> {
    const context = contextOf(this).begin()
    const user = context.users.toText(userId)
    if (!isKey(key)) return false
    const record = await context.storedRecord(key)
    if (record?.userId !== user || record.kind !== 'session') return false
    let existed = false
    const endSession = async () => {
      existed = await context.endSession(record.key, record, 'revoked')
    }
    const series = await seriesOfDevice(context, record)
    const end = (each: SessionRecord) => endSeries(context, each, 'revoked', record.key)
    // The token first: while it lives, it could start a session. And again: it may have been asked for meanwhile.
    const again = async () => eachWrite(await seriesOfDevice(context, record), end)
    await eachWrite([...series.map(each => () => end(each)), endSession, again], step => step())
    return existed
  }

  /**
   * A remember token for the device of this session: to be sent once, as a cookie of its own. The session may have got a
   * new ID by `regenerate` whose grace lasts.
   * @throws SessionError ERR_SESSION_UNAUTHENTICATED if the session ended meanwhile
   * @example
   * const token = await sessions.issueRememberToken(session)
   */
  issueRememberToken(session: UserSession<Data, Ids>): Promise<string> {
    return issueToken(contextOf(this).begin(), session)
  }

  /**
   * Starts a session with a remember token: the session, and the token that replaces it if it was used for the first time.
   * `null` if it is worth nothing: unknown, expired, revoked, or stolen; or if the user is at a limit that refuses: then it
   * works again as soon as a session is free.
   * @example
   * const redeemed = await sessions.redeemRememberToken(cookie)
   */
  redeemRememberToken(token: string): Promise<Redeemed<Data, Ids> | null> {
    return redeemToken(contextOf(this).begin(), token)
  }

  /**
   * Ends a remember token, with the sessions that it started. Repeatable.
   * @example
   * await sessions.revokeRememberToken(cookie)
   */
  revokeRememberToken(token: string): Promise<void> {
    return revokeToken(contextOf(this).begin(), token)
  }

  /**
   * Whether a password (not a remember token) was verified at most `within` ago: fresh authentication, for actions that a
   * borrowed browser must not take (OWASP ASVS 5.0, 7.5.1).
   * @example
   * if (!sessions.isFresh(session, '15m')) response.writeHead(303, { Location: '/login' }).end()
   */
  isFresh(session: Session<Data, Ids> | null, within: Duration): boolean {
    const limit = milliseconds(within, 'within')
    if (session?.user == null || session.remembered) return false
    const context = contextOf(this)
    const { data, createdAt } = recordOfSnapshot(context, session)
    const { verifiedAt = createdAt } = unpackMeta(data).meta
    return verifiedAt !== null && context.now() - verifiedAt <= limit
  }

  /**
   * The same manager for one tenant: its keys and user IDs meet no other tenant's. Call it at each request: the memory of
   * this process is shared with the parent.
   * @example
   * const list = await sessions.namespace('acme').list(user.id)
   */
  namespace(name: string): this {
    if (typeof name !== 'string' || !NAMESPACE_NAME.test(name))
      throw new TypeError(`namespace: expected 1 to 32 of the characters A-Z a-z 0-9 _ . -, got ${quote(name)}`)
    const context = contextOf(this)
    if (context.namespace !== null) throw new TypeError('namespace: a namespace has no namespaces of its own')
    const known = context.local.namespaces.get(name, 0) as this | undefined
    if (known !== undefined) return known
    // Not made by a constructor, which takes options: this manager, of whatever class, over a context of its own.
    const tenant: this = keepContext(Object.create(this), context.forNamespace(name))
    context.local.namespaces.set(name, tenant, 0)
    return tenant
  }

  /**
   * Sets keys in the data of all live sessions of a user, such as a role that was given or taken; `undefined` removes one.
   * Commit it to your own table of users first: a session that begins while this runs may have the keys or not. None is
   * prolonged. Two calls at once may leave some sessions with the one and some with the other: repeat the right one. Answers
   * how many sessions were written to.
   * @throws SessionError ERR_SESSION_DATA if one session cannot hold the keys (the others have them), ERR_SESSION_CONFLICT
   * @throws SessionStoreError some sessions may have the keys: repeat it
   * @example
   * const written = await sessions.updateUserSessions(user.id, { theme: 'dark' })
   */
  async updateUserSessions(userId: UserIdInput<Ids>, keys: Partial<Data>): Promise<number> {
    const context = contextOf(this).begin()
    const user = context.users.toText(userId)
    if (!isPlain(keys)) throw new TypeError(`updateUserSessions: expected keys to set, got ${quote(keys)}`)
    const records = await recordsOfUser(context, user)
    return updateEach(records, record => writeRecord(context.begin(), record, keys))
  }

  /**
   * How many live sessions there are, anonymous ones too; of a namespace, only those of its users. If the store cannot count
   * by itself, and for a namespace, it walks over everything stored: then a session that gets a new ID, begins or ends
   * meanwhile may count or not. `signal` ends the walk after the page under way, with its reason.
   * @throws TypeError if the store has neither `count` nor `scan`
   * @example
   * const live = await sessions.count()
   */
  count(options: { signal?: AbortSignal | undefined } = {}): Promise<number> {
    return countSessions(contextOf(this), options)
  }

  /**
   * All live sessions, page by page, in the store's own order: of all namespaces, with anonymous ones; of a namespace,
   * only those of its users. Each is shown as it was when its page was read, and one that gets a new ID meanwhile under
   * the old key, the new one, both, or neither. The option `getPasswordVersion` is not asked. You may take your time between
   * two sessions, and leave the loop at any time.
   * @param options - `pageSize`: how many the store is asked for at once, 1 to 1000, by default 500; `signal` ends the
   * walk with its reason
   * @throws TypeError if the store has no `scan`
   * @example
   * for await (const { key, user, seenAt } of sessions.all()) console.log(key, user?.id, seenAt)
   */
  all(
    options: { signal?: AbortSignal | undefined; pageSize?: number | undefined } = {},
  ): AsyncGenerator<StoredSession<Data, Ids>, void, void> {
    const context = contextOf(this)
    const storedOf = (record: SessionRecord) => {
      const { userId } = record
      const own = context.ofUser(userId)
      // Left out if its user ID is of another kind: another application shares the store.
      if (userId !== null && own.userIdOf(record) === null) return null
      // Only the key of an anonymous session depends on the namespace, and a key cannot be read.
      return own.info(record, { namespace: userId && own.namespace }) as StoredSession<Data, Ids>
    }
    return allSessions(context, options, storedOf)
  }

  /**
   * Logs everyone out: when it resolves, every session and every remember token that existed when it was called has ended,
   * and so has every session that began from one of them meanwhile, whatever clock this machine has. A user who logs in
   * while it runs stays logged in or not. Of a namespace it ends the sessions of its users; anonymous ones cannot be told apart. Answers how many live
   * sessions it ended.
   * @throws TypeError if the store has no `scan`
   * @throws SessionStoreError some are ended: repeat it until it resolves. The message says how many.
   * @example
   * const ended = await sessions.invalidateAll()
   */
  async invalidateAll(options: InvalidateAllOptions = {}): Promise<number> {
    const context = contextOf(this)
    checkOptions(INVALIDATE_ALL, options)
    const exceptKey = keyOfExcept(context, options.except)
    requireScan(context, 'invalidateAll')
    return invalidateAll(context, options, exceptKey)
  }

  /** Removes records that expired at least 5 minutes ago, in small steps. Answers how many; 0 if the store removes them itself. */
  sweep(): Promise<number> {
    return contextOf(this).sweeper.sweep()
  }

  /** The options in effect, for code built over a manager: a middleware, a store of another library, a server of your own. */
  get options(): ManagerOptions<Data, Ids> {
    const context = contextOf(this)
    const { userIds, idle, absolute } = context.options
    return {
      userIds: userIds as Ids,
      idleTimeout: idle,
      absoluteTimeout: absolute,
      now: () => context.now(),
      initial: () => context.shape.start() as Data,
      onEvent: event => context.emit(event as SessionEvent),
    }
  }

  /**
   * Stops the sweep timer and closes the store (which leaves the application's database client open).
   * @example
   * await sessions.close()
   */
  close(): Promise<void> {
    return contextOf(this).close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

/** The type of the sessions of a manager: `SessionOf<typeof sessions>`. */
export type SessionOf<Manager> =
  Manager extends SessionManager<infer Data, infer Ids, infer _> ? Session<Data, Ids> : never
