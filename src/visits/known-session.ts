import type { Context } from '../manager/context.ts'
import type { SessionManager } from '../manager/manager.ts'
import type { Redeemed } from '../manager/remember.ts'
import { visitedHeld } from '../manager/touch.ts'
import type { SessionId, SessionKey } from '../session/id.ts'
import type { AnySession, Session } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import type { Arrival } from './arrival.ts'
import type { EndedHere } from './ended-here.ts'
import type { OutgoingCookies } from './outgoing-cookies.ts'
import type { VisitsSetup } from './setup.ts'

const TOUCH = { touch: true } as const
const NO_TOUCH = { touch: false } as const

/** What a visit has beside it; asked for where it is needed. */
interface Surroundings<S extends AnySession> {
  readonly arrival: Arrival
  readonly cookies: OutgoingCookies<S>
  readonly ended: EndedHere
  canSend(): boolean
}

/** The session as one request knows it: found by at most one read, then as the visit's verbs left it. */
export class KnownSession<D extends object, I extends UserIds, In extends object> {
  readonly #sessions: SessionManager<D, I, In>
  readonly #context: Context<D, I, In>
  readonly #setup: VisitsSetup
  readonly #visit: Surroundings<Session<D, I>>
  /** `undefined` until the store has said, or a verb. */
  #session: Session<D, I> | null | undefined = undefined
  #hasLoggedOut = false
  /** Under way or failed; a read that is over is `null`. */
  #reading: Promise<Session<D, I> | null> | null = null
  /** The look so far was no visit, as of a poll: a later one that is a visit keeps the session alive. */
  #isUnvisited = false

  constructor(
    sessions: SessionManager<D, I, In>,
    context: Context<D, I, In>,
    setup: VisitsSetup,
    visit: Surroundings<Session<D, I>>,
  ) {
    this.#sessions = sessions
    this.#context = context
    this.#setup = setup
    this.#visit = visit
  }

  /** What is known now. */
  get now(): Session<D, I> | null {
    return this.#session ?? null
  }

  /** Whether the response may depend on a session: there is one, or the store has not said that there is none. */
  get isPersonal(): boolean {
    return this.#session === undefined ? this.#reading !== null : this.#session !== null
  }

  /** The ID that the browser has, live or not: the one it came with, until it logs out. */
  get id(): SessionId | null {
    return this.#hasLoggedOut ? null : this.#visit.arrival.id
  }

  /** The keys of the session and of the series that the browser has: those it came with, until it logs out. */
  get keys(): readonly SessionKey[] {
    return this.#hasLoggedOut ? [] : this.#visit.arrival.keys
  }

  get(touch?: boolean): Promise<Session<D, I> | null> {
    if (this.#reading === null && this.#session === undefined) {
      this.#isUnvisited = touch === false
      this.#reading = this.#read(touch)
    }
    this.#reading ??= Promise.resolve(this.now)
    if (this.#isUnvisited && touch !== false) {
      this.#isUnvisited = false
      this.#reading = this.#reading.then(() => this.#visitHeld())
    }
    return this.#reading
  }

  async #visitHeld(): Promise<Session<D, I> | null> {
    const session = this.now
    // One that began in this visit is not in use before the browser has its cookie.
    if (session === null || session.secret !== this.id || !this.mayTouch()) return session
    const after = await visitedHeld(this.#context, session)
    // A verb that finished meanwhile knows better.
    return this.now === session ? this.sessionImporter(after) : this.now
  }

  /**
   * Whose session a write is about, without a read of its own. Where nothing was read, or the read failed, it is the ID.
   */
  async current(): Promise<Session<D, I> | SessionId | null> {
    if (this.#session !== undefined) return this.#session
    if (this.#reading === null) return this.id
    return this.#reading.catch(() => this.id)
  }

  know(session: Session<D, I> | null): void {
    this.#session = session
    this.#reading = null
  }

  logOut(): void {
    this.know(null)
    this.#hasLoggedOut = true
  }

  /** The session goes on. Its cookie is sent where the browser needs it, and this response can still carry it. */
  sessionImporter(session: Session<D, I> | null): Session<D, I> | null {
    this.know(session)
    if (!session?.cookieDue) return session
    const isNews = this.#setup.cookie.lifetime === 'idle' || session.secret !== this.id
    if (isNews && this.#visit.canSend()) this.#visit.cookies.send(session)
    return session
  }

  /** Whether a verb may extend the session: only where the cookie, which expires with it, can be sent again. */
  mayTouch(touch?: boolean): boolean {
    return touch !== false && (this.#setup.cookie.lifetime !== 'idle' || this.#visit.canSend())
  }

  async #read(touch: boolean | undefined): Promise<Session<D, I> | null> {
    const { id } = this
    const session = id === null ? null : await this.#sessions.get(id, this.mayTouch(touch) ? TOUCH : NO_TOUCH)
    const recalled = session === null && this.#context.options.rememberFor !== null ? await this.#recall() : null
    // A verb that finished meanwhile knows better.
    if (this.#session !== undefined) return this.#session
    if (recalled === null) return this.sessionImporter(session)
    this.know(recalled.session)
    this.#visit.cookies.send(recalled.session)
    this.#visit.cookies.sendToken(recalled.token, this.#secondsUntil(recalled.expiresAt))
    return recalled.session
  }

  async #recall(): Promise<Redeemed<D, I> | null> {
    if (!this.#visit.canSend()) return null
    const { token } = this.#visit.arrival
    if (token === null || !this.#visit.ended.allowsRecall(token, this.keys)) return null
    return this.#sessions.redeemRememberToken(token)
  }

  #secondsUntil(instant: number): number {
    return Math.max(0, Math.ceil((instant - this.#context.now()) / 1000))
  }
}
