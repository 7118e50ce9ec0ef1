import { BlockList, isIP } from 'node:net'
import { quote } from '../text/quote.ts'

const isPrefix = (text: string | undefined, max: number) =>
  text !== undefined && /^(0|[1-9]\d{0,2})$/.test(text) && Number(text) <= max

/**
 * A test whether a peer's address is among `proxies`: addresses and CIDR ranges (RFC 4632), IPv4 and IPv6. An
 * IPv4-mapped address (`::ffff:10.0.0.1`, how a dual-stack socket names an IPv4 peer) is its IPv4 address.
 * @throws TypeError that quotes an entry which is neither
 */
export function proxyTest(proxies: unknown): (address: string | undefined) => boolean {
  if (proxies === undefined) return () => false
  if (!Array.isArray(proxies))
    throw new TypeError(`trustedProxies: expected an array of addresses and ranges, got ${quote(proxies)}`)
  const list = new BlockList()
  for (const entry of proxies) add(list, entry)
  return address => {
    const family = address === undefined ? 0 : isIP(address)
    return family !== 0 && list.check(address as string, family === 4 ? 'ipv4' : 'ipv6')
  }
}

function add(list: BlockList, entry: unknown): void {
  const [address = '', prefix, ...rest] = typeof entry === 'string' ? entry.split('/') : []
  const family = isIP(address)
  const isRange = prefix !== undefined
  // A zone (fe80::1%eth0) is no part of an address in a list.
  if (
    family === 0 ||
    address.includes('%') ||
    rest.length > 0 ||
    (isRange && !isPrefix(prefix, family === 4 ? 32 : 128))
  )
    throw new TypeError(
      `trustedProxies: expected addresses and ranges such as '127.0.0.1' or '10.0.0.0/8', got ${quote(entry)}`,
    )
  const type = family === 4 ? 'ipv4' : 'ipv6'
  if (isRange) list.addSubnet(address, Number(prefix), type)
  else list.addAddress(address, type)
}
