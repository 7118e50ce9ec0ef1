// How an edge uses coatcheck/device-bound, which alone knows the protocol: a service without it loads none of that.
import type { AnyContext } from '../manager/context.ts'
import type { SessionManager } from '../manager/manager.ts'
import type { SessionId } from '../session/id.ts'
import type { AnySession } from '../session/session.ts'
import type { CookieOptions } from './cookie.ts'
import type { VisitRequest } from './visit.ts'

/** Made by `deviceBound` of 'coatcheck/device-bound': sessions bound to a key that the browser's device keeps. */
export interface DeviceBound {
  /** For the edges. Not a symbol: the types of two copies of this package would then not fit each other. */
  readonly '~devices': (cookie: CookieOptions) => unknown
}

/**
 * What a request proves about the device of its session. `unbound`: nothing is to be proved; `bound`: it came with a current
 * bound value; `unproved`: it did not; `required`: the session is bound to no device, and has to be; `stolen`: it came with
 * a value that was never this session's.
 */
export type DeviceState = 'unbound' | 'bound' | 'unproved' | 'required' | 'stolen'

/** What the response to a request carries. */
export interface DeviceLook {
  readonly state: DeviceState
  /** `Secure-Session-Challenge`, where the browser has to prove itself and a challenge is outstanding. */
  readonly challenge: string | null
  /** Whether the browser holds a value that has expired: it refreshes as soon as it has none. */
  readonly isExpired: boolean
}

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

/** `deviceBound` for the cookies of one edge. */
export interface Devices {
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
  /** Whether browsers register or refresh by this request. */
  isCall(method: string, path: string): boolean
  answer(sessions: AnyManager, call: DeviceCall): Promise<DeviceAnswer>
}
