import type { SessionError } from '../contract/errors.ts'
import type { SessionManager } from '../manager/manager.ts'
import type { UserIds } from '../session/users.ts'
import { aFunction, refuse } from '../text/check-options.ts'
import { quote } from '../text/quote.ts'
import type { CookieOptions } from './cookie.ts'
import { isSafe } from './cross-origin.ts'
import type { Advice } from './errors.ts'
import { headersOf, isHandshake } from './head.ts'
import { isForwardedLocally, isLocalHost, type SecureOptions } from './secure.ts'
import { setUp, type VisitOptions, type VisitsSetup } from './setup.ts'
import type { Visit as PublicVisit, VisitRequest } from './types.ts'
import { Visit } from './visit.ts'

/** A `Request` has no peer address: behind a proxy that ends TLS, `isSecure` says which requests came over HTTPS. */
export interface FetchVisitsOptions extends VisitOptions, Omit<SecureOptions<Request>, 'trustedProxies'> {}

/** A visit whose headers go into a `Response`. */
export interface FetchVisit<
  Data extends object = Record<string, unknown>,
  Ids extends UserIds = 'bigint',
  Input extends object = Data,
> extends PublicVisit<Data, Ids, Input> {
  /**
   * The response with our headers. After it no session can begin. `handle` calls it for you.
   * @example
   * const visits = fetchVisits(sessions)
   * const profile = async (request: Request) => {
   *   const visit = visits.of(request)
   *   const { user } = await visit.requireUser()
   *   return visit.respond(Response.json(user))
   * }
   */
  respond(response: Response): Response
}

/** The result of `fetchVisits`: visits for servers that work with `Request` and `Response`. */
export interface FetchVisits<
  Data extends object = Record<string, unknown>,
  Ids extends UserIds = 'bigint',
  Input extends object = Data,
> {
  /** The manager behind them. */
  readonly sessions: SessionManager<Data, Ids, Input>
  /** The options of their session cookie. */
  readonly cookie: CookieOptions
  /**
   * The visit of this very Request. Send what `visit.respond(response)` returns; `handle` does that by itself.
   * @example
   * const visits = fetchVisits(sessions)
   * const userOf = async (request: Request) => (await visits.of(request).get())?.user // Hono: of(c.req.raw)
   */
  of(request: Request): FetchVisit<Data, Ids, Input>
  /**
   * Runs the handler and adds our headers to the Response that it returns or throws. What a page of another origin sends to
   * change something is answered with 403, and the handler does not run. Anything else that the handler throws is passed on,
   * and no cookie is sent: a session that began then ends when it is idle. A handler may return `undefined` for a handshake
   * that its server has taken over. Once for each request: within the handler take its visit.
   * @throws TypeError if the handler returns anything else
   * @example
   * const visits = fetchVisits(sessions)
   * const logOut = (request: Request) =>
   *   visits.handle(request, async visit => {
   *     await visit.logOut()
   *     return new Response('Logged out.')
   *   })
   */
  handle<R extends Response | undefined>(
    request: Request,
    handler: (visit: FetchVisit<Data, Ids, Input>) => R | Promise<R>,
  ): Promise<Response | Extract<R, undefined>>
}

const ADVICE: Advice = {
  where: 'fetchVisits',
  insecure: 'behind a proxy that ends TLS set `isSecure` of fetchVisits',
  send:
    'answer within `visits.handle(request, visit => response)`, throw nothing but a Response there, and pass its visit on, ' +
    'since a framework may make a new Request, which has a visit of its own; or send `visit.respond(response)`',
}

/** @throws TypeError that says what to pass */
export function checkFetch(where: string, request: unknown): void {
  // Its headers are left alone: Astro warns if someone reads them while it prerenders a page.
  if (typeof (request as Partial<Request> | null | undefined)?.clone !== 'function')
    throw new TypeError(
      `${where}: expected a Request, got ${quote(request)}; pass the Request (Hono: c.req.raw; SvelteKit: event.request), or for a request of node:http use nodeVisits of 'coatcheck/node'`,
    )
}

/** The host in the URL of a server that listens on all addresses (next start -H 0.0.0.0). */
const ANY_ADDRESS = /^(?:0\.0\.0\.0|\[::\])(?::\d+)?$/

/**
 * A request of the Fetch API as a visit sees it. Nothing is read from it before a visit asks. Its methods are no closures, as
 * in `guardHead`.
 */
class FetchRequest implements VisitRequest {
  isSent = false
  /** By `handle`, which sends the response by itself. */
  isHandled = false
  readonly #request: Request
  readonly #isTls: (request: Request) => boolean

  constructor(request: Request, isTls: (request: Request) => boolean) {
    this.#request = request
    this.#isTls = isTls
  }

  get method(): string {
    return this.#request.method
  }

  get cookie(): string | null {
    return this.#request.headers.get('cookie')
  }

  get upgrade(): boolean {
    return this.#request.headers.has('upgrade')
  }

  get isHandshake(): boolean {
    return isHandshake(this.#request.headers.get('upgrade'))
  }

  get secure(): boolean {
    return this.#isTls(this.#request)
  }

  header(name: 'origin' | 'sec-fetch-site' | 'host'): string | null {
    const { url, headers } = this.#request
    return headers.get(name) ?? (name === 'host' ? new URL(url).host : null)
  }

  canSend(): boolean {
    return !this.isSent && !this.isHandshake
  }

  isLate(): boolean {
    return this.isSent && !this.isHandshake
  }

  isPending(): boolean {
    return this.isHandled && !this.isSent
  }
}

class ResponseVisit<Data extends object, Ids extends UserIds, Input extends object>
  extends Visit<Data, Ids, Input>
  implements FetchVisit<Data, Ids, Input>
{
  readonly #fetchRequest: FetchRequest

  constructor(sessions: SessionManager<Data, Ids, Input>, request: FetchRequest, setup: VisitsSetup) {
    super(sessions, request, setup)
    this.#fetchRequest = request
  }

  respond(response: Response): Response {
    if (!isResponse(response)) refuse('respond', 'a Response', response)
    if (response.bodyUsed || response.body?.locked)
      throw new TypeError(
        'respond: the body of this Response was read already: read a clone() of it, and send this one',
      )
    this.#fetchRequest.isSent = true
    // Response.error() has status 0, a handshake 101. Neither can be copied, and neither carries cookies.
    if (response.status < 200) return response
    const rules = this.finalRules()
    if (rules.vary.length === 0) return response
    const headers = headersOf(rules, response.headers)
    return new Response(response.body, { status: response.status, statusText: response.statusText, headers })
  }

  /** Nothing of the handler runs for what a page of another origin sends. Of a GET the headers are left alone: Astro warns. */
  #answer(handler: (visit: this) => unknown): unknown {
    try {
      if (!isSafe({ method: this.#fetchRequest.method })) this.checkOrigin()
    } catch (refusal) {
      return (refusal as SessionError).getResponse()
    }
    return handler(this)
  }

  async run(handler: (visit: this) => unknown): Promise<Response | undefined> {
    if (typeof handler !== 'function') refuse('handle', 'a function, visit => response', handler)
    const request = this.#fetchRequest
    request.isHandled = true
    try {
      const answer = await this.#answer(handler)
      if (answer === undefined && request.isHandshake) return undefined
      if (!isResponse(answer)) refuse('handle', 'a Response from the handler', answer)
      // A part of a page that streams may have asked: its cookie still goes along.
      await this.settled()
      return this.respond(answer)
    } catch (thrown) {
      // Frameworks throw a Response to answer at once.
      if (!isResponse(thrown)) throw thrown
      await this.settled()
      throw this.respond(thrown)
    } finally {
      request.isSent = true
    }
  }
}

/** Not by instanceof: frameworks and test runners have a class of their own. */
function isResponse(value: unknown): value is Response {
  const { status, headers } = (value ?? {}) as Partial<Response>
  return typeof status === 'number' && typeof headers?.getSetCookie === 'function'
}

/**
 * Visits for servers that speak `Request` and `Response` (Hono, Next route handlers, React Router, Bun, Deno):
 * `visits.handle(request, async visit => response)`, or `visits.of(request)` and at the end `visit.respond(response)`.
 * Asked again for the same Request, it is the same visit.
 * @throws TypeError that quotes the option which is malformed or impossible
 * @example
 * const visits = fetchVisits(sessions)
 * const serve = (request: Request) => visits.handle(request, async visit => Response.json((await visit.get())?.user))
 */
export function fetchVisits<Data extends object, Ids extends UserIds, Input extends object>(
  sessions: SessionManager<Data, Ids, Input>,
  options: FetchVisitsOptions = {},
): FetchVisits<Data, Ids, Input> {
  const setup = setUp(sessions, options, ADVICE, { isSecure: aFunction })
  const { isSecure } = options
  const isTls = (request: Request): boolean => {
    if (isSecure) return isSecure(request) === true
    const url = new URL(request.url)
    if (url.protocol === 'https:') return true
    // There is no peer address, so the names decide: a browser asks for local ones only over loopback. Both the Host and
    // the URL are looked at, because some frameworks (Next.js) write their own name into the URL.
    return (
      (isLocalHost(url.host) || ANY_ADDRESS.test(url.host)) &&
      isLocalHost(request.headers.get('host') ?? url.host) &&
      isForwardedLocally(name => request.headers.get(name))
    )
  }
  // A property, as in `nodeVisits`.
  const slot = Symbol('coatcheck visit')
  const of = (request: Request): ResponseVisit<Data, Ids, Input> => {
    checkFetch('fetchVisits', request)
    const holder = request as { [slot]?: ResponseVisit<Data, Ids, Input> }
    holder[slot] ??= new ResponseVisit(sessions, new FetchRequest(request, isTls), setup)
    return holder[slot]
  }
  const handle = async (request: Request, handler: (visit: FetchVisit<Data, Ids, Input>) => unknown) =>
    of(request).run(handler)
  return { sessions, cookie: options.cookie ?? {}, of, handle } as FetchVisits<Data, Ids, Input>
}
