import { parseSetCookie, stringifySetCookie } from 'cookie'
import { DEFAULTS } from '../manager/options.ts'
import type { Session } from '../session/session.ts'
import type { UserIds } from '../session/users.ts'
import { aBoolean, checkOptions, givenOf, type OptionsOf, oneOf, type Rule, rule } from '../text/check-options.ts'
import { OPTION_HINTS } from '../text/option-hints.ts'
import { quote } from '../text/quote.ts'

/** The attributes of the session cookie (RFC 6265bis, section 4.1). */
export interface CookieOptions {
  /** A token (RFC 6265, section 4.1.1). @default 'session_id' */
  name?: string
  /** Puts `__Host-` before the name: no other host, and no page without TLS, can plant the cookie (RFC 6265bis, section 4.1.3.2). @default false */
  hostPrefix?: boolean
  /** `'idle'`: lasts for the idle time at login, then twice re-sent with what is left of the absolute time; `'absolute'` and `'browser'` (no Max-Age) are never re-sent. @default 'idle' */
  lifetime?: 'idle' | 'absolute' | 'browser'
  /** @default 'lax' */
  sameSite?: 'strict' | 'lax' | 'none'
  /** Sends the cookie to subdomains too. @default this host alone */
  domain?: string
  /** @default '/' */
  path?: string
  /** `false` gives up HTTPS: the cookie travels, and is accepted, without TLS. @default true */
  secure?: boolean
  /** One jar per top-level site, for embedded pages; needs `sameSite: 'none'`. @default false */
  partitioned?: boolean
}

// RFC 9110, section 5.6.2.
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
// RFC 6265, section 4.1.1: cookie-octet.
const VALUE = /^[!#-+\--:<-[\]-~]*$/
// RFC 6265, section 4.1.1: any CHAR but CTLs and ';'. A path that does not begin with '/' is ignored by browsers.
const PATH = /^\/[ -:<-~]*$/
// RFC 1123, section 2.1; a dot in front is allowed and ignored (RFC 6265, section 5.2.3).
const DOMAIN = /^(?=.{1,253}$)\.?[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i

const textLike = (expected: string, form: RegExp): Rule =>
  rule(expected, value => typeof value === 'string' && form.test(value))

export const aCookieName: Rule = textLike("a token such as 'session_id'", TOKEN)

const COOKIE: OptionsOf<CookieOptions> = {
  where: 'cookie',
  prefix: 'cookie.',
  hints: OPTION_HINTS,
  rules: {
    name: aCookieName,
    hostPrefix: aBoolean,
    lifetime: oneOf('idle', 'absolute', 'browser'),
    sameSite: oneOf('strict', 'lax', 'none'),
    domain: textLike("a host name such as 'example.com'", DOMAIN),
    path: textLike("a path that begins with '/'", PATH),
    secure: aBoolean,
    partitioned: aBoolean,
  },
}

/** @throws TypeError that quotes the option */
export const checkCookie: Rule = options => checkOptions(COOKIE, options)

/** Refuses combinations that browsers refuse or silently ignore (RFC 6265bis, sections 4.1.3 and 5.7). */
function checkTogether(name: string, options: CookieOptions): void {
  const insecure = options.secure === false
  // Browsers compare the prefixes without regard to case.
  const prefix = /^__(host|secure|http)-/i.exec(name)?.[0]
  const clash = (option: keyof CookieOptions, reason: string) => {
    throw new TypeError(`cookie.${option}: ${quote(options[option])} is impossible ${reason}`)
  }
  if (prefix && insecure) clash('secure', `beside the prefix ${prefix}`)
  if (prefix?.toLowerCase() === '__host-') {
    if (options.domain !== undefined) clash('domain', `beside the prefix ${prefix}, which binds the cookie to one host`)
    if ((options.path ?? '/') !== '/') clash('path', `beside the prefix ${prefix}, which demands '/'`)
  }
  if (options.sameSite === 'none' && insecure) clash('sameSite', 'with secure: false, browsers refuse it')
  if (options.partitioned && insecure) clash('partitioned', 'with secure: false, browsers refuse it')
  if (options.partitioned && options.sameSite !== 'none')
    clash('partitioned', "without sameSite: 'none': an embedded page would never send it")
}

/** A cookie of a response, as cookie jars take it: `jar.set(name, value, options)`. */
export interface ResponseCookie {
  readonly name: string
  /** `''` for a cookie that is removed. */
  readonly value: string
  readonly options: {
    readonly path: string
    readonly httpOnly: true
    readonly secure: boolean
    readonly sameSite: 'strict' | 'lax' | 'none'
    /** Seconds; 0 removes the cookie. Without it the cookie ends with the browser. */
    readonly maxAge?: number
    /** Only if the cookie is removed. */
    readonly expires?: Date
    readonly domain?: string
    readonly partitioned?: boolean
  }
}

/** A `Set-Cookie` value of ours in its parts. */
export function responseCookie(line: string): ResponseCookie {
  const { name, value = '', ...attributes } = parseSetCookie(line)
  return { name, value, options: { secure: false, ...attributes } as ResponseCookie['options'] }
}

/**
 * The Cookie header that a browser with this one sends after a response with these cookies: for a middleware that found,
 * renewed or ended the session, and hands the request on to the page.
 */
export function withCookies(
  header: string | null | undefined,
  cookies: readonly Pick<ResponseCookie, 'name' | 'value'>[],
): string {
  const values = new Map(cookies.map(({ name, value }) => [name, value]))
  const kept = (header ?? '')
    .split(';')
    .map(trimmed)
    .filter(pair => pair !== '' && !values.has(trimmed(pair.split('=', 1)[0]!)))
  const set = [...values].filter(([, value]) => value !== '').map(([name, value]) => `${name}=${value}`)
  return [...kept, ...set].join('; ')
}

/**
 * The session cookie: how it is read and written. Always `HttpOnly`.
 * @throws TypeError that quotes an option which is malformed, unknown, or impossible beside another
 */
export class SessionCookie {
  /** As the browser sees it, prefix included. */
  readonly name: string
  readonly lifetime: 'idle' | 'absolute' | 'browser'
  readonly secure: boolean
  /** The attributes after the value and its age in `Set-Cookie`. */
  readonly #attributes: string
  /** A pair of our name in a Cookie header, and its value; and one of the same name with or without `__Host-`. */
  readonly #pair: RegExp
  readonly #otherPair: RegExp
  readonly #removal: string

  constructor(options: CookieOptions = {}) {
    checkOptions(COOKIE, options)
    const { name, hostPrefix, lifetime, ...attributes } = { ...DEFAULTS.cookie, ...givenOf(options) }
    this.name = hostPrefix && !name.startsWith('__Host-') ? `__Host-${name}` : name
    checkTogether(this.name, options)
    this.#pair = pairOf(this.name)
    this.#otherPair = pairOf(/^__Host-/i.test(this.name) ? this.name.slice(7) : `__Host-${this.name}`)
    this.lifetime = lifetime
    this.secure = attributes.secure
    const empty = { ...attributes, name: this.name, value: '', httpOnly: true }
    // Written once: for each response it would be a tenth of a login.
    this.#attributes = stringifySetCookie(empty).slice(this.name.length + 1)
    this.#removal = stringifySetCookie({ ...empty, maxAge: 0, expires: new Date(0) })
  }

  /**
   * The different values under exactly our name, in one or several Cookie lines, in the order in which they came: any may be the
   * user's own. Nothing is decoded; space and tab are taken off, and a pair of quotes around the value (RFC 6265, section
   * 4.1.1). Never throws.
   */
  candidates(header: string | readonly string[] | null | undefined): string[] {
    return valuesOf(this.#pair, header)
  }

  /** The same, and after them the values under the name with or without `__Host-`: before a roll-out of `hostPrefix` it had that. */
  valuesOfBothNames(header: string | readonly string[] | null | undefined): string[] {
    return [...new Set([...this.candidates(header), ...valuesOf(this.#otherPair, header)])]
  }

  /** The `Set-Cookie` value that brings this session's ID to the browser. */
  // biome-ignore lint/suspicious/noExplicitAny: of whichever data and user ID: the cookie holds neither
  serialize(session: Session<any, any>): string {
    if (this.lifetime === 'browser') return this.serializeValue(session.secret, null)
    // At its first touch, and at the one that crosses half of the idle time, the cookie is sent again. From the first on it
    // lasts as long as the session can: the server alone decides when an idle one ends.
    const isNew = session.seenAt <= session.createdAt && !session.remembered
    const end = this.lifetime === 'idle' && isNew ? session.expiresAt : session.absoluteExpiresAt
    // From seenAt, not from a clock: the session was seen now, and rounding up never ends a cookie before its session.
    return this.serializeValue(session.secret, Math.max(0, Math.ceil((end - session.seenAt) / 1000)))
  }

  /**
   * The same attributes around another value that needs no encoding, such as an ID or a token. `maxAge` in seconds, `null`
   * for a cookie that ends with the browser.
   * @throws TypeError for other characters; the value is not quoted
   */
  serializeValue(value: string, maxAge: number | null): string {
    if (!VALUE.test(value)) throw new TypeError('serializeValue: expected a value that needs no encoding in a cookie')
    return `${this.name}=${value}${maxAge === null ? '' : `; Max-Age=${maxAge}`}${this.#attributes}`
  }

  /** The `Set-Cookie` value that removes the cookie from the browser. */
  clear(): string {
    return this.#removal
  }
}

/**
 * The Cookie header of a browser that has this session, for requests of a test: `{ headers: { Cookie: cookieHeader(s) } }`.
 * `options`: the `cookie` of your `nodeVisits`, if it is not the default.
 * @throws TypeError that quotes the option
 */
export function cookieHeader<Data, Ids extends UserIds>(session: Session<Data, Ids>, options?: CookieOptions): string {
  return `${new SessionCookie(options).name}=${session.secret}`
}

const pairOf = (name: string): RegExp =>
  new RegExp(`(?:^|;)[ \\t]*${name.replace(/[$*+.^|]/g, '\\$&')}[ \\t]*=([^;]*)`, 'g')

function valuesOf(pattern: RegExp, header: string | readonly string[] | null | undefined): string[] {
  if (!header) return []
  const values: string[] = []
  for (const line of Array.isArray(header) ? header : [header]) {
    if (typeof line !== 'string') continue
    pattern.lastIndex = 0
    for (let pair = pattern.exec(line); pair !== null; pair = pattern.exec(line))
      values.push(unquoted(trimmed(pair[1]!)))
  }
  // Of almost all requests there is one: a Set for it would be 2 % of a GET from memory.
  return values.length > 1 ? [...new Set(values)] : values
}

const isBlank = (text: string, at: number): boolean => text[at] === ' ' || text[at] === '\t'

/** Not trim(): a no-break space is part of a name. No regular expression: in the middle of a text it is quadratic. */
export function trimmed(text: string): string {
  let from = 0
  let to = text.length
  while (from < to && isBlank(text, from)) from += 1
  while (to > from && isBlank(text, to - 1)) to -= 1
  return text.slice(from, to)
}

export const unquoted = (value: string): string =>
  value.length > 1 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value
