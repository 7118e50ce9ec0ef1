import { contextOf } from '../manager/context.ts'
import { DEFAULTS } from '../manager/options.ts'
import { checkOptions, listOf, type OptionPlace, oneOf } from '../text/check-options.ts'
import { hintsFor, REMEMBER_COOKIE_HINTS } from '../text/option-hints.ts'
import { quote } from '../text/quote.ts'
import { aCookieName, type CookieOptions, checkCookie, SessionCookie } from './cookie.ts'
import { originSet } from './cross-origin.ts'
import type { Advice } from './errors.ts'
import { checkIsSecure, proxyTest, type SecureOptions } from './secure.ts'

/** Names of `Clear-Site-Data`, see https://www.w3.org/TR/clear-site-data/ */
export type ClearSiteData = 'cache' | 'cookies' | 'storage' | 'executionContexts'

/** What visits of every server take. */
export interface VisitOptions {
  /** The session cookie: its name, how long it lasts, and which requests carry it. @default {} */
  cookie?: CookieOptions
  /** The remember token's cookie: its name. Its other attributes are the session cookie's. @default { name: 'remember_token' } */
  rememberCookie?: { name: string }
  /** Other origins whose pages may send unsafe requests, exactly as in `Origin`. @default none */
  trustedOrigins?: readonly string[]
  /** What the browser drops at logout. `'cookies'` empties the whole registrable domain's jar. @default none */
  clearSiteData?: readonly ClearSiteData[]
}

type AllOptions = VisitOptions & SecureOptions<never>

const REMEMBER_COOKIE: OptionPlace<NonNullable<VisitOptions['rememberCookie']>> = {
  where: 'rememberCookie',
  prefix: 'rememberCookie.',
  required: ['name'],
  hints: REMEMBER_COOKIE_HINTS,
  rules: { name: aCookieName },
}

const VISITS: Omit<OptionPlace<AllOptions>, 'where'> = {
  hints: hintsFor('visits'),
  rules: {
    cookie: checkCookie,
    rememberCookie: value => checkOptions(REMEMBER_COOKIE, value),
    trustedOrigins: originSet,
    clearSiteData: listOf('names', oneOf('cache', 'cookies', 'storage', 'executionContexts')),
    trustedProxies: proxyTest,
    isSecure: checkIsSecure,
  },
}

/** The options of one kind of server: not all of them have all. */
function placeOf({ where, lacks }: Advice): OptionPlace<AllOptions> {
  const rules = Object.fromEntries(Object.entries(VISITS.rules).filter(([name]) => !Object.hasOwn(lacks, name)))
  return { where, rules: rules as typeof VISITS.rules, hints: { ...VISITS.hints, ...lacks } }
}

/** Options, checked once. */
export interface VisitsSetup {
  readonly cookie: SessionCookie
  readonly rememberCookie: SessionCookie
  readonly trustedOrigins: ReadonlySet<string>
  readonly clearSiteData: string | null
  readonly advice: Advice
}

/** @throws TypeError that says what to pass; a manager of another copy of the package is one */
export function checkSessions(where: string, sessions: unknown): void {
  const { read, replace } = (sessions ?? {}) as { read?: unknown; replace?: unknown }
  const isStore = typeof read === 'function' && typeof replace === 'function'
  if (isStore || typeof sessions !== 'object' || sessions === null)
    throw new TypeError(
      `${where}: expected a SessionManager, got ${isStore ? 'a store' : quote(sessions)}; pass new SessionManager({ store })`,
    )
  contextOf(sessions as object)
}

/** @throws TypeError that quotes the option */
export function setUp(sessions: unknown, options: AllOptions, advice: Advice): VisitsSetup {
  checkSessions(advice.where, sessions)
  checkOptions(placeOf(advice), options)
  const cookie = new SessionCookie(options.cookie)
  const { name } = options.rememberCookie ?? DEFAULTS.rememberCookie
  const hostPrefix = /^__host-/i.test(cookie.name)
  const rememberCookie = new SessionCookie({ ...options.cookie, hostPrefix, name })
  if (rememberCookie.name === cookie.name)
    throw new TypeError(`rememberCookie.name: ${quote(cookie.name)} is the session cookie's name`)
  const { clearSiteData } = options
  return {
    cookie,
    rememberCookie,
    trustedOrigins: originSet(options.trustedOrigins, 'trustedOrigins'),
    clearSiteData: clearSiteData?.length ? clearSiteData.map(each => `"${each}"`).join(', ') : null,
    advice,
  }
}
