// Headers of node:http that must survive whatever the application does to its response: they are set when the head is
// written.
import { ServerResponse } from 'node:http'
import { type Head, type HeadRules, writeRules } from './head.ts'

type HeaderValue = number | string | readonly string[] | undefined
type Arguments = [status: number, reason?: unknown, headers?: unknown]

const listOf = (value: HeaderValue): string[] =>
  value === undefined ? [] : Array.isArray(value) ? value.map(String) : [String(value)]

/** The headers that a response has so far. */
class NodeHead implements Head {
  readonly #response: ServerResponse
  readonly #set: ServerResponse['setHeader']

  constructor(response: ServerResponse) {
    this.#response = response
    this.#set = response.setHeader
  }

  get(name: string): string | null {
    const value = this.#response.getHeader(name)
    return value === undefined ? null : listOf(value).join(', ')
  }

  cookies(): readonly string[] {
    return listOf(this.#response.getHeader('set-cookie'))
  }

  set(name: string, value: string | readonly string[]): void {
    this.#set.call(this.#response, name, value)
  }
}

/** A head that is made as one object, and has none of the headers that the rules are about. */
class NewHead implements Head {
  // Copied name by name: a spread makes an object that Node then walks at a fifth of the speed.
  readonly headers: Record<string, unknown> = {}

  get(name: string): string | null {
    return (this.headers[name] as string | undefined) ?? null
  }

  cookies(): readonly string[] {
    return []
  }

  set(name: string, value: unknown): void {
    this.headers[name] = value
  }
}

/** Sets the headers that were given to writeHead, as Node does: an object, a flat array, or an array of pairs. */
function setGiven(response: ServerResponse, headers: unknown): void {
  if (Array.isArray(headers)) {
    const flat = Array.isArray(headers[0]) ? headers.flat(1) : headers
    // An array replaces what was set before, and may name a header twice.
    for (let at = 0; at < flat.length; at += 2) response.removeHeader(flat[at])
    for (let at = 0; at < flat.length; at += 2) response.appendHeader(flat[at], flat[at + 1])
  } else if (typeof headers === 'object' && headers !== null) {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
  }
}

/**
 * Calls `write`, and writes the rules again after each header that is set meanwhile: for functions that were put around
 * writeHead before us, run inside of it, and set headers themselves (on-headers and what is built on it).
 */
function shielded<T>(response: ServerResponse, rules: HeadRules, write: () => T): T {
  const { setHeader } = response
  const isOwn = Object.hasOwn(response, 'setHeader')
  const head = new NodeHead(response)
  response.setHeader = (...header) => {
    setHeader.apply(response, header)
    writeRules(rules, head)
    return response
  }
  try {
    return write()
  } finally {
    if (isOwn) response.setHeader = setHeader
    else delete (response as Partial<ServerResponse>).setHeader
  }
}

/**
 * Asks for the rules when the head is about to be written, by whichever call, and writes them last.
 *
 * A bound function and no closure: what a closure in a property refers to, here the whole request, V8 keeps from a full
 * collection of garbage to the next minor one, which then copies 30 times as much.
 */
export function guardHead(response: ServerResponse, rulesNow: () => HeadRules): void {
  const guarded = new GuardedHead(response, rulesNow)
  response.writeHead = writeHead.bind(guarded) as ServerResponse['writeHead']
}

/** A response as it was before its head was guarded. */
class GuardedHead {
  readonly response: ServerResponse
  readonly previous: (...args: Arguments) => ServerResponse
  readonly rulesNow: () => HeadRules

  constructor(response: ServerResponse, rulesNow: () => HeadRules) {
    this.response = response
    this.previous = response.writeHead as (...args: Arguments) => ServerResponse
    this.rulesNow = rulesNow
  }
}

function writeHead(this: GuardedHead, ...args: Arguments): ServerResponse {
  const { response, previous } = this
  const isPatched = previous !== ServerResponse.prototype.writeHead
  const reason = args[1]
  const headers = typeof reason === 'string' ? args[2] : (args[2] ?? reason)
  // Too late, or an odd number of names and values: Node's own error is the right one.
  const isOdd = Array.isArray(headers) && !Array.isArray(headers[0]) && headers.length % 2 !== 0
  if (response.headersSent || isOdd) return previous.apply(response, args)
  const rules = this.rulesNow()
  if (!isPatched && typeof reason !== 'string') {
    const merged = mergedHead(response, headers, rules)
    if (merged !== null) return previous.call(response, args[0], merged)
  }
  setGiven(response, headers)
  writeRules(rules, new NodeHead(response))
  const rest: Arguments = typeof reason === 'string' ? [args[0], reason] : [args[0]]
  if (!isPatched) return previous.apply(response, rest)
  return shielded(response, rules, () => previous.apply(response, rest))
}

/**
 * Builds the whole head as one object, which Node writes several times faster. `null` unless writeHead was given an
 * object, and neither it nor what was set before has a header that the rules change.
 */
function mergedHead(response: ServerResponse, headers: unknown, rules: HeadRules): Record<string, unknown> | null {
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) return null
  if (rules.others.length > 0 || OURS.some(name => response.hasHeader(name))) return null
  const head = new NewHead()
  for (const name of Object.keys(headers)) {
    if (isOurs(name)) return null
    head.set(name, (headers as Record<string, unknown>)[name])
  }
  writeRules(rules, head)
  return head.headers
}

const OURS = ['vary', 'set-cookie', 'cache-control']

/** Whether a header has to be merged, or cannot be copied. Lengths first: most names are neither. */
function isOurs(name: string): boolean {
  const { length } = name
  if (length !== 4 && length !== 10 && length !== 13) return name === '__proto__'
  const lower = name.toLowerCase()
  return OURS.includes(lower)
}
