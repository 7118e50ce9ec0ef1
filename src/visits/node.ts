import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { forVisits } from '../manager/for-visits.ts'
import type { SessionManager } from '../manager/manager.ts'
import type { UserIds } from '../session/user-id.ts'
import { checkNode, checkSessions } from './check-arguments.ts'
import type { CookieOptions } from './cookie.ts'
import type { Advice } from './errors.ts'
import type { HeadRules } from './head.ts'
import { guardHead } from './node-head.ts'
import { hostOf, type SecureOptions, secureTest } from './secure.ts'
import { setUp, type VisitOptions } from './setup.ts'
import type { Visit as PublicVisit, VisitRequest } from './types.ts'
import { Visit } from './visit.ts'

/** What `nodeVisits` takes. */
export interface NodeVisitsOptions extends VisitOptions, SecureOptions<IncomingMessage> {}

const ADVICE: Advice = {
  where: 'nodeVisits',
  lacks: {},
  insecure: 'behind a proxy that ends TLS set `trustedProxies` or `isSecure` of nodeVisits',
  send: 'the head was written past writeHead of the response that nodeVisits was given',
}

/** Whether the client went away. A response of HTTP/2 does not tell: its stream does. */
const isGone = (response: ServerResponse): boolean =>
  response.destroyed || (response as { stream?: { destroyed?: boolean } }).stream?.destroyed === true

/** A request of node:http as a visit sees it. Nothing is read from it before a visit asks. */
class NodeRequest implements VisitRequest {
  readonly #request: IncomingMessage
  readonly #response: ServerResponse | undefined
  readonly #isSecure: (request: IncomingMessage) => boolean

  constructor(
    request: IncomingMessage,
    response: ServerResponse | undefined,
    isSecure: (request: IncomingMessage) => boolean,
  ) {
    this.#request = request
    this.#response = response
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

  header(name: 'origin' | 'sec-fetch-site' | 'sec-fetch-mode' | 'host'): string | undefined {
    return name === 'host' ? hostOf(this.#request) : (this.#request.headers[name] as string | undefined)
  }

  canSend(): boolean {
    const response = this.#response
    return response !== undefined && !response.headersSent && !isGone(response)
  }

  /** A response that is never sent, since the client went away, has lost no cookie either. */
  isPending(): boolean {
    return this.#response === undefined || !this.#response.headersSent
  }

  onHeadRules(rules: () => HeadRules): void {
    if (this.#response !== undefined && !this.#response.headersSent) guardHead(this.#response, rules)
  }
}

/** What `nodeVisits` returns: visits for servers on node:http, or on node:http2 with handlers of the same form. */
export interface NodeVisits<
  Data extends object = Record<string, unknown>,
  Ids extends UserIds = 'bigint',
  Input extends object = Data,
> {
  /** The manager behind them. */
  readonly sessions: SessionManager<Data, Ids, Input>
  /** The options of their session cookie. */
  readonly cookie: CookieOptions
  /** The visit of this request; the same one if asked again. Without a response (an upgrade) no session can begin. */
  of(
    request: IncomingMessage | Http2ServerRequest,
    response?: ServerResponse | Http2ServerResponse,
  ): PublicVisit<Data, Ids, Input>
  of(request: IncomingMessage, response?: ServerResponse): PublicVisit<Data, Ids, Input>
}

/**
 * What is kept at a request, as a property: it is found several times faster than an entry of a WeakMap.
 *
 * A class and no object literal: if many requests wait for their sessions V8 finds that what a literal makes lives long,
 * and makes it in the old heap. There each one kept its request until the next full collection, long after the response:
 * a request with a session in Redis cost 1.5 times as much.
 */
class Known<V> {
  readonly visit: V
  readonly response: ServerResponse | undefined

  constructor(visit: V, response: ServerResponse | undefined) {
    this.visit = visit
    this.response = response
  }
}

/**
 * Visits for node:http and all that is built on it (Express, Koa, Nest, Fastify's raw): `visits.of(request, response)`.
 * Headers are set when the response writes its head, so that a later `writeHead({ 'Set-Cookie': … })` cannot lose them.
 * @throws TypeError that quotes the option which is malformed or impossible
 */
export function nodeVisits<Data extends object, Ids extends UserIds, Input extends object>(
  sessions: SessionManager<Data, Ids, Input>,
  options: NodeVisitsOptions = {},
): NodeVisits<Data, Ids, Input> {
  checkSessions('nodeVisits', sessions)
  const setup = setUp(options, ADVICE)
  const manager = forVisits<Data, Ids>(sessions)
  const isSecure = secureTest(options)
  const slot = Symbol('coatcheck visit')
  const of = (request: IncomingMessage, response?: ServerResponse): PublicVisit<Data, Ids, Input> => {
    const holder = (request ?? {}) as { [slot]?: Known<PublicVisit<Data, Ids, Input>> }
    const known = holder[slot]
    if (known !== undefined && (known.response === response || response === undefined)) return known.visit
    checkNode('nodeVisits', request, response)
    const visit = new Visit(sessions, manager, new NodeRequest(request, response, isSecure), setup)
    holder[slot] = new Known(visit, response)
    return visit
  }
  return { sessions, cookie: options.cookie ?? {}, of } as NodeVisits<Data, Ids, Input>
}
