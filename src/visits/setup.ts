import { DEFAULTS } from '../manager/options.ts'
import { checkOptions, listOf, type OptionPlace, oneOf } from '../text/check-options.ts'
import { hintsFor, REMEMBER_COOKIE_HINTS } from '../text/option-hints.ts'
import { quote } from '../text/quote.ts'
import { aCookieName, type CookieOptions, checkCookie, SessionCookie } from './cookie.ts'
import { originSet } from './origins.ts'
import { proxyTest } from './proxies.ts'
import { type Advice, ofVisits } from './refusals.ts'
import { checkIsSecure, type SecureOptions } from './secure.ts'

/** Names of `Clear-Site-Data`, see https://www.w3.org/TR/clear-site-data/ */
export type ClearSiteData = 'cache' | 'cookies' | 'storage' | 'executionContexts'

/** Of every visits object; `R` is what its `isSecure` gets, an IncomingMessage or a Request. */
export interface NodeVisitsOptions<R = unknown> extends SecureOptions<R> {
  /** The session cookie: its name, how long it lasts, and which requests carry it. @default {} */
  cookie?: CookieOptions
  /** The remember token's cookie: its name. Its other attributes are the session cookie's. @default { name: 'remember_token' } */
  rememberCookie?: { name: string }
  /** Other origins whose pages may send unsafe requests, exactly as in `Origin`. @default none */
  trustedOrigins?: readonly string[]
  /** What the browser drops at logout. `'cookies'` empties the whole registrable domain's jar. @default none */
  clearSiteData?: readonly ClearSiteData[]
}

/** Of `openVisit`: the request itself says what is HTTPS. */
export type VisitOptions = Omit<NodeVisitsOptions<never>, keyof SecureOptions<never>>

const REMEMBER_COOKIE: OptionPlace<NonNullable<NodeVisitsOptions<never>['rememberCookie']>> = {
  where: 'rememberCookie',
  prefix: 'rememberCookie.',
  required: ['name'],
  hints: REMEMBER_COOKIE_HINTS,
  rules: { name: aCookieName },
}

const OPTIONS: Omit<OptionPlace<NodeVisitsOptions<never>>, 'where'> = {
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

/** The options of one visits object: not all of them have all. */
function placeOf({ where, lacks }: Advice): OptionPlace<NodeVisitsOptions<never>> {
  const rules = Object.fromEntries(Object.entries(OPTIONS.rules).filter(([name]) => !Object.hasOwn(lacks, name)))
  return { where, rules: rules as typeof OPTIONS.rules, hints: { ...OPTIONS.hints, ...lacks } }
}

/** Options of `nodeVisits`, checked once. */
export interface VisitsSetup {
  readonly cookie: SessionCookie
  readonly rememberCookie: SessionCookie
  readonly origins: ReadonlySet<string>
  readonly clearSiteData: string | null
  /** The application says what came over TLS. */
  readonly hasIsSecure: boolean
  readonly advice: Advice
}

/** @throws TypeError that quotes the option */
export function setUpVisits(options: NodeVisitsOptions<never>, advice: Advice): VisitsSetup {
  checkOptions(placeOf(advice), options)
  const cookie = new SessionCookie(options.cookie)
  const { clearDomains: _, name: __, ...attributes } = options.cookie ?? {}
  const { name } = options.rememberCookie ?? DEFAULTS.rememberCookie
  const rememberCookie = new SessionCookie({ ...attributes, hostPrefix: /^__host-/i.test(cookie.name), name })
  if (rememberCookie.name === cookie.name)
    throw new TypeError(`rememberCookie.name: ${quote(cookie.name)} is the session cookie's name`)
  const { clearSiteData } = options
  return {
    cookie,
    rememberCookie,
    origins: originSet(options.trustedOrigins, 'trustedOrigins'),
    hasIsSecure: options.isSecure !== undefined,
    clearSiteData: clearSiteData?.length ? clearSiteData.map(name => `"${name}"`).join(', ') : null,
    advice,
  }
}

const setups = new WeakMap<object, VisitsSetup>()
const plain: VisitOptions = {}

/** Options are checked once as long as they are the same object. */
export function setUpOnce(options: VisitOptions = plain): VisitsSetup {
  let setup = setups.get(options)
  if (!setup) {
    setup = setUpVisits(options, ofVisits)
    setups.set(options, setup)
  }
  return setup
}
