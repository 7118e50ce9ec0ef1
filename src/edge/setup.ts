import { COOKIE_OPTIONS, EDGE_HINTS, EDGE_OPTIONS } from '../manager/hints.ts'
import { DEFAULTS } from '../manager/options.ts'
import { checkOptionNames } from '../text/check-options.ts'
import { quote } from '../text/quote.ts'
import { type CookieOptions, checkCookieName, SessionCookie } from './cookie.ts'
import { originSet } from './origins.ts'
import type { SecureOptions } from './secure.ts'
import { type Advice, ofVisits } from './unsent.ts'

/** Names of `Clear-Site-Data`, see https://www.w3.org/TR/clear-site-data/ */
export type ClearSiteData = 'cache' | 'cookies' | 'storage' | 'executionContexts'

export interface EdgeOptions<R> extends SecureOptions<R> {
  cookie?: CookieOptions
  /** The remember token's cookie: its name. Its other attributes are the session cookie's. @default { name: 'remember_token' } */
  rememberCookie?: { name: string }
  /** Other origins whose pages may send unsafe requests, exactly as in `Origin`. @default none */
  origins?: readonly string[]
  /** What the browser drops at log-out. `'cookies'` empties the whole registrable domain's jar. @default none */
  clearSiteData?: readonly ClearSiteData[]
}

/** Of `openVisit`: the request itself says what is HTTPS. */
export type VisitOptions = Omit<EdgeOptions<never>, keyof SecureOptions<never>>

/** The browser must keep and send both cookies alike, so that they share their attributes. */
const REMEMBER_HINTS = Object.fromEntries(
  COOKIE_OPTIONS.map(name => [name, `it is the session cookie's, for both: { cookie: { ${name} } }`]),
)

const CLEARABLE: readonly ClearSiteData[] = ['cache', 'cookies', 'storage', 'executionContexts']

/** Options of an edge, checked once. */
export interface EdgeSetup {
  readonly cookie: SessionCookie
  readonly rememberCookie: SessionCookie
  readonly origins: ReadonlySet<string>
  readonly clearSiteData: string | null
  readonly advice: Advice
}

/** @throws TypeError that quotes the option */
export function setUpEdge(options: EdgeOptions<never>, advice: Advice): EdgeSetup {
  const { edge, lacks } = advice
  const known = EDGE_OPTIONS.filter(name => !Object.hasOwn(lacks, name))
  checkOptionNames(edge, options, known, { ...EDGE_HINTS, ...lacks })
  const cookie = new SessionCookie(options.cookie)
  const { clearDomains: _, name: __, ...attributes } = options.cookie ?? {}
  const remember = options.rememberCookie ?? DEFAULTS.rememberCookie
  checkOptionNames('rememberCookie', remember, ['name'], REMEMBER_HINTS)
  checkCookieName('rememberCookie.name', remember.name)
  const hostPrefix = /^__host-/i.test(cookie.name)
  const rememberCookie = new SessionCookie({ ...attributes, hostPrefix, name: remember.name })
  if (rememberCookie.name === cookie.name)
    throw new TypeError(`rememberCookie.name: ${quote(cookie.name)} is the session cookie's name`)
  const { clearSiteData } = options
  if (clearSiteData !== undefined) {
    if (!Array.isArray(clearSiteData))
      throw new TypeError(`clearSiteData: expected an array of names, got ${quote(clearSiteData)}`)
    for (const name of clearSiteData)
      if (!CLEARABLE.includes(name))
        throw new TypeError(`clearSiteData: expected ${CLEARABLE.map(quote).join(', ')}, got ${quote(name)}`)
  }
  return {
    cookie,
    rememberCookie,
    origins: originSet(options.origins, 'origins'),
    clearSiteData: clearSiteData?.length ? clearSiteData.map(name => `"${name}"`).join(', ') : null,
    advice,
  }
}

const setups = new WeakMap<object, EdgeSetup>()
const plain: VisitOptions = {}

/** Options are checked once as long as they are the same object. */
export function setUpOnce(options: VisitOptions = plain): EdgeSetup {
  let setup = setups.get(options)
  if (!setup) {
    setup = setUpEdge(options, ofVisits)
    setups.set(options, setup)
  }
  return setup
}
