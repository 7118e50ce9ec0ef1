import { SessionError } from '../contract/errors.ts'
import { isPlain } from '../data/plain.ts'
import type { AnySession, Session, UserSession } from '../session/session.ts'
import type { UserIds } from '../session/users.ts'
import { responseCookie } from '../visits/cookie.ts'
import { FetchHead, type MoreRules, writeRules } from '../visits/head.ts'
import type { Visit } from '../visits/types.ts'
import { type Asked, headerOf } from './asked.ts'
import { bindingIn, deviceIn, isKey, keysOf, newOffer, takeOut } from './binding.ts'
import type { DeviceState, Devices, Look } from './devices.ts'

const NO_TOUCH = { touch: false } as const

/**
 * A bound session that gets a new ID leaves the old one this grace: its browser may be proving its key by the ID that it
 * has. Told that the session is over, it would forget the key. Without the device the old ID is worth nothing.
 */
const GRACE = '10s'

/** For `deviceState`. Registered: the visit may be of another copy of this package. */
export const STATE: unique symbol = Symbol.for('coatcheck.device-state.1')

/** A visit whose session can be used only if the request proves that it comes from the session's device. */
export class DeviceVisit<Data extends object, Ids extends UserIds, Input extends object>
  implements Visit<Data, Ids, Input>
{
  readonly #inner: Visit<Data, Ids, Input>
  readonly #request: Asked
  readonly #devices: Devices
  /** Whether the session may be used: found out once, and settled by a login or a logout. */
  #admitting: Promise<boolean> | null = null
  /** Set if the request did not prove its device. */
  #refused: Look | null = null
  /** A session whose ID is news to the browser: it gets an offer with it. */
  #begun: AnySession | null = null
  #hasLoggedOut = false
  /** Called before the response first says something about the device. */
  #onHead: ((rules: () => MoreRules) => void) | null

  constructor(
    inner: Visit<Data, Ids, Input>,
    request: Asked,
    devices: Devices,
    onHead: ((rules: () => MoreRules) => void) | null = null,
  ) {
    this.#inner = inner
    this.#request = request
    this.#devices = devices
    this.#onHead = onHead
  }

  get [STATE](): DeviceState | null {
    return this.#refused?.state ?? null
  }

  async get(options?: { touch?: boolean }): Promise<Session<Data, Ids> | null> {
    return (await this.#isAdmitted()) ? this.#inner.get(options) : null
  }

  async requireUser(options?: Parameters<Visit<Data, Ids, Input>['requireUser']>[0]): Promise<UserSession<Data, Ids>> {
    if (await this.#isAdmitted()) return this.#inner.requireUser(options)
    throw new SessionError('ERR_SESSION_UNAUTHENTICATED', 'no user is logged in: the browser has not proved its device')
  }

  async create(anonymous?: Parameters<Visit<Data, Ids, Input>['create']>[0]): Promise<Session<Data, Ids>> {
    if (await this.#isAdmitted()) return this.#inner.create(anonymous)
    throw new SessionError(
      'ERR_SESSION_CONFLICT',
      'this session is bound to another device: log in again, or log out first',
    )
  }

  async update(change: Parameters<Visit<Data, Ids, Input>['update']>[0]): Promise<Session<Data, Ids> | null> {
    if (!(await this.#isAdmitted())) return null
    // The binding is out of reach of keys that a client may have sent, and of a function that empties the data.
    if (typeof change !== 'function')
      return this.#inner.update(isPlain(change) ? (keysOf(change, 'application') as Partial<Data>) : change)
    return this.#inner.update((draft: Data) => {
      const kept = takeOut(draft)
      const answer = change(draft)
      takeOut(draft)
      Object.assign(draft, kept)
      return answer as never
    })
  }

  async take<N extends keyof Data & string>(name: N): Promise<Data[N] | undefined> {
    return (await this.#isAdmitted()) && !isKey(name) ? this.#inner.take(name) : undefined
  }

  // A copied cookie must get no new ID.
  async regenerate(
    options: Parameters<Visit<Data, Ids, Input>['regenerate']>[0] = {},
  ): Promise<Session<Data, Ids> | null> {
    if (!(await this.#isAdmitted())) return null
    const before = await this.#inner.get(NO_TOUCH)
    const isBound = before !== null && bindingIn(before) !== null
    const session = await this.#inner.regenerate(isBound ? { grace: GRACE, ...options } : options)
    if (session !== null) this.#settle(session)
    return session
  }

  async logIn(login: Parameters<Visit<Data, Ids, Input>['logIn']>[0]): Promise<UserSession<Data, Ids>> {
    const session = await this.#inner.logIn(isPlain(login) ? this.#withOffer(login) : login)
    this.#settle(session)
    if (deviceIn(session) === null)
      throw new TypeError(
        "deviceBound: the manager's `schema` drops the keys '~device.…', where the binding is kept: let it keep keys that it does not name, as z.looseObject does",
      )
    return session
  }

  async logOut(): Promise<void> {
    await this.#inner.logOut()
    this.#settle(null)
  }

  onLeave(leave: () => unknown): void {
    this.#inner.onLeave(leave)
  }

  checkOrigin(): void {
    this.#inner.checkOrigin()
  }

  async csrfToken(): Promise<string | null> {
    return (await this.#isAdmitted()) ? this.#inner.csrfToken() : null
  }

  async checkCsrf(token: unknown): Promise<void> {
    if (await this.#isAdmitted()) return this.#inner.checkCsrf(token)
    throw new SessionError('ERR_SESSION_CSRF', "the token is missing, or not this session's")
  }

  finish(): ReturnType<Visit['finish']> {
    return this.#with(this.#inner.finish())
  }

  get headers(): Headers {
    return this.#with(this.#inner).headers
  }

  get cookies(): Visit['cookies'] {
    return this.#with(this.#inner).cookies
  }

  #with({ headers, cookies }: ReturnType<Visit['finish']>): ReturnType<Visit['finish']> {
    const rules = this.headRules()
    writeRules(rules, new FetchHead(headers))
    return { headers, cookies: [...cookies, ...rules.cookies.map(responseCookie)] }
  }

  /** The headers about devices, if the head of the response were written now. */
  headRules(): MoreRules {
    const request = this.#request
    const { cookie } = this.#devices.setup
    const offer = this.#begun === null ? null : this.#devices.offer(this.#begun)
    const look = this.#refused
    const others: [string, string][] = []
    if (offer !== null) others.push(['Secure-Session-Registration', offer])
    if (look?.challenge) others.push(['Secure-Session-Challenge', look.challenge])
    if (look?.state === 'unproved' && isForeignNavigation(request)) others.push(['Refresh', '0'])
    // The value of an earlier session would be a wrong one as soon as this session is bound.
    const isOver = this.#hasLoggedOut || offer !== null || look?.isExpired || look?.state === 'stolen'
    const cookies = isOver && cookie.candidates(headerOf(request, 'cookie')).length > 0 ? [cookie.clear()] : []
    return { cookies, vary: [], noStore: look !== null, others }
  }

  #isAdmitted(): Promise<boolean> {
    this.#admitting ??= this.#admit()
    return this.#admitting
  }

  async #admit(): Promise<boolean> {
    const inner = this.#inner
    const request = this.#request
    const devices = this.#devices
    let session: Session<Data, Ids> | null = await inner.get(NO_TOUCH)
    if (session?.user == null) return true
    const came: readonly string[] = devices.setup.sessionCookie.candidates(headerOf(request, 'cookie'))
    // None of the values that came: a thief may add some to a copied one.
    const isNews = !came.includes(session.secret)
    if (isNews && deviceIn(session) === null) {
      // A remember token is copied as easily as a cookie, and who copied it would register a device of his own.
      if (session.remembered && devices.setup.requires(session)) {
        await inner.logOut()
        return true
      }
      session = await inner.update(newOffer(devices.now()) as never)
      if (session === null) return true
    }
    const look = devices.look(session, request)
    // A login or a logout meanwhile knows better.
    if (this.#begun !== null || this.#hasLoggedOut) return true
    if (isNews) this.#begun = session
    const isAdmitted = look.state === 'unbound' || look.state === 'bound'
    if (isNews || !isAdmitted) this.#tell()
    if (isAdmitted) return true
    this.#refused = look
    devices.tellRefused(session, request)
    if (look.state === 'stolen') await devices.endStolen(session)
    return false
  }

  #settle(begun: AnySession | null): void {
    this.#begun = begun
    this.#hasLoggedOut = begun === null
    this.#refused = null
    this.#admitting = Promise.resolve(true)
    this.#tell()
  }

  #tell(): void {
    this.#onHead?.(() => this.headRules())
    this.#onHead = null
  }

  /** The login, of a session that may be bound. */
  #withOffer<L extends { data?: unknown }>(login: L): L {
    const { data = {} } = login
    const offer = newOffer(this.#devices.now())
    const withOffer = (given: unknown) => (isPlain(given) ? { ...keysOf(given, 'application'), ...offer } : given)
    const offering = typeof data === 'function' ? (before: unknown) => withOffer(data(before)) : withOffer(data)
    return { ...login, data: offering, ...(this.#devices.setup.requiresAll && { remember: false }) }
  }
}

/**
 * A link on another site: Chromium 150 sends no proof for the request that follows it, since its cookies would not be sent
 * with the proof. The page loads itself anew: that is a request of its own site, and it comes with a proof.
 */
function isForeignNavigation(request: Asked): boolean {
  const site = headerOf(request, 'sec-fetch-site')
  const isForeign = site === 'cross-site' || site === 'same-site'
  return request.method === 'GET' && isForeign && headerOf(request, 'sec-fetch-mode') === 'navigate'
}
