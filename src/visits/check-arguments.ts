// Whether `nodeVisits` and its kind were given what they need. Frameworks wrap requests, and a wrapper looks like a request:
// the service would answer 200 and never set a cookie.
import { forVisits } from '../manager/for-visits.ts'
import { quote } from '../text/quote.ts'

type Test = (value: unknown) => boolean
type Loose = Record<string, unknown>

const loosely = (value: unknown): Loose => (typeof value === 'object' && value !== null ? (value as Loose) : {})

/** Requests of node:http and its HTTP/2 form; imitations in tests have headers at least. */
const isNodeRequest: Test = value => typeof loosely(value).httpVersion === 'string'
const isNodeResponse: Test = value => typeof loosely(value).writeHead === 'function'
export const isFetchRequest: Test = value => typeof loosely(loosely(value).headers).get === 'function'

const WRAPPED = ['raw', 'req', 'request', 'res', 'response', 'reply', 'node'] as const

/** Where in a framework's object the one that is meant can be found, such as `.req.raw`. */
function pathTo(value: unknown, test: Test, depth = 2): string | null {
  for (const name of WRAPPED) {
    let inner: unknown
    try {
      inner = loosely(value)[name]
    } catch {
      // a getter that works at another time only
    }
    if (test(inner)) return `.${name}`
    const deeper = depth > 1 ? pathTo(inner, test, depth - 1) : null
    if (deeper !== null) return `.${name}${deeper}`
  }
  return null
}

function wrong(where: string, expected: string, value: unknown, test: Test, hint: string): TypeError {
  const path = pathTo(value, test)
  return new TypeError(
    `${where}: expected ${expected}, got ${quote(value)}${path === null ? '' : ` that has it as ${path}`}; ${hint}`,
  )
}

const NODE =
  'pass what node:http gave (Express: request, response; Fastify: request.raw, reply.raw; Koa: ctx.req, ctx.res)'
const FETCH = 'pass the Request (Hono: c.req.raw; SvelteKit: event.request)'

/** @throws TypeError that says what to pass */
export function checkNode(where: string, request: unknown, response: unknown): void {
  // A real request passes this one look; all else here is about what only resembles one.
  if (!isNodeRequest(request)) {
    const isRequest = isFetchRequest(request) || pathTo(request, isFetchRequest) !== null
    if (isRequest && pathTo(request, isNodeRequest) === null)
      throw new TypeError(
        `${where}: expected a request of node:http, got a Request: use fetchVisits of 'coatcheck/fetch'`,
      )
    const { headers } = loosely(request)
    if (typeof headers !== 'object' || headers === null || pathTo(request, isNodeRequest) !== null)
      throw wrong(where, 'a request of node:http', request, isNodeRequest, NODE)
  }
  if (response !== undefined && !isNodeResponse(response))
    throw wrong(where, 'a response of node:http', response, isNodeResponse, NODE)
}

/** @throws TypeError that says what to pass */
export function checkFetch(where: string, request: unknown): void {
  if (isFetchRequest(request)) return
  if (isNodeRequest(request))
    throw new TypeError(`${where}: expected a Request, got a request of node:http: use nodeVisits of 'coatcheck/node'`)
  throw wrong(where, 'a Request', request, isFetchRequest, FETCH)
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
