import type { SessionManager } from '../manager/manager.ts'
import type { AnySession, Session } from '../session/session.ts'
import { listOf, type OptionsOf, oneOf, rule } from '../text/check-options.ts'
import { type Duration, durationUpTo, milliseconds } from '../text/duration.ts'
import { quote } from '../text/quote.ts'
import { aCookieName, type CookieOptions, SessionCookie } from '../visits/cookie.ts'
import { ALGORITHM } from './proof.ts'

/** Options of `deviceBound`. */
export interface DeviceBoundOptions {
  /** How long a bound value is good, at most one hour, plus 5 minutes because clocks differ: so long at most is a copied cookie of use. The browser renews it a little before `lifetime`. @default '5m' */
  lifetime?: Duration
  /** Where browsers register (PATH/register) and refresh (PATH/refresh); within the `path` of the session cookie. @default '/device-session' */
  path?: string
  /** The name of the bound cookie. It gets `__Host-` in front if the session cookie is Secure and for all paths. @default 'session_bound' */
  cookie?: string
  /** Beginnings of paths that never wait for a proof, such as `'/assets'`: they must not need a session. @default none */
  exclude?: readonly string[]
  /**
   * Sessions of users that have to be bound: one that is not is refused from 6 minutes after it began here, and remember
   * tokens begin none. A function is asked at each request, and must answer at once. @default false
   */
  // biome-ignore lint/suspicious/noExplicitAny: of whichever data and user IDs
  require?: boolean | ((session: Session<any, any>) => boolean)
  /** Which sessions end if a cookie was copied: the session and the remember token of its device, or everything of the user. @default 'end-device' */
  onTheft?: 'end-device' | 'invalidate-user'
}

// A URL path without escapes, which a server or a proxy would change (RFC 3986, section 3.3).
const PATH = /^(?:\/[A-Za-z0-9._~!$&'()*+,=:@-]+)+$/
const aPath = rule("a path such as '/device-session', without a '/' at its end", value =>
  typeof value === 'string' ? PATH.test(value) && !/\/\.{1,2}(?:\/|$)/.test(value) : false,
)

export const OPTIONS: OptionsOf<DeviceBoundOptions> = {
  where: 'deviceBound',
  rules: {
    lifetime: durationUpTo('1h'),
    path: aPath,
    cookie: aCookieName,
    exclude: listOf('paths', aPath),
    require: rule('true, false, or a function of the session', value => ['boolean', 'function'].includes(typeof value)),
    onTheft: oneOf('end-device', 'invalidate-user'),
  },
}

// biome-ignore lint/suspicious/noExplicitAny: of whichever data and user IDs
type AnyManager = SessionManager<any, any, any>

/** The manager, and the options, completed by the defaults and the session cookie. */
export type Setup = ReturnType<typeof setUp>

/** @throws TypeError if browsers could not renew the bound cookie beside such a session cookie */
export function setUp(options: DeviceBoundOptions, visits: { sessions: AnyManager; cookie: CookieOptions }) {
  const { sessions, cookie: session } = visits
  if (session.domain !== undefined)
    throw new TypeError(
      `deviceBound: impossible beside cookie.domain ${quote(session.domain)}: a browser proves a session to one origin alone`,
    )
  const { lifetime: _, name: __, ...attributes } = session
  const within = session.path ?? '/'
  const hostPrefix = session.secure !== false && within === '/'
  const cookie = new SessionCookie({ ...attributes, name: options.cookie ?? 'session_bound', hostPrefix })
  const sessionCookie = new SessionCookie(session)
  if (cookie.name === sessionCookie.name)
    throw new TypeError(`deviceBound: cookie: ${quote(cookie.name)} is the session cookie's name`)
  const folder = within.replace(/\/$/, '')
  const path = options.path ?? `${folder}/device-session`
  if (!path.startsWith(`${folder}/`))
    throw new TypeError(`deviceBound: path: expected one within ${quote(within)}, where the session cookie is sent`)
  const lifetime = milliseconds(options.lifetime ?? '5m', 'lifetime')
  const registerPath = `${path}/register`
  const { require = false, onTheft = 'end-device', exclude = [] } = options
  return {
    sessions,
    now: sessions.options.now,
    /** ms */
    lifetime,
    /**
     * Of the bound cookie in the browser, seconds. The browser counts from when the value arrives, and a request takes time
     * too: it must not come too late.
     */
    maxAge: Math.max(1, Math.floor((lifetime - Math.min(30_000, lifetime / 5)) / 1000)),
    /** Of the value that comes with the session: if the answer to the registration is lost, the browser gets no other. */
    firstMaxAge: Math.ceil(sessions.options.absoluteTimeout / 1000),
    registerPath,
    refreshPath: `${path}/refresh`,
    /** The header of an offer. */
    registration: (challenge: string): string => `(${ALGORITHM});path="${registerPath}";challenge="${challenge}"`,
    exclude,
    cookie,
    sessionCookie,
    /** As browsers compare them with those of the cookie. */
    attributes: cookie.serializeValue('', null).slice(cookie.name.length + 3),
    requires: (session: AnySession): boolean => (typeof require === 'function' ? require(session) === true : require),
    onTheft,
  }
}
