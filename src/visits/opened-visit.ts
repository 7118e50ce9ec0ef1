import { afterWrite } from '../manager/after-write.ts'
import type { Context } from '../manager/context.ts'
import { endSession } from '../manager/end.ts'
import type { SessionManager } from '../manager/manager.ts'
import type { AnySession, Session } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import { Arrival } from './arrival.ts'
import { EndedHere } from './ended-here.ts'
import type { HeadRules } from './head-rules.ts'
import { KnownSession } from './known-session.ts'
import { OutgoingCookies, rulesOfLook } from './outgoing-cookies.ts'
import { ParallelLogIns } from './parallel-logins.ts'
import { headersSent, insecure } from './refusals.ts'
import type { VisitsSetup } from './setup.ts'
import { tellLost } from './unsent-cookie.ts'
import type { VisitRequest } from './visit.ts'

/** A visit whose request the guards have let through: its parts, and the steps that several of its verbs take. */
export class OpenedVisit<D extends object, I extends UserIds, In extends object> {
  readonly arrival: Arrival
  readonly known: KnownSession<D, I, In>
  readonly #sessions: SessionManager<D, I, In>
  readonly #context: Context<D, I, In>
  readonly #setup: VisitsSetup
  readonly #request: VisitRequest
  // Made when they are first needed: a request that only looks needs none of them.
  #cookies: OutgoingCookies<Session<D, I>> | null = null
  #ended: EndedHere | null = null
  #logIns: ParallelLogIns<D, I, In> | null = null

  constructor(
    sessions: SessionManager<D, I, In>,
    context: Context<D, I, In>,
    setup: VisitsSetup,
    request: VisitRequest,
  ) {
    this.#sessions = sessions
    this.#context = context
    this.#setup = setup
    this.#request = request
    this.arrival = new Arrival(context, setup, request)
    this.known = new KnownSession(sessions, context, setup, this)
  }

  get cookies(): OutgoingCookies<Session<D, I>> {
    this.#cookies ??= new OutgoingCookies(this.#context, this.#setup, this.#request, this.ended, this.logIns)
    return this.#cookies
  }

  get ended(): EndedHere {
    this.#ended ??= new EndedHere(this.#context)
    return this.#ended
  }

  get logIns(): ParallelLogIns<D, I, In> {
    this.#logIns ??= new ParallelLogIns(this.#sessions, this.#context)
    return this.#logIns
  }

  /** Whether the head of the response is still to be written. */
  canSend(): boolean {
    return this.#request.canSend?.() ?? true
  }

  /** What the response has to carry, if its head were written now. */
  headRules(): HeadRules {
    const { known, arrival } = this
    const isUntouched = this.#cookies === null && !arrival.isAmbiguous
    return isUntouched ? rulesOfLook(known.isPersonal) : this.cookies.rules(arrival, known.now, known.isPersonal)
  }

  /** @throws SessionError where a session that began now could not be sent: nothing has been stored yet */
  mayBegin(): void {
    if (!this.canSend()) throw headersSent()
    if (this.arrival.isInsecure) throw insecure(this.#setup.advice)
  }

  /** An anonymous session, where there was none; `null` where none may begin. */
  begin(anonymous?: Parameters<SessionManager<D, I, In>['create']>[0]): Promise<Session<D, I> | null> {
    const create = () => this.#sessions.create(anonymous)
    return this.ended.begin(this.known.keys, create, session => this.#sessions.destroy(session))
  }

  /**
   * The browser gets this session, of which no other response need know, and perhaps the token that can start it again. If
   * their cookies can no longer be sent, since the head went out meanwhile, both end.
   */
  async send<S extends Session<D, I>>(session: S, token?: string | null): Promise<S> {
    if (!this.canSend()) {
      this.known.know(null)
      await this.#endUnsent(session, token ?? null)
      throw headersSent()
    }
    this.known.know(session)
    this.cookies.send(session)
    this.cookies.noteBegun(session, token)
    return session
  }

  /** The browser gets this session, or keeps the ID that leads to it where the head went out meanwhile. */
  sendFollowed<S extends Session<D, I>>(session: S): S {
    this.known.know(session)
    if (!this.canSend()) throw headersSent()
    this.cookies.send(session)
    return session
  }

  /** After a write: `null` where the session had ended. */
  goOn(session: Session<D, I> | null): Session<D, I> | null {
    if (session === null) this.ended.noteEnd()
    return this.known.sessionImporter(session)
  }

  /** Takes the next step with a session, and perhaps its remember token, that no browser has yet; if it fails, both end. */
  async orEnd<T>(session: Session<D, I>, step: () => Promise<T>, token: string | null = null): Promise<T> {
    try {
      return await afterWrite(step)
    } catch (error) {
      await this.#sessions.destroy(session).catch(() => {})
      if (token !== null) await this.#sessions.revokeRememberToken(token).catch(() => {})
      throw error
    }
  }

  /** Ends the series of the tokens that the request brought, and of the one that this response would bring: if any. */
  async endSeries(): Promise<boolean> {
    const { token } = this.cookies
    const [first, ...others] = [...this.arrival.tokens, ...(token === null ? [] : [token])]
    if (first === undefined) return false
    await this.#sessions.revokeRememberToken(first)
    for (const other of others) await afterWrite(() => this.#sessions.revokeRememberToken(other))
    return true
  }

  /** Ends the sessions of cookies that are not honoured: of several values one is the user's own. */
  async endUnhonoured(): Promise<void> {
    const { ids } = this.arrival
    if (ids.length === 0 || (!this.arrival.isAmbiguous && !this.arrival.isInsecure)) return
    const context = this.#context
    const deadline = context.deadline()
    if (ids.length === 1) await this.#sessions.destroy(ids[0])
    else await Promise.all(ids.map(id => endSession(context, context.keyOf(id), null, 'logout', deadline)))
  }

  /** Whether the browser has a remember token, or would get one by this response. */
  get hasToken(): boolean {
    return this.cookies.token !== null || this.arrival.hasToken
  }

  /** No response will carry the cookie of what began here, so that no browser can have it: it ends, with its token. */
  async abandon(reason: string): Promise<void> {
    const begun = this.cookies.takeBegun()
    if (begun === null) return
    const { session, token } = begun
    this.known.know(null)
    this.cookies.keep()
    if (await this.#endUnsent(session, token)) tellLost(this.#context, session.key, reason, this.#setup.advice)
  }

  /** Ends what no browser can have; `false` where the response of a parallel request brings it. */
  async #endUnsent(session: AnySession, token: string | null): Promise<boolean> {
    if (this.logIns.giveUp(session)) return false
    // The token first: it must not start the session again. A failure was told as an event, and what is left expires.
    if (token !== null) await this.#sessions.revokeRememberToken(token).catch(() => {})
    await this.#sessions.destroy(session).catch(() => {})
    return true
  }
}
