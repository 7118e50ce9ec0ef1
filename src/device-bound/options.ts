import type { AnySession, Session } from '../session/session.ts'
import { listOf, type OptionPlace, oneOf, refuse, rule, wholeNumber } from '../text/check-options.ts'
import { type Duration, durationUpTo, milliseconds } from '../text/duration.ts'
import { quote } from '../text/quote.ts'
import { type CookieOptions, SessionCookie } from '../visits/cookie.ts'
import type { DeviceAlgorithm } from './proof.ts'

/** What `deviceBound` takes. */
export interface DeviceBoundOptions {
  /** How long a bound value is good, from 2 seconds to one hour: so long at most is a copied cookie of use. The browser renews it a little earlier. @default '5m' */
  lifetime?: Duration
  /** Where browsers register (PATH/register) and refresh (PATH/refresh); within the `path` of the session cookie. @default '/device-session' */
  path?: string
  /** The name of the bound cookie. It gets `__Host-` in front where the session cookie is Secure and for all paths. @default 'session_bound' */
  cookie?: string
  /** Signatures that browsers are offered, the preferred one first. @default ['ES256', 'RS256'] */
  algorithms?: readonly DeviceAlgorithm[]
  /** Beginnings of paths that never wait for a proof, such as `'/assets'`: they must not need a session. @default none */
  exclude?: readonly string[]
  /**
   * Sessions of users that have to be bound: one that is not is refused from 5 minutes after its login, and remember tokens
   * begin none. A function is asked at each request, and must not wait for anything. @default false
   */
  // biome-ignore lint/suspicious/noExplicitAny: of whichever data and user IDs
  require?: boolean | ((session: Session<any, any>) => boolean)
  /** Proofs that this process verifies in a second; a browser beyond them is told to try again. @default 1000 */
  maxProofs?: number
}

// What a URL path may have without escapes that a server or a proxy would change (RFC 3986, section 3.3).
const PATH = /^(?:\/[A-Za-z0-9._~!$&'()*+,=:@-]+)+$/
const aPath = rule("a path such as '/device-session', without a '/' at its end", value =>
  typeof value === 'string' ? PATH.test(value) && !/\/\.{1,2}(?:\/|$)/.test(value) : false,
)

const aLifetime = (value: unknown, name: string): void => {
  durationUpTo('1h')(value, name)
  if (milliseconds(value as Duration, name) < 2000) refuse(name, 'at least 2 seconds', value)
}

export const OPTIONS: OptionPlace<DeviceBoundOptions> = {
  where: 'deviceBound',
  rules: {
    lifetime: aLifetime,
    path: aPath,
    cookie: rule(
      "a token such as 'session_bound'",
      value => typeof value === 'string' && /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(value) && !/^__/.test(value),
    ),
    algorithms: (value, name) => {
      listOf('names', oneOf('ES256', 'RS256'))(value, name)
      if ((value as string[]).length === 0) refuse(name, "one of 'ES256' and 'RS256' at least", value)
    },
    exclude: listOf('paths', aPath),
    require: rule('true, false, or a function of the session', value => ['boolean', 'function'].includes(typeof value)),
    maxProofs: wholeNumber(1),
  },
}

/** The options with what follows from them and from the session cookie of one nodeVisits. */
export interface Setup {
  /** ms */
  readonly lifetime: number
  /** Of the bound cookie in the browser, seconds. */
  readonly maxAge: number
  readonly registerPath: string
  readonly refreshPath: string
  /** The header of an offer, but for its challenge. */
  readonly offered: string
  readonly algorithms: readonly DeviceAlgorithm[]
  readonly exclude: readonly string[]
  readonly cookie: SessionCookie
  /** As browsers compare them with those of the cookie. */
  readonly attributes: string
  readonly require: (session: AnySession) => boolean
  readonly maxProofs: number
}

/** @throws TypeError where browsers could not renew the bound cookie beside such a session cookie */
export function setUp(options: DeviceBoundOptions, session: CookieOptions): Setup {
  if (session.domain !== undefined)
    throw new TypeError(
      `deviceBound: impossible beside cookie.domain ${quote(session.domain)}: a browser proves a session to one origin alone`,
    )
  const { clearDomains: _, lifetime: __, name: ___, ...attributes } = session
  const within = session.path ?? '/'
  const hostPrefix = session.secure !== false && within === '/'
  const cookie = new SessionCookie({ ...attributes, name: options.cookie ?? 'session_bound', hostPrefix })
  if (cookie.name === new SessionCookie(session).name)
    throw new TypeError(`deviceBound: cookie: ${quote(cookie.name)} is the session cookie's name`)
  const folder = within.replace(/\/$/, '')
  const path = options.path ?? `${folder}/device-session`
  if (!path.startsWith(`${folder}/`))
    throw new TypeError(`deviceBound: path: expected one within ${quote(within)}, where the session cookie is sent`)
  const lifetime = milliseconds(options.lifetime ?? '5m', 'lifetime')
  const algorithms = options.algorithms ?? ['ES256', 'RS256']
  const registerPath = `${path}/register`
  const { require = false } = options
  return {
    lifetime,
    // The browser counts from when the value arrives, and a request takes time too: it must not come too late.
    maxAge: Math.max(1, Math.floor((lifetime - Math.min(30_000, lifetime / 5)) / 1000)),
    registerPath,
    refreshPath: `${path}/refresh`,
    offered: `(${algorithms.join(' ')});path="${registerPath}"`,
    algorithms,
    exclude: options.exclude ?? [],
    cookie,
    attributes: cookie.serializeValue('', null).slice(cookie.name.length + 3),
    require: session => session.user !== null && (typeof require === 'function' ? require(session) === true : require),
    maxProofs: options.maxProofs ?? 1000,
  }
}
