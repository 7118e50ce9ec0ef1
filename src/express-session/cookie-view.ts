import type { Context } from '../manager/context.ts'
import { DEFAULTS } from '../manager/options.ts'
import type { AnySession } from '../session/session.ts'
import { quote } from '../text/quote.ts'
import { responseCookie, SessionCookie } from '../visits/cookie.ts'
import type { VisitOptions } from '../visits/setup.ts'
import type { CookieView } from './request-session.ts'

const LIFETIME =
  "a session's lifetime is set at its login: expressSession(sessions, { logIn: request => ({ idleTimeout: '5m' }) }), or for all of them by idleTimeout of the SessionManager; a longer one for a user who asks to be remembered is { remember: true }"

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

  /** Whether a Cookie header has a session, or what may begin one. */
  isIn(header: string | undefined): boolean {
    return this.#names.some(name => header?.includes(`${name}=`))
  }
}

/** When the cookie of a session expires, and how long it lasts in all, in ms; `null` if it ends with the browser. */
function lifeOf(
  context: Context,
  lifetime: CookieLook['lifetime'],
  session: AnySession | null,
): { end: number; all: number } | null {
  if (lifetime === 'browser') return null
  const { idle, absolute } = context.options
  const isIdle = lifetime === 'idle'
  if (session === null) {
    const all = isIdle ? idle : absolute
    return { end: context.now() + all, all }
  }
  const end = isIdle ? session.expiresAt : session.absoluteExpiresAt
  return { end, all: end - (isIdle ? session.seenAt : session.createdAt) }
}

/**
 * The cookie as express-session shows it. It says how things are: what is assigned, and differs, is refused, since a
 * session that lives longer or a cookie that goes elsewhere than the application believes is a hole.
 */
export function cookieView({ attributes, lifetime }: CookieLook, context: Context, session: () => AnySession | null) {
  const now = {
    originalMaxAge: () => lifeOf(context, lifetime, session())?.all ?? null,
    maxAge: () => {
      const life = lifeOf(context, lifetime, session())
      return life === null ? null : life.end - context.now()
    },
    expires: () => {
      const life = lifeOf(context, lifetime, session())
      return life === null ? null : new Date(life.end)
    },
  }
  const view = { data: undefined, toJSON: () => ({ ...view }) } as unknown as CookieView
  Object.defineProperty(view, 'toJSON', { enumerable: false })
  Object.defineProperty(view, 'data', { enumerable: false, get: () => ({ ...view }) })
  const show = (name: string, get: () => unknown, accepts: (value: unknown) => boolean, advice: string) =>
    Object.defineProperty(view, name, {
      enumerable: true,
      get,
      set(value: unknown) {
        if (!accepts(value)) throw new TypeError(`req.session.cookie.${name}: cannot become ${quote(value)}; ${advice}`)
      },
    })
  // `cookie.maxAge = cookie.originalMaxAge` starts the idle time anew in express-session: here it does so by itself.
  for (const name of ['maxAge', 'originalMaxAge'] as const)
    show(name, now[name], value => (value || null) === now.originalMaxAge(), LIFETIME)
  show('expires', now.expires, value => !value && now.originalMaxAge() === null, LIFETIME)
  for (const [name, value] of Object.entries({ ...attributes, priority: undefined, signed: undefined }))
    show(
      name,
      () => value,
      given => given === value,
      name === 'httpOnly' || name === 'priority' || name === 'signed'
        ? 'every session has the same cookie, and this is no option of it'
        : `every session has the same cookie, from an option: expressSession(sessions, { cookie: { ${name} } })`,
    )
  return Object.preventExtensions(view)
}
