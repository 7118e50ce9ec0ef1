import type { ServerResponse } from 'node:http'
import { SessionError } from '../contract/errors.ts'
import { firstKeyOf } from '../data/meta.ts'
import { isPlain } from '../data/plain.ts'
import { type AnySession, recordOf } from '../session/session.ts'
import { responseCookie } from '../visits/cookie.ts'
import type { FetchVisit } from '../visits/fetch.ts'
import { type MoreRules, NO_RULES, writeHeaders } from '../visits/head.ts'
import { guardHead } from '../visits/node.ts'
import type { Visit } from '../visits/types.ts'
import { bindingIn, challengeFor, KEY, newOffer, valueFor } from './binding.ts'
import { type Asked, type DeviceState, headerOf, look, tellRefused } from './devices.ts'
import type { Setup } from './options.ts'
import { challenge } from './requests.ts'

// biome-ignore lint/suspicious/noExplicitAny: of whichever data and user IDs
type AnyVisit = FetchVisit<any, any, any>
type Given<Method extends keyof AnyVisit> = Parameters<Extract<AnyVisit[Method], (...given: never) => unknown>>[0]

const NO_TOUCH = { touch: false } as const

/**
 * A bound session that gets a new ID leaves the old one this grace: its browser may be proving its key by the ID that it
 * has. Told that the session is over, it would forget the key. Without the device the old ID is worth nothing.
 */
const GRACE = { grace: '10s' } as const

/** For `deviceState`. Registered: the visit may be of another copy of this package. */
export const STATE: unique symbol = Symbol.for('coatcheck.device-state.2')

type State = DeviceState | 'late' | 'begun' | 'left'

/** A visit whose session can be used only if the request proves that it comes from the session's device. */
export class DeviceVisit implements AnyVisit {
  /** `'begun'`: the session begins in this response, and may be bound by who gets it. `'left'`: the browser has logged out. */
  [STATE]: State | null = null
  /** Of node:http. `'handled'`: `handle` sends all our headers by itself. `null`: the caller does, or there is none. */
  response: ServerResponse | 'handled' | null = null
  readonly #inner: AnyVisit
  readonly #request: Asked
  readonly #setup: Setup
  /** Whether the session may be used: found out once, and settled by a login or a logout. */
  #admitting: Promise<boolean> | null = null
  /** Of whom the state is said. */
  #session: AnySession | null = null

  /** `inner`: of node:http it has no `respond`. */
  constructor(inner: Visit, request: Asked, setup: Setup) {
    this.#inner = inner as AnyVisit
    this.#request = request
    this.#setup = setup
  }

  async get(options?: Given<'get'>) {
    return (await this.#isAdmitted()) ? this.#inner.get(options) : null
  }

  async requireUser(options?: Given<'requireUser'>) {
    if (await this.#isAdmitted()) return this.#inner.requireUser(options)
    throw new SessionError('ERR_SESSION_UNAUTHENTICATED', 'no user is logged in: the browser has not proved its device')
  }

  async create(anonymous?: Given<'create'>) {
    if (await this.#isAdmitted()) return this.#inner.create(anonymous)
    const message = 'this session is bound to another device: log in again, or log out first'
    throw new SessionError('ERR_SESSION_CONFLICT', message)
  }

  async update(change: Given<'update'>) {
    if (!(await this.#isAdmitted())) return null
    // The binding is out of reach of keys that a client may have sent, and of a function that empties the data.
    if (typeof change !== 'function') return this.#inner.update(isPlain(change) ? withoutKey(change) : change)
    return this.#inner.update((draft: Record<string, unknown>) => {
      const ours = draft[KEY]
      delete draft[KEY]
      const answer = change(draft)
      draft[KEY] = ours
      return answer as never
    })
  }

  async take(name: string) {
    return (await this.#isAdmitted()) && name !== KEY ? this.#inner.take(name) : undefined
  }

  // A copied cookie must get no new ID.
  async regenerate(options?: Given<'regenerate'>) {
    if (!(await this.#isAdmitted())) return null
    const session = await this.#inner.get(NO_TOUCH)
    return this.#inner.regenerate(session && bindingIn(session)?.device ? { ...GRACE, ...options } : options)
  }

  /** The login, of a session that may be bound. */
  async logIn(login: Given<'logIn'>) {
    const { data = {} } = login ?? {}
    const offer = newOffer(this.#setup.now())
    const withOffer = (given: object) => (isPlain(given) ? { ...given, ...offer } : given)
    const offering = typeof data === 'function' ? (before: object) => withOffer(data(before)) : withOffer(data)
    const session = await this.#inner.logIn(isPlain(login) ? { ...login, data: offering } : login)
    if (bindingIn(session) === null)
      throw new TypeError(
        `deviceBound: the manager's \`schema\` drops the key '${KEY}', where the binding is kept: let it keep keys that it does not name, as z.looseObject does`,
      )
    this.#say('begun', session)
    return session
  }

  async logOut() {
    await this.#inner.logOut()
    this.#say('left', null)
  }

  onLeave(leave: () => unknown) {
    this.#inner.onLeave(leave)
  }

  checkOrigin(): void {
    this.#inner.checkOrigin()
  }

  async csrfToken() {
    return (await this.#isAdmitted()) ? this.#inner.csrfToken() : null
  }

  async checkCsrf(token: unknown) {
    if (await this.#isAdmitted()) return this.#inner.checkCsrf(token)
    throw new SessionError('ERR_SESSION_CSRF', "the token is missing, or not this session's")
  }

  finish() {
    return this.#with(this.#inner.finish())
  }

  get headers() {
    return this.#with(this.#inner).headers
  }

  get cookies() {
    // The session of a remember token is not refused: its browser may have nothing to do with this action.
    if (this.response === null && this[STATE] === 'begun' && !this.#session?.remembered)
      throw new TypeError(
        'deviceBound: a login offers to bind its session by a header, and cookies alone, as of a server action of Next, would leave it unbound: log in by a route handler, or send `visit.finish().headers`',
      )
    return this.#with(this.#inner).cookies
  }

  respond(response: Response) {
    return this.told(this.#inner.respond(response))
  }

  /**
   * With our headers: where there are any, the visit has read its session, and `response` is the copy that it made. A handshake,
   * an error response and anything that is no response get none.
   */
  told(response: Response): Response {
    if (typeof response?.headers?.getSetCookie === 'function' && response.status >= 200)
      writeHeaders(this.headRules(), response.headers)
    return response
  }

  #with({ headers, cookies }: ReturnType<Visit['finish']>) {
    const rules = this.headRules()
    writeHeaders(rules, headers)
    return { headers, cookies: [...cookies, ...rules.cookies.map(responseCookie)] }
  }

  /** The headers about devices, if the head of the response were written now. */
  headRules(): MoreRules {
    const { cookie, firstMaxAge, registration } = this.#setup
    const state = this[STATE]
    const session = this.#session!
    if (state === 'begun' || state === 'late') {
      const binding = bindingIn(session)!
      const first = cookie.serializeValue(valueFor(session, binding, '', binding.at), firstMaxAge)
      const rules = { ...NO_RULES, cookies: [first] }
      if (state === 'late') return rules
      const offer = registration(challengeFor(session, binding, '', binding.at))
      return { ...rules, others: [['Secure-Session-Registration', offer]] }
    }
    if (state !== 'unproved' && state !== 'left') return NO_RULES
    // The browser proves itself before its next request if it has no value.
    const hasValue = cookie.candidates(headerOf(this.#request, 'cookie')).length > 0
    const rules = { ...NO_RULES, cookies: hasValue ? [cookie.clear()] : [] }
    if (state === 'left') return rules
    const again = mayComeAgain(this.#request, hasValue && cookie.name.startsWith('__Host-')) && { Refresh: '0' }
    return { ...rules, others: Object.entries({ ...challenge(this.#setup, session, bindingIn(session)!), ...again }) }
  }

  #isAdmitted(): Promise<boolean> {
    this.#admitting ??= this.#admit()
    return this.#admitting
  }

  async #admit(): Promise<boolean> {
    const found: AnySession | null = await this.#inner.get(NO_TOUCH)
    if (found?.user == null) return true
    const session = await this.#offered(found)
    const state = session && (await look(this.#setup, session, this.#request))
    // A login, a logout or an offer knows better.
    if (state === null || this[STATE] !== null) return true
    this.#say(state, session)
    if (state !== 'unproved' && state !== 'required') return true
    tellRefused(this.#setup, session!, this.#request)
    return false
  }

  /**
   * Offers to bind a session that begins in this response by a remember token or an import, not one that was found by a copied
   * ID: none of those that came is its own, and it never got a new one. Of parallel requests one does. `null`: it has ended.
   */
  async #offered(session: AnySession): Promise<AnySession | null> {
    const came: readonly string[] = this.#setup.sessionCookie.candidates(headerOf(this.#request, 'cookie'))
    const record = recordOf(session)!
    const isNews = !came.includes(session.secret) && firstKeyOf(record) === record.key
    if (!isNews || bindingIn(session) !== null) return session
    // A remember token is copied as easily as a cookie, and who copied it would register a device of his own.
    if (session.remembered && this.#setup.requires(session)) return this.#inner.logOut().then(() => null)
    const offer = newOffer(this.#setup.now())
    const change = (draft: object) => {
      if (bindingIn({ data: draft, createdAt: session.createdAt }) === null) Object.assign(draft, offer)
    }
    // If it cannot be stored, the session goes on unbound.
    const written = await this.#inner.update(change).catch(() => session)
    if (written?.data[KEY] === offer[KEY]) this.#say('begun', written)
    return written
  }

  /** From here on the state is this. */
  #say(state: State, session: AnySession | null): void {
    const { response } = this
    this[STATE] = state
    this.#session = session
    if (state === 'begun' || state === 'left') this.#admitting = Promise.resolve(true)
    const isOfNode = response !== null && response !== 'handled'
    if (isOfNode && state !== 'unbound' && state !== 'bound') guardHead(response, this.headRules.bind(this))
  }
}

const withoutKey = ({ [KEY]: _, ...others }: Record<string, unknown>): object => others

/**
 * Whether a page that loads itself anew comes with a proof: Chromium 150 sends none with the request that follows a link on
 * another site, since its cookies would not be sent with the proof, and none as long as it has a value. `isCleared`: it had
 * one that is of no use, such as by a late answer for the session before, and this response takes it away.
 */
function mayComeAgain(request: Asked, isCleared: boolean): boolean {
  const site = headerOf(request, 'sec-fetch-site')
  const isPage = request.method === 'GET' && headerOf(request, 'sec-fetch-mode') === 'navigate'
  return isPage && (isCleared || site === 'cross-site' || site === 'same-site')
}
