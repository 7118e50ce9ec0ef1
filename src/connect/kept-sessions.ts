// The sessions of a middleware as records of ours. The middleware draws the ID, and loads and saves a session as a whole. We
// remember each load, so that a save writes only the keys that changed, and only if the session is still there.
import type { CreateOutcome, SessionRecord } from '../contract/store.ts'
import { type Context, contextOf } from '../manager/context.ts'
import { withinLimit } from '../manager/limit.ts'
import { fromSnapshot, recordOfSnapshot } from '../manager/lookup.ts'
import type { SessionManager } from '../manager/manager.ts'
import { draftOf, idleOf, initialData, newRecord } from '../manager/records.ts'
import { refusal, write, writeData } from '../manager/write.ts'
import { deriveId, hashOf, newSalt, type SessionId, shardOf } from '../session/id.ts'
import type { AnySession } from '../session/session.ts'
import { ANONYMOUS, type Owner } from '../session/users.ts'
import { Recent } from '../time/recent.ts'
import { type ConnectUser, identityOf } from './identity.ts'
import {
  changeOf,
  dataOf,
  hasExpired,
  maxAgeOf,
  type Texts,
  textsOf,
  toStore,
  type Values,
  withCookie,
} from './values.ts'

// biome-ignore lint/suspicious/noExplicitAny: of any data and user IDs
export type AnyManager = SessionManager<any, any, any>
export type UserOf = (data: Values, request: Values) => ConnectUser | null | undefined

/** A session object of a middleware as it was when it was loaded or last saved. */
export class Held {
  readonly sid: string
  /** `null` if it was neither loaded nor saved. */
  session: AnySession | null
  /** Of this object: parallel requests may have changed other keys in the store. */
  texts: Texts
  /** That this object belongs to, for `userOf`: a context in Koa. */
  request: Values = {}
  #last: Promise<unknown> = Promise.resolve()

  constructor(sid: string, session: AnySession | null = null, texts: Texts = new Map()) {
    this.sid = sid
    this.session = session
    this.texts = texts
  }

  /** Saves of one object run one after the other: the first may begin its session. */
  queued<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work)
    this.#last = done.catch(() => {})
    return done
  }

  /** Bound, a function that leads here. */
  itself(): this {
    return this
  }
}

/** 120 random bits in base64, as nanoid has them at least. */
const MIN_LENGTH = 20
/** UUIDs of version 7 that are made in one millisecond differ in 42 random bits. */
const MIN_DIFFERENCE = 5

export class KeptSessions {
  readonly manager: AnyManager
  readonly #context: Context
  readonly #userOf: UserOf
  readonly #shard: string
  /** The IDs of sessions that moved, by the first one, so that a request reads once. */
  readonly #moved = new Recent<SessionId>(Number.POSITIVE_INFINITY)
  #lastNew = ''
  #isWarned = false

  constructor(manager: AnyManager, userOf: UserOf) {
    this.manager = manager
    this.#context = contextOf(manager, 'connectStore: ')
    this.#userOf = userOf
    const [shard, other] = ['1', '2'].map(user => this.#context.users.shardOf(user))
    if (shard !== other)
      throw new TypeError(
        'connectStore: the middleware draws the ID of a session before it knows the user, so that the sessions of all users have to share a slot of Redis: new RedisStore(client, { singleSlot: true })',
      )
    this.#shard = shard ?? ''
  }

  /** As good a secret as the middleware's own ID, and a session ID in shape. The store sees a hash of it. */
  idOf(sid: string): SessionId {
    return (this.#shard + hashOf(`connect\0${sid}`).slice(this.#shard.length)) as SessionId
  }

  async load(sid: string): Promise<Held | null> {
    const moved = this.#moved.get(sid, performance.now())
    const session: AnySession | null = await this.manager.get(moved ?? this.idOf(sid))
    if (session === null) return null
    this.#keepMove(sid, session)
    const texts = textsOf(session.data)
    return hasExpired(texts) ? null : new Held(sid, session, texts)
  }

  /**
   * Writes what changed since the object was loaded; `false` if the session has ended. An object that was never loaded begins
   * a session; one that was set `byHand` takes the place of the stored one, as in other stores.
   */
  async save(held: Held, given: Texts, byHand = false): Promise<boolean> {
    const { sid, request } = held
    if (hasExpired(given)) {
      await this.destroy(sid)
      return false
    }
    const texts = toStore(given)
    const from = held.session === null ? await this.#begin(held, texts, byHand) : held
    const session = from && (await this.#change(from, texts, request))
    if (session === null) return false
    Object.assign(held, { session, texts })
    return true
  }

  /** Of a request that changed nothing. That the session is in use was written down when it was loaded; its cookie may be new. */
  async touch(given: Held, cookie: unknown): Promise<boolean> {
    const held = given.session === null ? await this.load(given.sid) : given
    if (held !== null) held.request = given.request
    return held !== null && this.save(held, withCookie(held.texts, cookie))
  }

  destroy(sid: string): Promise<void> {
    return this.manager.destroy(this.idOf(sid))
  }

  /** Begins a session of another store under the same ID; the answer of ours. It is no login: no limit counts it. */
  async insert(sid: string, texts: Texts): Promise<CreateOutcome> {
    const context = this.#context.begin()
    const record = this.#recordOf(sid, toStore(texts), {}, true)
    const outcome = await context.calls.create(record, context.call())
    if (outcome === 'created') context.created(this.idOf(sid), record)
    return outcome
  }

  /** No password was verified for a session that another store has, or that is set by hand. */
  #recordOf(sid: string, texts: Texts, request: Values, byHand: boolean): SessionRecord {
    const data = dataOf(texts)
    const given = { data, ...(byHand && { verifiedAt: null }) }
    return this.#newRecord(this.#context, this.idOf(sid), this.#ownerOf(data, request), given)
  }

  /** The session, new or found by hand; `null` if it has ended meanwhile. */
  async #begin({ sid, request }: Held, texts: Texts, byHand: boolean): Promise<Held | null> {
    const context = this.#context.begin()
    const id = this.idOf(sid)
    const isEnded = () => context.recentlyEnded.isEnded(context.keyOf(id))
    if (isEnded()) return null
    this.#checkNew(sid)
    const record = this.#recordOf(sid, texts, request, byHand)
    const put = () => context.calls.create(record, context.call())
    // One that comes from another store is no login.
    const outcome = await (byHand ? put() : withinLimit(context, record, null, put))
    context.reportOutcome(outcome, record)
    if (outcome === 'collision') {
      const there = byHand ? await this.load(sid) : null
      // A note says that it has ended.
      if (there !== null || (await context.storedRecord(record.key))?.kind === 'remember') return there
    }
    if (outcome !== 'created') throw refusal(context, outcome)
    const session = context.created(id, record)
    // Destroyed by another part of this request, before the store had it.
    if (!isEnded()) return new Held(sid, session, texts)
    await this.destroy(sid)
    return null
  }

  /** Writes what changed since then; `null` if the session has ended. */
  async #change({ sid, session, texts: before }: Held, texts: Texts, request: Values): Promise<AnySession | null> {
    if (session === null) return null
    const change = changeOf(texts, before)
    const isLasting = this.#idleIn(dataOf(texts)) === idleOf(this.#context, recordOfSnapshot(this.#context, session))
    if (change === null) return isLasting ? session : this.#update(session, {})
    const owner = this.#ownerOf(dataOf(texts), request)
    const isLogin = owner.userId !== null && owner.userId !== recordOfSnapshot(this.#context, session).userId
    if (!isLogin) return this.#update(session, change)
    const begun = await this.#logIn(session, change, owner)
    if (begun !== null) this.#keepMove(sid, begun)
    return begun
  }

  /**
   * A user in a session that was anybody else's: the application called no `regenerate`. The user of a record never changes, so
   * that another record takes its place, and a forward leads there for as long as it lives.
   */
  #logIn(session: AnySession, change: Values, owner: Owner): Promise<AnySession | null> {
    const context = this.#context.begin()
    return write(context, 'replace', fromSnapshot(context, session), async ({ id, record }) => {
      const data = { ...draftOf(context, record), ...change }
      const salt = newSalt()
      const nextId = deriveId(shardOf(id), id, 'regenerate', salt)
      const next = this.#newRecord(context, nextId, owner, { data })
      const forward = { salt, until: next.absoluteExpiresAt }
      const put = () => context.calls.replace(record.key, record.version, next, { forward }, context.call())
      const outcome = await withinLimit(context, next, record.key, put)
      context.reportOutcome(outcome, owner, record.key)
      if (outcome !== 'created') return outcome
      return { value: context.regenerated(record.key, nextId, next) }
    })
  }

  #update(session: AnySession, change: Values): Promise<AnySession | null> {
    return writeData(this.#context.begin(), session, change, draft => this.#idleIn(draft as Values))
  }

  #newRecord(context: Context, id: string, owner: Owner, given: { data: Values; verifiedAt?: null }): SessionRecord {
    const { idle: longest, absolute } = context.options
    const idle = this.#idleIn(given.data)
    const data = initialData(context, { ...given, idleTimeout: idle < longest ? `${idle}ms` : undefined })
    return newRecord(context, id, owner, data, context.now(), { idle, absolute })
  }

  /** How long a session may be idle, in ms: as long as its cookie lasts, within what the manager allows. */
  #idleIn(values: Values): number {
    const { idle, touchInterval } = this.#context.options
    const maxAge = maxAgeOf(values)
    if (maxAge > idle && Number.isFinite(maxAge) && !this.#isWarned) {
      this.#isWarned = true
      const message = `connectStore: a cookie whose maxAge is ${maxAge} ms outlives idleTimeout, ${idle} ms, which ends the session first: raise idleTimeout and absoluteTimeout of the SessionManager, or lower maxAge`
      process.emitWarning(message, { type: 'CoatcheckWarning', code: 'COATCHECK_COOKIE_OUTLIVES_SESSION' })
    }
    return Math.max(2 * touchInterval, Math.min(idle, maxAge))
  }

  #keepMove(sid: string, { secret }: AnySession): void {
    if (secret !== this.idOf(sid)) this.#moved.set(sid, secret, performance.now())
  }

  /** @throws TypeError if the ID is not random; it is not quoted */
  #checkNew(sid: string): void {
    const refuse = (what: string): never => {
      throw new TypeError(
        `genid: expected a random ID of at least ${MIN_LENGTH} characters, got ${what}: anyone who guesses a session ID takes over the session`,
      )
    }
    const text = String(sid)
    if (text.length < MIN_LENGTH) refuse(`one of ${text.length}`)
    const different = [...text].filter((character, index) => character !== this.#lastNew[index]).length
    if (text !== this.#lastNew && different < MIN_DIFFERENCE) refuse(`two that differ in ${different} characters`)
    this.#lastNew = text
  }

  #ownerOf(values: Values, request: Values): Owner {
    const { users, options } = this.#context
    const identity = identityOf(options.userIds, this.#userOf(values, request))
    return identity === null ? ANONYMOUS : users.ownerOf({ user: identity as never }, this.#context.now())
  }
}
