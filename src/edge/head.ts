// Headers that must survive whatever the application does to its response: they go in when the head is written.
import { ServerResponse } from 'node:http'
import { type HeadDemands, withCookies, withNoStore, withVary } from './demands.ts'

type HeaderValue = number | string | readonly string[] | undefined
type Arguments = [status: number, reason?: unknown, headers?: unknown]

const listOf = (value: HeaderValue): string[] =>
  value === undefined ? [] : Array.isArray(value) ? value.map(String) : [String(value)]

/** Puts the demands in; calling it again changes nothing. */
function apply(response: ServerResponse, demands: HeadDemands, set: ServerResponse['setHeader']): void {
  for (const name of demands.vary) {
    const before = listOf(response.getHeader('vary')).join(', ')
    const after = withVary(before, name)
    if (after !== before) set.call(response, 'Vary', after)
  }
  if (demands.noStore) {
    const before = listOf(response.getHeader('cache-control')).join(', ')
    const after = withNoStore(before)
    if (after !== before) set.call(response, 'Cache-Control', after)
  }
  if (demands.cookies.length > 0)
    set.call(response, 'Set-Cookie', withCookies(listOf(response.getHeader('set-cookie')), demands))
  for (const [name, value] of demands.others) if (!response.hasHeader(name)) set.call(response, name, value)
}

/** Sets the headers that were given to writeHead, as Node does: an object, a flat array, or an array of pairs. */
function take(response: ServerResponse, headers: unknown): void {
  if (Array.isArray(headers)) {
    const flat = Array.isArray(headers[0]) ? headers.flat(1) : headers
    // An array replaces what was set before, and may name a header twice.
    for (let at = 0; at < flat.length; at += 2) response.removeHeader(flat[at])
    for (let at = 0; at < flat.length; at += 2) response.appendHeader(flat[at], flat[at + 1])
  } else if (typeof headers === 'object' && headers !== null)
    for (const name of Object.keys(headers)) response.setHeader(name, (headers as Record<string, string>)[name]!)
}

const SHIELDED = ['setHeader', 'appendHeader', 'removeHeader'] as const

/**
 * Runs `write` while every change of the response's headers is followed by our own: for functions that were put around
 * writeHead before us, run inside of it, and set headers themselves (on-headers and what is built on it).
 */
function shielded<T>(response: ServerResponse, demands: HeadDemands, write: () => T): T {
  const target = response as unknown as Record<string, ((...values: unknown[]) => unknown) | undefined>
  const set = response.setHeader
  const before = SHIELDED.map(name => [name, target[name], Object.hasOwn(response, name)] as const)
  for (const [name, method] of before) {
    if (!method) continue
    target[name] = (...values: unknown[]) => {
      const result = method.apply(response, values)
      apply(response, demands, set)
      return result
    }
  }
  try {
    return write()
  } finally {
    for (const [name, method, isOwn] of before) {
      if (isOwn) target[name] = method
      else delete target[name]
    }
  }
}

/** Asks for `demands` when the head is about to be written, however that comes about, and puts them in last. */
export function guardHead(response: ServerResponse, demands: () => HeadDemands): void {
  const previous = response.writeHead as (...args: Arguments) => ServerResponse
  const isPatched = previous !== ServerResponse.prototype.writeHead
  response.writeHead = function writeHead(this: ServerResponse, ...args: Arguments) {
    const [status, reason, given] = args
    const headers = typeof reason === 'string' ? given : (given ?? reason)
    // Too late, or malformed: Node's own error is the right one.
    if (response.headersSent || isOddArray(headers)) return previous.apply(response, args)
    const wanted = demands()
    if (!isPatched && typeof reason !== 'string') {
      const whole = together(response, headers, wanted)
      if (whole !== null) return previous.call(response, status, whole)
    }
    take(response, headers)
    apply(response, wanted, response.setHeader)
    const rest: Arguments = typeof reason === 'string' ? [status, reason] : [status]
    if (!isPatched) return previous.apply(response, rest)
    return shielded(response, wanted, () => previous.apply(response, rest))
  } as ServerResponse['writeHead']
}

/**
 * The usual case, several times faster: writeHead with an object, no header set before, none that ours must be merged
 * with. The whole head as one object, or `null` for any other case.
 */
function together(response: ServerResponse, headers: unknown, wanted: HeadDemands): Record<string, unknown> | null {
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) return null
  if (wanted.others.length > 0 || response.getHeaderNames().length > 0) return null
  // Copied name by name: a spread makes an object that Node then walks at a fifth of the speed.
  const whole: Record<string, unknown> = {}
  for (const name of Object.keys(headers)) {
    if (isOurs(name)) return null
    whole[name] = (headers as Record<string, unknown>)[name]
  }
  if (wanted.vary.length > 0) whole.Vary = wanted.vary.join(', ')
  if (wanted.noStore) whole['Cache-Control'] = 'no-store'
  if (wanted.cookies.length > 0) whole['Set-Cookie'] = wanted.cookies
  return whole
}

/** Whether a header has to be merged, or cannot be copied. Lengths first: most names are neither. */
function isOurs(name: string): boolean {
  const { length } = name
  if (length !== 4 && length !== 10 && length !== 13) return name === '__proto__'
  const lower = name.toLowerCase()
  return lower === 'vary' || lower === 'set-cookie' || lower === 'cache-control'
}

const isOddArray = (headers: unknown) =>
  Array.isArray(headers) && !Array.isArray(headers[0]) && headers.length % 2 !== 0
