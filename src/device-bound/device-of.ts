import type { SessionInfo } from '../session/session.ts'
import type { UserIds } from '../session/users.ts'
import { quote } from '../text/quote.ts'
import type { Visit } from '../visits/types.ts'
import { bindingIn } from './binding.ts'
import type { DeviceState } from './devices.ts'
import { STATE } from './visit.ts'

/** The device that a session is bound to. */
export interface DeviceInfo {
  /** When the browser registered its key, epoch ms. */
  readonly boundAt: number
}

/**
 * The device that a session is bound to; `null`: none. For sessions as a visit or a manager gives them, and entries of
 * `list()`. @throws TypeError for anything else
 */
export function deviceOf<Data extends object, Ids extends UserIds>(session: SessionInfo<Data, Ids>): DeviceInfo | null {
  if (typeof session?.data !== 'object' || typeof session.createdAt !== 'number')
    throw new TypeError(`deviceOf: expected a session, got ${quote(session)}`)
  const binding = bindingIn(session)
  return binding?.device ? Object.freeze({ boundAt: binding.boundAt }) : null
}

/**
 * Whether the request of a visit proved the device of its session: why `get` answers `null` although a session lives.
 * `'none'`: it has no live session. `'unbound'`: its session is bound to no device, or its browser has not yet shown that it
 * knows. `'bound'`: the browser has proved itself. `'unproved'`: it has not, and will; `'required'`: the session has to be
 * bound and is not.
 * @throws as `visit.get()` does, and TypeError for anything but a visit of `deviceBound`
 */
// biome-ignore lint/suspicious/noExplicitAny: a visit of whichever data and user IDs
export async function deviceState(visit: Visit<any, any, any>): Promise<DeviceState | 'none'> {
  const bound = visit as { readonly [STATE]?: string | null } | null | undefined
  if (bound?.[STATE] === undefined)
    throw new TypeError(
      `deviceState: expected a visit of deviceBound(visits), such as visits.of(request, response), got ${quote(visit)}`,
    )
  const session = await visit.get()
  const state = bound[STATE]
  if (session !== null) return state === 'bound' ? state : 'unbound'
  return state === 'unproved' || state === 'required' ? state : 'none'
}
