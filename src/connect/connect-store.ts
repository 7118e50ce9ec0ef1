// biome-ignore-all lint/suspicious/noExplicitAny: requests and sessions of three libraries, and what express-session calls back with
// The store interface of express-session, @fastify/session and koa-session. What a middleware loaded is found again when it
// saves: by the context of Koa, by the object that `createSession` makes for express-session, and for @fastify/session, which
// copies the keys of what it loads into an object of its own, by a function among these keys, which JSON leaves out.
import { EventEmitter } from 'node:events'
import { copyPlain, isPlain } from '../data/plain.ts'
import type { SessionManager } from '../manager/manager.ts'
import type { SessionId } from '../session/id.ts'
import type { UserIds } from '../session/users.ts'
import { checkOptions } from '../text/check-options.ts'
import { BesideOldStore } from './beside-old-store.ts'
import { KeptSessions, type Loaded } from './kept-sessions.ts'
import { type ConnectStoreOptions, OPTIONS, userOfPassport } from './options.ts'
import { type Values, valuesOf } from './values.ts'

type Callback = (error?: any, value?: any) => void
/** Of express-session, which this package does not import: its class, and the prototype of its cookies. */
interface Made {
  readonly Session: new (request: object, data: object) => object
  readonly cookie: object
}

const LOADED = '~loaded'
const NOTHING: Callback = () => {}

/** Answers by the last argument if it is a callback, else by a promise. */
function answer(args: readonly unknown[], work: () => Promise<unknown>): any {
  const callback = args.at(-1) as Callback
  const answered = work()
  if (typeof callback !== 'function') {
    // Nobody may wait for it: `request.session.destroy()`. The manager's events tell of a store that fails.
    answered.catch(() => {})
    return answered
  }
  // Not in a `then`: what a callback throws is no rejection.
  answered.then(
    value => queueMicrotask(() => callback(null, value)),
    error => queueMicrotask(() => callback(error)),
  )
}

/** The context that koa-session gives with each call. */
const contextIn = (args: readonly unknown[]): object | undefined => (args.at(-1) as { ctx?: object } | undefined)?.ctx

/**
 * A store for express-session, @fastify/session and koa-session: made by `connectStore`. Its methods answer by a callback, and
 * without one by a promise.
 */
export class ConnectStore extends EventEmitter {
  readonly #kept: KeptSessions
  readonly #sessions: Pick<KeptSessions, 'load' | 'save' | 'touch' | 'destroy'>
  readonly #loaded = new WeakMap<object, Loaded>()
  /** Saves of one session object take turns. */
  readonly #turns = new WeakMap<object, Promise<unknown>>()
  /** Set by express-session: makes `request.session`, with a new ID. */
  generate: ((request: any) => void) | undefined
  #made: Made | undefined

  /** By `connectStore`. */
  constructor(sessions: SessionManager<any, any, any>, options: ConnectStoreOptions = {}) {
    super()
    checkOptions(OPTIONS, options)
    this.#kept = new KeptSessions(sessions, options.userOf ?? userOfPassport)
    this.#sessions = options.oldStore === undefined ? this.#kept : new BesideOldStore(this.#kept, options.oldStore)
  }

  /** The ID under which the manager has a session of the middleware: `sessions.get(store.idOf(req.sessionID))`. */
  idOf(sid: string): SessionId {
    return this.#kept.idOf(sid)
  }

  /** The data of a live session, to load it; `null` if there is none. Fails only if the store does. */
  get(sid: string, ...args: any[]): any {
    return answer(args, async () => {
      const found = await this.#sessions.load(sid)
      if (found === null) return null
      const { values, loaded } = found
      this.#loaded.set(contextIn(args) ?? values, loaded)
      if (typeof args[0] === 'function') {
        const mark = () => {}
        this.#loaded.set(mark, loaded)
        values[LOADED] = mark
      }
      return values
    })
  }

  /** Begins a session, or writes what changed since it was loaded; nothing if it has ended meanwhile. */
  set(sid: string, session: any, ...args: any[]): any {
    return this.#write(session, session, args, (values, loaded) =>
      this.#sessions.save(sid, values, loaded, contextIn(args) === undefined && isPlain(session)),
    )
  }

  /** Writes the cookie of a session that did not change, if that did. */
  touch(sid: string, session: any, ...args: any[]): any {
    return this.#write(session, { cookie: session?.cookie }, args, (values, loaded) =>
      this.#sessions.touch(sid, values, loaded),
    )
  }

  /** Ends a session for good. */
  destroy(sid: string, ...args: any[]): any {
    return answer(args, () => this.#sessions.destroy(sid))
  }

  /** The data of all sessions of the manager; their IDs are not stored. */
  all(...args: any[]): any {
    return answer(args, async () => {
      const found: unknown[] = []
      for await (const { data } of this.#kept.manager.all()) found.push(copyPlain(data))
      return found
    })
  }

  /** How many sessions the manager has. */
  length(...args: any[]): any {
    return answer(args, () => this.#kept.manager.count())
  }

  /** Logs everyone out, as `sessions.invalidateAll()`. */
  clear(...args: any[]): any {
    return answer(args, () => this.#kept.manager.invalidateAll())
  }

  /** For express-session: ends the session of a request, and makes another one with a new ID. */
  regenerate(request: any, callback: (error?: any) => any = NOTHING): void {
    this.destroy(request.sessionID, (error: unknown) => {
      this.generate?.(request)
      callback(error)
    })
  }

  /** For code around express-session: a session without a request. */
  load(sid: string, callback: (error: any, session?: any) => any): void {
    this.get(sid, (error: unknown, data: any) => {
      if (error || !data) callback(error || undefined)
      else callback(null, this.createSession({ sessionID: sid, sessionStore: this, headers: {} }, data))
    })
  }

  /** For express-session: makes `request.session` of what was loaded. */
  createSession(request: any, data: any): any {
    const fresh = () => {
      const like = Object.create(request)
      this.generate?.(like)
      return like.session
    }
    if (this.#made === undefined) {
      const session = fresh()
      this.#made = { Session: session.constructor, cookie: Object.getPrototypeOf(session.cookie) }
    }
    // The middleware's default for a session that was begun without one.
    const stored = isPlain(data.cookie) ? data.cookie : fresh().cookie.toJSON()
    const { expires, originalMaxAge } = stored
    const cookie = Object.assign(Object.create(this.#made.cookie), { path: '/', httpOnly: true }, stored)
    cookie.expires = typeof expires === 'string' ? new Date(expires) : (expires ?? null)
    cookie.originalMaxAge = originalMaxAge ?? cookie.originalMaxAge
    const { [LOADED]: _mark, ...values } = data
    request.session = new this.#made.Session(request, { ...values, cookie })
    const loaded = this.#loaded.get(data)
    if (loaded !== undefined) this.#loaded.set(request.session, loaded)
    return request.session
  }

  /** `given` is what the work needs of the session. */
  #write(
    session: any,
    given: unknown,
    args: any[],
    work: (values: Values, loaded: Loaded | undefined) => Promise<Loaded | null>,
  ): any {
    const holder: object = contextIn(args) ?? session
    return answer(args, async () => {
      // As it is now: the application may go on with the object.
      const values = valuesOf(given)
      const run = async () => {
        const mark = session[LOADED]
        const loaded = this.#loaded.get(holder) ?? (typeof mark === 'function' ? this.#loaded.get(mark) : undefined)
        const next = await work(values, loaded)
        if (next !== null) this.#loaded.set(holder, next)
      }
      const before = this.#turns.get(holder)
      const turn = before === undefined ? run() : before.then(run, run)
      this.#turns.set(holder, turn)
      await turn
    })
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
