import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { UserIds } from '../session/users.ts'
import { checkOptions } from '../text/check-options.ts'
import { quote } from '../text/quote.ts'
import { checkFetch, type FetchVisit, type FetchVisits } from '../visits/fetch.ts'
import { FetchHead, type MoreRules, writeRules } from '../visits/head.ts'
import { checkNode, guardHead, type NodeVisits } from '../visits/node.ts'
import type { DeviceAnswer } from './answers.ts'
import type { Asked } from './asked.ts'
import { Devices } from './devices.ts'
import { type DeviceBoundOptions, OPTIONS, setUp } from './options.ts'
import { answer } from './requests.ts'
import { DeviceVisit } from './visit.ts'

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
export function deviceBound<Data extends object, Ids extends UserIds, Input extends object>(
  visits: NodeVisits<Data, Ids, Input> | FetchVisits<Data, Ids, Input>,
  options: DeviceBoundOptions = {},
): object {
  if (typeof visits?.of !== 'function' || visits.sessions === undefined)
    throw new TypeError(`deviceBound: expected nodeVisits(sessions) or fetchVisits(sessions), got ${quote(visits)}`)
  checkOptions(OPTIONS, options)
  const { sessions, cookie } = visits
  const devices = new Devices(sessions, setUp(options, cookie))
  return { sessions, cookie, ...('handle' in visits ? ofFetch(visits, devices) : ofNode(visits, devices)) }
}

const SLOT = Symbol('coatcheck device visit')

/** The visit around another one; asked again, it is the same. */
function around<V>(inner: object, make: () => V): V {
  const holder = inner as { [SLOT]?: V }
  holder[SLOT] ??= make()
  return holder[SLOT]
}

/** The answer to a browser that registers or refreshes; `null` for any other request. */
async function answerAt(devices: Devices, path: string, request: Asked): Promise<DeviceAnswer | null> {
  const { registerPath, refreshPath } = devices.setup
  if (request.method !== 'POST' || (path !== registerPath && path !== refreshPath)) return null
  return answer(devices, path === registerPath ? 'register' : 'refresh', request)
}

const ofNode = <Data extends object, Ids extends UserIds, Input extends object>(
  visits: NodeVisits<Data, Ids, Input>,
  devices: Devices,
): object => ({
  of(request: IncomingMessage, response?: ServerResponse) {
    const inner = visits.of(request, response)
    return around(inner, () => {
      const onHead = (rules: () => MoreRules) => response?.headersSent === false && guardHead(response, rules)
      return new DeviceVisit(inner, request, devices, onHead)
    })
  },
  async handled(request: IncomingMessage, response: ServerResponse): Promise<boolean> {
    // In plain JavaScript it may be missing, and would be missed at the two paths only.
    checkNode('handled', request, response ?? null)
    // Express cuts off the path at which a router is mounted.
    const url = (request as { originalUrl?: string }).originalUrl ?? request.url ?? ''
    const told = await answerAt(devices, url.split('?', 1)[0]!, request)
    if (told === null) return false
    if (!response.headersSent && !response.destroyed) response.writeHead(told.status, told.headers).end(told.body)
    return true
  },
})

class DeviceFetchVisit<Data extends object, Ids extends UserIds, Input extends object>
  extends DeviceVisit<Data, Ids, Input>
  implements FetchVisit<Data, Ids, Input>
{
  readonly #inner: FetchVisit<Data, Ids, Input>

  constructor(inner: FetchVisit<Data, Ids, Input>, request: Request, devices: Devices) {
    super(inner, request, devices)
    this.#inner = inner
  }

  respond(response: Response): Response {
    return this.#inner.respond(this.told(response))
  }

  /** The response with our headers. A handshake, an error response and anything that is no response get none. */
  told(response: Response): Response {
    if (typeof response?.headers?.getSetCookie !== 'function' || response.status < 200) return response
    const headers = new Headers(response.headers)
    writeRules(this.headRules(), new FetchHead(headers))
    return new Response(response.body, { status: response.status, statusText: response.statusText, headers })
  }
}

const ofFetch = <Data extends object, Ids extends UserIds, Input extends object>(
  visits: FetchVisits<Data, Ids, Input>,
  devices: Devices,
): object => {
  const of = (request: Request, inner = visits.of(request)) =>
    around(inner, () => new DeviceFetchVisit(inner, request, devices))
  return {
    of: (request: Request) => of(request),
    handle: (request: Request, handler: (visit: FetchVisit<Data, Ids, Input>) => Response | Promise<Response>) =>
      visits.handle(request, async inner => {
        const visit = of(request, inner)
        try {
          return visit.told(await handler(visit))
        } catch (thrown) {
          throw visit.told(thrown as Response)
        }
      }),
    async handled(request: Request): Promise<Response | null> {
      checkFetch('handled', request)
      const told = await answerAt(devices, new URL(request.url).pathname, request)
      return told && new Response(told.body, told)
    },
  }
}
