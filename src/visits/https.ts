import type { IncomingMessage, ServerResponse } from 'node:http'
import { DEFAULTS } from '../manager/options.ts'
import { aBoolean, checkOptions, type OptionPlace, oneOf, rule } from '../text/check-options.ts'
import { aDuration, type Duration, milliseconds } from '../text/duration.ts'
import { checkNode } from './check-arguments.ts'
import type { Gate } from './gate.ts'
import { checkIsSecure, hostOf, proxyTest, type SecureOptions, transportTest } from './secure.ts'

export interface HttpsOptions extends SecureOptions<IncomingMessage> {
  /** What a request without TLS gets: 403, or for GET and HEAD a 308 to the same address with https. @default 'refuse' */
  insecure?: 'refuse' | 'redirect'
  /** Where a redirect leads, such as 'app.example.com'. @default the request's Host without its port */
  host?: string
  /** `Strict-Transport-Security` of secure responses (RFC 6797). @default none */
  hsts?: { maxAge: Duration; includeSubDomains?: boolean; preload?: boolean }
}

const inHsts = 'it belongs to hsts: { maxAge, includeSubDomains, preload }'
const HINTS = {
  maxAge: inHsts,
  includeSubDomains: inHsts,
  preload: inHsts,
  redirect: "it is called insecure: 'redirect'",
  proxy: 'it is called trustedProxies',
  trustProxy: 'it is called trustedProxies',
}
const HOST = /^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i
const YEAR = 31_536_000

const HSTS: OptionPlace<NonNullable<HttpsOptions['hsts']>> = {
  where: 'hsts',
  prefix: 'hsts.',
  required: ['maxAge'],
  hints: { includeSubdomains: 'it is spelt includeSubDomains, as in the header' },
  rules: { maxAge: aDuration, includeSubDomains: aBoolean, preload: aBoolean },
}

const HTTPS: OptionPlace<HttpsOptions> = {
  where: 'requireHttps',
  hints: HINTS,
  rules: {
    insecure: oneOf('refuse', 'redirect'),
    host: rule("a host such as 'app.example.com'", value => typeof value === 'string' && HOST.test(value)),
    hsts: value => checkOptions(HSTS, value),
    trustedProxies: proxyTest,
    isSecure: checkIsSecure,
  },
}

/** @throws TypeError for `preload` against the rules of https://hstspreload.org */
function hstsHeader(hsts: HttpsOptions['hsts']): string | null {
  if (hsts === undefined) return null
  const seconds = Math.floor(milliseconds(hsts.maxAge, 'hsts.maxAge') / 1000)
  if (hsts.preload && !(hsts.includeSubDomains && seconds >= YEAR))
    throw new TypeError("hsts.preload: true needs includeSubDomains: true and a maxAge of '365d' or more")
  return `max-age=${seconds}${hsts.includeSubDomains ? '; includeSubDomains' : ''}${hsts.preload ? '; preload' : ''}`
}

function refuse(response: ServerResponse): void {
  const body = '{"error":"https_required","message":"This service answers over HTTPS only."}'
  response.writeHead(403, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
  })
  response.end(body)
}

/**
 * Keeps plain HTTP out, for the first line of a request handler: `if (https(request, response)) return`. It answers
 * `true` if it has answered the request. Loopback without a proxy is let through, for development.
 * @throws TypeError that quotes the option which is malformed
 */
export function requireHttps(options: HttpsOptions = {}): Gate {
  checkOptions(HTTPS, options)
  const { insecure = DEFAULTS.https.insecure, host } = options
  const hsts = hstsHeader(options.hsts)
  const transport = transportTest(options)
  const gate = (request: IncomingMessage, response: ServerResponse) => {
    checkNode('requireHttps', request, response ?? null)
    const reached = transport(request)
    if (reached === 'tls') {
      if (hsts !== null) response.setHeader('Strict-Transport-Security', hsts)
      return false
    }
    if (reached === 'loopback') return false
    const target = host ?? hostOf(request)?.replace(/:\d+$/, '')
    const isSafe = request.method === 'GET' || request.method === 'HEAD'
    // A body has already travelled in the clear, and 'http://…' or '*' as a target is for proxies.
    if (insecure === 'refuse' || !isSafe || !target || !HOST.test(target) || !request.url?.startsWith('/'))
      refuse(response)
    else response.writeHead(308, { Location: `https://${target}${request.url}`, 'Content-Length': 0 }).end()
    return true
  }
  return gate as Gate
}
