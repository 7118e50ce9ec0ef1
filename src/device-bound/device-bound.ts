import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { SessionInfo } from '../session/session.ts'
import type { UserIds } from '../session/users.ts'
import { checkOptions } from '../text/check-options.ts'
import { quote } from '../text/quote.ts'
import { checkFetch, type FetchVisits } from '../visits/fetch.ts'
import { checkNode, type NodeVisits } from '../visits/node.ts'
import type { Visit } from '../visits/types.ts'
import { bindingIn } from './binding.ts'
import type { Asked, DeviceState } from './devices.ts'
import { type DeviceBoundOptions, OPTIONS, setUp } from './options.ts'
import { answerAt } from './requests.ts'
import { DeviceVisit, STATE } from './visit.ts'

// biome-ignore lint/suspicious/noExplicitAny: of whichever data and user IDs
type AnyVisits = NodeVisits<any, any, any> | FetchVisits<any, any, any>

/** Visits of node:http to sessions that are bound to a device. */
export interface DeviceNodeVisits<Data extends object, Ids extends UserIds, Input extends object>
  extends NodeVisits<Data, Ids, Input> {
  /**
   * Answers the requests by which browsers bind sessions to their device and prove it; `false` for any other request. Call
   * it before anything else is done with a request.
   */
  handled(
    request: IncomingMessage | Http2ServerRequest,
    response: ServerResponse | Http2ServerResponse,
  ): Promise<boolean>
}

/** Visits of `Request`s to sessions that are bound to a device. */
export interface DeviceFetchVisits<Data extends object, Ids extends UserIds, Input extends object>
  extends FetchVisits<Data, Ids, Input> {
  /**
   * The answer to a request by which a browser binds a session to its device, or proves it; `null` for any other request.
   * Call it before anything else is done with a request.
   */
  handled(request: Request): Promise<Response | null>
}

/**
 * Binds sessions of users to a key that the browser's device keeps (Device Bound Session Credentials,
 * https://w3c.github.io/webappsec-dbsc/): copied cookies are worth nothing after `lifetime`. It wraps the result of
 * `nodeVisits` or `fetchVisits`: take its visits, and no others. Browsers that do not know the protocol go on with
 * the session cookie alone, unless `require` says otherwise.
 * @throws TypeError that names the option
 */
export function deviceBound<Data extends object, Ids extends UserIds, Input extends object>(
  visits: FetchVisits<Data, Ids, Input>,
  options?: DeviceBoundOptions,
): DeviceFetchVisits<Data, Ids, Input>
export function deviceBound<Data extends object, Ids extends UserIds, Input extends object>(
  visits: NodeVisits<Data, Ids, Input>,
  options?: DeviceBoundOptions,
): DeviceNodeVisits<Data, Ids, Input>
export function deviceBound(visits: AnyVisits, options: DeviceBoundOptions = {}): object {
  if (typeof visits?.of !== 'function' || visits.sessions === undefined)
    throw new TypeError(`deviceBound: expected nodeVisits(sessions) or fetchVisits(sessions), got ${quote(visits)}`)
  checkOptions(OPTIONS, options)
  const setup = setUp(options, visits)
  // Of this wrapper: another one around the same visits has its own, by its own options.
  const slot = Symbol('coatcheck device visit')
  /** The visit around another one; asked again, it is the same. */
  const around = (inner: object, request: Asked): DeviceVisit => {
    const holder = inner as Visit & { [slot]?: DeviceVisit }
    holder[slot] ??= new DeviceVisit(holder, request, setup)
    return holder[slot]
  }
  if ('handle' in visits)
    return {
      ...visits,
      of: (request: Request) => around(visits.of(request), request),
      async handle(request: Request, handler: (visit: DeviceVisit) => Response | Promise<Response>) {
        const visit = around(visits.of(request), request)
        visit.response = 'handled'
        const told = (response: Response) => visit.told(response)
        return visits.handle(request, () => handler(visit)).then(told, thrown => Promise.reject(told(thrown)))
      },
      async handled(request: Request): Promise<Response | null> {
        checkFetch('handled', request)
        return answerAt(setup, new URL(request.url).pathname, request)
      },
    }
  return {
    ...visits,
    of(request: IncomingMessage, response?: ServerResponse) {
      const visit = around(visits.of(request, response), request)
      visit.response ??= response ?? null
      return visit
    },
    async handled(request: IncomingMessage, response: ServerResponse): Promise<boolean> {
      // In plain JavaScript it may be missing, and would be missed at the two paths only.
      checkNode('handled', request, response ?? null)
      // Express cuts off the path at which a router is mounted.
      const url = (request as { originalUrl?: string }).originalUrl ?? request.url ?? ''
      const answer = await answerAt(setup, url.split('?', 1)[0]!, request)
      if (answer === null) return false
      const body = await answer.text()
      if (!response.headersSent) response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(body)
      return true
    },
  }
}

/** The device that a session is bound to. */
export interface DeviceInfo {
  /** When the browser registered its key, epoch ms. */
  readonly boundAt: number
}

/**
 * The device that a session is bound to; `null`: none. For sessions as a visit or a manager gives them, and entries of
 * `list()`. @throws TypeError for anything else
 */
export function deviceOf<Data extends object, Ids extends UserIds>(session: SessionInfo<Data, Ids>): DeviceInfo | null {
  if (typeof session?.data !== 'object' || typeof session.createdAt !== 'number')
    throw new TypeError(`deviceOf: expected a session, got ${quote(session)}`)
  const binding = bindingIn(session)
  return binding?.device ? Object.freeze({ boundAt: binding.boundAt }) : null
}

/**
 * Whether the request of a visit proved the device of its session: why `get` answers `null` although a session lives.
 * `'none'`: it has no live session. `'unbound'`: its session is bound to no device, or its browser has not yet shown that it
 * knows. `'bound'`: the browser has proved itself. `'unproved'`: it has not, and will; `'required'`: the session has to be
 * bound and is not.
 * @throws as `visit.get()` does, and TypeError for anything but a visit of `deviceBound`
 */
// biome-ignore lint/suspicious/noExplicitAny: a visit of whichever data and user IDs
export async function deviceState(visit: Visit<any, any, any>): Promise<DeviceState | 'none'> {
  const bound = visit as { readonly [STATE]?: string | null } | null | undefined
  if (bound?.[STATE] === undefined)
    throw new TypeError(`deviceState: expected a visit of deviceBound(visits), got ${quote(visit)}`)
  const session = await visit.get()
  const state = bound[STATE]
  if (session !== null) return state === 'bound' ? state : 'unbound'
  return state === 'unproved' || state === 'required' ? state : 'none'
}
