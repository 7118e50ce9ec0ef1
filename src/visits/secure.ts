import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, isIPv6 } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { listOf, rule } from '../text/check-options.ts'
import { Recent } from '../time/recent.ts'

/** How to know whether a request came over TLS. */
export interface SecureOptions<R = unknown> {
  /** Addresses and CIDR ranges of proxies whose `X-Forwarded-Proto` counts. @default none */
  trustedProxies?: readonly string[]
  /** Says whether a request came over TLS. If it is given, nothing else is asked. */
  isSecure?: (request: R) => boolean
}

const LOCAL_HOST = /^(?:(?:[a-z0-9-]+\.)*localhost\.?|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i

/** Headers in which proxies say where a request came from. Next.js adds them to each request, even without a proxy. */
const FORWARDED = ['x-forwarded-for', 'x-real-ip', 'x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-port']
/** Headers that only a proxy between two machines adds, or that say the same in a form that is not read here. */
const OF_PROXIES = [
  'forwarded',
  'via',
  'x-forwarded-server',
  'x-forwarded-ssl',
  'x-forwarded-scheme',
  'x-client-ip',
  'cf-connecting-ip',
  'true-client-ip',
] as const
const ALL = new Set<string>([...FORWARDED, ...OF_PROXIES])
const PLAIN = /^(?:http|ws)$/i
const LOOPBACK_ADDRESS = /^(?:(?:::ffff:)?127(?:\.\d{1,3}){3}|::1)$/i

/** Names of this machine (RFC 6761, section 6.3): a browser sends such a Host only over loopback. */
export const isLocalHost = (host: string | null | undefined): boolean =>
  typeof host === 'string' && LOCAL_HOST.test(host)

/**
 * Whether no proxy is in between, or only ones of this machine that were themselves asked by this machine: then each
 * address is loopback, and the host that was asked for is local. The addresses have to be there: a proxy that forwards
 * the scheme alone says nothing about the client. A proxy that adds nothing at all cannot be noticed.
 */
export function isForwardedLocally(header: (name: string) => unknown): boolean {
  for (const name of OF_PROXIES) if (header(name) != null) return false
  if (FORWARDED.every(name => header(name) == null)) return true
  const are = (name: string, local: RegExp) => {
    const value = header(name)
    return value == null || (typeof value === 'string' && value.split(',').every(part => local.test(part.trim())))
  }
  if (header('x-forwarded-for') == null || !are('x-forwarded-for', LOOPBACK_ADDRESS)) return false
  return are('x-real-ip', LOOPBACK_ADDRESS) && are('x-forwarded-host', LOCAL_HOST) && are('x-forwarded-proto', PLAIN)
}

export const hostOf = (request: IncomingMessage): string | undefined =>
  // HTTP/2 has the pseudo-header instead (RFC 9113, section 8.3.1).
  request.headers.host ?? (request.headers[':authority'] as string | undefined)

/**
 * Development without TLS: the peer is this machine, it asked for a name of this machine, and so did the client behind it,
 * if the peer is a proxy. nginx speaks HTTP/1.0 to its backends and adds no forwarded headers until it is configured; no
 * browser speaks HTTP/1.0.
 */
function isDirectLoopback(request: IncomingMessage): boolean {
  const { headers, httpVersion, socket } = request
  const isLocal = LOOPBACK_ADDRESS.test(socket?.remoteAddress ?? '') && isLocalHost(hostOf(request))
  if (!isLocal || httpVersion === '1.0') return false
  // Names that are there are found several times faster than thirteen are missed.
  for (const name in headers) if (ALL.has(name)) return isForwardedLocally(each => headers[each])
  return true
}

/** Whether the connection was lost before anyone asked for its peer. A unix socket has no peer at any time. */
function isGone(request: IncomingMessage): boolean {
  const { socket } = request
  // A request of HTTP/2 whose stream is closed has none.
  if (!socket) return (request as { stream?: { destroyed?: boolean } }).stream?.destroyed === true
  return socket.destroyed && socket.remoteAddress === undefined
}

/** Whether a request of node:http (or its HTTP/2 form) came over TLS, or over loopback, which needs none. */
export function secureTest(options: SecureOptions<IncomingMessage>): (request: IncomingMessage) => boolean {
  const { isSecure, trustedProxies } = options
  const isTrusted = proxyTest(trustedProxies)
  return request => {
    if (isSecure) return isSecure(request) === true
    if ((request.socket as TLSSocket | undefined)?.encrypted) return true
    // If the connection is lost nobody can tell how the request came, and no answer reaches the client.
    if (isGone(request) || isDirectLoopback(request)) return true
    const proto = request.headers['x-forwarded-proto']
    if (typeof proto !== 'string' || !isTrusted(request.socket?.remoteAddress)) return false
    // Proxies that append write one value per hop: one plain hop, or one forged value, is one too many.
    // For a WebSocket handshake some write `wss`.
    return proto.split(',').every(each => /^(?:https|wss)$/i.test(each.trim()))
  }
}

/**
 * A test whether a peer's address is among `proxies`: addresses and CIDR ranges (RFC 4632), IPv4 and IPv6. An
 * IPv4-mapped address (`::ffff:10.0.0.1`, how a dual-stack socket names an IPv4 peer) is its IPv4 address.
 * @throws TypeError that quotes an entry which is neither
 */
export function proxyTest(proxies: unknown): (address: string | undefined) => boolean {
  const list = new BlockList()
  const range = rule("addresses and ranges such as '127.0.0.1' or '10.0.0.0/8'", entry => isAdded(list, entry))
  if (proxies !== undefined) listOf('addresses and ranges', range)(proxies, 'trustedProxies')
  // A look into the list takes longer than the rest of a request from memory, and proxies are few.
  const known = new Recent<boolean>(Number.POSITIVE_INFINITY, 1000)
  return (address = '') => {
    let isIn = known.get(address, 0)
    if (isIn === undefined) {
      isIn = isIP(address) !== 0 && list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
      known.set(address, isIn, 0)
    }
    return isIn
  }
}

/** `false` if the entry is neither an address nor a range. A zone (fe80::1%eth0) is not part of an address in a list. */
function isAdded(list: BlockList, entry: unknown): boolean {
  const [, address = '', prefix] =
    typeof entry === 'string' ? (/^([^/%]+)(?:\/(0|[1-9]\d{0,2}))?$/.exec(entry) ?? []) : []
  const family = isIP(address)
  const bits = family === 4 ? 32 : 128
  // An address is the range of itself.
  const length = Number(prefix ?? bits)
  if (family === 0 || length > bits) return false
  list.addSubnet(address, length, family === 4 ? 'ipv4' : 'ipv6')
  return true
}
