import { contextOf } from '../manager/context.ts'
import type { SessionManager } from '../manager/manager.ts'
import type { UserIds } from '../session/users.ts'
import { aBoolean, refuse } from '../text/check-options.ts'
import { quote } from '../text/quote.ts'
import { isSafe } from './cross-origin.ts'
import type { Advice } from './errors.ts'
import { setUp, type VisitOptions, type VisitsSetup } from './setup.ts'
import type { Visit as PublicVisit, VisitRequest } from './types.ts'
import { Visit } from './visit.ts'

const ADVICE: Advice = {
  where: 'openVisit',
  insecure: 'if it did, set `secure: true` in the request given to openVisit',
  send: 'call `visit.finish()` after the last method, and send the headers or cookies that it returns',
}

/** @throws TypeError that says what to pass */
function checkVisitRequest(request: unknown): void {
  const { header, cookie, secure } = (request ?? {}) as Record<string, unknown>
  // A request of Express has the other members too, and would never have a cookie.
  if (typeof header !== 'function' || !('cookie' in (request as object)))
    throw new TypeError(
      `openVisit: expected { method, cookie, secure, header(name) }, got ${quote(request)}; for a request of node:http use nodeVisits of 'coatcheck/node', for a Request fetchVisits of 'coatcheck/fetch'`,
    )
  // With anything else, such as the jar of Next's cookies(), no request would ever be logged in.
  if (cookie !== undefined && cookie !== null && typeof cookie !== 'string' && !Array.isArray(cookie))
    refuse('openVisit: cookie', 'the Cookie header', cookie)
  aBoolean(secure, 'openVisit: secure')
  const given = request as VisitRequest
  // A guard that sees nothing lets everything pass.
  if (!isSafe(given) && !(given.header('host') || given.header('origin') || given.header('sec-fetch-site')))
    throw new TypeError(
      'openVisit: header: found none of host, origin and sec-fetch-site: it is asked for names in lower case',
    )
}

const setups = new WeakMap<object, VisitsSetup>()
const NO_OPTIONS: VisitOptions = {}

/**
 * The visit of a request, for a server or a cookie jar of your own. Options are checked once as long as they are the same object.
 * @throws TypeError that says what to pass
 * @example
 * const given = new Headers({ host: 'shop.example', cookie }) // those of your server
 * const visit = openVisit(sessions, { method: 'GET', cookie, secure: true, header: name => given.get(name) })
 * const session = await visit.get()
 * const { headers } = visit.finish() // send them
 */
export function openVisit<Data extends object, Ids extends UserIds, Input extends object>(
  sessions: SessionManager<Data, Ids, Input>,
  request: VisitRequest,
  options: VisitOptions = NO_OPTIONS,
): PublicVisit<Data, Ids, Input> {
  contextOf(sessions, 'openVisit: ')
  checkVisitRequest(request)
  const setup = setups.get(options) ?? setUp(sessions, options, ADVICE, {})
  setups.set(options, setup)
  return new Visit(sessions, request, setup)
}
