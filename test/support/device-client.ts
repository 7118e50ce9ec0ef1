// A browser as the tests of the state need it: a jar, a key, and each request by hand, so that a test says in which order
// they arrive. The one that walks through the protocol by itself is device-browser.ts.
import type { SessionManager } from 'coatcheck'
import { type DeviceBoundOptions, type DeviceFetchVisits, deviceBound } from 'coatcheck/device-bound'
import { type FetchVisitsOptions, fetchVisits } from 'coatcheck/fetch'
import { type DevicePair, newDevice, refreshProof, registrationProof } from './device-key.ts'

const ORIGIN = 'https://shop.example'
export const REGISTER = '/device-session/register'
export const REFRESH = '/device-session/refresh'
export const BOUND_COOKIE = '__Host-session_bound'

export type Edge = DeviceFetchVisits<any, any, any>

export const boundEdge = (
  sessions: SessionManager<any, any, any>,
  options: DeviceBoundOptions = {},
  edge: FetchVisitsOptions = {},
): Edge => deviceBound(fetchVisits(sessions, edge), options)

/** The challenge in a header of ours, of either kind. */
export const challengeIn = (response: Response): string | null =>
  /challenge="([^"]+)"/.exec(response.headers.get('secure-session-registration') ?? '')?.[1] ??
  /^"([^"]+)";id="/.exec(response.headers.get('secure-session-challenge') ?? '')?.[1] ??
  null

type Visiting = Parameters<Edge['handle']>[1]

export class DeviceClient {
  readonly edge: Edge
  readonly device: DevicePair
  jar = new Map<string, string>()
  /** As the last response said. */
  challenge: string | null = null
  name: string | null = null

  constructor(edge: Edge, device: DevicePair = newDevice()) {
    this.edge = edge
    this.device = device
  }

  /** A thief's: all cookies of this browser, and not its key. */
  copy(): DeviceClient {
    const thief = new DeviceClient(this.edge)
    thief.jar = new Map(this.jar)
    thief.challenge = this.challenge
    thief.name = this.name
    return thief
  }

  /** Another tab of this browser, in which it does the same at the same time. */
  tab(): DeviceClient {
    return Object.assign(new DeviceClient(this.edge, this.device), {
      jar: new Map(this.jar),
      challenge: this.challenge,
      name: this.name,
    })
  }

  request(path: string, method = 'GET', headers: Record<string, string> = {}): Request {
    const cookie = [...this.jar].map(([name, value]) => `${name}=${value}`).join('; ')
    return new Request(ORIGIN + path, { method, headers: { ...(cookie && { cookie }), ...headers } })
  }

  take(response: Response): Response {
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!
      if (/Max-Age=0(?:;|$)/.test(line)) this.jar.delete(name!)
      else this.jar.set(name!, value!)
    }
    this.challenge = challengeIn(response) ?? this.challenge
    return response
  }

  async page(handler: Visiting, headers: Record<string, string> = {}): Promise<Response> {
    return this.take((await this.edge.handle(this.request('/', 'GET', headers), handler)) as Response)
  }

  async post(path: string, headers: Record<string, string>): Promise<Response> {
    const response = (await this.edge.handled(this.request(path, 'POST', headers)))!
    const text = await response.clone().text()
    if (response.status === 200) this.name = JSON.parse(text).session_identifier ?? this.name
    return this.take(response)
  }

  async logIn(user: { id: bigint; name: string }, more: object = {}): Promise<Response> {
    return this.page(async visit => {
      await visit.logIn({ user, ...more } as never)
      return new Response()
    })
  }

  async logOut(): Promise<Response> {
    return this.page(async visit => {
      await visit.logOut()
      return new Response()
    })
  }

  /** The name of the user that a page sees. */
  async user(headers: Record<string, string> = {}): Promise<string | null> {
    let name: string | null = null
    await this.page(async visit => {
      name = (await visit.get())?.user?.name ?? null
      return new Response()
    }, headers)
    return name
  }

  register(challenge = this.challenge ?? ''): Promise<Response> {
    return this.post(REGISTER, { 'secure-session-response': registrationProof(this.device, challenge) })
  }

  refresh(challenge = this.challenge ?? '', name = this.name ?? ''): Promise<Response> {
    return this.post(REFRESH, {
      'sec-secure-session-id': name,
      'secure-session-response': refreshProof(this.device, challenge),
    })
  }

  /** The bound cookie ends in the browser. */
  loseValue(): void {
    this.jar.delete(BOUND_COOKIE)
  }
}
