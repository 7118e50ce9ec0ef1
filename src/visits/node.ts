import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { SessionManager } from '../manager/manager.ts'
import type { UserIds } from '../session/users.ts'
import { aFunction } from '../text/check-options.ts'
import { quote } from '../text/quote.ts'
import type { CookieOptions } from './cookie.ts'
import type { Advice } from './errors.ts'
import type { Head, HeaderValue, HeadRules, MoreRules } from './head.ts'
import { isHandshake, linesOf, writeRules } from './head.ts'
import { hostOf, proxyTest, type SecureOptions, secureTest } from './secure.ts'
import { setUp, type VisitOptions } from './setup.ts'
import type { Visit as PublicVisit, VisitRequest } from './types.ts'
import { Visit } from './visit.ts'

/** Options of `nodeVisits`. */
export interface NodeVisitsOptions extends VisitOptions, SecureOptions<IncomingMessage> {}

const ADVICE: Advice = {
  where: 'nodeVisits',
  insecure: 'behind a proxy that ends TLS set `trustedProxies` or `isSecure` of nodeVisits',
}

const PASS =
  'pass what node:http gave (Express: request, response; Fastify: request.raw, reply.raw; Koa: ctx.req, ctx.res; h3: event.node.req, event.node.res)'

/**
 * Frameworks wrap requests, and a wrapper looks like a request: the service would answer 200 and never set a cookie.
 * @throws TypeError that says what to pass
 */
export function checkNode(where: string, request: unknown, response: unknown): void {
  const given = (request ?? {}) as { httpVersion?: unknown; headers?: Partial<Headers> | null }
  // Imitations in tests have headers at least, and so have wrappers.
  const isImitation = ({ headers } = given) =>
    typeof headers === 'object' &&
    headers !== null &&
    typeof headers.get !== 'function' &&
    !['raw', 'req', 'request', 'node'].some(inner => inner in given)
  if (typeof given.httpVersion !== 'string' && !isImitation())
    throw new TypeError(
      `${where}: expected a request of node:http, got ${quote(request)}; ${PASS}, or for a Request use fetchVisits of 'coatcheck/fetch'`,
    )
  if (response !== undefined && typeof (response as Partial<ServerResponse> | null)?.writeHead !== 'function')
    throw new TypeError(`${where}: expected a response of node:http, got ${quote(response)}; ${PASS}`)
}

/** Whether the client went away. A response of HTTP/2 does not tell: its stream does. */
const isGone = (response: ServerResponse): boolean =>
  response.destroyed || (response as { stream?: { destroyed?: boolean } }).stream?.destroyed === true

/**
 * A request of node:http as a visit sees it, and its visit. Nothing is read from it before a visit asks.
 *
 * It is a property of the request, which is found several times faster than an entry of a WeakMap. And it is a class, not an
 * object literal: if many requests wait for their sessions, V8 finds that objects of the literal live long, and allocates
 * them in the old heap. There each one kept its request until the next full collection, long after the response: a request
 * with a session in Redis cost 1.5 times as much.
 */
class NodeRequest<V> implements VisitRequest {
  visit!: V
  readonly response: ServerResponse | undefined
  readonly #request: IncomingMessage
  readonly #isSecure: (request: IncomingMessage) => boolean

  constructor(
    request: IncomingMessage,
    response: ServerResponse | undefined,
    isSecure: (request: IncomingMessage) => boolean,
  ) {
    this.#request = request
    this.response = response
    this.#isSecure = isSecure
  }

  get method(): string {
    return this.#request.method ?? ''
  }

  get cookie(): string | undefined {
    return this.#request.headers.cookie
  }

  get secure(): boolean {
    return this.#isSecure(this.#request)
  }

  get upgrade(): boolean {
    return this.#request.headers.upgrade !== undefined
  }

  header(name: 'origin' | 'sec-fetch-site' | 'host'): string | undefined {
    return name === 'host' ? hostOf(this.#request) : (this.#request.headers[name] as string | undefined)
  }

  canSend(): boolean {
    const { response } = this
    const { upgrade } = this.#request.headers
    return response !== undefined && !response.headersSent && !isGone(response) && !isHandshake(upgrade)
  }

  isLate(): boolean {
    return this.response?.headersSent === true && !isHandshake(this.#request.headers.upgrade)
  }

  onHeadRules(rules: () => HeadRules): void {
    if (this.response !== undefined && !this.response.headersSent) guardHead(this.response, rules)
  }
}

/** The result of `nodeVisits`: visits for servers on node:http, or on node:http2 with handlers of the same form. */
export interface NodeVisits<
  Data extends object = Record<string, unknown>,
  Ids extends UserIds = 'bigint',
  Input extends object = Data,
> {
  /** The manager behind them. */
  readonly sessions: SessionManager<Data, Ids, Input>
  /** The options of their session cookie. */
  readonly cookie: CookieOptions
  /**
   * The visit of this request; the same one if asked again. Without a response (an upgrade) no session can begin.
   * @example
   * const { user } = await visits.of(request, response).requireUser() // Fastify: of(request.raw, reply.raw)
   */
  of(
    request: IncomingMessage | Http2ServerRequest,
    response?: ServerResponse | Http2ServerResponse,
  ): PublicVisit<Data, Ids, Input>
  of(request: IncomingMessage, response?: ServerResponse): PublicVisit<Data, Ids, Input>
}

/**
 * Visits for node:http and everything built on it (Express, Koa, Nest, Fastify's raw): `visits.of(request, response)`.
 * Headers are set when the response writes its head, so that a later `writeHead({ 'Set-Cookie': … })` cannot lose them.
 * @throws TypeError that quotes the option which is malformed or impossible
 * @example
 * const visits = nodeVisits(sessions)
 * const session = await visits.of(request, response).get()
 */
export function nodeVisits<Data extends object, Ids extends UserIds, Input extends object>(
  sessions: SessionManager<Data, Ids, Input>,
  options: NodeVisitsOptions = {},
): NodeVisits<Data, Ids, Input> {
  const setup = setUp(sessions, options, ADVICE, { trustedProxies: proxyTest, isSecure: aFunction })
  const isSecure = secureTest(options)
  const slot = Symbol('coatcheck visit')
  const of = (request: IncomingMessage, response?: ServerResponse): PublicVisit<Data, Ids, Input> => {
    const holder = (request ?? {}) as { [slot]?: NodeRequest<PublicVisit<Data, Ids, Input>> }
    const known = holder[slot]
    if (known !== undefined && (known.response === response || response === undefined)) return known.visit
    checkNode('nodeVisits', request, response)
    const nodeRequest = new NodeRequest<PublicVisit<Data, Ids, Input>>(request, response, isSecure)
    holder[slot] = nodeRequest
    nodeRequest.visit = new Visit(sessions, nodeRequest, setup)
    return nodeRequest.visit
  }
  return { sessions, cookie: options.cookie ?? {}, of } as NodeVisits<Data, Ids, Input>
}

// Headers of node:http that must survive whatever the application does to its response: they are merged in when the head
// is written.
type Arguments = [status: number, reason?: unknown, headers?: unknown]
type WriteHead = (...args: Arguments) => ServerResponse

/**
 * The headers given to writeHead, and behind them those of the response so far. One object, because Node writes it several
 * times faster than headers that are set one by one.
 */
class GivenHead implements Head {
  readonly headers: Record<string, HeaderValue> = {}
  readonly #response: ServerResponse

  /** `given` as Node takes it: an object, a flat array, or an array of pairs. */
  constructor(response: ServerResponse, given: unknown) {
    this.#response = response
    if (Array.isArray(given)) {
      const flat = Array.isArray(given[0]) ? given.flat(1) : given
      for (let at = 0; at < flat.length; at += 2) {
        // An array replaces what was set before, and may name a header twice.
        const before = this.#nameOf(flat[at]) === undefined ? [] : linesOf(this.getHeader(flat[at]))
        this.setHeader(flat[at], before.length === 0 ? flat[at + 1] : [...before, ...linesOf(flat[at + 1])])
      }
    } else if (typeof given === 'object' && given !== null) {
      // One by one: a spread makes an object that Node then walks at a fifth of the speed.
      for (const name of Object.keys(given)) this.headers[name] = (given as Record<string, HeaderValue>)[name]
    }
  }

  /** How a header that was given is spelt. */
  #nameOf(name: string): string | undefined {
    for (const each in this.headers)
      if (each.length === name.length && each.toLowerCase() === name.toLowerCase()) return each
    return undefined
  }

  getHeader(name: string): HeaderValue {
    const own = this.#nameOf(name)
    return own === undefined ? this.#response.getHeader(name) : this.headers[own]
  }

  setHeader(name: string, value: HeaderValue): void {
    this.headers[this.#nameOf(name) ?? name] = value
  }
}

/**
 * Calls `write`, and writes the rules again after each header that is set meanwhile: for functions that were put around
 * writeHead before us, run inside of it, and set headers themselves (on-headers and what is built on it).
 */
function shielded<T>(response: ServerResponse, rules: MoreRules, write: () => T): T {
  const { setHeader } = response
  const isOwn = Object.hasOwn(response, 'setHeader')
  const head: Head = { getHeader: name => response.getHeader(name), setHeader: setHeader.bind(response) }
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
 * A bound function and no closure: V8 would keep everything that the closure refers to, here the whole request, from a full
 * garbage collection to the next minor one, which then copies 30 times as much.
 */
export function guardHead(response: ServerResponse, rulesNow: () => MoreRules): void {
  const previous = response.writeHead as WriteHead
  response.writeHead = writeHead.bind(null, response, previous, rulesNow) as ServerResponse['writeHead']
}

function writeHead(
  response: ServerResponse,
  previous: WriteHead,
  rulesNow: () => MoreRules,
  ...args: Arguments
): ServerResponse {
  const reason = args[1]
  const headers = typeof reason === 'string' ? args[2] : (args[2] ?? reason)
  // Too late, or an odd number of names and values: Node's own error is the right one.
  const isOdd = Array.isArray(headers) && !Array.isArray(headers[0]) && headers.length % 2 !== 0
  if (response.headersSent || isOdd) return previous.apply(response, args)
  const rules = rulesNow()
  const head = new GivenHead(response, headers)
  writeRules(rules, head)
  if (previous === ServerResponse.prototype.writeHead) return previous.call(response, args[0], reason, head.headers)
  for (const [name, value] of Object.entries(head.headers)) response.setHeader(name, value!)
  const rest: Arguments = typeof reason === 'string' ? [args[0], reason] : [args[0]]
  return shielded(response, rules, () => previous.apply(response, rest))
}
