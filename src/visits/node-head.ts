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
    let hasCookies = false
    for (const [name, value] of Object.entries(headers)) {
      const isCookie = name.toLowerCase() === 'set-cookie'
      // The name in two spellings is two headers for Node.
      const before = isCookie && hasCookies ? listOf(response.getHeader(name)) : null
      response.setHeader(name, before === null ? value : [...before, ...listOf(value)])
      hasCookies ||= isCookie
    }
  }
}

const SHIELDED = ['setHeader', 'appendHeader', 'removeHeader'] as const

/**
 * Calls `write`, and writes the rules again after each change of the headers meanwhile: for functions that were put around
 * writeHead before us, run inside of it, and set headers themselves (on-headers and what is built on it).
 */
function shielded<T>(response: ServerResponse, rules: HeadRules, write: () => T): T {
  const target = response as unknown as Record<string, ((...values: unknown[]) => unknown) | undefined>
  const head = new NodeHead(response)
  let isOver = false
  const before = SHIELDED.map(name => [name, target[name], Object.hasOwn(response, name)] as const)
  const shields = before.map(([name, method]) => {
    if (!method) return undefined
    target[name] = (...values: unknown[]) => {
      const result = method.apply(response, values)
      if (!isOver) writeRules(rules, head)
      return result
    }
    return target[name]
  })
  try {
    return write()
  } finally {
    isOver = true
    for (const [at, [name, method, isOwn]] of before.entries()) {
      // What was put around the shield meanwhile is taken away by its owner, which puts the shield back.
      if (target[name] !== shields[at]) continue
      if (isOwn) target[name] = method
      else delete target[name]
    }
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
  // Too late, or malformed: Node's own error is the right one.
  if (response.headersSent || isOddArray(headers)) return previous.apply(response, args)
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
 * The whole head as one object, for the usual case, which is several times faster so: writeHead is given an object, and
 * neither it nor what was set before has a header that the rules change. `null` in any other case.
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

const isOddArray = (headers: unknown) =>
  Array.isArray(headers) && !Array.isArray(headers[0]) && headers.length % 2 !== 0
