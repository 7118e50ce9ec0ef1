// A browser that binds sessions to its device, as Chromium 150 does (test/engines/browser/device-bound.test.ts compares the real
// one), but with its keys in the hands of the test: it registers, refreshes before a request whose bound cookie is gone,
// signs again when it is told to, and forgets a session when it is told to.
import { type DevicePair, newDevice, refreshProof, registrationProof } from './device-key.ts'

export type Send = (request: Request) => Promise<Response>

interface Cookie {
  readonly value: string
  /** Epoch ms. */
  readonly ends: number
  /** As browsers compare them: without what says how long it lasts. */
  readonly attributes: string
}

/** What the browser keeps of a session that it has registered. */
interface Registered {
  readonly id: string
  readonly device: DevicePair
  readonly refreshUrl: string
  readonly cookie: { readonly name: string; readonly attributes: string }
  readonly excluded: readonly string[]
  challenge: string | null
}

/** What a login offers: where to register, and the challenge to sign. */
export interface Offer {
  readonly path: string
  readonly challenge: string
  readonly algorithms: readonly string[]
}

export interface Options {
  /** Whether it knows about bound sessions at all. @default true */
  isAble?: boolean
  /** Header values as the specification has them, in quotation marks. @default false */
  isQuoting?: boolean
  /** Whether it registers as soon as it is offered to. @default true */
  isEager?: boolean
  newDevice?: () => DevicePair
}

const ORIGIN = 'https://app.example'
/** Chromium gives a session up after so many answers of 403. */
const MAX_CHALLENGES = 4
const LASTING = /^(?:max-age|expires)=/i

const attributesOf = (parts: readonly string[]) =>
  parts
    .map(part => part.trim())
    .filter(part => part !== '' && !LASTING.test(part))
    .sort()
    .join('; ')

export class DeviceBrowser {
  readonly jar = new Map<string, Cookie>()
  readonly registered = new Map<string, Registered>()
  /** Offers of logins, the last one at the end. */
  readonly offers: Offer[] = []
  /** Each request to register or to refresh, and the status of its answer. */
  readonly posts: { readonly path: string; readonly proof: string | null; readonly status: number }[] = []
  /** Where its requests go: to any node of the service. */
  send: Send
  readonly #now: () => number
  readonly #options: Required<Options>
  readonly #underway = new Map<string, Promise<boolean>>()

  constructor(send: Send, now: () => number, options: Options = {}) {
    this.send = send
    this.#now = now
    this.#options = { isAble: true, isQuoting: false, isEager: true, newDevice, ...options }
  }

  /** The Cookie header of the next request. */
  get cookies(): string {
    const live = [...this.jar].filter(([, { ends }]) => ends > this.#now())
    return live.map(([name, { value }]) => `${name}=${value}`).join('; ')
  }

  /** A request of a page: it waits for the proofs that it needs. */
  async request(path: string, init: RequestInit = {}): Promise<Response> {
    const skipped: string[] = []
    for (const session of [...this.registered.values()])
      if (this.#needsProof(session, path) && !(await this.refresh(session.id)))
        if (this.registered.has(session.id)) skipped.push(`server_error;session_identifier="${session.id}"`)
    const headers = new Headers(init.headers)
    if (skipped.length > 0) headers.set('Secure-Session-Skipped', skipped.join(', '))
    return this.#exchange(path, { ...init, headers })
  }

  /** Registers by an offer, the last one unless told; answers the status. */
  async register(offer: Offer = this.offers.at(-1)!): Promise<number> {
    const device = this.#options.newDevice()
    const proof = registrationProof(device, offer.challenge)
    const response = await this.#post(offer.path, proof, null)
    if (response.status === 200) await this.#instruct(response, offer.path, device, null)
    this.#takeChallenges(response)
    return response.status
  }

  /** Refreshes a session, for all who wait for it; answers whether it has succeeded. */
  refresh(id: string): Promise<boolean> {
    let running = this.#underway.get(id)
    if (running === undefined) {
      running = this.#refresh(this.registered.get(id)!).finally(() => this.#underway.delete(id))
      this.#underway.set(id, running)
    }
    return running
  }

  /** What a thief carries away: all cookies, and no key. */
  stolenBy(send: Send = this.send, options: Options = { isAble: false }): DeviceBrowser {
    const thief = new DeviceBrowser(send, this.#now, options)
    for (const [name, cookie] of this.jar) thief.jar.set(name, cookie)
    return thief
  }

  /** The proof that a refresh would send now. */
  proof(id: string = [...this.registered.keys()].at(-1)!): string {
    const { device, challenge } = this.registered.get(id)!
    return refreshProof(device, challenge ?? '')
  }

  #needsProof({ cookie, excluded }: Registered, path: string): boolean {
    if (excluded.some(prefix => path === prefix || path.startsWith(`${prefix}/`))) return false
    const held = this.jar.get(cookie.name)
    return held === undefined || held.ends <= this.#now() || held.attributes !== cookie.attributes
  }

  async #refresh(session: Registered): Promise<boolean> {
    const { id, refreshUrl, device } = session
    for (let round = 0; round < MAX_CHALLENGES; round += 1) {
      const proof = session.challenge === null ? null : refreshProof(device, session.challenge)
      // Used up: without another one, the next request asks for one.
      session.challenge = null
      const response = await this.#post(refreshUrl, proof, id)
      this.#takeChallenges(response)
      if (response.status === 403) continue
      if (response.status >= 500) return false
      if (response.status === 200) return this.#instruct(response, refreshUrl, device, id)
      break
    }
    this.registered.delete(id)
    return false
  }

  /** Keeps what a reply says about a session; `false`: that it is over. */
  async #instruct(response: Response, url: string, device: DevicePair, asked: string | null): Promise<boolean> {
    const text = await response.text()
    if (text === '') return true
    const told = JSON.parse(text) as any
    if (told.continue === false) {
      if (asked !== null) this.registered.delete(asked)
      return false
    }
    const [credential] = told.credentials
    if (asked !== null && asked !== told.session_identifier) throw new Error('another session than was asked for')
    if (credential.type !== 'cookie' || told.scope.include_site !== false) throw new Error(`not understood: ${text}`)
    this.registered.set(told.session_identifier, {
      id: told.session_identifier,
      device,
      refreshUrl: told.refresh_url ?? url,
      cookie: { name: credential.name, attributes: attributesOf(credential.attributes.split(';')) },
      excluded: (told.scope.scope_specification ?? []).map((rule: { path: string }) => rule.path),
      challenge: this.registered.get(told.session_identifier)?.challenge ?? null,
    })
    this.#takeChallenges(response)
    return true
  }

  /** Neither Origin nor Sec-Fetch-Site, and no body. */
  async #post(path: string, proof: string | null, id: string | null): Promise<Response> {
    const as = (text: string) => (this.#options.isQuoting ? `"${text}"` : text)
    const headers = new Headers({ 'Content-Length': '0' })
    if (proof !== null) headers.set('Secure-Session-Response', as(proof))
    if (id !== null) headers.set('Sec-Secure-Session-Id', as(id))
    const response = await this.#exchange(path, { method: 'POST', headers })
    this.posts.push({ path, proof, status: response.status })
    return response
  }

  async #exchange(path: string, init: RequestInit): Promise<Response> {
    const headers = new Headers(init.headers)
    const { cookies } = this
    if (cookies !== '') headers.set('Cookie', cookies)
    const response = await this.send(new Request(new URL(path, ORIGIN), { ...init, headers }))
    for (const line of response.headers.getSetCookie()) this.#set(line)
    this.#takeChallenges(response)
    const offer = response.headers.get('Secure-Session-Registration')
    if (this.#options.isAble && offer !== null) {
      const [, algorithms, at, challenge] = /^\(([^)]*)\);path="([^"]*)";challenge="([^"]*)"$/.exec(offer)!
      this.offers.push({ path: at!, challenge: challenge!, algorithms: algorithms!.split(' ') })
      if (this.#options.isEager) await this.register()
    }
    return response
  }

  #takeChallenges({ headers }: Response): void {
    for (const [, challenge, id] of (headers.get('Secure-Session-Challenge') ?? '').matchAll(
      /"([^"]*)";id="([^"]*)"/g,
    )) {
      const session = this.registered.get(id!)
      if (session !== undefined) session.challenge = challenge!
    }
  }

  #set(line: string): void {
    const [pair, ...attributes] = line.split(';')
    const at = pair!.indexOf('=')
    const maxAge = /;\s*max-age=(-?\d+)/i.exec(line)?.[1]
    const ends = maxAge === undefined ? Number.POSITIVE_INFINITY : this.#now() + Number(maxAge) * 1000
    this.jar.set(pair!.slice(0, at), { value: pair!.slice(at + 1), ends, attributes: attributesOf(attributes) })
  }
}
