import { SessionError } from '../contract/errors.ts'
import { CLOCK_TOLERANCE } from '../contract/store.ts'
import type { Change } from '../data/change.ts'
import { afterWrite, eachWrite } from '../guard/store-calls.ts'
import { type Context, contextOf } from '../manager/context.ts'
import { fromSnapshot } from '../manager/lookup.ts'
import type { SessionManager } from '../manager/manager.ts'
import { GET_OPTIONS } from '../manager/options.ts'
import { parseToken, useOf } from '../manager/series.ts'
import { changed, isTouchNow, isUseDue, takeKey, writeTouch } from '../manager/write.ts'
import type { RequestRefusal } from '../session/events.ts'
import { isId, type SessionId } from '../session/id.ts'
import { isCookieDue, recordOf, type Session, type UserSession } from '../session/session.ts'
import { checkAnonymous, checkLogin, type UserIdInput, type UserIds } from '../session/users.ts'
import { checkOptions, type OptionsOf } from '../text/check-options.ts'
import { IS_DEBUG, noSession } from '../text/debug.ts'
import { aDuration, type Duration } from '../text/duration.ts'
import { choose, MOST_VALUES } from './choose.ts'
import { type ResponseCookie, responseCookie } from './cookie.ts'
import { isCrossOrigin, isToken, maskToken } from './cross-origin.ts'
import { headersSent, insecure, reportUnsent, tooManyCookies, warnNotAwaited, watchUnsent } from './errors.ts'
import { COOKIE_READ, type HeadRules, headersOf, NO_RULES, PERSONAL } from './head.ts'
import type { VisitsSetup } from './setup.ts'
import type { Visit as PublicVisit, VisitLogin, VisitRequest } from './types.ts'

// Misspelt, `freshWithin` would let a stolen session through.
const REQUIRE_USER: OptionsOf<{ freshWithin?: Duration }> = {
  where: 'requireUser',
  rules: { freshWithin: aDuration },
}
const NO_TOUCH = { touch: false } as const
const NONE: readonly never[] = []

type Steps = readonly (() => unknown)[]

/** The visit behind every server: its state, and the methods in the order of a session's life. */
export class Visit<Data extends object, Ids extends UserIds, Input extends object>
  implements PublicVisit<Data, Ids, Input>
{
  readonly #request: VisitRequest
  readonly #sessions: SessionManager<Data, Ids, Input>
  /** For the memory of this process about the browser, and to save a second read. */
  readonly #context: Context
  readonly #setup: VisitsSetup
  #isOpen = false
  /** The values of the session cookie, if they are accepted. */
  #ids: readonly SessionId[] = NONE
  /** The one that counts; `undefined` until it is chosen among several. */
  #id: SessionId | null | undefined = null
  #isAmbiguous = false
  /** Whether the cookie is `Secure` and the request did not come over TLS; `null` until that matters. */
  #isInsecure: boolean | null = null
  /** `undefined` until the store has answered, or a method that writes has finished. */
  #session: Session<Data, Ids> | null | undefined
  /** The read, under way, finished or failed; `null` after a method that writes, since its session is newer. */
  #reading: Promise<Session<Data, Ids> | null> | null = null
  #isReading = false
  /** Whether a read so far counts as a use of the session: a poll does not. */
  #isUsed = false
  /** Methods that write run one after the other. */
  #lastWrite: Promise<unknown> | null = null
  /** A write found that the session had ended: nothing begins in its place. */
  #hasEnded = false
  /** Whether the anonymous session that began here ends if the browser logs in or out before the head is written. */
  #isProvisional = false
  #cookie: 'keep' | 'send' | 'clear' = 'keep'
  #tokenCookie: 'keep' | 'clear' | { readonly token: string; readonly maxAge: number } = 'keep'
  #unsent: NodeJS.Timeout | null = null
  #leaving: Steps = NONE
  #reported: readonly RequestRefusal[] = NONE

  constructor(sessions: SessionManager<Data, Ids, Input>, request: VisitRequest, setup: VisitsSetup) {
    this.#sessions = sessions
    this.#context = contextOf(sessions)
    this.#request = request
    this.#setup = setup
  }

  get(options?: { touch?: boolean }): Promise<Session<Data, Ids> | null> {
    try {
      if (options !== undefined && typeof options?.touch !== 'boolean') checkOptions(GET_OPTIONS, options)
      this.#open()
    } catch (error) {
      return Promise.reject(error)
    }
    const isFirstUse = options?.touch !== false && !this.#isUsed
    if (isFirstUse || (this.#reading === null && this.#session === undefined)) {
      this.#isUsed ||= isFirstUse
      this.#reading = this.#read(isFirstUse, this.#reading)
    }
    this.#reading ??= Promise.resolve(this.#session ?? null)
    return this.#reading
  }

  async requireUser(options?: { freshWithin?: Duration }): Promise<UserSession<Data, Ids>> {
    if (options !== undefined) checkOptions(REQUIRE_USER, options)
    const session = await this.get()
    if (session?.user == null) throw new SessionError('ERR_SESSION_UNAUTHENTICATED', 'no user is logged in')
    const within = options?.freshWithin
    if (within !== undefined && !this.#sessions.isFresh(session, within))
      throw new SessionError('ERR_SESSION_NOT_FRESH', `this needs a password that was checked at most ${within} ago`)
    return session as UserSession<Data, Ids>
  }

  create(anonymous?: { data?: Partial<Input> }): Promise<Session<Data, Ids>> {
    return this.#queued(async () => {
      if (anonymous !== undefined) checkAnonymous(anonymous)
      const session = await this.#begin(anonymous, await this.get(NO_TOUCH))
      if (session !== null) return session
      this.#context.reportRefused('conflict', { key: this.#keyOf(this.#id ?? ''), userId: null })
      throw new SessionError(
        'ERR_SESSION_CONFLICT',
        'another request from this browser logged in or out at the same time, so no new session was created',
      )
    })
  }

  update<R>(change: Change<Data, R>): Promise<Session<Data, Ids> | null> {
    return this.#queued(async () => {
      const session = await this.get()
      if (session !== null) return this.#takeWritten(await this.#sessions.update(session, change))
      const start = () => this.#context.shape.start()
      return this.#begin({ data: changed(change, start(), start) as Partial<Input> })
    })
  }

  take<K extends keyof Data & string>(key: K): Promise<Data[K] | undefined> {
    return this.#queued(async () => {
      const before = await this.get()
      if (before === null || !Object.hasOwn(before.data as object, key)) return undefined
      const { session, value } = await takeKey(this.#context.begin(), before, key)
      this.#takeWritten(session)
      return value as Data[K] | undefined
    })
  }

  logIn(given: VisitLogin<Data, Ids, Input>): Promise<UserSession<Data, Ids>> {
    return this.#queued(async () => {
      checkLogin('logIn', given, 'remember')
      const { remember, ...login } = given
      const { rememberFor } = this.#context.options
      if (remember && rememberFor === null)
        throw new TypeError("remember: is off: give the manager { rememberFor: '30d' }")
      const current = await this.#current()
      this.#mayBegin()
      const session = await this.#sessions.logIn(current, login as typeof given)
      this.#isProvisional = false
      // The tokens of an earlier login must not bring its user back. They end last: a login that fails leaves them.
      const endings = this.#endings()
      if (this.#hasTokenCookie()) this.#tokenCookie = 'clear'
      const issue = async () => {
        const token = await this.#sessions.issueRememberToken(session)
        this.#tokenCookie = { token, maxAge: Math.ceil(rememberFor! / 1000) }
      }
      return this.#deliver(session, remember ? [issue, ...endings] : endings)
    })
  }

  regenerate(options?: { grace?: Duration }): Promise<Session<Data, Ids> | null> {
    return this.#queued(async () => {
      const current = await this.#current()
      if (current === null || this.#session === null) return this.#sessions.regenerate(null, options)
      this.#mayBegin()
      const session = await this.#sessions.regenerate(current, options)
      if (session === null) {
        // The session of an ID that was never read may have ended before this request.
        this.#hasEnded ||= typeof current !== 'string'
        return this.#setSession(null)
      }
      if (options?.grace === undefined) return this.#deliver(session, NONE)
      // The old ID leads to the session for a while: it is not lost if this response is.
      this.#setSession(session)
      if (!this.#canSend()) throw headersSent()
      return this.#send(session)
    })
  }

  logOut(): Promise<void> {
    return this.#queued(async () => {
      const current = this.#id !== undefined || this.#reading !== null ? await this.#current() : null
      const { cookie, rememberCookie } = this.#setup
      await eachWrite(this.#endings([() => this.#sessions.destroy(current)]), async end => end())
      this.#setSession(null)
      if (cookie.candidates(this.#request.cookie).filter(isId).length > MOST_VALUES) throw tooManyCookies(cookie.name)
      if (this.#wellFormedTokens().length > MOST_VALUES) throw tooManyCookies(rememberCookie.name)
      if (this.#hasTokenCookie()) this.#tokenCookie = 'clear'
      this.#cookie = 'clear'
      // From here on the browser is one that came without any.
      this.#ids = NONE
      this.#id = null
      this.#hasEnded = false
    })
  }

  onLeave(leave: () => unknown): void {
    this.#leaving = [...this.#leaving, leave]
  }

  checkOrigin(): void {
    if (!isCrossOrigin(this.#request, this.#setup.trustedOrigins)) return
    this.#reportRefused('cross-origin')
    throw new SessionError(
      'ERR_SESSION_CROSS_ORIGIN',
      'cross-origin request refused; to allow this origin, add it to `trustedOrigins` (and for `Origin: null`: the page was sent with `Referrer-Policy: no-referrer`; send `same-origin`)',
    )
  }

  async csrfToken(): Promise<string | null> {
    const session = await this.get()
    return session === null ? null : maskToken(session.csrfToken)
  }

  async checkCsrf(token: unknown): Promise<void> {
    const session = await this.get()
    if (session !== null && isToken(session.csrfToken, token)) return
    this.#reportRefused('csrf', session)
    throw new SessionError('ERR_SESSION_CSRF', "the token is missing, or not this session's")
  }

  finish(): { headers: Headers; cookies: ResponseCookie[] } {
    const rules = this.finalRules()
    return { headers: headersOf(rules), cookies: rules.cookies.map(responseCookie) }
  }

  get headers(): Headers {
    return headersOf(this.#rules())
  }

  get cookies(): ResponseCookie[] {
    return this.#rules().cookies.map(responseCookie)
  }

  /** When the reads that are under way have ended, however. */
  async settled(): Promise<void> {
    if (this.#isReading) await this.#reading?.catch(() => {})
  }

  /** The headers of a response that is sent now. The visit finishes: it keeps no session that no browser will have. */
  finalRules(): HeadRules {
    if (this.#lastWrite !== null || this.#isReading) warnNotAwaited()
    this.#stopWatching()
    const rules = this.#rules()
    if (this.#isReading && this.#cookie === 'keep' && this.#id && !this.#isSuperseded()) {
      // An earlier read of this browser came too late for the cookie, and so will this one.
      const [key, now] = [this.#context.keyOf(this.#id), this.#context.now()]
      const end = this.#context.local.owed.get(key, now) ?? 0
      if (end <= now) return rules
      this.#context.local.owed.set(key, 0, now)
      this.#cookie = 'send'
      return { ...rules, cookies: [this.#setup.cookie.serializeValue(this.#id, Math.ceil((end - now) / 1000))] }
    }
    // Another request of the browser logged in or out while this session began. Its response has the right cookie.
    if (this.#session && this.#cookie === 'send' && this.#isProvisional && this.#isSuperseded()) {
      void this.#sessions.destroy(this.#session).catch(() => {})
      this.#isProvisional = false
      this.#cookie = 'keep'
      this.#setSession(null)
    }
    return rules
  }

  /** The headers that the response would need if it were sent now. */
  #rules(): HeadRules {
    if (!this.#isOpen) return NO_RULES
    const session = this.#session ?? null
    const { cookie, rememberCookie } = this.#setup
    const cookies: string[] = []
    if (this.#cookie === 'clear') cookies.push(cookie.clear())
    else if (this.#cookie === 'send' && session !== null && this.#maySend(session))
      cookies.push(cookie.serialize(session))
    const issued = this.#tokenCookie
    if (issued === 'clear') cookies.push(rememberCookie.clear())
    else if (issued !== 'keep' && !this.#context.recentlyEnded.isEnded(this.#keyOf(issued.token)!))
      cookies.push(rememberCookie.serializeValue(issued.token, issued.maxAge))
    if (cookies.length > 0) return { ...PERSONAL, cookies }
    const isPersonal = session !== null || (this.#session === undefined && this.#reading !== null)
    return isPersonal ? PERSONAL : COOKIE_READ
  }

  /** Lets the request through, or throws. */
  #open(): void {
    if (this.#isOpen) return
    this.checkOrigin()
    const values = this.#setup.cookie.candidates(this.#request.cookie)
    if (values.length > 0 && !this.#isRefusedInsecure()) {
      this.#ids = (values.length > 1 ? values.filter(isId) : values) as SessionId[]
      this.#id = this.#ids.length > 1 ? undefined : this.#ids[0] || null
    }
    this.#isOpen = true
    this.#request.onHeadRules?.(this.finalRules.bind(this))
  }

  /** Finds the session, and writes down that it is used; after `before`, a read that was no use. */
  async #read(isUse: boolean, before: Promise<unknown> | null): Promise<Session<Data, Ids> | null> {
    if (before !== null) await before
    this.#isReading = true
    try {
      const known = this.#session
      const finding = known === undefined ? this.#find() : null
      let found = finding === null ? (known ?? null) : await finding
      // One whose first cookie is in this response needs no touch.
      const isNew = known !== undefined && found?.secret !== this.#id
      const touching = found !== null && isUse && !isNew ? this.#touch(found) : null
      if (touching !== null) found = await touching
      else if (known !== undefined) return known
      const tokens = found === null && this.#session === undefined ? this.#redeemable() : NONE
      const redeemed = tokens.length > 0 ? await this.#redeem(tokens) : null
      // A method that writes has finished since, and its session is the newer one.
      if (this.#session !== known) return this.#session ?? null
      if (redeemed === null) return this.#sendIfDue(found)
      const { session, token, expiresAt } = redeemed
      this.#tokenCookie = { token, maxAge: Math.max(0, Math.ceil((expiresAt - this.#context.now()) / 1000)) }
      return this.#send(session)
    } finally {
      this.#isReading = false
    }
  }

  #find(): Promise<Session<Data, Ids> | null> | null {
    if (IS_DEBUG && !this.#ids.some(isId) && !this.#isInsecure)
      noSession(this.#setup.cookie.candidates(this.#request.cookie).some(Boolean) ? 'malformed cookie' : 'no cookie')
    return this.#id === undefined ? this.#choose() : this.#id && this.#sessions.get(this.#id, NO_TOUCH)
  }

  /** Finds out which of several IDs counts. */
  async #choose(): Promise<Session<Data, Ids> | null> {
    const { id, session, isAmbiguous } = await choose(this.#sessions, this.#ids)
    this.#id = id
    this.#isAmbiguous = isAmbiguous
    if (IS_DEBUG && isAmbiguous) noSession('ambiguous cookies')
    if (isAmbiguous) this.#context.emit({ type: 'ambiguous-cookie' })
    return session
  }

  /** The session that a remember token starts, unless its cookie would take the place of a newer one. */
  async #redeem(tokens: readonly string[]) {
    const { recentlyEnded } = this.#context
    const token = tokens.length === 1 ? tokens[0]! : await this.#chooseToken(tokens)
    if (token === null || recentlyEnded.isSuperseded(this.#keyOf(token)!)) return null
    const keys = this.#ids.map(id => this.#context.keyOf(id))
    // A login or a logout that ended one of several may not have seen the token: then that is of another scope.
    if (keys.length > 1 && keys.some(key => recentlyEnded.isEnded(key))) return null
    for (const key of keys) {
      // What took the place of its session is on its way to the browser, unless it has ended.
      const next = recentlyEnded.liveSuccessorOf(key)
      if (next !== null && (await this.#context.begin().storedRecord(next)) !== null) return null
    }
    return this.#sessions.redeemRememberToken(token)
  }

  /**
   * Of several tokens the only one that is good now, or else the only one that a parallel request has used: one that another
   * scope still has is no theft.
   */
  async #chooseToken(tokens: readonly string[]): Promise<string | null> {
    if (tokens.length > MOST_VALUES) return null
    const context = this.#context.begin()
    const uses = await Promise.all(tokens.map(token => useOf(context, token)))
    const use = uses.includes('current') ? 'current' : 'used'
    const [token = null, ...others] = tokens.filter((_, at) => uses[at] === use)
    return others.length === 0 ? token : null
  }

  /** Writes down that the session is used, if that is due; also where its cookie has to wait for the next response. */
  #touch(session: Session<Data, Ids>): Promise<Session<Data, Ids> | null> | null {
    const record = recordOf(session)!
    const now = this.#context.now()
    if (!isUseDue(this.#context, record, now)) return null
    const canFollow = this.#canFollow()
    if ((!canFollow && !this.#request.isLate?.()) || !isTouchNow(this.#context, record, now, canFollow)) return null
    const context = this.#context.begin()
    return writeTouch(context, fromSnapshot(context, session), now, canFollow)
  }

  /** Whether the browser gets the cookie of its session with this response. */
  #canFollow(): boolean {
    return this.#cookie === 'send' || this.#canSend()
  }

  /** The session for a method, without another read; the ID if nothing was read or found. */
  async #current(): Promise<Session<Data, Ids> | SessionId | null> {
    if (this.#session === undefined && this.#reading !== null) await this.#reading.catch(() => {})
    if (this.#session) return this.#session
    if (this.#id === undefined) await this.#choose()
    return this.#id ?? null
  }

  /**
   * Starts an anonymous session that replaces `before`, or the session of the request's cookie. `null` if this browser has
   * logged in or out with that, before or meanwhile: another response gives it another cookie.
   */
  async #begin(anonymous?: { data?: Partial<Input> }, before: Session<Data, Ids> | null = null) {
    this.#mayBegin()
    const isSuperseded = () =>
      before === null ? this.#isSuperseded() : this.#context.recentlyEnded.isSuperseded(before.key)
    if (this.#hasEnded || isSuperseded()) return null
    const session = await this.#sessions.create(anonymous)
    // Also if it replaces one that began in this request.
    this.#isProvisional ||= before === null
    if (isSuperseded()) {
      await this.#sessions.destroy(session)
      return null
    }
    if (before === null) return this.#deliver(session, NONE)
    const end = async () => {
      await this.#sessions.destroy(before)
      this.#context.recentlyEnded.addReplacement(before.key, session.key)
    }
    return this.#deliver(session, [end])
  }

  /** The last steps with a session that began here. If one fails, or the head went out meanwhile, it ends: no browser has it. */
  async #deliver<S extends Session<Data, Ids>>(session: S, steps: Steps): Promise<S> {
    try {
      if (steps.length > 0) await afterWrite(() => eachWrite(steps, async step => step()))
      if (!this.#canSend()) throw headersSent()
      return this.#send(session)
    } catch (error) {
      this.#setSession(null)
      this.#tokenCookie = 'keep'
      // A login ends with the remember token that it asked for. If that fails too, an event has told, and the session expires.
      const { user, key } = session
      const isLogin = steps.length > 0 && user !== null
      const ending = isLogin ? this.#sessions.revoke(user.id as UserIdInput<Ids>, key) : this.#sessions.destroy(session)
      await ending.catch(() => {})
      throw error
    }
  }

  /** The session as a write left it; `null` if the write found it gone. */
  #takeWritten(session: Session<Data, Ids> | null): Session<Data, Ids> | null {
    this.#hasEnded ||= session === null
    return this.#sendIfDue(session)
  }

  /** The session goes on. Its cookie is sent if the browser needs it, and this response can still carry it. */
  #sendIfDue(session: Session<Data, Ids> | null): Session<Data, Ids> | null {
    this.#setSession(session)
    if (session === null) return null
    const isOwed = isCookieDue(session) && this.#setup.cookie.lifetime === 'idle'
    if (isOwed)
      this.#context.local.owed.set(session.key, this.#canFollow() ? 0 : session.absoluteExpiresAt, this.#context.now())
    return (isOwed || session.secret !== this.#id) && this.#canSend() ? this.#send(session) : session
  }

  #send<S extends Session<Data, Ids>>(session: S): S {
    this.#setSession(session)
    this.#cookie = 'send'
    // With `onHeadRules` the server finishes by itself.
    if (!this.#request.onHeadRules) this.#unsent ??= watchUnsent(this.#onUnsent.bind(this))
    return session
  }

  #onUnsent(): void {
    // The handler may still answer, or throw.
    if (this.#request.isPending?.()) return
    this.#stopWatching()
    if (this.#session) reportUnsent(this.#context, this.#session.key, this.#setup.advice)
  }

  #stopWatching(): void {
    if (this.#unsent !== null) clearInterval(this.#unsent)
    this.#unsent = null
  }

  #setSession<S extends Session<Data, Ids> | null>(session: S): S {
    this.#session = session
    this.#reading = null
    if (session === null) this.#stopWatching()
    return session
  }

  /** A slow response must not overwrite the cookie of a later login. */
  #maySend(session: Session<Data, Ids>): boolean {
    const { recentlyEnded } = this.#context
    const { parent } = recordOf(session)!
    if (this.#isProvisional && this.#isSuperseded()) return false
    return !recentlyEnded.isSuperseded(session.key) && (parent === null || !recentlyEnded.isEnded(parent))
  }

  /** Whether this browser has logged in or out with the cookies of this request, or got a new ID for them. */
  #isSuperseded(): boolean {
    const keys = [...this.#ids, ...this.#wellFormedTokens()].map(value => this.#keyOf(value))
    return keys.some(key => key !== null && this.#context.recentlyEnded.isSuperseded(key))
  }

  /** Of a session ID or a remember token; `null` if the text can be neither. */
  #keyOf(value: string): string | null {
    return isId(value) ? this.#context.keyOf(value) : (parseToken(this.#context.namespace, value)?.key ?? null)
  }

  /** Remember tokens that may start a session. */
  #redeemable(): readonly string[] {
    if (this.#context.options.rememberFor === null || !this.#canSend() || this.#isAmbiguous) return NONE
    const tokens = this.#wellFormedTokens()
    return tokens.length > 0 && this.#isRefusedInsecure() ? NONE : tokens
  }

  #wellFormedTokens(): readonly string[] {
    const values = this.#tokenCookie === 'clear' ? NONE : this.#setup.rememberCookie.candidates(this.#request.cookie)
    return values.filter(value => parseToken(this.#context.namespace, value) !== null)
  }

  /**
   * What ends at a login or a logout beside `own`: first remember tokens, which could start a session again, then the sessions
   * of other cookies, accepted or not, and at last what other services keep.
   */
  #endings(own: Steps = NONE): Steps {
    const { cookie, rememberCookie } = this.#setup
    const unsent = typeof this.#tokenCookie === 'object' ? [this.#tokenCookie.token] : []
    return [
      ...this.#endingsOf(rememberCookie.valuesOfBothNames(this.#request.cookie)),
      ...this.#endingsOf(unsent),
      ...this.#endingsOf(cookie.valuesOfBothNames(this.#request.cookie)),
      ...own,
      ...this.#leaving,
    ]
  }

  /**
   * What came alone counts as ended before the store answers. Of several the dead ones go on being sent, by cookies of another
   * scope, and must not keep anything from beginning: those that are there end, if only by the clock of a slower node.
   */
  #endingsOf(given: readonly string[]) {
    const values = given.filter(value => this.#keyOf(value) !== null)
    const others = values.slice(0, MOST_VALUES).filter(value => value !== this.#id)
    return others.map(value => async () => {
      const context = this.#context.begin()
      const then = context.now() - CLOCK_TOLERANCE
      if (values.length > 1 && (await context.storedRecord(this.#keyOf(value)!, then)) === null) return
      await (isId(value) ? this.#sessions.destroy(value) : this.#sessions.revokeRememberToken(value))
    })
  }

  #hasTokenCookie(): boolean {
    return this.#tokenCookie !== 'keep' || this.#setup.rememberCookie.candidates(this.#request.cookie).length > 0
  }

  #canSend(): boolean {
    return this.#request.canSend?.() ?? true
  }

  /** @throws SessionError if a session that began now could not be sent: nothing has been stored yet */
  #mayBegin(): void {
    if (!this.#canSend()) throw headersSent()
    if (this.#isRefusedInsecure()) throw insecure(this.#setup.advice)
  }

  #isRefusedInsecure(): boolean {
    this.#isInsecure ??= this.#setup.cookie.secure && !this.#request.secure
    if (this.#isInsecure) this.#reportRefused('insecure')
    return this.#isInsecure
  }

  /** An event for a request that is refused, once for a reason. */
  #reportRefused(reason: RequestRefusal, session: Session<Data, Ids> | null = null): void {
    if (this.#reported.includes(reason)) return
    this.#reported = [...this.#reported, reason]
    if (IS_DEBUG && reason !== 'csrf') noSession(reason === 'insecure' ? 'without HTTPS' : 'another origin')
    const request = this.#request
    this.#context.emit({
      type: 'request-refused',
      reason,
      key: session?.key ?? null,
      userId: session?.user?.id ?? null,
      method: excerpt(request.method),
      origin: excerpt(request.header('origin') ?? '') || null,
      host: excerpt(request.header('host') ?? '') || null,
    })
  }

  /** Runs a method that writes after those that were called before it. `get` does not wait, so that they may call it. */
  async #queued<T>(method: () => Promise<T>): Promise<T> {
    this.#open()
    const running = this.#lastWrite === null ? method() : this.#lastWrite.then(method, method)
    this.#lastWrite = running
    try {
      return await running
    } finally {
      if (this.#lastWrite === running) this.#lastWrite = null
    }
  }
}

/** A part of a value from the client, which may be anything and of any length: events are logged. */
const excerpt = (written: string): string => String(written).slice(0, 200)
