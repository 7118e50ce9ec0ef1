import type { Change } from '../data/change.ts'
import type { SessionManager } from '../manager/manager.ts'
import type { Session, UserSession } from '../session/session.ts'
import type { Login, UserIds } from '../session/users.ts'
import type { Duration } from '../text/duration.ts'
import type { ResponseCookie } from './cookie.ts'
import type { HeadRules } from './head.ts'

/** One request's handle on its session. Reads the store once at most; sends cookies by itself. Methods that write run one after the other. */
export interface Visit<
  Data extends object = Record<string, unknown>,
  Ids extends UserIds = 'bigint',
  Input extends object = Data,
> {
  /**
   * The session of this request, or `null`; if there is none, a remember token starts one. `touch: false` does not keep it
   * alive: for polling.
   * @throws SessionStoreError if the store cannot say; then no cookie is changed
   * @throws SessionError ERR_SESSION_CROSS_ORIGIN, as every method does
   * @example
   * const session = await visits.of(request, response).get()
   * response.end(`Hello ${session?.user?.name ?? 'visitor'}`)
   */
  get(options?: { touch?: boolean }): Promise<Session<Data, Ids> | null>
  /**
   * The session of a logged-in user, else a 401. `freshWithin: '15m'`: only if the password was checked that recently.
   * @throws SessionError ERR_SESSION_UNAUTHENTICATED, ERR_SESSION_NOT_FRESH (both 401)
   * @example
   * const { user } = await visits.of(request, response).requireUser({ freshWithin: '15m' })
   */
  requireUser(options?: { freshWithin?: Duration }): Promise<UserSession<Data, Ids>>
  /**
   * Starts an anonymous session; the one that this browser had before ends.
   * @throws SessionError ERR_SESSION_CONFLICT if another request of this browser logged in or out at the same time
   * @example
   * await visit.create({ data: { theme: 'dark' } })
   */
  create(anonymous?: { data?: Partial<Input> }): Promise<Session<Data, Ids>>
  /**
   * Changes the data; starts an anonymous session if there is none. `null` if the session ended while the request was
   * running, or if this browser logged in or out a moment before: then none starts in its place.
   * @throws SessionError ERR_SESSION_DATA (nothing was written), ERR_SESSION_CONFLICT
   * @example
   * await visit.update({ theme: 'dark' }) // one key
   * await visit.update(data => void data.cart.push('hat')) // fresh data, and run again after a conflict
   */
  update<R>(change: Change<Data, R>): Promise<Session<Data, Ids> | null>
  /**
   * Reads and removes one key of the data in one step: flash messages, OAuth state. Of parallel requests, one gets it.
   * `undefined`, and no write, if the session or the key is absent.
   * @example
   * const notice = await visit.take('notice')
   */
  take<K extends keyof Data & string>(key: K): Promise<Data[K] | undefined>
  /**
   * Logs in a user you have just verified: new session, new ID, new cookie; what the browser had before ends, by whichever of
   * its cookies. `remember` keeps this browser logged in.
   * @throws SessionError ERR_SESSION_STALE_LOGIN if the password was changed after it was checked, ERR_SESSION_LIMIT
   * @example
   * const user = await checkPassword(name, password) // yours
   * await visit.logIn({ user: { id: user.id, name: user.name }, remember: form.has('remember') })
   */
  logIn(login: VisitLogin<Data, Ids, Input>): Promise<UserSession<Data, Ids>>
  /**
   * Gives the same session a new ID, `null` without a session. The old ID dies at once; with `grace` (at most `'2m'`) it
   * leads to the session that much longer, so that parallel requests get the same new cookie. To log someone in use `logIn`.
   * @example
   * await visit.regenerate({ grace: '10s' })
   */
  regenerate(options?: { grace?: Duration }): Promise<Session<Data, Ids> | null>
  /**
   * Ends this browser's session and remember token, and clears both cookies. Works without a session, repeatable.
   * @throws SessionStoreError if the store does not answer: the cookies stay, answer 503
   * @throws SessionError ERR_SESSION_CONFLICT if more than four cookies of one of our names came: not all have ended
   * @example
   * await visits.of(request, response).logOut()
   * response.writeHead(303, { Location: '/' }).end()
   */
  logOut(): Promise<void>
  /**
   * Runs `leave` when this browser leaves what it came with: in `logIn`, and at the end of `logOut`, for a session that another
   * service keeps for it. If it fails, so does the call: the login has no session, and the logout clears no cookie. It may run
   * again, and must not call the visit.
   * @example
   * visit.onLeave(() => fetch('https://old.example/logout', { method: 'POST' }))
   */
  onLeave(leave: () => unknown): void
  /**
   * Refuses what a page of another origin sends to change something, before your handler does anything; every other method
   * does so by itself. It reads no store, and `fetchVisits`' `handle` has called it.
   * @throws SessionError ERR_SESSION_CROSS_ORIGIN (403)
   * @example
   * visits.of(request, response).checkOrigin() // the first line of a handler, or a middleware of its own
   */
  checkOrigin(): void
  /**
   * A token for a form of this session, masked afresh at each call; `null` without a session.
   * @example
   * response.end(`<form method="post"><input type="hidden" name="csrf" value="${await visit.csrfToken()}"></form>`)
   */
  csrfToken(): Promise<string | null>
  /**
   * Lets a form through if it brings the token that `csrfToken()` gave this session. For forms that other origins may send,
   * since requests of foreign pages are refused without it.
   * @throws SessionError ERR_SESSION_CSRF (403) unless `token` is this session's, masked or not
   * @example
   * await visit.checkCsrf(form.get('csrf')) // the form has what `await visit.csrfToken()` gave
   */
  checkCsrf(token: unknown): Promise<void>
  /**
   * The response is sent now: what it needs, as headers, and the cookies among them for a cookie jar. Call it after the last
   * method, and send what it returns; `nodeVisits` and `fetchVisits` do so by themselves. A session whose visit did not
   * finish is told by the event `unsent-cookie`. After another method call it again.
   * @example
   * new Response('Welcome.', { headers: visit.finish().headers })
   */
  finish(): { readonly headers: Headers; readonly cookies: readonly ResponseCookie[] }
  /** The headers that the response would need if it were sent now. To look changes nothing. */
  readonly headers: Headers
  /** The cookies among `headers`. To look changes nothing. */
  readonly cookies: readonly ResponseCookie[]
}

/** What `visit.logIn` takes: the manager's login, and whether the browser gets a remember token. */
export type VisitLogin<
  Data extends object = Record<string, unknown>,
  Ids extends UserIds = 'bigint',
  Input extends object = Data,
> = Login<Data, Ids, Input> & {
  remember?: boolean
}

/** The type of the visits to a manager: `VisitOf<typeof sessions>`. */
export type VisitOf<M> = M extends SessionManager<infer Data, infer Ids, infer Input> ? Visit<Data, Ids, Input> : never

/** The request as a visit needs to know it: for a server of your own, passed to `openVisit`. */
export interface VisitRequest {
  readonly method: string
  /** The Cookie header, or its lines. */
  readonly cookie: string | readonly string[] | null | undefined
  /** Whether the request came over TLS as far as the browser is concerned. */
  readonly secure: boolean
  /** A WebSocket handshake or the like: it is a GET, but guarded as an unsafe request. */
  readonly upgrade?: boolean | undefined
  header(name: 'origin' | 'sec-fetch-site' | 'host'): string | null | undefined
  /** Whether cookies can still be sent. @default always */
  canSend?(): boolean
  /** Whether the head of the response was sent, and more of it follows: a read is a use of the session then too. @default never */
  isLate?(): boolean
  /** Called before the response first depends on a cookie: `rules` says what its head has to carry, once it is written. */
  onHeadRules?(rules: () => HeadRules): void
  /** Whether the response is still to come: then a cookie that is not in it yet is not lost. @default never */
  isPending?(): boolean
}
