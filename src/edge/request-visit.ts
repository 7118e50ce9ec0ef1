import { SessionError } from '../contract/errors.ts'
import type { Change } from '../data/change.ts'
import { alreadyLeft, beginInstead } from '../manager/begin.ts'
import { refuseCallbacks } from '../manager/callbacks.ts'
import type { Context } from '../manager/context.ts'
import { takeKey, writeData } from '../manager/edit.ts'
import type { LogIn } from '../manager/log-ins.ts'
import { contextOf, type SessionManager } from '../manager/manager.ts'
import type { Recalled } from '../manager/remember.ts'
import { parseToken } from '../manager/series.ts'
import type { SessionKey } from '../session/id.ts'
import type { Session, UserSession } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import { checkAnonymous, checkLogin, loginFrom } from '../session/users.ts'
import { checkOptionNames } from '../text/check-options.ts'
import type { Duration } from '../text/duration.ts'
import { idsIn, keysOf, tokensIn } from './arrival.ts'
import { isCrossOrigin } from './cross-origin.ts'
import { isToken, maskToken } from './csrf.ts'
import type { HeadDemands } from './demands.ts'
import { checkSessions, checkVisitRequest } from './expect.ts'
import { crossOrigin, headersSent, insecure } from './refusals.ts'
import { type EdgeSetup, setUpOnce, type VisitOptions } from './setup.ts'
import { endLogIn, inTurns, joinOrEnd, keepingBefore } from './twins.ts'
import { tellLost, Watch } from './unsent.ts'
import type { Visit, VisitLogin, VisitRequest } from './visit.ts'

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
  #failed = false
  #cookie: 'keep' | 'send' | 'clear' = 'keep'
  #remember: 'keep' | 'clear' | { readonly token: string; readonly maxAge: number } = 'keep'
  /** What began here, and can reach the browser by this response alone. */
  #begun: { readonly session: Session<D, I>; readonly token: string | null } | null = null
  /** Runs from the moment when a cookie has to be sent until it is in a head. */
  #watch: Watch | null = null
  /** What the request's cookies name: see `#cameWith`. */
  #keys: readonly SessionKey[] | null = null
  /** Of a log-out: the keys that the request came with. */
  #leaves: readonly SessionKey[] = []
  /** The log-in whose session this request got. */
  #logIn: LogIn | null = null
  /** Whether the session ended while this request was under way. */
  #hasEnded = false
  /** Settles when the writing verbs so far are done; never rejects. */
  #turn: Promise<unknown> | null = null

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

  create(anonymous?: { data?: Partial<In> }): Promise<Session<D, I>> {
    return this.#inTurn(async () => {
      if (anonymous !== undefined) checkAnonymous(anonymous)
      this.#mayBegin()
      const before = await this.#get(false)
      this.#mayBegin()
      const session =
        before === null ? await this.#begin(anonymous) : await beginInstead(this.#context, before, anonymous?.data)
      if (session === null) throw alreadyLeft()
      return this.#send(session)
    })
  }

  update<R>(change: Change<D, R>): Promise<Session<D, I> | null> {
    return this.#inTurn(async () => {
      const session = await this.#get()
      if (session !== null) return this.#goOn(await writeData(this.#context, session, change, this.#mayTouch()))
      this.#mayBegin()
      const begun = await this.#begin()
      if (begun === null) return null
      return this.#send((await this.#orEnd(begun, () => this.#sessions.update(begun, change))) ?? begun)
    })
  }

  take<N extends keyof D & string>(name: N): Promise<D[N] | undefined> {
    return this.#inTurn(async () => {
      const before = await this.#get()
      if (before === null || !Object.hasOwn(before.data as object, name)) return undefined
      const { session, value } = await takeKey(this.#context, before, name, this.#mayTouch())
      this.#goOn(session)
      return value
    })
  }

  logIn(login: VisitLogin<D, I, In>): Promise<UserSession<D, I>> {
    return this.#inTurn(() => this.#startLogIn(login))
  }

  regenerate(argument?: undefined): Promise<Session<D, I> | null> {
    return this.#inTurn(async () => {
      if (argument !== undefined)
        throw new TypeError(
          'regenerate: takes no argument, it gives the same session a new ID; a log-in is logIn({ user })',
        )
      return this.#reissue(current => this.#sessions.regenerate(current))
    })
  }

  rotate(options: { grace: Duration }): Promise<Session<D, I> | null> {
    return this.#inTurn(() => this.#reissue(current => this.#sessions.rotate(current, options), false))
  }

  logOut(): Promise<void> {
    return this.#inTurn(async () => {
      const current = (await this.#current()) ?? this.#id
      // First: a token that is still good must not bear the session again.
      await this.#forget()
      if (this.#isAmbiguous || this.#isLocked) await this.#endUnhonoured()
      await this.#sessions.destroy(current)
      this.#leaves = this.#cameWith()
      await this.#endLogIns()
      this.#know(null)
      this.#id = null
      this.#keys = []
      this.#hasEnded = false
      this.#cookie = 'clear'
      this.#remember = this.#hasTokens() ? 'clear' : 'keep'
      this.#settle()
    })
  }

  /** Of several values one is the user's own; and what arrived without TLS is honoured for nothing but this. */
  async #endUnhonoured(): Promise<void> {
    const ids = idsIn(this.#setup.cookie, this.#request.cookie)
    const context = this.#context
    const deadline = context.deadline()
    if (ids.length === 1) await this.#sessions.destroy(ids[0])
    else await Promise.all(ids.map(id => context.end(context.keyOf(id), null, 'logout', deadline)))
  }

  /** Ends what parallel requests with the same cookies logged in to, before this log-out or after it. */
  async #endLogIns(): Promise<void> {
    const { logIns } = this.#context
    for (let logIn = logIns.of(this.#leaves); logIn !== null; logIn = logIns.of(this.#leaves)) {
      logIns.delete(this.#leaves)
      await endLogIn(this.#sessions, logIn)
    }
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
    if (this.#shares(session)) return
    // The token first: it must not begin the session again. What fails was told as an event, and ends by its own clock.
    if (token !== null) await this.#sessions.forget(token).catch(() => {})
    await this.#sessions.destroy(session).catch(() => {})
    tellLost(this.#context, session.key, reason, this.#setup.advice)
  }

  /** Whether another request of this browser got the same session; this one gives it up. */
  #shares({ key }: Session<D, I>): boolean {
    const logIn = this.#logIn
    if (logIn === null || logIn.session.key !== key || logIn.holders === 1) return false
    logIn.holders -= 1
    return true
  }

  #settle(): void {
    this.#begun = null
    this.#stopWatch()
  }

  #stopWatch(): void {
    this.#watch?.stop()
    this.#watch = null
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
    if (this.#cookie === 'clear') {
      cookies.push(cookie.clear())
      // Who logged in after this log-out, and is answered before it, loses the cookie here.
      if (this.#context.logIns.of(this.#leaves) !== null) this.#endLogIns().catch(() => {})
    }
    // Ended in this process meanwhile: a slow response must not overwrite the cookie of a login.
    else if (this.#cookie === 'send' && this.#session && !this.#context.endings.has(this.#session)) {
      cookies.push(cookie.serialize(this.#session))
      if (this.#logIn !== null) this.#logIn.isSent = true
    }
    if (this.#remember === 'clear') cookies.push(rememberCookie.clear())
    else if (this.#remember !== 'keep' && !this.#hasSeriesEnded(this.#remember.token))
      cookies.push(rememberCookie.serializeValue(this.#remember.token, this.#remember.maxAge))
    return cookies
  }

  #hasSeriesEnded(token: string): boolean {
    const series = parseToken(this.#context.namespace, token)
    return series !== null && this.#context.endings.isOver(series.key)
  }

  /**
   * Runs a verb that writes, after those of this visit that began before it. `get` waits for none, so that a verb may ask
   * for it.
   */
  #inTurn<T>(verb: () => Promise<T>): Promise<T> {
    try {
      this.#open()
    } catch (error) {
      return Promise.reject(error)
    }
    const running = this.#turn === null ? verb() : this.#turn.then(verb)
    const turn = running
      .catch(() => {})
      .then(() => {
        if (this.#turn === turn) this.#turn = null
      })
    this.#turn = turn
    return running
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
    if (this.#reading === null)
      this.#reading = this.#session === undefined ? this.#read(touch) : Promise.resolve(this.#session)
    return this.#reading
  }

  async #read(touch: boolean | undefined): Promise<Session<D, I> | null> {
    let session: Session<D, I> | null = null
    let recalled: Recalled<D, I> | null = null
    try {
      if (this.#id !== null) session = await this.#sessions.get(this.#id, this.#mayTouch(touch) ? TOUCH : NO_TOUCH)
      if (session === null && this.#context.options.remember !== null) recalled = await this.#recall()
    } catch (error) {
      this.#failed = true
      throw error
    }
    // A verb that finished meanwhile knows better.
    if (this.#session !== undefined) return this.#session
    if (recalled === null) return this.#adopt(session)
    this.#know(recalled.session)
    this.#mustSend(recalled.session)
    if (recalled.token !== null)
      this.#remember = { token: recalled.token, maxAge: this.#secondsUntil(recalled.expiresAt) }
    return recalled.session
  }

  /** What slides in the store has to slide in the browser. */
  #mayTouch(touch?: boolean): boolean {
    return touch !== false && (this.#setup.cookie.lifetime !== 'idle' || this.#canSend())
  }

  async #recall(): Promise<Recalled<D, I> | null> {
    // Ambiguous: the cookie of the session that began would not be honoured either, and each page view would begin one.
    if (this.#isLocked || this.#isAmbiguous || !this.#canSend()) return null
    const token = this.#setup.rememberCookie.parse(this.#request.cookie).id
    if (token === null) return null
    // A parallel request logged in or out, or gave the session its new ID: this cookie would overwrite that one's.
    const { endings } = this.#context
    const series = parseToken(this.#context.namespace, token)?.key
    if (series !== undefined && endings.isLeft(series)) return null
    if (this.#cameWith().some(key => endings.hasHeir(key))) return null
    return this.#sessions.recall(token)
  }

  #secondsUntil(instant: number): number {
    return Math.max(0, Math.ceil((instant - this.#context.now()) / 1000))
  }

  #know(session: Session<D, I> | null): void {
    this.#session = session
    this.#reading = null
  }

  /** The session goes on; the cookie is sent where the browser needs it, and this response can still carry it. */
  #adopt(session: Session<D, I> | null): Session<D, I> | null {
    this.#know(session)
    const isNews = session?.cookieDue && (this.#setup.cookie.lifetime === 'idle' || session.secret !== this.#id)
    if (isNews && this.#canSend()) this.#mustSend(session)
    return session
  }

  /** The browser gets this session; one that can no more be sent, since the head went out meanwhile, ends. */
  async #send<S extends Session<D, I>>(session: S, isOnlyHere = true): Promise<S> {
    if (!this.#canSend()) {
      this.#know(null)
      if (!this.#shares(session)) await this.#sessions.destroy(session)
      throw headersSent()
    }
    this.#know(session)
    this.#mustSend(session)
    if (isOnlyHere) this.#begun = { session, token: this.#begun?.token ?? null }
    return session
  }

  /** After a write to the session: `null` where it had ended. */
  #goOn(session: Session<D, I> | null): Session<D, I> | null {
    if (session === null) this.#hasEnded = true
    return this.#adopt(session)
  }

  /** Ends the series of the tokens that the request brought, and of the one that this response would bring. */
  async #forget(): Promise<void> {
    for (const token of this.#tokens()) await this.#sessions.forget(token)
    if (typeof this.#remember === 'object') await this.#sessions.forget(this.#remember.token)
  }

  #hasTokens(): boolean {
    return typeof this.#remember === 'object' || this.#setup.rememberCookie.candidates(this.#request.cookie).length > 0
  }

  #tokens(): readonly string[] {
    return tokensIn(this.#context, this.#setup.rememberCookie, this.#request.cookie)
  }

  /** The keys of the session and of the series that the request's cookies name; none after a log-out in this visit. */
  #cameWith(): readonly SessionKey[] {
    this.#keys ??= keysOf(this.#context, this.#id, this.#tokens())
    return this.#keys
  }

  /** Whether a parallel request of this browser logged in or out: whatever began now would overwrite what that one sent. */
  #hasLeft(): boolean {
    return this.#hasEnded || this.#cameWith().some(key => this.#context.endings.isLeft(key))
  }

  /** A session of nobody, where there was none; `null` where nothing may begin. */
  async #begin(anonymous?: { data?: Partial<In> }): Promise<Session<D, I> | null> {
    if (this.#hasLeft()) return null
    const session = await this.#sessions.create(anonymous)
    // All are told, so that a log-in which comes later ends it.
    const stands = this.#cameWith().map(key => this.#context.endings.began(key, session.key))
    if (stands.every(Boolean)) return session
    await this.#sessions.destroy(session)
    return null
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
   * log-out and a log-in still name the ID: that of a rotated session leads to its successor for a while.
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
    // Within its grace the old ID leads to a rotated session, whether this response arrives or not.
    if (session !== null) return this.#send(session, isOnlyHere)
    this.#know(null)
    return null
  }

  async #startLogIn(given: VisitLogin<D, I, In>): Promise<UserSession<D, I>> {
    const { remember, ...login } = loginFrom(given)
    checkLogin('logIn', login)
    this.#mayBegin()
    const life = this.#context.options.remember
    if (remember && life === null) throw new TypeError("remember: is off: give the manager { remember: '30d' }")
    const current = (await this.#current()) ?? this.#id
    this.#mayBegin()
    const keys = this.#cameWith()
    const logIn = await inTurns(this.#context, keys, async () => {
      const earlier = this.#logIn === null ? this.#context.logIns.of(keys) : null
      const joined = earlier === null ? null : await joinOrEnd(this.#sessions, earlier, login, remember === true)
      if (joined !== null) return joined
      let before: object | null = null
      const keeping = keepingBefore(login, data => {
        before = data
      })
      const session = await this.#sessions.regenerate(current, keeping)
      // Another login's token must not bring its user back once this session is over. Last: a log-in that fails leaves it.
      const token = await this.#orEnd(session, async () => {
        await this.#forget()
        return remember ? this.#sessions.remember(session) : null
      })
      const { verifiedAt } = login
      const made = { session, token, verifiedAt, before, at: performance.now(), holders: 1, isSent: false }
      this.#context.logIns.add(keys, made)
      return made
    })
    const session = logIn.session as UserSession<D, I>
    this.#logIn = logIn
    await this.#send(session)
    this.#begun = { session, token: logIn.token }
    if (logIn.token !== null && life !== null) this.#remember = { token: logIn.token, maxAge: Math.ceil(life / 1000) }
    else if (this.#hasTokens()) this.#remember = 'clear'
    return session
  }
}
