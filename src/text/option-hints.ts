// Hints for options that other libraries have, or that belong to another place. This file holds only texts: the places
// import it, and it imports none of them.
import type { Hints } from './check-options.ts'

const each = (names: readonly string[], hint: (name: string) => string): Hints =>
  Object.fromEntries(names.map(name => [name, hint(name)]))

const UNSIGNED = 'nothing is signed or encrypted: the ID is random and looked up: no secret is needed'
const WRITTEN = 'data is written by update, at once, and never at the end of a request'
const TIMEOUTS =
  'idleTimeout and absoluteTimeout of the SessionManager say how long a session lives, its cookie follows'

const OF_COOKIE = ['name', 'hostPrefix', 'lifetime', 'sameSite', 'domain', 'path', 'secure', 'partitioned']

/** Advice for an option that does not exist here: it is another library's, or belongs to another place. */
export const OPTION_HINTS: Hints = {
  // Of express-session, cookie-session, @fastify/session, koa-session, iron-session and the stores around them.
  ...each(['secret', 'keys', 'password', 'signed', 'algorithm'], () => UNSIGNED),
  ...each(['resave', 'autoCommit', 'beforeSave'], () => WRITTEN),
  ...each(['maxAge', 'ttl', 'expires', 'expiration', 'duration'], () => TIMEOUTS),
  saveUninitialized: 'a session begins at its first update or login, and visitors store nothing',
  ...each(
    ['rolling', 'renew'],
    () => 'a session in use lives on by itself, and lifetime, an option of the cookie, says how long the cookie lasts',
  ),
  ...each(['genid', 'idGenerator', 'prefix', 'cookiePrefix'], () => 'an ID is always 240 random bits and nothing else'),
  ...each(['proxy', 'trustProxy'], () => 'trustedProxies or isSecure of nodeVisits say which requests came over HTTPS'),
  unset: 'visit.logOut() ends a session',
  httpOnly: 'the cookie always is',
  ...each(['encode', 'decode', 'externalKey', 'ContextStore'], () => 'the ID travels as it is, in one cookie'),
  priority: 'browsers decide it',
  overwrite: 'a cookie of our name in the same response is always replaced',
  ...each(['cookieName', 'key'], () => 'the cookie has its name from nodeVisits: { cookie: { name } }'),
  cookieOptions: 'it is called cookie, an option of nodeVisits',
  ...each(['touchAfter', 'disableTouch', 'resaveInterval'], () => 'it is called touchInterval, of the SessionManager'),
  // Of another place here.
  ...each(
    [
      ...['store', 'idleTimeout', 'absoluteTimeout', 'touchInterval', 'storeTimeout', 'maxPendingCalls', 'userIds'],
      ...['schema', 'initial', 'maxDataBytes', 'codec', 'getPasswordVersion', 'limit', 'rememberFor', 'onTheft'],
      ...['sweepInterval', 'onEvent', 'now'],
    ],
    name => `it belongs to new SessionManager({ ${name} })`,
  ),
  ...each(OF_COOKIE, name => `it belongs to the cookie of nodeVisits: { cookie: { ${name} } }`),
  ...each(
    ['cookie', 'rememberCookie', 'trustedOrigins', 'trustedProxies', 'isSecure'],
    name => `it belongs to nodeVisits(sessions, { ${name} })`,
  ),
}

/** The cookie of the remember token has its own name; all its other options are those of the session cookie. */
export const REMEMBER_COOKIE_HINTS: Hints = each(
  OF_COOKIE,
  name => `it is the session cookie's, for both: { cookie: { ${name} } }`,
)
