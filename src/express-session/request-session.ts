// The object that req.session is: its own keys are the data, and its members speak to the bridge of its request.
import type { IncomingMessage } from 'node:http'
import type { SessionKey } from '../session/id.ts'
import { quote } from '../text/quote.ts'
import { MEMBERS } from './values.ts'

/** The callback of express-session: with nothing, or the error. */
export type SessionCallback = (error?: unknown) => void

/** The cookie and the lifetime, to look at. Assigning another value is a TypeError. */
export interface CookieView {
  /** Milliseconds until the cookie expires, `null` if it ends with the browser. */
  maxAge: number | null
  /** Milliseconds that `maxAge` began with. */
  originalMaxAge: number | null
  /** When the cookie expires. */
  expires: Date | null
  readonly path: string
  readonly domain: string | undefined
  readonly httpOnly: true
  readonly secure: boolean
  readonly sameSite: 'strict' | 'lax' | 'none'
  readonly partitioned: boolean
}

/** The members of `req.session` beside the data. */
export interface RequestSessionMembers {
  /** The key of the session: safe to log, useless as a cookie. `undefined` until there is a session in the store. */
  readonly id: SessionKey | undefined
  readonly req: IncomingMessage
  cookie: CookieView
  /** Ends the session; `req.session` is an empty one then, and gets a new ID when it is saved. */
  regenerate(callback?: SessionCallback): this
  /** Writes the keys that changed. Without it, that is done at the end of the response. */
  save(callback?: SessionCallback): this
  /** Logout: ends the session; `req.session` is `undefined` from now on. */
  destroy(callback?: SessionCallback): this
  /** Reads the data anew, in the same object. The error is ERR_SESSION_CONFLICT if the session has ended. */
  reload(callback?: SessionCallback): this
  /** Does nothing: a session in use lives on by itself. */
  touch(): this
  /** Does nothing: a session in use lives on by itself. */
  resetMaxAge(): this
}

/** `req.session`: the data as its own keys, and the members that express-session offers. */
export type RequestSession<Data extends object = Record<string, unknown>> = RequestSessionMembers & Partial<Data>

/** A bridge, for the objects that it made. */
export interface Owner {
  readonly request: IncomingMessage
  readonly key: SessionKey | undefined
  readonly cookie: CookieView
  regenerate(session: object, callback: SessionCallback | undefined): void
  save(session: object, callback: SessionCallback | undefined): void
  destroy(session: object, callback: SessionCallback | undefined): void
  reload(session: object, callback: SessionCallback | undefined): void
}

class Session implements RequestSessionMembers {
  readonly #owner: Owner

  constructor(owner: Owner) {
    this.#owner = owner
  }

  get id() {
    return this.#owner.key
  }

  get req() {
    return this.#owner.request
  }

  get cookie() {
    return this.#owner.cookie
  }

  // Passport's keepSessionInfo and its like copy a session onto another; anything else has to be said at the view.
  set cookie(value: CookieView) {
    if (value !== this.#owner.cookie)
      throw new TypeError(
        'req.session.cookie: cannot be replaced; its attributes are options: expressSession(sessions, { cookie })',
      )
  }

  regenerate(callback?: SessionCallback): this {
    return this.#ask('regenerate', callback)
  }

  save(callback?: SessionCallback): this {
    return this.#ask('save', callback)
  }

  destroy(callback?: SessionCallback): this {
    return this.#ask('destroy', callback)
  }

  reload(callback?: SessionCallback): this {
    return this.#ask('reload', callback)
  }

  touch(): this {
    return this
  }

  resetMaxAge(): this {
    return this
  }

  #ask(method: 'regenerate' | 'save' | 'destroy' | 'reload', callback: SessionCallback | undefined): this {
    if (callback !== undefined && callback !== null && typeof callback !== 'function')
      throw new TypeError(`${method}: expected a callback, got ${quote(callback)}`)
    this.#owner[method](this, callback)
    return this
  }
}
// `Object.assign(req.session, body)` must not change the prototype by a `__proto__` in the body.
Object.defineProperty(Session.prototype, '__proto__', { value: Session.prototype })

/** A req.session without data. */
export const makeRequestSession = (owner: Owner): RequestSession =>
  new Session(owner) as RequestSessionMembers as RequestSession

/** Makes these the data of a req.session, in place of the data it had. */
export function fill(session: object, data: object): void {
  for (const key of Object.keys(session)) Reflect.deleteProperty(session, key)
  for (const [key, value] of Object.entries(data))
    if (!MEMBERS.has(key))
      Object.defineProperty(session, key, { value, enumerable: true, configurable: true, writable: true })
}
