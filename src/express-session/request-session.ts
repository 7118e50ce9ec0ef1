// The object that req.session is: its own keys are the data, and its members speak to the bridge of its request.
import type { IncomingMessage } from 'node:http'
import type { SessionKey } from '../session/id.ts'
import { quote } from '../text/quote.ts'
import { SideTable } from '../visits/side-table.ts'
import { MEMBERS } from './values.ts'

/** What express-session calls back with: nothing, or the error. */
export type SessionCallback = (error?: unknown) => void

/** What is shown of the cookie and of the lifetime. What is assigned, and cannot be kept, is a TypeError. */
export interface CookieView {
  /** Milliseconds until the cookie expires, `null` where it ends with the browser. */
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

/** What `req.session` offers beside the data. */
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
  /** Reads the data anew, in the same object. The error is ERR_SESSION_CONFLICT where the session has ended. */
  reload(callback?: SessionCallback): this
  /** Does nothing: a session in use lives on by itself. */
  touch(): this
  /** Does nothing: a session in use lives on by itself. */
  resetMaxAge(): this
}

/** `req.session`: the data as its own keys, and what express-session offers. */
export type RequestSession<Data extends object = Record<string, unknown>> = RequestSessionMembers & Partial<Data>

/** What a bridge does for the objects that it made. */
export interface Owner {
  readonly request: IncomingMessage
  readonly key: SessionKey | undefined
  readonly cookie: CookieView
  /** @throws TypeError where no response is left that would write a change of this object */
  mayChange(session: object): void
  regenerate(session: object, callback: SessionCallback | undefined): void
  save(session: object, callback: SessionCallback | undefined): void
  destroy(session: object, callback: SessionCallback | undefined): void
  reload(session: object, callback: SessionCallback | undefined): void
}

const owners = new SideTable<object, Owner>()

/** Whether a value is a req.session, of whichever request. */
export const isRequestSession = (value: object): boolean => owners.get(value) !== undefined

function ownerOf(session: object): Owner {
  const owner = owners.get(session)
  if (owner === undefined) throw new TypeError('this method of req.session was called without its session')
  return owner
}

function checkCallback(where: string, callback: unknown): void {
  if (callback !== undefined && callback !== null && typeof callback !== 'function')
    throw new TypeError(`${where}: expected a callback, got ${quote(callback)}`)
}

class Members {
  get id() {
    return ownerOf(this).key
  }

  get req() {
    return ownerOf(this).request
  }

  get cookie() {
    return ownerOf(this).cookie
  }

  // Passport's keepSessionInfo and its like copy a session onto another; anything else has to be said at the view.
  set cookie(value: CookieView) {
    if (value !== ownerOf(this).cookie)
      throw new TypeError(
        'req.session.cookie: cannot be replaced; its attributes are options: expressSession(sessions, { cookie })',
      )
  }

  touch() {
    return this
  }

  resetMaxAge() {
    return this
  }
}
Object.defineProperty(Members, 'name', { value: 'Session' })
for (const method of ['regenerate', 'save', 'destroy', 'reload'] as const)
  Object.defineProperty(Members.prototype, method, {
    writable: true,
    value(callback?: SessionCallback) {
      checkCallback(method, callback)
      ownerOf(this)[method](this, callback)
      return this
    },
  })

// A change is refused here, where assignment, defineProperty and delete meet: code in sloppy mode, which frozen objects
// would not tell, hears of it too.
const HANDLER: ProxyHandler<object> = {
  defineProperty(target, key, descriptor) {
    mayChange(target)
    return Reflect.defineProperty(target, key, descriptor)
  },
  deleteProperty(target, key) {
    if (Object.hasOwn(target, key)) mayChange(target)
    return Reflect.deleteProperty(target, key)
  },
  // What `__proto__` of a body that was merged into the session would do.
  setPrototypeOf: () => false,
}

const sessions = new SideTable<object, object>()
function mayChange(target: object): void {
  const session = sessions.get(target)
  if (session !== undefined) owners.get(session)?.mayChange(session)
}

/** A req.session without data. */
export function makeRequestSession(owner: Owner): RequestSession {
  const target: object = Object.create(Members.prototype)
  const session = new Proxy(target, HANDLER)
  sessions.set(target, session)
  owners.set(session, owner)
  return session as RequestSession
}

/** Makes these the data of a req.session, in place of what it had. */
export function fill(session: object, data: object): void {
  for (const key of Object.keys(session)) Reflect.deleteProperty(session, key)
  for (const [key, value] of Object.entries(data))
    if (!MEMBERS.has(key))
      Object.defineProperty(session, key, { value, enumerable: true, configurable: true, writable: true })
}
