import type { AnyContext, Context } from '../manager/context.ts'
import { visitedHeld } from '../manager/touch.ts'
import type { AnySession, Session } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import type { DeviceState, VisitDevice } from '../visits/devices.ts'
import type { HeadRules } from '../visits/head-rules.ts'
import { tellRefusedRequest } from '../visits/refusals.ts'
import type { VisitRequest } from '../visits/visit.ts'

/** What the response to a request carries. */
export interface DeviceLook {
  readonly state: DeviceState
  /** `Secure-Session-Challenge`, where the browser has to prove itself and a challenge is outstanding. */
  readonly challenge: string | null
  /** Whether the browser holds a value that has expired: it refreshes as soon as it has none. */
  readonly isExpired: boolean
}

/** What a visit asks of nodeVisits. */
export interface Looking {
  readonly cookieName: string
  /** The `Set-Cookie` value that removes the bound cookie. */
  readonly clear: string
  look(session: AnySession, cookie: VisitRequest['cookie'], now: number): DeviceLook
  /** Whether this session has to be bound to its device. */
  requires(session: AnySession): boolean
  /** `Secure-Session-Registration`, where this session may still be bound. */
  offer(session: AnySession, now: number): string | null
  hasCookie(cookie: VisitRequest['cookie']): boolean
  /** Ends a session that came with a wrong value, and what else its cookies lead to. */
  end(context: AnyContext, session: AnySession): Promise<void>
}

/** What one visit knows of the device that its session is bound to. */
export class DeviceOfVisit<D extends object, I extends UserIds> implements VisitDevice<D, I> {
  readonly #devices: Looking
  readonly #context: Context<D, I>
  readonly #request: VisitRequest
  #look: DeviceLook | null = null

  constructor(devices: Looking, context: Context<D, I>, request: VisitRequest) {
    this.#devices = devices
    this.#context = context
    this.#request = request
  }

  /** What was found at the session that the request named; `null` where there was none, or none was looked for. */
  get state(): DeviceLook['state'] | null {
    return this.#look?.state ?? null
  }

  /** Whether a session lives that the request did not prove to be its own: nothing may take its place by itself. */
  get isUnproved(): boolean {
    const { state } = this
    return state === 'unproved' || state === 'required'
  }

  /** The session if the request proved it to be its own; only then is the visit written down. */
  async admit(session: Session<D, I>, mayTouch: boolean): Promise<Session<D, I> | null> {
    const look = this.#devices.look(session, this.#request.cookie, this.#context.now())
    this.#look = look
    if (look.state === 'unbound' || look.state === 'bound')
      return mayTouch ? visitedHeld(this.#context, session) : session
    tellRefusedRequest(this, this.#context, 'device', this.#request, session)
    if (look.state === 'stolen') await this.#devices.end(this.#context, session)
    return null
  }

  /**
   * A link on another site: Chromium 150 sends no proof for the request that follows it, since its cookies would not be sent
   * with the proof. The page loads itself anew, which is a request of its own site, so that it comes with a proof.
   */
  get #isForeignNavigation(): boolean {
    const { method } = this.#request
    const site = this.#request.header('sec-fetch-site')
    const isForeign = site === 'cross-site' || site === 'same-site'
    return method === 'GET' && isForeign && this.#request.header('sec-fetch-mode') === 'navigate'
  }

  /** Whether this session has to be bound to its device. */
  requires(session: AnySession): boolean {
    return this.#devices.requires(session)
  }

  /** The rules with what browsers are told about devices. `outcome`: what the response does with the session cookie. */
  extend(rules: HeadRules, session: AnySession | null, outcome: 'keep' | 'send' | 'clear'): HeadRules {
    const others = [...rules.others]
    let isCleared = outcome === 'clear'
    if (outcome === 'send' && session !== null) {
      const offer = this.#devices.offer(session, this.#context.now())
      if (offer !== null) others.push(['Secure-Session-Registration', offer])
      // The value of an earlier session would be a wrong one as soon as this session is bound.
      isCleared = offer !== null
    } else if (outcome === 'keep' && session === null && this.#look !== null) {
      const { challenge, isExpired, state } = this.#look
      if (challenge !== null) others.push(['Secure-Session-Challenge', challenge])
      if (state === 'unproved' && this.#isForeignNavigation) others.push(['Refresh', '0'])
      isCleared = isExpired || state === 'stolen'
    }
    const isPersonal = rules.noStore || this.#look !== null
    isCleared &&= this.#devices.hasCookie(this.#request.cookie)
    if (!isCleared) return { ...rules, noStore: isPersonal, others }
    const { clear, cookieName } = this.#devices
    return {
      ...rules,
      noStore: isPersonal,
      others,
      cookies: [...rules.cookies, clear],
      cookieNames: [...rules.cookieNames, cookieName],
    }
  }
}
