import { refuseCallbacks } from '../callbacks.ts'
import { checkOptionNames } from '../check-options.ts'
import type { Context } from '../context.ts'
import { type CookieOptions, SessionCookie } from '../cookie.ts'
import type { Change } from '../data/change.ts'
import type { Duration } from '../duration.ts'
import { SessionError } from '../errors.ts'
import { EDGE_HINTS, EDGE_OPTIONS } from '../hints.ts'
import { contextOf, type SessionManager } from '../manager.ts'
import { DEFAULTS } from '../options.ts'
import { quote } from '../quote.ts'
import type { Session, UserSession } from '../session.ts'
import type { UserIds } from '../user-id.ts'
import type { Login } from '../users.ts'
import { isCrossOrigin } from './cross-origin.ts'
import { isToken, maskToken } from './csrf.ts'
import type { HeadDemands } from './demands.ts'
import { checkSessions, checkVisitRequest } from './expect.ts'
import { originSet } from './origins.ts'
import type { SecureOptions } from './secure.ts'
import { type Advice, ofVisits, tellLost, Watch } from './unsent.ts'

/** One request's dealings with its session: the manager's verbs without the ID. Reads the store at most once. */
export interface Visit<D extends object, I extends UserIds, In extends object> {
  /**
   * The live session of this request, or `null`. Where there is none, a remember token begins one.
   * @throws SessionStoreError where the store cannot say (no cookie is touched)
   * @throws SessionError ERR_SESSION_CROSS_ORIGIN, as every verb does
   */
  get(options?: { touch?: boolean }): Promise<Session<D, I> | null>
  /**
   * The session of a logged-in user; with `within`, of one whose password was verified at most that long ago.
   * @throws SessionError ERR_SESSION_UNAUTHENTICATED, ERR_SESSION_NOT_FRESH (both 401)
   */
  requireUser(options?: { within?: Duration }): Promise<UserSession<D, I>>
  /** Begins an anonymous session; one that this browser had before ends. */
  create(anonymous?: { data?: Partial<In> }): Promise<Session<D, I>>
  /** Writes data; begins an anonymous session where there is none. `null` where the session ended meanwhile. */
  update<R>(change: Change<D, R>): Promise<Session<D, I> | null>
  take<N extends keyof D & string>(name: N): Promise<D[N] | undefined>
  regenerate(): Promise<Session<D, I> | null>
  /** Log-in. With `remember: true` the browser also gets a remember token. */
  regenerate(login: Login<D, I, In> & { remember?: boolean }): Promise<UserSession<D, I>>
  /** Periodic rotation: for the grace time the old ID leads to the new session. Never at a login. */
  renew(options: { grace: Duration }): Promise<Session<D, I> | null>
  /** Log-out: ends the session and the remember-me series of this browser, and clears both cookies. */
  destroy(): Promise<void>
  /** A token for a form of this session, masked afresh at each call; `null` without a session. */
  csrfToken(): Promise<string | null>
  /** @throws SessionError ERR_SESSION_CSRF (403) unless `token` is this session's, masked or not */
  checkCsrf(token: unknown): Promise<void>
  /** What the response has to carry so far. The edges put it in by themselves. */
  readonly headers: Headers
}

/** Names of `Clear-Site-Data`, see https://www.w3.org/TR/clear-site-data/ */
export type ClearSiteData = 'cache' | 'cookies' | 'storage' | 'executionContexts'

export interface EdgeOptions<R> extends SecureOptions<R> {
  cookie?: CookieOptions
  /** Name of the remember token's cookie; its other attributes are the session cookie's. @default 'remember_token' */
  rememberName?: string
  /** Other origins whose pages may send unsafe requests, exactly as in `Origin`. @default none */
  origins?: readonly string[]
  /** What the browser drops at log-out. `'cookies'` empties the whole registrable domain's jar. @default none */
  clearSiteData?: readonly ClearSiteData[]
}

/** Of `openVisit`: the request itself says what is HTTPS. */
export type VisitOptions = Omit<EdgeOptions<never>, keyof SecureOptions<never>>

/** What an edge is told about a request. */
export interface VisitRequest {
  readonly method: string
  /** The Cookie header, or its lines. */
  readonly cookie: string | readonly string[] | null | undefined
  /** Whether the request came over TLS as far as the browser is concerned. */
  readonly secure: boolean
  /** A WebSocket handshake or the like: guarded as an unsafe request, though a GET. */
  readonly upgrade?: boolean | undefined
  header(name: 'origin' | 'sec-fetch-site' | 'host'): string | null | undefined
  /** Whether cookies can still be sent. @default always */
  canSend?(): boolean
  /** Called before the response first depends on a cookie. */
  onDemands?(demands: () => HeadDemands): void
  /** Whether the response is still to come, so that a cookie which is not in it yet is not lost. @default never */
  isPending?(): boolean
}

const CLEARABLE: readonly ClearSiteData[] = ['cache', 'cookies', 'storage', 'executionContexts']
/** An ambiguous header may hold a thousand IDs; a log-out ends the sessions of the first few. */
const MAX_CANDIDATES = 4

/** Options of an edge, checked once. */
export interface EdgeSetup {
  readonly cookie: SessionCookie
  readonly rememberCookie: SessionCookie
  readonly origins: ReadonlySet<string>
  readonly clearSiteData: string | null
  readonly advice: Advice
}

/** @throws TypeError that quotes the option */
export function setUpEdge(options: EdgeOptions<never>, advice: Advice): EdgeSetup {
  const { edge, lacks } = advice
  const known = EDGE_OPTIONS.filter(name => !Object.hasOwn(lacks, name))
  checkOptionNames(edge, options, known, { ...EDGE_HINTS, ...lacks })
  const cookie = new SessionCookie(options.cookie)
  const { clearDomains: _, name: __, ...attributes } = options.cookie ?? {}
  const rememberCookie = new SessionCookie({
    ...attributes,
    hostPrefix: /^__host-/i.test(cookie.name),
    name: options.rememberName ?? DEFAULTS.rememberName,
  })
  if (rememberCookie.name === cookie.name)
    throw new TypeError(`rememberName: ${quote(cookie.name)} is the session cookie's name`)
  const { clearSiteData } = options
  if (clearSiteData !== undefined) {
    if (!Array.isArray(clearSiteData))
      throw new TypeError(`clearSiteData: expected an array of names, got ${quote(clearSiteData)}`)
    for (const name of clearSiteData)
      if (!CLEARABLE.includes(name))
        throw new TypeError(`clearSiteData: expected ${CLEARABLE.map(quote).join(', ')}, got ${quote(name)}`)
  }
  return {
    cookie,
    rememberCookie,
    origins: originSet(options.origins, 'origins'),
    clearSiteData: clearSiteData?.length ? clearSiteData.map(name => `"${name}"`).join(', ') : null,
    advice,
  }
}

/** What an edge is made of: write one for any server or cookie jar. */
export function openVisit<D extends object, I extends UserIds, In extends object>(
  sessions: SessionManager<D, I, In>,
  request: VisitRequest,
  options?: VisitOptions,
): Visit<D, I, In> {
  checkSessions('openVisit', sessions)
  checkVisitRequest(request)
  return new RequestVisit(sessions, request, setUpOnce(options))
}

const setups = new WeakMap<object, EdgeSetup>()
const plain: VisitOptions = {}

/** Options are checked once as long as they are the same object. */
function setUpOnce(options: VisitOptions = plain): EdgeSetup {
  let setup = setups.get(options)
  if (!setup) {
    setup = setUpEdge(options, ofVisits)
    setups.set(options, setup)
  }
  return setup
}

const crossOrigin = () =>
  new SessionError(
    'ERR_SESSION_CROSS_ORIGIN',
    "a page of another origin sent this request; list it in the edge's `origins` if it may",
  )

const insecure = (advice: Advice) =>
  new SessionError(
    'ERR_SESSION_INSECURE',
    `this request did not come over HTTPS; ${advice.insecure}, to do without HTTPS set \`cookie: { secure: false }\``,
  )

const headersSent = () =>
  new SessionError(
    'ERR_SESSION_HEADERS_SENT',
    'no cookie can be sent: there is no response, or its head was sent already; begin sessions before that',
  )

const TOUCH = { touch: true } as const
const NO_TOUCH = { touch: false } as const

const noDemands: HeadDemands = { cookies: [], cookieNames: [], vary: [], noStore: false, others: [] }
const looked: HeadDemands = { ...noDemands, vary: ['Cookie'] }
const lookedWithResult: HeadDemands = { ...looked, noStore: true }

export class RequestVisit<D extends object, I extends UserIds, In extends object> implements Visit<D, I, In> {
  static {
    refuseCallbacks('visit', RequestVisit.prototype, { update: 0, except: ['demands'] })
  }

  readonly #sessions: SessionManager<D, I, In>
  readonly #context: Context<D, I, In>
  readonly #request: VisitRequest
  readonly #setup: EdgeSetup
  /** Whether the guards have let the request through. */
  #isOpen = false
  /** A Secure cookie that came without TLS: not looked at. */
  #isLocked = false
  #isAmbiguous = false
  /** What the cookie contained. */
  #id: string | null = null
  #reading: Promise<Session<D, I> | null> | null = null
  /** The session as this request knows it; `undefined` until it was looked for. */
  #session: Session<D, I> | null | undefined = undefined
  #isStale = false
  #failed = false
  #cookie: 'keep' | 'send' | 'clear' = 'keep'
  #remember: 'keep' | 'clear' | { readonly token: string; readonly maxAge: number } = 'keep'
  /** What began here, and can reach the browser by this response alone. */
  #begun: { readonly session: Session<D, I>; readonly token: string | null } | null = null
  /** Runs from the moment when a cookie has to be sent until it is in a head. */
  #watch: Watch | null = null

  constructor(sessions: SessionManager<D, I, In>, request: VisitRequest, setup: EdgeSetup) {
    this.#sessions = sessions
    this.#context = contextOf(sessions)
    this.#request = request
    this.#setup = setup
  }

  get headers(): Headers {
    const headers = new Headers()
    const { cookies, vary, noStore, others } = this.demands()
    for (const cookie of cookies) headers.append('Set-Cookie', cookie)
    for (const name of vary) headers.append('Vary', name)
    if (noStore) headers.set('Cache-Control', 'no-store')
    for (const [name, value] of others) headers.set(name, value)
    return headers
  }

  get(options?: { touch?: boolean }): Promise<Session<D, I> | null> {
    try {
      if (options !== undefined && options.touch === undefined) checkOptionNames('get', options, ['touch'])
      this.#open()
    } catch (error) {
      return Promise.reject(error)
    }
    return this.#get(options?.touch)
  }

  async requireUser(options: { within?: Duration } = {}): Promise<UserSession<D, I>> {
    // Misspelt, `within` would let a stolen session through.
    checkOptionNames('requireUser', options, ['within'])
    const session = await this.get()
    if (session?.user == null) throw new SessionError('ERR_SESSION_UNAUTHENTICATED', 'nobody is logged in')
    if (options.within !== undefined && !this.#sessions.isFresh(session, options.within))
      throw new SessionError(
        'ERR_SESSION_NOT_FRESH',
        `this needs a password that was verified at most ${options.within} ago`,
      )
    return session as UserSession<D, I>
  }

  async create(anonymous?: { data?: Partial<In> }): Promise<Session<D, I>> {
    this.#open()
    this.#mayBegin()
    const before = await this.#get(false)
    this.#mayBegin()
    const session = await this.#begin(anonymous)
    if (before !== null) await this.#orEnd(session, () => this.#sessions.destroy(before))
    return this.#send(session)
  }

  async update<R>(change: Change<D, R>): Promise<Session<D, I> | null> {
    this.#open()
    const session = await this.#get()
    if (session !== null) return this.#adopt(await this.#sessions.update(session, change))
    this.#mayBegin()
    const begun = await this.#begin()
    return this.#send((await this.#orEnd(begun, () => this.#sessions.update(begun, change))) ?? begun)
  }

  async take<N extends keyof D & string>(name: N): Promise<D[N] | undefined> {
    this.#open()
    const session = await this.#get()
    if (session === null || !Object.hasOwn(session.data as object, name)) return undefined
    const value = await this.#sessions.take(session, name)
    this.#isStale = true
    return value
  }

  regenerate(): Promise<Session<D, I> | null>
  regenerate(login: Login<D, I, In> & { remember?: boolean }): Promise<UserSession<D, I>>
  async regenerate(login?: Login<D, I, In> & { remember?: boolean }): Promise<Session<D, I> | null> {
    this.#open()
    return login === undefined ? this.#reissue(current => this.#sessions.regenerate(current)) : this.#login(login)
  }

  async renew(options: { grace: Duration }): Promise<Session<D, I> | null> {
    this.#open()
    return this.#reissue(current => this.#sessions.renew(current, options), false)
  }

  async destroy(): Promise<void> {
    this.#open()
    const { cookie } = this.#setup
    const current = (await this.#current()) ?? this.#id
    const { cookie: header } = this.#request
    // First: a token that is still good must not bear the session again.
    const tokens = this.#tokens()
    for (const token of tokens) await this.#sessions.forget(token)
    // Of several, one is the user's own; and what arrived without TLS is honoured for nothing but this.
    if (this.#isAmbiguous || this.#isLocked)
      for (const id of cookie.candidates(header, MAX_CANDIDATES)) await this.#sessions.destroy(id)
    await this.#sessions.destroy(current)
    this.#know(null)
    this.#id = null
    this.#cookie = 'clear'
    this.#remember = tokens.length > 0 ? 'clear' : 'keep'
    this.#settle()
  }

  async csrfToken(): Promise<string | null> {
    const session = await this.get()
    return session === null ? null : maskToken(session.csrfToken)
  }

  async checkCsrf(token: unknown): Promise<void> {
    const session = await this.get()
    if (session === null || !isToken(session.csrfToken, token))
      throw new SessionError('ERR_SESSION_CSRF', "the token is missing, or not this session's")
  }

  /** What the response has to carry, if its head were written now. */
  demands(): HeadDemands {
    if (!this.#isOpen) return noDemands
    this.#stopWatch()
    const cookies = this.#cookies()
    if (cookies.length === 0 && this.#cookie !== 'clear')
      return this.#session || this.#failed ? lookedWithResult : looked
    const { cookie, rememberCookie, clearSiteData } = this.#setup
    return {
      cookies,
      cookieNames: [
        ...(this.#cookie !== 'keep' ? [cookie.name] : []),
        ...(this.#remember !== 'keep' ? [rememberCookie.name] : []),
      ],
      vary: looked.vary,
      noStore: true,
      others: this.#cookie === 'clear' && clearSiteData !== null ? [['Clear-Site-Data', clearSiteData]] : [],
    }
  }

  /** No response will carry what began here, so that nobody can hold it: it ends, and the remember token with it. */
  async abandon(reason: string): Promise<void> {
    const begun = this.#begun
    this.#settle()
    if (begun === null) return
    const { session, token } = begun
    this.#know(null)
    this.#cookie = 'keep'
    this.#remember = 'keep'
    // The token first: it must not begin the session again. What fails was told as an event, and ends by its own clock.
    if (token !== null) await this.#sessions.forget(token).catch(() => {})
    await this.#sessions.destroy(session).catch(() => {})
    tellLost(this.#context, session.key, reason, this.#setup.advice)
  }

  #settle(): void {
    this.#begun = null
    this.#stopWatch()
  }

  #stopWatch(): void {
    this.#watch?.stop()
    this.#watch = null
  }

  /** The remember tokens that this browser has, or would get by this response. */
  #tokens(): string[] {
    const tokens = this.#setup.rememberCookie.candidates(this.#request.cookie, MAX_CANDIDATES)
    return typeof this.#remember === 'object' ? [...tokens, this.#remember.token] : tokens
  }

  #mustSend(session: Session<D, I>): void {
    this.#cookie = 'send'
    this.#watch ??= Watch.start(() => {
      this.#watch = null
      if (!this.#request.isPending?.()) tellLost(this.#context, session.key, null, this.#setup.advice)
    })
  }

  #cookies(): string[] {
    const { cookie, rememberCookie } = this.#setup
    const cookies = this.#isAmbiguous ? cookie.clearPlanted() : []
    if (this.#cookie === 'clear') cookies.push(cookie.clear())
    // Ended in this process meanwhile: a slow response must not overwrite the cookie of a login.
    else if (this.#cookie === 'send' && this.#session && !this.#context.endedHere(this.#session))
      cookies.push(cookie.serialize(this.#session))
    if (this.#remember === 'clear') cookies.push(rememberCookie.clear())
    else if (this.#remember !== 'keep')
      cookies.push(rememberCookie.serializeValue(this.#remember.token, this.#remember.maxAge))
    return cookies
  }

  /** Before the cookie is looked at: the guards, and the response hears of us. */
  #open(): void {
    if (this.#isOpen) return
    const request = this.#request
    const { cookie, origins } = this.#setup
    if (isCrossOrigin(request, origins)) throw crossOrigin()
    this.#isOpen = true
    request.onDemands?.(() => this.demands())
    if (cookie.secure && !request.secure) {
      this.#isLocked = true
      return
    }
    const { id, ambiguous } = cookie.parse(request.cookie)
    this.#id = id
    if (ambiguous) {
      this.#isAmbiguous = true
      this.#context.emit({ type: 'ambiguous-cookie' })
    }
  }

  #canSend(): boolean {
    return this.#request.canSend?.() ?? true
  }

  /** @throws SessionError where a session that began now could not be sent: nothing has been stored yet */
  #mayBegin(): void {
    if (!this.#canSend()) throw headersSent()
    if (this.#isLocked) throw insecure(this.#setup.advice)
  }

  #get(touch?: boolean): Promise<Session<D, I> | null> {
    if (this.#isStale) {
      this.#isStale = false
      this.#reading = this.#sessions.get(this.#session, { touch: false }).then(session => this.#adopt(session))
    }
    if (this.#reading === null)
      this.#reading = this.#session === undefined ? this.#read(touch) : Promise.resolve(this.#session)
    return this.#reading
  }

  async #read(touch: boolean | undefined): Promise<Session<D, I> | null> {
    let session: Session<D, I> | null = null
    try {
      if (this.#id !== null) session = await this.#sessions.get(this.#id, this.#mayTouch(touch) ? TOUCH : NO_TOUCH)
      if (session === null && this.#context.options.remember !== null) session = await this.#recall()
    } catch (error) {
      this.#failed = true
      throw error
    }
    // A verb that finished meanwhile knows better.
    return this.#session === undefined ? this.#adopt(session) : this.#session
  }

  /** What slides in the store has to slide in the browser. */
  #mayTouch(touch: boolean | undefined): boolean {
    return touch !== false && (this.#setup.cookie.lifetime !== 'idle' || this.#canSend())
  }

  async #recall(): Promise<Session<D, I> | null> {
    // Ambiguous: the cookie of the session that began would not be honoured either, and each page view would begin one.
    if (this.#isLocked || this.#isAmbiguous || !this.#canSend()) return null
    const token = this.#setup.rememberCookie.parse(this.#request.cookie).id
    if (token === null) return null
    const recalled = await this.#sessions.recall(token)
    if (recalled === null) return null
    this.#mustSend(recalled.session)
    if (recalled.token !== null)
      this.#remember = { token: recalled.token, maxAge: this.#secondsUntil(recalled.expiresAt) }
    return recalled.session
  }

  #secondsUntil(instant: number): number {
    return Math.max(0, Math.ceil((instant - this.#context.now()) / 1000))
  }

  #know(session: Session<D, I> | null): void {
    this.#session = session
    this.#isStale = false
    this.#reading = null
  }

  /** The session goes on; the cookie is sent where the browser needs it. */
  #adopt(session: Session<D, I> | null): Session<D, I> | null {
    this.#know(session)
    if (session?.renewed && (this.#setup.cookie.lifetime === 'idle' || session.secret !== this.#id))
      this.#mustSend(session)
    return session
  }

  /** The browser gets this session; one that can no more be sent, since the head went out meanwhile, ends. */
  async #send<S extends Session<D, I>>(session: S, isOnlyHere = true): Promise<S> {
    if (!this.#canSend()) {
      this.#know(null)
      await this.#sessions.destroy(session)
      throw headersSent()
    }
    this.#know(session)
    this.#mustSend(session)
    if (isOnlyHere) this.#begun = { session, token: this.#begun?.token ?? null }
    return session
  }

  #begin(anonymous?: { data?: Partial<In> }): Promise<Session<D, I>> {
    return this.#sessions.create(anonymous)
  }

  /** Takes the next step with a session that no browser has yet; if that fails, the session ends. */
  async #orEnd<T>(session: Session<D, I>, step: () => Promise<T>): Promise<T> {
    try {
      return await step()
    } catch (error) {
      await this.#sessions.destroy(session).catch(() => {})
      throw error
    }
  }

  /**
   * Whose session a write is about: as far as it is known, without a read of its own. Where `get` found nothing, a
   * log-out and a log-in still name the ID: that of a renewed session leads to its successor for a while.
   */
  async #current(): Promise<Session<D, I> | string | null> {
    if (this.#session !== undefined) return this.#session
    if (this.#reading === null) return this.#id
    return this.#reading.catch(() => this.#id)
  }

  async #reissue(
    reissue: (current: Session<D, I> | string) => Promise<Session<D, I> | null>,
    isOnlyHere = true,
  ): Promise<Session<D, I> | null> {
    const current = await this.#current()
    if (current === null) return null
    this.#mayBegin()
    const session = await reissue(current)
    // Within its grace the old ID leads to a renewed session, whether this response arrives or not.
    if (session !== null) return this.#send(session, isOnlyHere)
    this.#know(null)
    return null
  }

  async #login({ remember, ...login }: Login<D, I, In> & { remember?: boolean }): Promise<UserSession<D, I>> {
    this.#mayBegin()
    const life = this.#context.options.remember
    if (remember && life === null) throw new TypeError("remember: is off: give the manager { remember: '30d' }")
    const current = (await this.#current()) ?? this.#id
    // Another login's token must not bring its user back once this session is over.
    const tokens = this.#tokens()
    for (const token of tokens) await this.#sessions.forget(token)
    this.#mayBegin()
    const session = await this.#sessions.regenerate(current, login as Login<D, I, In>)
    const token = remember ? await this.#orEnd(session, () => this.#sessions.remember(session)) : null
    await this.#send(session)
    this.#begun = { session, token }
    if (token !== null && life !== null) this.#remember = { token, maxAge: Math.ceil(life / 1000) }
    else if (tokens.length > 0) this.#remember = 'clear'
    return session
  }
}
