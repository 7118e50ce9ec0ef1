import type { Change } from '../data/change.ts'
import { afterWrite } from '../manager/after-write.ts'
import { beginInstead } from '../manager/begin.ts'
import { refuseCallbacks } from '../manager/callbacks.ts'
import type { Context } from '../manager/context.ts'
import { contextOf } from '../manager/context-of.ts'
import { takeKey, writeData } from '../manager/edit.ts'
import type { SessionManager } from '../manager/manager.ts'
import { GET_OPTIONS, REGENERATE_OPTIONS } from '../manager/options.ts'
import { alreadyLeft, tellRefused } from '../manager/refusals.ts'
import type { SessionId } from '../session/id.ts'
import type { Session, UserSession } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import { checkAnonymous, checkVisitLogin, loginFrom } from '../session/users.ts'
import { checkOptions, type OptionPlace } from '../text/check-options.ts'
import { aDuration, type Duration } from '../text/duration.ts'
import { Arrival } from './arrival.ts'
import { type ResponseCookie, responseCookie } from './cookie.ts'
import { isCrossOrigin } from './cross-origin.ts'
import { isToken, maskToken } from './csrf.ts'
import { FetchHead, type HeadRules, NO_RULES, writeRules } from './head-rules.ts'
import { OpenedVisit } from './opened-visit.ts'
import { crossOrigin, notFresh, tellRefusedRequest, unauthenticated, wrongCsrfToken } from './refusals.ts'
import type { VisitsSetup } from './setup.ts'
import type { Visit, VisitLogin, VisitRequest } from './visit.ts'

// Misspelt, `freshWithin` would let a stolen session through.
const REQUIRE_USER: OptionPlace<{ freshWithin?: Duration }> = {
  where: 'requireUser',
  rules: { freshWithin: aDuration },
}

/** The visit behind every server. Its verbs open it, and read as what they do with the browser's session. */
export class RequestVisit<D extends object, I extends UserIds, In extends object> implements Visit<D, I, In> {
  static {
    refuseCallbacks('visit', RequestVisit.prototype, { changes: { update: 0 }, except: ['headRules'] })
  }

  readonly #sessions: SessionManager<D, I, In>
  readonly #context: Context<D, I, In>
  readonly #request: VisitRequest
  readonly #setup: VisitsSetup
  /** `null` until the guards have let the request through, at the first verb. */
  #opened: OpenedVisit<D, I, In> | null = null
  /** Settles when the writing verbs so far are done; never rejects. */
  #turn: Promise<unknown> | null = null

  constructor(sessions: SessionManager<D, I, In>, request: VisitRequest, setup: VisitsSetup) {
    this.#sessions = sessions
    this.#context = contextOf<D, I, In>(sessions)
    this.#request = request
    this.#setup = setup
  }

  /** What it knows of its request, for what is built around visits. */
  get request(): VisitRequest {
    return this.#request
  }

  /** The ID that the request brought, if it is honoured; it may be live or not. */
  get id(): SessionId | null {
    return this.#arrival.id
  }

  /** Whether the request brought an ID that is not honoured: beside other ones, or without TLS. */
  get isDoubtful(): boolean {
    const { id, isAmbiguous, ids } = this.#arrival
    return isAmbiguous || (id === null && ids.length > 0)
  }

  get #arrival(): Arrival {
    return this.#opened?.arrival ?? new Arrival(this.#context, this.#setup, this.#request)
  }

  get headers(): Headers {
    const headers = new Headers()
    writeRules(this.headRules(), new FetchHead(headers))
    return headers
  }

  get cookies(): ResponseCookie[] {
    return this.headRules().cookies.map(responseCookie)
  }

  get(options?: { touch?: boolean }): Promise<Session<D, I> | null> {
    try {
      if (options !== undefined && typeof options?.touch !== 'boolean') checkOptions(GET_OPTIONS, options)
      return this.#open().known.get(options?.touch)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async requireUser(options?: { freshWithin?: Duration }): Promise<UserSession<D, I>> {
    if (options !== undefined) checkOptions(REQUIRE_USER, options)
    const session = await this.get()
    if (session?.user == null) throw unauthenticated()
    const within = options?.freshWithin
    if (within !== undefined && !this.#sessions.isFresh(session, within)) throw notFresh(within)
    return session as UserSession<D, I>
  }

  create(anonymous?: { data?: Partial<In> }): Promise<Session<D, I>> {
    return this.#inTurn(async opened => {
      if (anonymous !== undefined) checkAnonymous(anonymous)
      opened.mayBegin()
      const before = await opened.known.get(false)
      opened.mayBegin()
      const session =
        before === null ? await opened.begin(anonymous) : await beginInstead(this.#context, before, anonymous?.data)
      if (session === null) {
        tellRefused(this.#context, 'conflict', { key: opened.known.keys[0] ?? null, userId: null })
        throw alreadyLeft()
      }
      return opened.send(session)
    })
  }

  update<R>(change: Change<D, R>): Promise<Session<D, I> | null> {
    return this.#inTurn(async opened => {
      const session = await opened.known.get()
      if (session !== null) return opened.goOn(await writeData(this.#context, session, change, opened.known.mayTouch()))
      opened.mayBegin()
      const begun = await opened.begin()
      if (begun === null) return null
      return opened.send((await opened.orEnd(begun, () => this.#sessions.update(begun, change))) ?? begun)
    })
  }

  take<N extends keyof D & string>(name: N): Promise<D[N] | undefined> {
    return this.#inTurn(async opened => {
      const before = await opened.known.get()
      if (before === null || !Object.hasOwn(before.data as object, name)) return undefined
      const { session, value } = await takeKey(this.#context, before, name, opened.known.mayTouch())
      opened.goOn(session)
      return value
    })
  }

  logIn(given: VisitLogin<D, I, In>): Promise<UserSession<D, I>> {
    return this.#inTurn(async opened => {
      const { known, cookies, logIns } = opened
      const { remember, ...login } = loginFrom(given)
      checkVisitLogin(given)
      opened.mayBegin()
      const life = this.#context.options.rememberFor
      if (remember && life === null) throw new TypeError("remember: is off: give the manager { rememberFor: '30d' }")
      const current = (await known.current()) ?? known.id
      opened.mayBegin()
      const { session, token } = await logIns.logIn(known.keys, login, remember === true, async keeping => {
        const begun = await this.#sessions.logIn(current, keeping)
        // The tokens of an earlier login must not bring its user back once this session is over. What they lead to ends
        // last, so that a login which fails leaves it.
        const made = await opened.orEnd(begun, async () => (remember ? this.#sessions.issueRememberToken(begun) : null))
        await opened.orEnd(begun, () => opened.endSeries(), made)
        return { session: begun, token: made }
      })
      await opened.send(session, token)
      if (token !== null && life !== null) cookies.sendToken(token, Math.ceil(life / 1000))
      else if (opened.hasToken) cookies.clearToken()
      return session
    })
  }

  logOut(): Promise<void> {
    return this.#inTurn(async opened => {
      const { known, cookies, logIns } = opened
      const current = (await known.current()) ?? known.id
      // What could start this session again ends first: the series of a token.
      const hasWritten = await opened.endSeries()
      const endSession = async () => {
        await opened.endUnhonoured()
        await this.#sessions.destroy(current)
        await logIns.end(known.keys)
      }
      await (hasWritten ? afterWrite(endSession) : endSession())
      known.logOut()
      opened.ended.reset()
      cookies.clear(opened.hasToken)
    })
  }

  regenerate(options: { grace?: Duration } = {}): Promise<Session<D, I> | null> {
    // With a grace the old ID leads to the session too, so that it is not lost if this response is.
    return this.#inTurn(async opened => {
      checkOptions(REGENERATE_OPTIONS, options)
      const isOnlyHere = options.grace === undefined
      return this.#reissue(opened, current => this.#sessions.regenerate(current, options), isOnlyHere)
    })
  }

  async csrfToken(): Promise<string | null> {
    const session = await this.get()
    return session === null ? null : maskToken(session.csrfToken)
  }

  async checkCsrf(token: unknown): Promise<void> {
    const session = await this.get()
    if (session !== null && isToken(session.csrfToken, token)) return
    tellRefusedRequest(this, this.#context, 'csrf', this.#request, session)
    throw wrongCsrfToken()
  }

  /** What the response has to carry, if its head were written now. */
  headRules(): HeadRules {
    return this.#opened === null ? NO_RULES : this.#opened.headRules()
  }

  /** For a visits object whose response will carry no cookie: what began in this visit ends. `reason` is told. */
  async abandon(reason: string): Promise<void> {
    await this.#opened?.abandon(reason)
  }

  #open(): OpenedVisit<D, I, In> {
    if (this.#opened !== null) return this.#opened
    const request = this.#request
    if (isCrossOrigin(request, this.#setup.origins)) {
      tellRefusedRequest(this, this.#context, 'cross-origin', request)
      throw crossOrigin()
    }
    const opened = new OpenedVisit(this.#sessions, this.#context, this.#setup, request)
    this.#opened = opened
    if (opened.arrival.isAmbiguous) this.#context.emit({ type: 'ambiguous-cookie' })
    request.onHeadRules?.(() => opened.headRules())
    return opened
  }

  /**
   * Runs a verb that writes, after those of this visit that began before it. `get` does not wait, so that a verb may call
   * it.
   */
  #inTurn<T>(verb: (opened: OpenedVisit<D, I, In>) => Promise<T>): Promise<T> {
    let opened: OpenedVisit<D, I, In>
    try {
      opened = this.#open()
    } catch (error) {
      return Promise.reject(error)
    }
    const running = this.#turn === null ? verb(opened) : this.#turn.then(() => verb(opened))
    const turn = running
      .catch(() => {})
      .then(() => {
        if (this.#turn === turn) this.#turn = null
      })
    this.#turn = turn
    return running
  }

  async #reissue(
    opened: OpenedVisit<D, I, In>,
    reissue: (current: Session<D, I> | SessionId) => Promise<Session<D, I> | null>,
    isOnlyHere = true,
  ): Promise<Session<D, I> | null> {
    const current = await opened.known.current()
    if (current === null) return null
    opened.mayBegin()
    const session = await reissue(current)
    if (session !== null) return isOnlyHere ? opened.send(session) : opened.sendFollowed(session)
    // One that was found live has ended since; an ID that was not looked up may have been dead before.
    if (typeof current !== 'string') opened.ended.noteEnd()
    opened.known.know(null)
    return null
  }
}
