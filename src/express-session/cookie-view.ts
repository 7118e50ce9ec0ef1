import { DEFAULTS, type ManagerOptions } from '../manager/options.ts'
import type { AnySession } from '../session/session.ts'
import type { UserIds } from '../session/users.ts'
import { quote } from '../text/quote.ts'
import { responseCookie, SessionCookie } from '../visits/cookie.ts'
import type { VisitOptions } from '../visits/setup.ts'
import type { CookieView } from './request-session.ts'

const LIFETIME =
  "a session's lifetime is set at its login: expressSession(sessions, { logIn: request => ({ idleTimeout: '5m' }) }), or for all of them by idleTimeout of the SessionManager; a longer one for a user who asks to be remembered is { remember: true }"

type Clock = Pick<ManagerOptions<object, UserIds>, 'now' | 'idleTimeout' | 'absoluteTimeout'>

/** The attributes of the cookie of one bridge, read once. */
export class CookieLook {
  readonly lifetime: SessionCookie['lifetime']
  readonly #names: readonly string[]
  readonly attributes: Pick<CookieView, 'path' | 'domain' | 'httpOnly' | 'secure' | 'sameSite' | 'partitioned'>

  constructor({ cookie: options, rememberCookie }: Pick<VisitOptions, 'cookie' | 'rememberCookie'>) {
    const cookie = new SessionCookie(options)
    this.#names = [cookie.name, rememberCookie?.name ?? DEFAULTS.rememberCookie.name]
    const { path, domain, httpOnly, secure, sameSite, partitioned = false } = responseCookie(cookie.clear()).options
    this.lifetime = cookie.lifetime
    this.attributes = { path, domain, httpOnly, secure, sameSite, partitioned }
  }

  /** Whether a Cookie header has a session ID or a remember token. */
  isIn(header: string | undefined): boolean {
    return this.#names.some(name => header?.includes(`${name}=`))
  }
}

/** When the cookie of a session expires, and how long it lasts in all, in ms; `null` if it ends with the browser. */
function lifeOf(
  { now, idleTimeout, absoluteTimeout }: Clock,
  lifetime: CookieLook['lifetime'],
  session: AnySession | null,
): { end: number; all: number } | null {
  if (lifetime === 'browser') return null
  const isIdle = lifetime === 'idle'
  const all = isIdle ? idleTimeout : absoluteTimeout
  if (session === null) return { end: now() + all, all }
  const end = isIdle ? session.expiresAt : session.absoluteExpiresAt
  return { end, all: end - (isIdle ? session.seenAt : session.createdAt) }
}

/**
 * The cookie as express-session shows it. It says how things are. An assignment of another value is refused, since a
 * session that lives longer or a cookie that goes elsewhere than the application believes is a hole.
 */
export function cookieView(
  { attributes, lifetime }: CookieLook,
  clock: Clock,
  session: () => AnySession | null,
): CookieView {
  const life = () => lifeOf(clock, lifetime, session())
  const view: CookieView = {
    get originalMaxAge() {
      return life()?.all ?? null
    },
    get maxAge() {
      const now = life()
      return now && now.end - clock.now()
    },
    get expires() {
      const now = life()
      return now && new Date(now.end)
    },
    ...attributes,
  }
  // `cookie.maxAge = cookie.originalMaxAge` starts the idle time anew in express-session: here it does so by itself.
  const isSo = (name: string, value: unknown) => {
    if (name === 'expires') return !value && view.expires === null
    return name.endsWith('axAge') ? (value || null) === view.originalMaxAge : value === view[name as keyof CookieView]
  }
  const advice = (name: string) => {
    if (name === 'expires' || name.endsWith('axAge')) return LIFETIME
    return name in attributes && name !== 'httpOnly'
      ? `every session has the same cookie, from an option: expressSession(sessions, { cookie: { ${name} } })`
      : 'every session has the same cookie, and this is no option of it'
  }
  return new Proxy(view, {
    set(_, name, value) {
      if (isSo(String(name), value)) return true
      throw new TypeError(`req.session.cookie.${String(name)}: cannot become ${quote(value)}; ${advice(String(name))}`)
    },
  })
}
