// Whether `nodeVisits` and its kind were given what they need. Frameworks wrap requests, and a wrapper looks like a request:
// the service would answer 200 and never set a cookie.
import { forVisits } from '../manager/for-visits.ts'
import { quote } from '../text/quote.ts'

type Loose = Record<string, unknown>

const loosely = (value: unknown): Loose => (typeof value === 'object' && value !== null ? (value as Loose) : {})

const isFetchRequest = (value: unknown): boolean => typeof loosely(loosely(value).headers).get === 'function'

/** Requests of node:http and its HTTP/2 form. Imitations in tests have headers at least, and so have wrappers. */
function isNodeRequest(value: unknown): boolean {
  const { httpVersion, headers } = loosely(value)
  if (typeof httpVersion === 'string') return true
  if (typeof headers !== 'object' || headers === null || isFetchRequest(value)) return false
  return !['raw', 'req', 'request', 'node'].some(inner => inner in loosely(value))
}

const NODE =
  'pass what node:http gave (Express: request, response; Fastify: request.raw, reply.raw; Koa: ctx.req, ctx.res; h3: event.node.req, event.node.res)'
const FETCH = 'pass the Request (Hono: c.req.raw; SvelteKit: event.request)'

/** @throws TypeError that says what to pass */
export function checkNode(where: string, request: unknown, response: unknown): void {
  if (!isNodeRequest(request))
    throw new TypeError(
      `${where}: expected a request of node:http, got ${quote(request)}; ${NODE}, or for a Request use fetchVisits of 'coatcheck/fetch'`,
    )
  if (response !== undefined && typeof loosely(response).writeHead !== 'function')
    throw new TypeError(`${where}: expected a response of node:http, got ${quote(response)}; ${NODE}`)
}

/** @throws TypeError that says what to pass */
export function checkFetch(where: string, request: unknown): void {
  if (!isFetchRequest(request))
    throw new TypeError(
      `${where}: expected a Request, got ${quote(request)}; ${FETCH}, or for a request of node:http use nodeVisits of 'coatcheck/node'`,
    )
}

/** @throws TypeError that says what to pass; a manager of another copy of the package is one */
export function checkSessions(where: string, sessions: unknown): void {
  const { read, replace } = loosely(sessions)
  if (typeof read === 'function' && typeof replace === 'function')
    throw new TypeError(`${where}: expected a SessionManager, got a store; pass new SessionManager({ store })`)
  forVisits(sessions as object)
}

/** @throws TypeError that says what to pass */
export function checkVisitRequest(request: unknown): void {
  // A request of Express has the other members too, and would never have a cookie.
  if (typeof loosely(request).header !== 'function' || !('cookie' in loosely(request)))
    throw new TypeError(
      `openVisit: expected { method, cookie, secure, header(name) }, got ${quote(request)}; for a request of node:http use nodeVisits of 'coatcheck/node', for a Request fetchVisits of 'coatcheck/fetch'`,
    )
  // With anything else, such as the jar of Next's cookies(), no request would ever be logged in.
  const { cookie, secure } = request as { cookie: unknown; secure: unknown }
  if (cookie !== undefined && cookie !== null && typeof cookie !== 'string' && !Array.isArray(cookie))
    throw new TypeError(`openVisit: cookie: expected the Cookie header, got ${quote(cookie)}`)
  if (typeof secure !== 'boolean')
    throw new TypeError(`openVisit: secure: expected true or false, got ${quote(secure)}`)
}
