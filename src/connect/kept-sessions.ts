// The sessions of a middleware as records of ours. The middleware draws the ID, and loads and saves a session as a whole. We
// remember each load, so that a save writes only the keys that changed, and only if the session is still there.
import type { SessionRecord } from '../contract/store.ts'
import { unpackMeta } from '../data/meta.ts'
import { membersOf } from '../import/from.ts'
import { type Context, contextOf } from '../manager/context.ts'
import { withinLimit } from '../manager/limit.ts'
import { find, fromSnapshot, recordOfSnapshot } from '../manager/lookup.ts'
import type { SessionManager } from '../manager/manager.ts'
import { type InitialData, idleOf, initialData, newRecord } from '../manager/records.ts'
import { logOut } from '../manager/series.ts'
import { type Refused, refusal, write, writeData } from '../manager/write.ts'
import { deriveId, hashOf, newSalt, type SessionId, shardOf } from '../session/id.ts'
import type { AnySession } from '../session/session.ts'
import type { Owner } from '../session/users.ts'
import { warnOnce } from '../text/warn-once.ts'
import { Recent } from '../time/recent.ts'
import { type ConnectUser, ownerOf } from './identity.ts'
import { changeOf, hasExpired, maxAgeOf, toStore, type Values, valuesOf } from './values.ts'

// biome-ignore lint/suspicious/noExplicitAny: of any data and user IDs
export type AnyManager = SessionManager<any, any, any>
export type UserOf = (data: Values, request: Values) => ConnectUser | null | undefined

/** A session as it was when it was loaded or last saved. */
export interface Loaded {
  readonly session: AnySession
  /** Of this object: parallel requests may have changed other keys in the store. */
  readonly values: Values
}

/** What a request knows of a session. */
export class Held {
  readonly sid: string
  /** `null` if it was neither loaded nor saved. */
  loaded: Loaded | null
  /** What the same request held before, under another ID. */
  readonly before: Held | undefined
  /** For `userOf`: a context in Koa. */
  request: Values = {}
  /** Whose session the request itself has ended under this ID; `undefined` if none lived there any more. */
  ended: string | null | undefined
  /** Whether its answer had begun before its last call. */
  isStreamed = false
  /** The error with which the last call of the request failed. */
  failed: Values
  /** The last call of the request that saves or ends it. */
  last: Promise<unknown> = Promise.resolve()

  constructor(sid: string, loaded: Loaded | null = null, before?: Held) {
    this.sid = sid
    this.loaded = loaded
    this.before = before
    this.failed = before?.failed ?? {}
  }

  /** What the request held under this ID. */
  under(sid: string): Held | undefined {
    return this.sid === sid ? this : this.before?.under(sid)
  }

  /** Its calls run one after the other: the first may begin the session, and nobody need wait for the one that ends it. */
  queued<T>(work: () => Promise<T>): Promise<T> {
    const done = this.last.then(work)
    const failure: Promise<Values> = done.then(() => ({}), membersOf)
    this.last = failure.then(failed => {
      this.failed = failed
    })
    return done
  }
}

/** All that an outage does to the calls of one request is one kind. */
const kindOf = ({ code, message }: Values) => code ?? message

/** 120 random bits in base64, as nanoid has them at least. */
const MIN_LENGTH = 20
/** UUIDs of version 7 that are made in one millisecond differ in 42 random bits. */
const MIN_DIFFERENCE = 5

export class KeptSessions {
  readonly manager: AnyManager
  readonly context: Context
  protected readonly userOf: UserOf
  readonly #shard: string
  /** The IDs of sessions that moved, by the first one, so that a request reads once. */
  readonly #moved = new Recent<SessionId>(Number.POSITIVE_INFINITY)
  #lastNew = ''

  constructor(manager: AnyManager, userOf: UserOf) {
    this.manager = manager
    this.context = contextOf(manager, 'connectStore: ')
    this.userOf = userOf
    const [shard, other] = ['1', '2'].map(user => this.context.users.shardOf(user))
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

  async load(sid: string): Promise<Loaded | null> {
    const moved = this.#moved.get(sid, performance.now())
    const session: AnySession | null = await this.manager.get(moved ?? this.idOf(sid))
    if (session === null) return null
    this.#keepMove(sid, session)
    const values = valuesOf(session.data)
    return hasExpired(values) ? null : { session, values }
  }

  /**
   * Writes what changed since the object was loaded, if the session has not ended. An object that was never loaded begins a
   * session; one that was set `byHand` takes the place of the stored one, as in other stores.
   */
  async save(held: Held, given: Values, byHand = false): Promise<void> {
    if (hasExpired(given)) return this.destroy(held)
    const values = toStore(given)
    try {
      const from = held.loaded ?? (await this.#begin(held, values, byHand))
      const session = from && (await this.#change(held, from, values))
      if (session !== null) held.loaded = { session, values }
    } catch (error) {
      // express-session begins the answer and saves once more at its end, where an error cuts the connection: what the request
      // was told before is not told there. Only Express says whether it has begun; elsewhere a 401 is told once, as it is final.
      const failed = membersOf(error)
      const isAnswered = membersOf(held.request.res).headersSent ?? failed.status === 401
      if (!isAnswered || held.isStreamed || kindOf(failed) !== kindOf(held.failed)) throw error
    }
  }

  /** Of a request that changed nothing. That the session is in use was written down when it was loaded; its cookie may be new. */
  async touch(held: Held, cookie: unknown): Promise<void> {
    held.loaded ??= await this.load(held.sid)
    if (held.loaded !== null) await this.save(held, { ...held.loaded.values, ...valuesOf({ cookie }) })
  }

  /** Ends whatever session is there. */
  async destroy(held: Held): Promise<void> {
    const context = this.context.begin()
    const { record, existed } = await logOut(context, context.keyOf(this.idOf(held.sid)))
    if (existed) held.ended = record?.userId
  }

  /**
   * Begins a session under the ID of the middleware; otherwise answers why there is none. One that another store has, or that
   * is set by hand, is no login: no limit counts it, and no password was verified for it.
   */
  async insert(held: Held, data: Values, isLogin = false): Promise<AnySession | Refused> {
    const context = this.context.begin()
    const id = this.idOf(held.sid)
    const owner = await this.#ownerOf(context, held, data)
    const record = this.#newRecord(context, id, owner, { data, ...(!isLogin && { verifiedAt: null }) })
    const put = () => context.calls.create(record, context.call())
    const outcome = await (isLogin ? withinLimit(context, record, null, put) : put())
    context.reportOutcome(outcome, record)
    return outcome === 'created' ? context.begun(id, record) : outcome
  }

  /** The session, new or found by hand; `null` if it has ended meanwhile. */
  async #begin(held: Held, values: Values, byHand: boolean): Promise<Loaded | null> {
    const context = this.context.begin()
    const key = context.keyOf(this.idOf(held.sid))
    const isEnded = () => context.recentlyEnded.isEnded(key)
    if (isEnded()) return null
    this.#checkNew(held.sid)
    const session = await this.insert(held, values, !byHand)
    if (session === 'collision') {
      // By hand, or by a save of this request whose answer was lost.
      const mayBeOurs = byHand || held.failed.outcome === 'unknown'
      const there = mayBeOurs ? await this.load(held.sid) : null
      // A note says that it has ended.
      if (there !== null || (await context.storedRecord(key))?.kind === 'remember') return there
    }
    if (typeof session === 'string') throw refusal(context, session)
    if (!isEnded()) return { session, values }
    // By another part of this request, before the store had it.
    await this.destroy(held)
    return null
  }

  /** Writes what changed since then; `null` if the session has ended. */
  async #change(held: Held, { session, values: before }: Loaded, values: Values): Promise<AnySession | null> {
    const context = this.context.begin()
    const [record, change] = [recordOfSnapshot(context, session), changeOf(values, before)]
    if (change === null && this.#idleIn(values) === idleOf(context, record)) return session
    const owner = change === null ? record : await this.#ownerOf(context, held, values, record.userId)
    if (owner.userId === null || owner.userId === record.userId)
      return writeData(context, session, change ?? {}, draft => this.#idleIn(draft as Values))
    const begun = await this.#logIn(context, session, { ...change }, owner)
    if (begun !== null) this.#keepMove(held.sid, begun)
    return begun
  }

  /**
   * A user in a session that was anybody else's: the application called no `regenerate`. The user of a record never changes, so
   * that another record takes its place, and a forward leads there for as long as it lives.
   */
  #logIn(context: Context, session: AnySession, change: Values, owner: Owner): Promise<AnySession | null> {
    return write(context, 'replace', fromSnapshot(context, session), async ({ id, record }) => {
      // What other requests of a visitor have written goes along, that of a user does not.
      const before = record.userId === null ? context.draftOf(record) : session.data
      const data = { ...before, ...change }
      const salt = newSalt()
      const nextId = deriveId(shardOf(id), id, 'regenerate', salt)
      const over = { text: unpackMeta(record.data).text, named: change }
      const next = this.#newRecord(context, nextId, owner, { data, over })
      const forward = { salt, until: next.absoluteExpiresAt }
      const put = () => context.calls.replace(record.key, record.version, next, { forward }, context.call())
      const outcome = await withinLimit(context, next, record.key, put)
      context.reportOutcome(outcome, owner, record.key)
      if (outcome !== 'created') return outcome
      return { value: context.begun(nextId, next, record.key) }
    })
  }

  /**
   * Whose session that is; `before`: whose it was. A request under way must not log in again whom another one has logged out since.
   * @throws SessionError ERR_SESSION_UNAUTHENTICATED
   */
  async #ownerOf(context: Context, late: Held, data: Values, before: string | null = null): Promise<Owner> {
    const owner = ownerOf(context, this.userOf(data, late.request), before)
    const { userId } = owner
    if (userId === null || userId === before) return owner
    for (let held = late.before; held !== undefined; held = held.before) {
      await held.last
      const { loaded, ended } = held
      if (loaded === null || ended === userId || recordOfSnapshot(context, loaded.session).userId !== userId) continue
      const found = await find(context, loaded.session.secret, context.now())
      if (found?.record.userId !== userId) throw refusal(context, 'orphan')
    }
    return owner
  }

  #newRecord(context: Context, id: string, owner: Owner, first: InitialData): SessionRecord {
    const { idle: longest, absolute } = context.options
    const idle = this.#idleIn(first.data as Values)
    const data = initialData(context, { ...first, idleTimeout: idle < longest ? `${idle}ms` : undefined })
    return newRecord(context, id, owner, data, context.now(), { idle, absolute })
  }

  /** How long a session may be idle, in ms: as long as its cookie lasts, within what the manager allows. */
  #idleIn(values: Values): number {
    const { idle, touchInterval } = this.context.options
    const maxAge = maxAgeOf(values)
    if (maxAge > idle && Number.isFinite(maxAge))
      warnOnce(
        'COATCHECK_COOKIE_OUTLIVES_SESSION',
        `connectStore: a cookie whose maxAge is ${maxAge} ms outlives idleTimeout, ${idle} ms, which ends the session first: raise idleTimeout and absoluteTimeout of the SessionManager, or lower maxAge`,
      )
    return Math.max(2 * touchInterval, Math.min(idle, maxAge))
  }

  #keepMove(sid: string, { secret }: AnySession): void {
    if (secret !== this.idOf(sid)) this.#moved.set(sid, secret, performance.now())
  }

  /** @throws TypeError if the ID is not random; it is not quoted */
  #checkNew(sid: string): void {
    const text = String(sid)
    const different = [...text].filter((character, index) => character !== this.#lastNew[index]).length
    const isAlike = text !== this.#lastNew && different < MIN_DIFFERENCE
    if (text.length < MIN_LENGTH || isAlike) {
      const got = text.length < MIN_LENGTH ? `one of ${text.length}` : `two that differ in ${different} characters`
      throw new TypeError(
        `genid: expected a random ID of at least ${MIN_LENGTH} characters, got ${got}: anyone who guesses a session ID takes over the session`,
      )
    }
    this.#lastNew = text
  }
}
