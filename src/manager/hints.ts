// What to do here instead of an option that other libraries have, or that belongs to another place.

import type { CookieOptions } from '../edge/cookie.ts'
import type { EdgeOptions } from '../edge/visit.ts'
import { optionNames } from '../text/check-options.ts'
import type { SessionOptions } from './options.ts'

type Hints = Readonly<Record<string, string>>

export const MANAGER_OPTIONS = optionNames<SessionOptions<object, 'u64', object>>({
  store: true,
  idleTimeout: true,
  absoluteTimeout: true,
  touchInterval: true,
  storeTimeout: true,
  maxPendingCalls: true,
  userIds: true,
  schema: true,
  initial: true,
  maxDataBytes: true,
  codec: true,
  passwordVersion: true,
  limit: true,
  remember: true,
  onTheft: true,
  sweepInterval: true,
  onEvent: true,
  now: true,
})

export const EDGE_OPTIONS = optionNames<EdgeOptions<never>>({
  cookie: true,
  rememberCookie: true,
  origins: true,
  clearSiteData: true,
  trustedProxies: true,
  isSecure: true,
})

export const COOKIE_OPTIONS = optionNames<CookieOptions>({
  name: true,
  hostPrefix: true,
  clearDomains: true,
  lifetime: true,
  sameSite: true,
  domain: true,
  path: true,
  secure: true,
  partitioned: true,
})

const each = (names: readonly string[], hint: (name: string) => string): Hints =>
  Object.fromEntries(names.map(name => [name, hint(name)]))

const UNSIGNED = 'nothing is signed or encrypted: the ID is random and looked up, so that no secret is needed'
const WRITTEN = 'data is written by update, at once, and never at the end of a request'
const TIMEOUTS =
  'idleTimeout and absoluteTimeout of the SessionManager say how long a session lives, its cookie follows'

/** Of express-session, cookie-session, @fastify/session, koa-session, iron-session and the stores around them. */
const FOREIGN: Hints = {
  ...each(['secret', 'keys', 'password', 'signed', 'algorithm'], () => UNSIGNED),
  ...each(['resave', 'autoCommit', 'beforeSave'], () => WRITTEN),
  ...each(['maxAge', 'ttl', 'expires', 'expiration', 'duration'], () => TIMEOUTS),
  saveUninitialized: 'a session begins at its first update or log-in, and visitors store nothing',
  ...each(['rolling', 'renew'], () => "the cookie slides with the session: lifetime of the edge's cookie"),
  ...each(['genid', 'idGenerator', 'prefix', 'cookiePrefix'], () => 'an ID is always 240 random bits and nothing else'),
  ...each(['proxy', 'trustProxy'], () => 'trustedProxies or isSecure of the edge say what came over HTTPS'),
  unset: 'visit.destroy() ends a session',
  httpOnly: 'the cookie always is',
  ...each(['encode', 'decode', 'externalKey', 'ContextStore'], () => 'the ID travels as it is, in one cookie'),
  priority: 'browsers decide it',
  overwrite: 'a cookie of our name in the same response is always replaced',
  ...each(['cookieName', 'key'], () => 'the cookie has its name from the edge: { cookie: { name } }'),
  cookieOptions: 'it is called cookie, an option of the edge',
  ...each(['touchAfter', 'disableTouch', 'resaveInterval'], () => 'it is called touchInterval, of the SessionManager'),
}

/** Names that our own options had before the first release. */
const FORMER: Hints = {
  sweepEvery: 'it is called sweepInterval, of the SessionManager',
  rememberName: 'it is called rememberCookie: { name }, of the edge',
}

const ofManager = each(MANAGER_OPTIONS, name => `it belongs to new SessionManager({ ${name} })`)
const ofEdges = each(EDGE_OPTIONS, name => `it belongs to the edge: httpEdge(sessions, { ${name} })`)
const ofCookies = each(COOKIE_OPTIONS, name => `it belongs to the cookie of the edge: { cookie: { ${name} } }`)

export const MANAGER_HINTS: Hints = { ...FOREIGN, ...FORMER, ...ofCookies, ...ofEdges }
export const EDGE_HINTS: Hints = { ...FOREIGN, ...FORMER, ...ofManager, ...ofCookies }
export const COOKIE_HINTS: Hints = { ...FOREIGN, ...FORMER, ...ofManager, ...ofEdges }
