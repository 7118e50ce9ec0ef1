// A browser as the tests need it: a jar, a key, and each request by hand, so that a test says in which order they arrive. The
// one that walks through the protocol by itself is in test/device-bound/histories.test.ts.
import type { SessionManager } from 'coatcheck'
import { type DeviceBoundOptions, type DeviceFetchVisits, deviceBound, deviceState } from 'coatcheck/device-bound'
import { fetchVisits } from 'coatcheck/fetch'
import { MemoryStore } from 'coatcheck/stores/memory'
import { barrierManagers } from './barrier-managers.ts'
import { type DevicePair, newDevice, refreshProof, registrationProof } from './device-key.ts'

export const ADA = { id: 42n, name: 'ada' }
export const REGISTER = '/device-session/register'
export const REFRESH = '/device-session/refresh'
export const BOUND_COOKIE = '__Host-session_bound'

export type Edge = DeviceFetchVisits<any, any, any>
export const boundEdge = (sessions: SessionManager<any, any, any>, options: DeviceBoundOptions = {}): Edge =>
  deviceBound(fetchVisits(sessions), options)

/** A service of bound sessions in memory, and its browsers. `more`: options of the manager. */
export function boundService(options: DeviceBoundOptions = {}, more: object = {}) {
  const made = barrierManagers(new MemoryStore(), more)
  const edge = boundEdge(made.sessions, options)
  const client = () => new DeviceClient(edge)
  return { ...made, edge, client, browser: client(), bound: (login?: object) => client().bind(login) }
}

/** The challenge in a header of ours, of either kind. */
export const challengeIn = ({ headers }: { headers: Headers }): string | null =>
  /challenge="([^"]+)"/.exec(headers.get('secure-session-registration') ?? '')?.[1] ??
  /^"([^"]+)";id="/.exec(headers.get('secure-session-challenge') ?? '')?.[1] ??
  null

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

  /** All cookies and challenges of this browser: a thief's, who has not its key, or another tab's, which has. */
  copy(device?: DevicePair, edge = this.edge): DeviceClient {
    const { jar, challenge, name } = this
    return Object.assign(new DeviceClient(edge, device), { jar: new Map(jar), challenge, name })
  }

  request(path: string, method = 'GET', headers: Record<string, string> = {}): Request {
    const cookie = [...this.jar].map(([name, value]) => `${name}=${value}`).join('; ')
    return new Request(`https://shop.example${path}`, { method, headers: { ...(cookie && { cookie }), ...headers } })
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

  /** A page that does this, and answers what it gives. */
  async page(visiting: (visit: ReturnType<Edge['of']>) => unknown): Promise<Response> {
    const handler = async (visit: any) => Response.json((await visiting(visit)) ?? null)
    return this.take((await this.edge.handle(this.request('/'), handler)) as Response)
  }

  async post(path: string, headers: Record<string, string>): Promise<Response> {
    const response = (await this.edge.handled(this.request(path, 'POST', headers)))!
    if (response.status === 200) this.name = ((await response.clone().json()) as any).session_identifier ?? this.name
    return this.take(response)
  }

  logIn(user: { id: bigint; name: string } = ADA, more: object = {}): Promise<Response> {
    return this.page(async visit => void (await visit.logIn({ user, ...more } as never)))
  }

  logOut(): Promise<Response> {
    return this.page(visit => visit.logOut())
  }

  /** The name of the user that a page sees. */
  async user(): Promise<string | null> {
    return (await this.page(async visit => (await visit.get())?.user?.name)).json() as any
  }

  async state(): Promise<string> {
    return (await this.page(deviceState)).json() as any
  }

  register(challenge = this.challenge ?? ''): Promise<Response> {
    return this.post(REGISTER, { 'secure-session-response': registrationProof(this.device, challenge) })
  }

  refresh(challenge = this.challenge ?? '', name = this.name ?? ''): Promise<Response> {
    const proof = refreshProof(this.device, challenge)
    return this.post(REFRESH, { 'sec-secure-session-id': name, 'secure-session-response': proof })
  }

  /** Logs in, registers, and comes with its first value: from then on each request needs one. */
  async bind(more: object = {}): Promise<this> {
    await this.logIn(ADA, more)
    const { status } = await this.register()
    if (status !== 200 || (await this.state()) !== 'bound') throw new Error(`the session was not bound: ${status}`)
    return this
  }

  /** The bound cookie ends in the browser. */
  loseValue(): this {
    this.jar.delete(BOUND_COOKIE)
    return this
  }
}
