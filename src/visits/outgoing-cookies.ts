import type { AnyContext } from '../manager/context.ts'
import type { AnySession } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import type { Arrival } from './arrival.ts'
import type { EndedHere } from './ended-here.ts'
import { type HeadRules, NO_RULES } from './head-rules.ts'
import type { ParallelLogIns } from './parallel-logins.ts'
import type { VisitsSetup } from './setup.ts'
import { tellLost, Watch } from './unsent-cookie.ts'
import type { VisitRequest } from './visit.ts'

/** A session that began in this visit, with its remember token: this response alone can bring them to the browser. */
export interface Begun<S> {
  readonly session: S
  readonly token: string | null
}

const LOOKED_AT: HeadRules = { ...NO_RULES, vary: ['Cookie'] }
const PERSONAL: HeadRules = { ...LOOKED_AT, noStore: true }
/** Of a response that changes no cookie. `isPersonal`: it may depend on a session. */
export const rulesOfLook = (isPersonal: boolean): HeadRules => (isPersonal ? PERSONAL : LOOKED_AT)

type LogInsToSettle = Pick<ParallelLogIns<object, UserIds, object>, 'endLate' | 'noteSent'>

/** What the response does with the two cookies of a visit. */
export class OutgoingCookies<S extends AnySession> {
  readonly #context: AnyContext
  readonly #setup: VisitsSetup
  readonly #request: VisitRequest
  readonly #ended: EndedHere
  readonly #logIns: LogInsToSettle
  #session: 'keep' | 'send' | 'clear' = 'keep'
  #remember: 'keep' | 'clear' | { readonly token: string; readonly maxAge: number } = 'keep'
  /** What the head that was asked for last does with the session cookie. */
  outcome: 'keep' | 'send' | 'clear' = 'keep'
  #begun: Begun<S> | null = null
  /** Runs from the moment when a cookie has to be sent until it is in a head. */
  #watch: Watch | null = null

  constructor(
    context: AnyContext,
    setup: VisitsSetup,
    request: VisitRequest,
    ended: EndedHere,
    logIns: LogInsToSettle,
  ) {
    this.#context = context
    this.#setup = setup
    this.#request = request
    this.#ended = ended
    this.#logIns = logIns
  }

  /** The remember token that the response would bring. */
  get token(): string | null {
    return typeof this.#remember === 'object' ? this.#remember.token : null
  }

  send(session: S): void {
    this.#session = 'send'
    this.#watch ??= Watch.start(() => {
      this.#watch = null
      if (!this.#request.isPending?.()) tellLost(this.#context, session.key, null, this.#setup.advice)
    })
  }

  /** `maxAge` in seconds. */
  sendToken(token: string, maxAge: number): void {
    this.#remember = { token, maxAge }
  }

  clearToken(): void {
    this.#remember = 'clear'
  }

  /** Logout: both cookies go; that of the token where there may be one. */
  clear(hasToken: boolean): void {
    this.#session = 'clear'
    this.#remember = hasToken ? 'clear' : 'keep'
    this.takeBegun()
  }

  /** Neither cookie is changed after all. */
  keep(): void {
    this.#session = 'keep'
    this.#remember = 'keep'
  }

  /** Notes what began here, until `takeBegun`. */
  noteBegun(session: S, token: string | null = this.#begun?.token ?? null): void {
    this.#begun = { session, token }
  }

  /** What began here and is not sent; asked again, nothing. */
  takeBegun(): Begun<S> | null {
    const begun = this.#begun
    this.#begun = null
    this.#stopWatch()
    return begun
  }

  /** What the response has to carry, if its head were written now. `isPersonal`: it may depend on a session. */
  rules(arrival: Arrival, session: S | null, isPersonal: boolean): HeadRules {
    this.#stopWatch()
    const cookies = this.#write(arrival, session)
    if (cookies.length === 0) return rulesOfLook(isPersonal)
    const { cookie, rememberCookie, clearSiteData } = this.#setup
    const cookieNames: string[] = []
    if (this.#session !== 'keep') cookieNames.push(cookie.name)
    if (this.#remember !== 'keep') cookieNames.push(rememberCookie.name)
    const isLogOut = this.#session === 'clear' && clearSiteData !== null
    return { ...PERSONAL, cookies, cookieNames, others: isLogOut ? [['Clear-Site-Data', clearSiteData]] : [] }
  }

  #write(arrival: Arrival, session: S | null): string[] {
    const { cookie, rememberCookie } = this.#setup
    const cookies = arrival.isAmbiguous ? cookie.clearPlanted() : []
    this.outcome = 'keep'
    if (this.#session === 'clear') {
      this.outcome = 'clear'
      cookies.push(cookie.clear())
      this.#logIns.endLate()
    } else if (this.#session === 'send' && session !== null && this.#ended.allowsCookie(session)) {
      this.outcome = 'send'
      cookies.push(cookie.serialize(session))
      this.#logIns.noteSent()
    }
    if (this.#remember === 'clear') cookies.push(rememberCookie.clear())
    else if (this.#remember !== 'keep' && this.#ended.allowsToken(this.#remember.token))
      cookies.push(rememberCookie.serializeValue(this.#remember.token, this.#remember.maxAge))
    return cookies
  }

  #stopWatch(): void {
    this.#watch?.stop()
    this.#watch = null
  }
}
