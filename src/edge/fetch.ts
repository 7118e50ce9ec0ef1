import type { SessionManager } from '../manager.ts'
import type { UserIds } from '../user-id.ts'
import { type HeadDemands, withCookies, withNoStore, withVary } from './demands.ts'
import { checkIsSecure, isLocalHost, looksForwarded } from './secure.ts'
import { type EdgeOptions, RequestVisit, setUpEdge, type Visit } from './visit.ts'

/** A `Request` has no peer address: behind a proxy that ends TLS, `isSecure` says what is HTTPS. */
export type FetchEdgeOptions = Omit<EdgeOptions<Request>, 'trustedProxies'>

/** A visit whose headers go into a `Response`. */
export interface FetchVisit<D extends object, I extends UserIds, In extends object> extends Visit<D, I, In> {
  /** The response with our headers in; afterwards nothing can begin any more. */
  respond(response: Response): Response
}

class ResponseVisit<D extends object, I extends UserIds, In extends object>
  extends RequestVisit<D, I, In>
  implements FetchVisit<D, I, In>
{
  readonly #sent: () => void

  constructor(sent: () => void, ...visit: ConstructorParameters<typeof RequestVisit<D, I, In>>) {
    super(...visit)
    this.#sent = sent
  }

  respond(response: Response): Response {
    const demands = this.demands()
    this.#sent()
    // Response.error() has status 0, a handshake 101: neither can be copied, neither carries cookies.
    if (response.status < 200) return response
    const headers = new Headers(response.headers)
    put(headers, demands)
    return new Response(response.body, { status: response.status, statusText: response.statusText, headers })
  }
}

function put(headers: Headers, demands: HeadDemands): void {
  for (const name of demands.vary) headers.set('Vary', withVary(headers.get('Vary'), name))
  if (demands.noStore) headers.set('Cache-Control', withNoStore(headers.get('Cache-Control')))
  if (demands.cookies.length > 0) {
    const cookies = withCookies(headers.getSetCookie(), demands)
    headers.delete('Set-Cookie')
    for (const cookie of cookies) headers.append('Set-Cookie', cookie)
  }
  for (const [name, value] of demands.others) if (!headers.has(name)) headers.set(name, value)
}

/**
 * Visits for servers that speak `Request` and `Response` (Hono, Next route handlers, Remix, Bun, Deno): ask the visit,
 * then send `visit.respond(response)`. Asked again for the same request, it gives the same visit.
 * @throws TypeError that quotes the option which is malformed or impossible
 */
export function fetchEdge<D extends object, I extends UserIds, In extends object>(
  sessions: SessionManager<D, I, In>,
  options: FetchEdgeOptions = {},
): (request: Request) => FetchVisit<D, I, In> {
  const setup = setUpEdge(options)
  const { isSecure } = options
  checkIsSecure(isSecure)
  if ((options as EdgeOptions<Request>).trustedProxies !== undefined)
    throw new TypeError('trustedProxies: a Request has no peer address; give isSecure(request) instead')
  const isTls = (request: Request): boolean => {
    if (isSecure) return isSecure(request) === true
    const url = new URL(request.url)
    // Without a peer address the name has to do: a browser asks for it only over loopback.
    return url.protocol === 'https:' || (isLocalHost(url.host) && !looksForwarded(name => request.headers.get(name)))
  }
  const visits = new WeakMap<Request, FetchVisit<D, I, In>>()
  return request => {
    const known = visits.get(request)
    if (known !== undefined) return known
    let isSent = false
    const visit = new ResponseVisit(
      () => {
        isSent = true
      },
      sessions,
      {
        method: request.method,
        cookie: request.headers.get('cookie'),
        get secure() {
          return isTls(request)
        },
        upgrade: request.headers.has('upgrade'),
        header: name => request.headers.get(name) ?? (name === 'host' ? new URL(request.url).host : null),
        canSend: () => !isSent,
      },
      setup,
    )
    visits.set(request, visit)
    return visit
  }
}
