// What a companion of a visits object does with a visit, and its users do not: coatcheck/import brings sessions that the request
// named by the cookie of another library.
import type { SessionId } from '../session/id.ts'
import type { AnySession } from '../session/session.ts'
import type { DeviceState } from './devices.ts'
import type { VisitRequest } from './visit.ts'

/**
 * Where a visit has its door. Registered, because the companion and the visits object may be of two copies of this package. The
 * number rises when the door changes.
 */
export const DOOR: unique symbol = Symbol.for('coatcheck.visit.1')

/** A visit as its companion sees it before it is opened: nothing was read, and nothing is refused yet. */
export interface VisitDoor {
  readonly cookie: VisitRequest['cookie']
  /** The manager of the visit. */
  readonly sessions: object
  /** @throws SessionError ERR_SESSION_CROSS_ORIGIN, as every verb does */
  open(): OpenDoor
  /** What the visit found out about the device of its session; asked after `get`. */
  readonly device: DeviceState | null
}

/** A visit that its companion has opened. */
export interface OpenDoor {
  /** Whether the cookies of this request came without TLS though ours need it. */
  readonly isInsecure: boolean
  /** Whether several different cookies of our name came. */
  readonly isAmbiguous: boolean
  /** What to set where a request did not come over HTTPS. */
  readonly insecureAdvice: string
  /** Whether cookies of this service are sent over HTTPS alone. */
  readonly isCookieSecure: boolean
  /** The live session of our own cookie, by the visit's one read. */
  own(): Promise<AnySession | null>
  /** The key of the session that our own cookie names, live or not. */
  ownKey(): string | null
  /**
   * From now on it is as if the request had come with our cookie of this ID, and `session` had been found by it. `isSent`:
   * the browser gets our cookie, if this response can still carry it; otherwise it never does.
   */
  bring(id: SessionId, session: AnySession | null, isSent: boolean): void
  /** The response removes these cookies: `Set-Cookie` values, and the names, which nothing else may then set. */
  remove(names: readonly string[], lines: readonly string[]): void
  /** Called when this browser logs in or out, or a lent session gets an ID of its own; where it rejects, so does that verb. */
  onLeave(leave: () => Promise<void>): void
}
