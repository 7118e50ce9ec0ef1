// How a visits object uses coatcheck/device-bound, which alone knows the protocol: a service without it loads none of that.
import type { Context } from '../manager/context.ts'
import type { SessionManager } from '../manager/manager.ts'
import type { SessionId } from '../session/id.ts'
import type { AnySession, Session } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import type { CookieOptions } from './cookie.ts'
import type { HeadRules } from './head-rules.ts'
import type { VisitRequest } from './visit.ts'

/** Made by `deviceBound` of 'coatcheck/device-bound': sessions bound to a key that the browser's device keeps. */
export interface DeviceBound {
  /** For nodeVisits and fetchVisits. Not a symbol: the types of two copies of this package would then not fit each other. */
  readonly '~devices': (cookie: CookieOptions) => unknown
}

/**
 * What a request proves about the device of its session. `unbound`: nothing is to be proved; `bound`: it came with a current
 * bound value; `unproved`: it did not; `required`: the session is bound to no device, and has to be; `stolen`: it came with
 * a value that was never this session's.
 */
export type DeviceState = 'unbound' | 'bound' | 'unproved' | 'required' | 'stolen'

/** What came to one of the two paths where browsers register and refresh. */
export interface DeviceCall {
  readonly path: string
  /** The ID in the session cookie; `null` also where it is not honoured. */
  readonly id: SessionId | null
  /** Whether a session cookie came that cannot be honoured: without TLS, or beside another one. */
  readonly isDoubtful: boolean
  /** All cookies. */
  readonly cookie: VisitRequest['cookie']
  readonly proof: string | null
  readonly sessionId: string | null
}

export interface DeviceAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

// biome-ignore lint/suspicious/noExplicitAny: of whichever data and user IDs
type AnyManager = SessionManager<any, any, any>

/** The device in one visit. */
export interface VisitDevice<D extends object, I extends UserIds> {
  /** What was found at the session that the request named; `null` where there was none, or none was looked for. */
  readonly state: DeviceState | null
  /** Whether a session lives that the request did not prove to be its own: nothing may take its place by itself. */
  readonly isUnproved: boolean
  /** The session if the request proved it to be its own; only then is the visit written down. */
  admit(session: Session<D, I>, mayTouch: boolean): Promise<Session<D, I> | null>
  /** Whether this session has to be bound to its device. */
  requires(session: AnySession): boolean
  /** The rules with what browsers are told about devices. `outcome`: what the response does with the session cookie. */
  extend(rules: HeadRules, session: AnySession | null, outcome: 'keep' | 'send' | 'clear'): HeadRules
}

/** `deviceBound` for the cookies of one nodeVisits. */
export interface Devices {
  visit<D extends object, I extends UserIds>(context: Context<D, I>, request: VisitRequest): VisitDevice<D, I>
  /** Whether browsers register or refresh at this path. */
  answersAt(path: string): boolean
  answer(sessions: AnyManager, call: DeviceCall): Promise<DeviceAnswer>
}
