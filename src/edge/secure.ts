import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { quote } from '../quote.ts'
import { proxyTest } from './proxies.ts'

/** How an edge knows that a request came over TLS. */
export interface SecureOptions<R> {
  /** Addresses and CIDR ranges of proxies whose `X-Forwarded-Proto` counts. @default none */
  trustedProxies?: readonly string[]
  /** Decides alone, where it is given. */
  isSecure?: (request: R) => boolean
}

const LOCAL_HOST = /^(?:(?:[a-z0-9-]+\.)*localhost\.?|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i
const LOOPBACK = /^(?:::ffff:)?127\.|^::1$/

/** What proxies add. Any of them says that the peer is not the client. */
const FORWARDED = [
  'x-forwarded-for',
  'x-forwarded-proto',
  'forwarded',
  'x-real-ip',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-server',
  'x-forwarded-ssl',
  'via',
] as const

/** Names of this machine (RFC 6761, section 6.3): a browser sends such a Host only for what it reaches over loopback. */
export const isLocalHost = (host: string | null | undefined): boolean =>
  typeof host === 'string' && LOCAL_HOST.test(host)

export function looksForwarded(header: (name: string) => unknown): boolean {
  for (const name of FORWARDED) if (header(name) != null) return true
  return false
}

/** @throws TypeError that quotes the option */
export function checkIsSecure(isSecure: unknown): void {
  if (isSecure !== undefined && typeof isSecure !== 'function')
    throw new TypeError(`isSecure: expected a function of the request, got ${quote(isSecure)}`)
}

export const hostOf = (request: IncomingMessage): string | undefined =>
  // HTTP/2 has the pseudo-header instead (RFC 9113, section 8.3.1).
  request.headers.host ?? (request.headers[':authority'] as string | undefined)

/**
 * Development without TLS: the peer is this machine, it asked for a name of this machine, and no proxy is in between.
 * HTTP/1.0 is what nginx speaks to its backends when nobody configured the forwarded headers; no browser does.
 */
function isDirectLoopback(request: IncomingMessage): boolean {
  const { headers } = request
  return (
    LOOPBACK.test(request.socket?.remoteAddress ?? '') &&
    isLocalHost(hostOf(request)) &&
    request.httpVersion !== '1.0' &&
    !looksForwarded(name => headers[name])
  )
}

export type Transport = 'tls' | 'loopback' | 'plain'

/** How a request of node:http (or its HTTP/2 form) reached this process. */
export function transportTest(options: SecureOptions<IncomingMessage>): (request: IncomingMessage) => Transport {
  const { isSecure, trustedProxies } = options
  checkIsSecure(isSecure)
  const isTrusted = proxyTest(trustedProxies)
  return request => {
    if (isSecure) return isSecure(request) === true ? 'tls' : 'plain'
    if ((request.socket as TLSSocket | undefined)?.encrypted) return 'tls'
    if (isDirectLoopback(request)) return 'loopback'
    const proto = request.headers['x-forwarded-proto']
    if (typeof proto !== 'string' || !isTrusted(request.socket?.remoteAddress)) return 'plain'
    // Proxies that append write one value per hop: one plain hop, or one forged value, is one too many.
    return proto.split(',').every(each => each.trim().toLowerCase() === 'https') ? 'tls' : 'plain'
  }
}
