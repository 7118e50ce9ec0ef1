import { type AnySession, recordOf, type SessionInfo } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import { quote } from '../text/quote.ts'
import type { DeviceState } from '../visits/devices.ts'
import type { Visit } from '../visits/visit.ts'
import { DOOR, type VisitDoor } from '../visits/visit-door.ts'
import { bindingIn } from './binding.ts'
import type { DeviceAlgorithm } from './proof.ts'

/** The device that a session is bound to. Instants are epoch ms. */
export interface DeviceInfo {
  readonly algorithm: DeviceAlgorithm
  /** When the browser registered its key. */
  readonly boundAt: number
  /** When the browser last proved that it has the key. */
  readonly provedAt: number
}

/**
 * The device that a session is bound to; `null`: none. For sessions as a visit or a manager gives them, and entries of
 * `list()`. @throws TypeError for anything else
 */
export function deviceOf<D, I extends UserIds>(session: SessionInfo<D, I>): DeviceInfo | null {
  const record = typeof session === 'object' && session !== null ? recordOf(session as AnySession) : null
  if (record === null)
    throw new TypeError(`deviceOf: expected a session from this library, not a copy of one, got ${quote(session)}`)
  const binding = bindingIn(record)
  if (binding === null) return null
  const { device, boundAt, provedAt } = binding
  return Object.freeze({ algorithm: device.algorithm, boundAt, provedAt })
}

/**
 * What the request of a visit proved about the device of its session: why `get` answers `null` although a session lives.
 * `'none'`: it has no live session. `'unbound'`: its session is bound to no device. `'bound'`: the
 * browser has proved itself. `'unproved'`: it has not, and will; `'required'`: the session has to be bound and is not;
 * `'stolen'`: it came with a wrong value, and the session has ended.
 * @throws what `visit.get()` throws, and TypeError for what is no visit
 */
// biome-ignore lint/suspicious/noExplicitAny: a visit of whichever data and user IDs
export async function deviceState(visit: Visit<any, any, any>): Promise<DeviceState | 'none'> {
  const look = () => (visit as { readonly [DOOR]?: VisitDoor } | null | undefined)?.[DOOR]
  if (look() === undefined)
    throw new TypeError(
      `deviceState: expected a visit, such as visits.of(request, response), got ${quote(visit)} (two versions of coatcheck in one process do not know each other: npm ls coatcheck)`,
    )
  const session = await visit.get()
  if (session !== null) return deviceOf(session) === null ? 'unbound' : 'bound'
  const state = look()!.device
  return state === null || state === 'unbound' || state === 'bound' ? 'none' : state
}
