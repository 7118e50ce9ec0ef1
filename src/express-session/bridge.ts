import type { IncomingMessage } from 'node:http'
import { SessionError } from '../contract/errors.ts'
import { copyPlain } from '../data/plain.ts'
import type { SessionManager } from '../manager/manager.ts'
import type { ManagerOptions } from '../manager/options.ts'
import type { SessionKey } from '../session/id.ts'
import type { Session } from '../session/session.ts'
import type { UserIds } from '../session/users.ts'
import { quote } from '../text/quote.ts'
import type { Visit, VisitLogin } from '../visits/types.ts'
import { type CookieLook, cookieView } from './cookie-view.ts'
import type { HeldResponse, Settling } from './held-response.ts'
import { type Identity, identityOf } from './identity.ts'
import type { ExpressSessionOptions, LoginOptions } from './options.ts'
import {
  type CookieView,
  fill,
  makeRequestSession,
  type Owner,
  type RequestSession,
  type SessionCallback,
} from './request-session.ts'
import { changeOf, dataOf, hasContent, type Texts, textsOf } from './values.ts'

/** Shared by all requests of one middleware. */
export interface BridgeSetup<Data extends object, Ids extends UserIds, Input extends object> {
  readonly sessions: SessionManager<Data, Ids, Input>
  readonly options: ManagerOptions<Data, Ids>
  readonly userOf: NonNullable<ExpressSessionOptions<Ids>['userOf']>
  readonly logIn: NonNullable<ExpressSessionOptions<Ids>['logIn']>
  readonly look: CookieLook
}

/** How often, at the end of a response, changes that were made during the last write are written too. */
const MAX_ROUNDS = 10

const REPLACED = 'this session object was replaced by regenerate or destroy: use req.session'

// A property: objects that inherit from a request, and proxies of one, have its req.session too.
const BRIDGE = Symbol('coatcheck bridge')

/** A request that has a `req.session`. */
interface Bridged {
  // biome-ignore lint/suspicious/noExplicitAny: of whichever middleware
  readonly [BRIDGE]: Bridge<any, any, any>
}

/** `req.session` of one request over its visit: it compares the data with the data it read, and writes the keys that changed. */
export class Bridge<Data extends object, Ids extends UserIds, Input extends object> implements Owner, Settling {
  // The same functions for all requests: with functions of its own each request would get a hidden class of its own, which
  // V8 keeps, and the request with it, until the next full collection of garbage.
  static readonly #MEMBERS: PropertyDescriptorMap & ThisType<Bridged> = {
    session: {
      get() {
        this[BRIDGE].#notice()
        return this[BRIDGE].#shown ?? undefined
      },
      set(value) {
        this[BRIDGE].#assign(value)
      },
      enumerable: true,
      configurable: true,
    },
    sessionID: {
      get() {
        this[BRIDGE].#notice()
        return this[BRIDGE].key
      },
      set(value) {
        throw new TypeError(`req.sessionID: cannot become ${quote(value)}; an ID is never taken from outside`)
      },
      enumerable: true,
      configurable: true,
    },
  }

  readonly request: IncomingMessage
  readonly #held: HeldResponse | null
  readonly #setup: BridgeSetup<Data, Ids, Input>
  readonly #visit: Visit<Data, Ids, Input>
  readonly #next: SessionCallback
  /** The current req.session; `null` after destroy, or if the application set it so. */
  #shown: RequestSession | null = null
  /** The session as the last call left it. */
  #session: Session<Data, Ids> | null = null
  /** The data when it was read or written last, to tell changes by. */
  #before: Texts = new Map()
  /** The data came from a session, or went into one: then a write changes that one, and begins none with old data. */
  #isStored = false
  /** The application set req.session to null: the session ends with the response. */
  #isUnset = false
  /** Settles when the calls so far are done and their callbacks have run; never rejects. */
  #work: Promise<void> | null = null
  /** The data that a save could not write, and told its callback: the answer of an error handler does not fail for it again. */
  #told: Texts | 'no JSON' | null = null
  /** A failure without a callback: the response must not look as if it had worked. */
  #failure: { readonly error: unknown } | null = null
  #isOver = false
  #cookie: CookieView | null = null

  constructor(
    setup: BridgeSetup<Data, Ids, Input>,
    visit: Visit<Data, Ids, Input>,
    request: IncomingMessage,
    held: HeldResponse | null,
    next: SessionCallback,
  ) {
    this.#setup = setup
    this.#visit = visit
    this.request = request
    this.#held = held
    this.#next = next
  }

  /** Reads the session of the request, once, and puts it on the request for middleware. */
  async open(): Promise<void> {
    const session = await this.#visit.get()
    this.#show(session)
    this.#offer()
  }

  // For req.session.

  get key(): SessionKey | undefined {
    return this.#session?.key
  }

  get cookie(): CookieView {
    this.#cookie ??= cookieView(this.#setup.look, this.#setup.options, () => this.#session)
    return this.#cookie
  }

  save(session: object, callback: SessionCallback | undefined): void {
    let write: () => Promise<void>
    let tried: Texts | 'no JSON' = 'no JSON'
    try {
      this.#mustBeShown('save', session)
      // As it is now: later changes are written by the next save, or at the end.
      const texts = textsOf(session)
      tried = texts
      write = () => this.#write(texts)
    } catch (error) {
      write = () => Promise.reject(error)
    }
    const telling: SessionCallback = (...outcome) => {
      if (outcome.length > 0) this.#told = tried
      callback?.(...outcome)
    }
    this.#run(write, callback && telling)
  }

  regenerate(session: object, callback: SessionCallback | undefined): void {
    this.#run(async () => {
      this.#mustBeShown('regenerate', session)
      // At once, not with the next save: when the callback runs, the old ID is dead whatever becomes of this response.
      await this.#leave()
      this.#show(null)
    }, callback)
  }

  destroy(session: object, callback: SessionCallback | undefined): void {
    if (session === this.#shown) this.#shown = null
    this.#run(async () => {
      // Asked again after a failure, it tries again.
      if (this.#shown !== null) this.#mustBeShown('destroy', session)
      await this.#end()
    }, callback)
  }

  reload(session: object, callback: SessionCallback | undefined): void {
    this.#run(async () => {
      this.#mustBeShown('reload', session)
      const fresh = await this.#setup.sessions.get(await this.#visit.get(), { touch: false })
      if (fresh === null)
        throw new SessionError('ERR_SESSION_CONFLICT', 'reload: there is no session, or it has ended meanwhile')
      this.#take(session, fresh)
    }, callback)
  }

  // For the response.

  isDue(): boolean {
    return this.#work !== null || this.#failure !== null || this.#isUnset || this.#isChanged()
  }

  isSending(): boolean {
    return this.#visit.cookies.length > 0
  }

  async settle(): Promise<void> {
    for (let round = 0; round < MAX_ROUNDS && this.isDue(); round += 1) {
      while (this.#work !== null) await this.#work
      const failure = this.#failure
      this.#failure = null
      if (failure !== null) throw failure.error
      if (this.#isUnset) await this.#end()
      else if (this.#shown !== null && this.#isChanged()) await this.#writeLast(textsOf(this.#shown))
    }
  }

  fail(error: unknown): void {
    process.nextTick(this.#next, error)
  }

  over(): void {
    this.#isOver = true
  }

  // How it is done.

  #isChanged(): boolean {
    if (this.#shown === null) return false
    try {
      const texts = textsOf(this.#shown)
      const isTold = this.#told instanceof Map && changeOf(texts, this.#told) === null
      return !isTold && this.#changeOf(texts) !== null
    } catch {
      return this.#told !== 'no JSON' // settling it says what is wrong
    }
  }

  #mustBeShown(call: string, session: object): void {
    if (session !== this.#shown) throw new TypeError(`${call}: ${REPLACED}`)
  }

  /** Runs calls one after the other. The callback runs outside of our promises: an error in it is the application's own. */
  #run(begin: () => Promise<void>, callback: SessionCallback | undefined): void {
    const call = (...values: [error?: unknown]) =>
      new Promise<void>(resolve =>
        process.nextTick(() => {
          try {
            callback?.(...values)
          } finally {
            resolve()
          }
        }),
      )
    const work: Promise<void> = (this.#work ?? Promise.resolve())
      .then(begin)
      .then(
        () => call(),
        error => {
          if (!callback) this.#note(error)
          return call(error)
        },
      )
      .then(() => {
        if (this.#work === work) this.#work = null
      })
    this.#work = work
  }

  #note(error: unknown): void {
    if (!this.#isOver) this.#failure ??= { error }
    else
      process.emitWarning(
        `req.session was not saved after its response: ${error instanceof Error ? error.message : error}`,
        'CoatcheckWarning',
      )
  }

  /** Makes a new req.session from the stored session. */
  #show(session: Session<Data, Ids> | null): void {
    const shown = makeRequestSession(this)
    this.#shown = shown
    this.#isUnset = false
    this.#take(shown, session)
  }

  #take(shown: object, session: Session<Data, Ids> | null): void {
    this.#session = session
    this.#isStored = session !== null
    this.#told = null
    fill(shown, copyPlain(session === null ? this.#setup.options.initial() : session.data))
    this.#before = textsOf(shown)
  }

  /** The application looks at its session: the response may depend on it. */
  #notice(): void {
    if (this.#held !== null) this.#held.isLookedAt = true
  }

  /** Logs out, unless there is nothing to end: then the browser is told nothing. */
  async #leave(): Promise<void> {
    if (this.#setup.look.isIn(this.request.headers.cookie) || (await this.#visit.get()) !== null)
      await this.#visit.logOut()
  }

  async #end(): Promise<void> {
    await this.#leave()
    this.#isUnset = false
    this.#session = null
    this.#isStored = false
    this.#before = new Map()
    this.#told = null
  }

  /** The changes to write; `null` if nothing is worth it. */
  #changeOf(texts: Texts): Record<string, unknown> | null {
    const change = changeOf(texts, this.#before)
    return change !== null && (this.#isStored || hasContent(texts)) ? change : null
  }

  async #writeLast(texts: Texts): Promise<void> {
    try {
      await this.#write(texts)
    } catch (error) {
      // The client went away: no response can bring it a session, and no error handler can tell it.
      const isLost = this.#held?.isGone && (error as { code?: unknown }).code === 'ERR_SESSION_HEADERS_SENT'
      if (!isLost) throw error
      this.#before = texts
    }
  }

  async #write(texts: Texts): Promise<void> {
    const change = this.#changeOf(texts)
    if (change !== null) {
      const kept = new Map(texts)
      const session = await this.#store(kept, change)
      this.#before = kept
      this.#session = session
      this.#isStored ||= session !== null
    }
    // The failure that was told has passed: the same data, made anew, is worth a write.
    this.#told = null
  }

  async #store(texts: Map<string, string>, change: Record<string, unknown>): Promise<Session<Data, Ids> | null> {
    const visit = this.#visit
    const data = dataOf(texts)
    const now = this.#identityOf(data)
    const before = this.#isStored ? this.#identityOf(dataOf(this.#before)) : null
    const current = await visit.get()
    const user = current?.user == null ? null : String(current.user.id)
    // Not if the application logged this user in by the visit.
    const isDone = now?.text === user && current?.key !== this.#session?.key
    if (now !== null && now.text !== before?.text && !isDone) return this.#logIn(now, before, texts, change)
    // The data of this session names a user whom the session does not have: it was written past the bridge.
    if (now !== null && current !== null && user === null && current.key === this.#session?.key)
      return this.#logIn(now, null, texts, change, { verifiedAt: null })
    // Not if the application logged another user in by the visit.
    if (now === null && before !== null && (user === null || user === before.text)) {
      await visit.logOut()
      this.#isStored = false
      return hasContent(texts) ? this.#begin(data) : null
    }
    if (current === null && !this.#isStored) return this.#begin(data)
    // `null` if the session ended meanwhile: a logout is not undone by a slow request.
    return visit.update(change as Partial<Data>)
  }

  async #logIn(
    { user }: Identity,
    before: Identity | null,
    texts: Map<string, string>,
    change: Record<string, unknown>,
    usual: LoginOptions = {},
  ): Promise<Session<Data, Ids>> {
    const data = dataOf(texts)
    const terms = { ...usual, ...this.#setup.logIn(this.request, data) }
    // The writes of parallel requests to a visitor's session are carried over; the data of another user's session is not.
    const carried = (stored: Data) => ({ ...stored, ...change })
    const first = !this.#isStored ? data : before === null ? carried : change
    const login = { ...terms, user, data: first } as unknown as VisitLogin<Data, Ids, Input>
    const session = await this.#visit.logIn(login)
    if (first === change && this.#shown !== null)
      for (const key of [...texts.keys()].filter(each => !Object.hasOwn(session.data as object, each))) {
        texts.delete(key)
        Reflect.deleteProperty(this.#shown, key)
      }
    return session
  }

  /** An anonymous session; `null` if a parallel request of this browser logged in or out: then none begins. */
  async #begin(data: Record<string, unknown>): Promise<Session<Data, Ids> | null> {
    try {
      return await this.#visit.create({ data: data as Partial<Input> })
    } catch (error) {
      if (error instanceof SessionError && error.code === 'ERR_SESSION_CONFLICT') return null
      throw error
    }
  }

  #identityOf(data: Record<string, unknown>): Identity | null {
    return identityOf(this.#setup.options.userIds, this.#setup.userOf(data, this.request))
  }

  // For middleware, which looks at the request.

  #offer(): void {
    const bridge = { value: this, configurable: true }
    Object.defineProperties(this.request, { ...Bridge.#MEMBERS, [BRIDGE]: bridge })
  }

  #assign(value: unknown): void {
    if (value === this.#shown) return
    if (value !== null && value !== undefined)
      throw new TypeError(`req.session: cannot become ${quote(value)}; assign to its keys, or null to end the session`)
    if (this.#isOver)
      throw new TypeError('req.session was set to null after its response: call req.session.destroy(callback)')
    this.#notice()
    this.#isUnset ||= this.#shown !== null
    this.#shown = null
  }
}
