// biome-ignore-all lint/suspicious/noExplicitAny: requests, sessions and callbacks of three libraries
// The store interface of express-session, @fastify/session and koa-session. A save finds its load again by the request: the
// context of Koa, or the request to which `createSession` gives a session of express-session. @fastify/session names none at a
// load, and copies the loaded keys into its own object: a function among these keys, which JSON leaves out, leads to the load.
import { EventEmitter } from 'node:events'
import { callbackify } from 'node:util'
import { copyPlain, isPlain } from '../data/plain.ts'
import type { SessionManager } from '../manager/manager.ts'
import type { SessionId } from '../session/id.ts'
import type { UserIds } from '../session/users.ts'
import { checkOptions } from '../text/check-options.ts'
import { passportUser } from './identity.ts'
import { Held, KeptSessions } from './kept-sessions.ts'
import { MovingSessions } from './old-store.ts'
import { type ConnectStoreOptions, OPTIONS } from './options.ts'
import { fromStore, type Values, valuesOf } from './values.ts'

const LOADED = '~loaded'

/** Answers by the last argument if it is a callback, else by a promise. */
function answer(args: readonly unknown[], work: () => Promise<unknown>): any {
  const callback = args.at(-1)
  if (typeof callback === 'function') return callbackify(work)(callback as () => void)
  const answered = work()
  // Nobody may wait for it: `request.session.destroy()`. The manager's events tell of a store that fails.
  answered.catch(() => {})
  return answered
}

/** The context that koa-session gives with each call. */
const contextIn = (args: readonly unknown[]): Values | undefined => (args.at(-1) as { ctx?: Values } | undefined)?.ctx

/** koa-session gives its context, express-session keeps the request at the session, @fastify/session under a symbol. */
function requestOf(session: any, args: readonly unknown[]): Values | undefined {
  const key = Object.getOwnPropertySymbols(session).find(({ description }) => description === 'request')
  return contextIn(args) ?? (isPlain(session) ? undefined : session[key ?? 'req'])
}

/** What a session object of @fastify/session was loaded as. */
const loadedAs = (session: any): Held | undefined =>
  typeof session?.[LOADED] === 'function' ? session[LOADED]() : undefined

/**
 * A store for express-session, @fastify/session and koa-session: made by `connectStore`. Its methods answer by a callback, and
 * without one by a promise.
 */
export class ConnectStore extends EventEmitter {
  readonly #sessions: KeptSessions
  /** What a request loaded or began last, by the request; without one by the session object. */
  readonly #held = new WeakMap<object, Held>()
  /** What has just ended: @fastify/session begins the next one in the callback, and does not say whose request it is. */
  #ended: Held | undefined
  /** Set by express-session: makes `request.session`, with a new ID. */
  generate: ((request: any) => void) | undefined
  /** Of express-session, which this package does not import: its class of sessions, and one of its cookies. */
  #made: { readonly Session: new (request: object, data: object) => object; readonly cookie: any } | undefined

  /** By `connectStore`. */
  constructor(sessions: SessionManager<any, any, any>, options: ConnectStoreOptions = {}) {
    super()
    checkOptions(OPTIONS, options)
    const { userOf = passportUser, oldStore } = options
    this.#sessions =
      oldStore === undefined ? new KeptSessions(sessions, userOf) : new MovingSessions(sessions, userOf, oldStore)
  }

  /** The ID under which the manager has a session of the middleware: `sessions.get(store.idOf(req.sessionID))`. */
  idOf(sid: string): SessionId {
    return this.#sessions.idOf(sid)
  }

  /** The data of a live session, to load it; `null` if there is none. Fails only if the store does. */
  get(sid: string, ...args: any[]): any {
    return answer(args, async () => {
      const loaded = await this.#sessions.load(sid)
      if (loaded === null) return null
      const [held, values] = [new Held(sid, loaded), fromStore(loaded.values)]
      this.#held.set(contextIn(args) ?? values, held)
      if (typeof args[0] === 'function') values[LOADED] = () => held
      return values
    })
  }

  /** Begins a session, or writes what changed since it was loaded; nothing if it has ended meanwhile. */
  set(sid: string, session: any, ...args: any[]): any {
    return answer(args, async () => {
      // As it is now: the application may go on with the object.
      const values = valuesOf(session)
      const held = this.#heldFor(sid, session, args)
      const byHand = contextIn(args) === undefined && isPlain(session)
      return held.queued(() => this.#sessions.save(held, values, byHand))
    })
  }

  /** Writes the cookie of a session that did not change, if that did. */
  touch(sid: string, session: any, ...args: any[]): any {
    return answer(args, async () => this.#sessions.touch(this.#heldFor(sid, session, args), session.cookie))
  }

  /** Ends a session for good. */
  destroy(sid: string, ...args: any[]): any {
    return this.#end(sid, contextIn(args), args)
  }

  /** The data of all sessions of the manager; their IDs are not stored. */
  all(...args: any[]): any {
    return answer(args, async () => {
      const found: unknown[] = []
      for await (const { data } of this.#sessions.manager.all()) found.push(copyPlain(data))
      return found
    })
  }

  /** How many sessions the manager has. */
  length(...args: any[]): any {
    return answer(args, () => this.#sessions.manager.count())
  }

  /** Logs everyone out, as `sessions.invalidateAll()`. */
  clear(...args: any[]): any {
    return answer(args, () => this.#sessions.manager.invalidateAll())
  }

  /** For express-session: ends the session of a request, and makes another one with a new ID. */
  regenerate(request: any, callback: (error?: any) => any): void {
    const next = (error: unknown) => {
      this.generate?.(request)
      callback(error)
    }
    this.#end(request.sessionID, request, [next])
  }

  /** For code around express-session: a session without a request. */
  load(sid: string, callback: (error: any, session?: any) => any): void {
    this.get(sid, (error: unknown, data: any) => {
      if (error || !data) callback(error || undefined)
      else callback(null, this.createSession({ sessionID: sid, sessionStore: this, headers: {} }, data))
    })
  }

  /** For express-session: makes `request.session` from the loaded data. */
  createSession(request: any, data: any): any {
    if (this.#made === undefined) {
      const like = Object.create(request)
      this.generate?.(like)
      this.#made = { Session: like.session.constructor, cookie: like.session.cookie }
    }
    const made = this.#made
    // The middleware's default for a session that was begun without one.
    const { originalMaxAge, ...given } = isPlain(data.cookie) ? data.cookie : made.cookie.toJSON()
    const expires = typeof given.expires === 'string' ? new Date(given.expires) : (given.expires ?? null)
    const cookie = Object.create(Object.getPrototypeOf(made.cookie))
    Object.assign(cookie, { path: '/', httpOnly: true, ...given, expires })
    cookie.originalMaxAge = originalMaxAge ?? cookie.originalMaxAge
    const { [LOADED]: _loaded, ...values } = data
    request.session = new made.Session(request, { ...values, cookie })
    const { session } = request
    const held = this.#held.get(data)
    if (held !== undefined) this.#held.set(request, held)
    // That of express-session does not say whose request it is.
    const destroy = (...args: unknown[]) => {
      delete request.session
      this.#end(session.id, request, args)
      return session
    }
    return Object.defineProperty(session, 'destroy', { value: destroy, configurable: true, writable: true })
  }

  /** What is known of a session object. One that was neither loaded nor saved begins now, after what its request held before. */
  #heldFor(sid: string, session: any, args: readonly unknown[]): Held {
    const request: any = requestOf(session, args)
    const [holder, loaded] = [request ?? session, loadedAs(session)]
    const last = this.#held.get(holder) ?? loaded ?? loadedAs(request?.session)
    let held = loaded?.under(sid) ?? last?.under(sid)
    if (held === undefined) {
      if (last !== undefined && last.sid === this.#ended?.sid) last.ended = this.#ended.ended
      held = new Held(sid, null, request && last)
      this.#held.set(holder, held)
    }
    held.request = request ?? {}
    held.isStreamed = request?.res?.headersSent === true
    return held
  }

  /** `request`: that ends the session, if it is known. */
  #end(sid: string, request: object | undefined, args: readonly unknown[]): any {
    const last = request && this.#held.get(request)
    const held = last?.under(sid) ?? new Held(sid)
    if (request !== undefined && last === undefined) this.#held.set(request, held)
    const callback = args.at(-1)
    const calling = (error: unknown) => {
      this.#ended = held
      ;(callback as (error: unknown) => void)(error)
      this.#ended = undefined
    }
    return answer(typeof callback === 'function' ? [calling] : [], () =>
      held.queued(() => this.#sessions.destroy(held)),
    )
  }
}

/**
 * A store for unmodified express-session, @fastify/session and koa-session over a manager: what was destroyed stays
 * destroyed, and parallel requests that change different keys lose nothing.
 * @throws TypeError that names the option, or says what the manager's store needs
 * @example
 * const store = connectStore(sessions, { userOf: data => (data.userId ? { id: data.userId } : null) })
 */
export function connectStore<Data extends object, Ids extends UserIds, Input extends object>(
  sessions: SessionManager<Data, Ids, Input>,
  options?: ConnectStoreOptions<Ids>,
): ConnectStore {
  return new ConnectStore(sessions, options as ConnectStoreOptions)
}
