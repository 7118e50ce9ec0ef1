import { checkOptions } from '../text/check-options.ts'
import type { CookieOptions } from '../visits/cookie.ts'
import type { DeviceBound } from '../visits/devices.ts'
import { EdgeDevices } from './edge-devices.ts'
import { type DeviceBoundOptions, OPTIONS, setUp } from './options.ts'

/**
 * Binds sessions of users to a key that the browser's device keeps (Device Bound Session Credentials,
 * https://w3c.github.io/webappsec-dbsc/), so that copied cookies are worth nothing after `lifetime`. For the `deviceBound`
 * option of a visits object, whose `handled` then answers the two paths where browsers register and refresh. Browsers that do not
 * know it go on with the session cookie alone, unless `require` says otherwise.
 * @throws TypeError that names the option
 */
export function deviceBound(options: DeviceBoundOptions = {}): DeviceBound {
  checkOptions(OPTIONS, options)
  const own = { ...options }
  return Object.freeze({ '~devices': (cookie: CookieOptions) => new EdgeDevices(setUp(own, cookie)) })
}
