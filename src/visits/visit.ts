import type { Change } from '../data/change.ts'
import type { SessionManager } from '../manager/manager.ts'
import type { Session, UserSession } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import type { Login } from '../session/users.ts'
import type { Duration } from '../text/duration.ts'
import type { ResponseCookie } from './cookie.ts'
import type { HeadRules } from './head-rules.ts'

/**
 * What one request does with its session: the manager's verbs without the ID. It reads the store at most once. Verbs that
 * write take turns, so that each sees what the one before it left.
 */
export interface Visit<
  D extends object = Record<string, unknown>,
  I extends UserIds = 'bigint',
  In extends object = D,
> {
  /**
   * The live session of this request, or `null`. Where there is none, a remember token starts one. `touch: false` does not
   * extend the session: for polls, which are not a sign of a user.
   * @throws SessionStoreError where the store cannot say; then no cookie is changed
   * @throws SessionError ERR_SESSION_CROSS_ORIGIN, as every verb does
   */
  get(options?: { touch?: boolean }): Promise<Session<D, I> | null>
  /**
   * The session of a logged-in user; with `within`, of one whose password was verified at most that long ago.
   * @throws SessionError ERR_SESSION_UNAUTHENTICATED, ERR_SESSION_NOT_FRESH (both 401)
   */
  requireUser(options?: { freshWithin?: Duration }): Promise<UserSession<D, I>>
  /**
   * Begins an anonymous session; one that this browser had before ends.
   * @throws SessionError ERR_SESSION_CONFLICT where a parallel request of this browser logged in or out
   */
  create(anonymous?: { data?: Partial<In> }): Promise<Session<D, I>>
  /**
   * Writes data. Where there is no session it begins an anonymous one. `null` where the session ended while the request
   * was under way, or where this browser logged in or out a moment before: then none begins in its place.
   * @throws SessionError ERR_SESSION_DATA (nothing was written), ERR_SESSION_CONFLICT
   */
  update<R>(change: Change<D, R>): Promise<Session<D, I> | null>
  /**
   * Reads and removes one key of the data in one step: flash messages, OAuth state. Of several requests that take it, one
   * gets the value. `undefined`, and no write, where the session or the key is absent.
   */
  take<N extends keyof D & string>(name: N): Promise<D[N] | undefined>
  /**
   * Login of a user whose credentials were verified just now: a new session with a new ID; whatever the browser had
   * before ends. With `remember: true` the browser also gets a remember token.
   * @throws SessionError ERR_SESSION_STALE_LOGIN where the password was changed after it was verified, ERR_SESSION_LIMIT
   */
  logIn(login: VisitLogin<D, I, In>): Promise<UserSession<D, I>>
  /**
   * Gives the same session a new ID; `null` if it has ended. The old ID is dead at once. With `grace` (at most 2 minutes)
   * it leads to the new session that long, so that parallel requests get the same new cookie. To log someone in use
   * `logIn`, and also if the session gets more rights, such as after a second factor.
   */
  regenerate(options?: { grace?: Duration }): Promise<Session<D, I> | null>
  /**
   * Logout: ends the session and the remember-me series of this browser, and clears both cookies. It also works without a
   * session, and may be repeated.
   * @throws SessionStoreError where the store does not answer: the cookies stay, answer 503
   */
  logOut(): Promise<void>
  /** A token for a form of this session, masked afresh at each call; `null` without a session. */
  csrfToken(): Promise<string | null>
  /** @throws SessionError ERR_SESSION_CSRF (403) unless `token` is this session's, masked or not */
  checkCsrf(token: unknown): Promise<void>
  /** What the response has to carry so far. `nodeVisits` and `fetchVisits` send it by themselves. */
  readonly headers: Headers
  /**
   * The cookies among `headers`, for a cookie jar of a framework: `for (const { name, value, options } of visit.cookies)
   * jar.set(name, value, options)`. It is asked after the last verb, and then the jar has to send them.
   */
  readonly cookies: readonly ResponseCookie[]
}

/** What `visit.logIn` takes: the manager's login, and whether the browser gets a remember token. */
export type VisitLogin<
  D extends object = Record<string, unknown>,
  I extends UserIds = 'bigint',
  In extends object = D,
> = Login<D, I, In> & {
  remember?: boolean
}

/** The type of the visits to a manager: `VisitOf<typeof sessions>`. */
export type VisitOf<M> = M extends SessionManager<infer D, infer I, infer In> ? Visit<D, I, In> : never

/** What a visit has to know about its request: an adapter of your own says it to `openVisit`. */
export interface VisitRequest {
  readonly method: string
  /** The Cookie header, or its lines. */
  readonly cookie: string | readonly string[] | null | undefined
  /** Whether the request came over TLS as far as the browser is concerned. */
  readonly secure: boolean
  /** A WebSocket handshake or the like: it is a GET, but guarded as an unsafe request. */
  readonly upgrade?: boolean | undefined
  header(name: 'origin' | 'sec-fetch-site' | 'sec-fetch-mode' | 'host'): string | null | undefined
  /** Whether cookies can still be sent. @default always */
  canSend?(): boolean
  /** Called before the response first depends on a cookie: `rules` says what its head has to carry, once it is written. */
  onHeadRules?(rules: () => HeadRules): void
  /** Whether the response is still to come: then a cookie that is not in it yet is not lost. @default never */
  isPending?(): boolean
}
