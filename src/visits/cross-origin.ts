import { randomBytes, timingSafeEqual } from 'node:crypto'
import { xor } from '../session/csrf.ts'
import { listOf, type Rule, rule } from '../text/check-options.ts'
import type { VisitRequest } from './types.ts'

/** The part of a request that the guard checks. An upgrade (a WebSocket handshake) is a GET that no same-origin policy protects. */
type GuardedRequest = Pick<VisitRequest, 'method' | 'upgrade' | 'header'>

/**
 * Whether a browser sends this request for a page of another origin and it may change something: the algorithm of Go
 * 1.25's `http.CrossOriginProtection`. `Sec-Fetch-Site` decides if it is sent (browsers since 2023, to HTTPS and
 * loopback), else `Origin` against `Host`. Neither of them: not a browser, or one older than 2020 with a same-origin
 * request. `same-site` is refused: a sibling host is another party.
 */
export function isCrossOrigin(request: GuardedRequest, origins: ReadonlySet<string>): boolean {
  if (isSafe(request)) return false
  const site = request.header('sec-fetch-site')
  if (site === 'same-origin' || site === 'none') return false
  const origin = request.header('origin')
  if (origin && origins.has(origin)) return false
  if (site) return true
  return Boolean(origin) && !isSameHost(origin as string, request.header('host'))
}

/** Whether the guard lets the request through whatever it says. */
export const isSafe = ({ method, upgrade }: Pick<GuardedRequest, 'method' | 'upgrade'>): boolean =>
  (method === 'GET' || method === 'HEAD' || method === 'OPTIONS') && !upgrade

/**
 * Capitals and the default port of the origin's scheme make no difference, as in URLs: proxies write them into `Host`. It
 * has no scheme: http and https of one host count as the same here. HSTS closes that for old browsers.
 */
function isSameHost(origin: string, host: string | null | undefined): boolean {
  const [, scheme, own] = /^(https?):\/\/(.+)$/i.exec(origin) ?? []
  const port = scheme?.toLowerCase() === 'https' ? /:443$/ : /:80$/
  const written = (given: string | null | undefined) => given?.toLowerCase().replace(port, '')
  return own !== undefined && written(own) === written(host)
}

// RFC 6454, section 6.2, for schemes that the URL Standard gives no origin: browser extensions, WebView shells.
const OTHER_SCHEME = /^(?!https?:)[a-z][a-z0-9+.-]*:\/\/[a-z0-9._:[\]-]+$/

function isOrigin(value: string): boolean {
  if (OTHER_SCHEME.test(value)) return true
  // URL takes '*' for part of a host name; it would match nothing here, since origins are compared exactly.
  if (value.includes('*') || !/^https?:/.test(value)) return false
  return URL.canParse(value) && new URL(value).origin === value
}

/** Exact origins, as browsers write them in `Origin`: none with a path, a wildcard, a default port or capitals. */
export const exactOrigins: Rule = listOf(
  'origins',
  rule(
    "exact origins such as 'https://app.example.com' (no path, no wildcard, no default port)",
    value => typeof value === 'string' && isOrigin(value),
  ),
)

/**
 * The token under a fresh random mask: a compressed page never contains the same secret twice (BREACH). It is the
 * base64url text of the mask and of the token XOR the mask.
 */
export function maskToken(token: string): string {
  const raw = Buffer.from(token, 'latin1')
  const mask = randomBytes(raw.length)
  return Buffer.concat([mask, xor(raw, mask)]).toString('base64url')
}

/** Whether `given` is the token, masked or as it is. Takes the same time wherever they differ. */
export function isToken(token: string, given: unknown): boolean {
  if (typeof given !== 'string') return false
  const raw = Buffer.from(token, 'latin1')
  const isMasked = given.length === Math.ceil((raw.length * 8) / 3)
  const bytes = Buffer.from(given, isMasked ? 'base64url' : 'utf8')
  if (bytes.length !== raw.length * (isMasked ? 2 : 1)) return false
  return timingSafeEqual(raw, isMasked ? xor(bytes.subarray(raw.length), bytes) : bytes)
}
