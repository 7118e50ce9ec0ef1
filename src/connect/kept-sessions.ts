// The sessions of a middleware as records of ours. The middleware draws the ID, and loads and saves a session as a whole. We
// remember each load, so that a save writes only the keys that changed, and only if the session is still there.
import type { SessionRecord } from '../contract/store.ts'
import { unpackMeta } from '../data/meta.ts'
import type { Over } from '../data/schema.ts'
import { type Context, contextOf } from '../manager/context.ts'
import { withinLimit } from '../manager/limit.ts'
import { find, fromSnapshot, recordOfSnapshot } from '../manager/lookup.ts'
import type { SessionManager } from '../manager/manager.ts'
import { draftOf, idleOf, initialData, newRecord } from '../manager/records.ts'
import { logOut } from '../manager/series.ts'
import { type Refused, refusal, write, writeData } from '../manager/write.ts'
import { deriveId, hashOf, newSalt, type SessionId, shardOf } from '../session/id.ts'
import type { AnySession } from '../session/session.ts'
import type { Owner } from '../session/users.ts'
import { warnOnce } from '../text/warn-once.ts'
import { Recent } from '../time/recent.ts'
import { type ConnectUser, ownerOf } from './identity.ts'
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
  /** What the same request held before, under another ID. */
  before: Held | null = null
  /** Whose session the request itself has ended under this ID; `undefined` if none lived there any more. */
  ended: string | null | undefined
  /** What was refused, and said so: express-session saves once more after the answer, where an error cuts the connection. */
  refused: Texts | null = null
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

  /** A function that leads here, wherever it is copied to. */
  readonly itself = (): this => this
}

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

  async load(sid: string): Promise<Held | null> {
    const moved = this.#moved.get(sid, performance.now())
    const session: AnySession | null = await this.manager.get(moved ?? this.idOf(sid))
    if (session === null) return null
    this.#keepMove(sid, session)
    const texts = textsOf(session.data)
    return hasExpired(texts) ? null : new Held(sid, session, texts)
  }

  /**
   * Writes what changed since the object was loaded, if the session has not ended. An object that was never loaded begins a
   * session; one that was set `byHand` takes the place of the stored one, as in other stores.
   */
  async save(held: Held, given: Texts, byHand = false): Promise<void> {
    if (hasExpired(given)) return void (await this.destroy(held.sid))
    const texts = toStore(given)
    if (held.refused !== null && changeOf(texts, held.refused) === null) return
    const from = held.session === null ? await this.#begin(held, texts, byHand) : held
    const session = from && (await this.#change(from, texts, held))
    if (session !== null) Object.assign(held, { session, texts })
  }

  /** Of a request that changed nothing. That the session is in use was written down when it was loaded; its cookie may be new. */
  async touch(given: Held, cookie: unknown): Promise<void> {
    const held = given.session === null ? await this.load(given.sid) : given
    if (held === null) return
    held.request = given.request
    await this.save(held, withCookie(held.texts, cookie))
  }

  /** Ends whatever session is there. Answers whose it was; `undefined` if another request has ended it. */
  async destroy(sid: string): Promise<string | null | undefined> {
    const context = this.context.begin()
    const { record, existed } = await logOut(context, context.keyOf(this.idOf(sid)))
    return existed ? record?.userId : undefined
  }

  /**
   * Begins a session under the ID of the middleware; otherwise answers why there is none. One that another store has, or that
   * is set by hand, is no login: no limit counts it, and no password was verified for it.
   */
  async insert(held: Held, texts: Texts, isLogin = false): Promise<AnySession | Refused> {
    const context = this.context.begin()
    const [id, data] = [this.idOf(held.sid), dataOf(texts)]
    const owner = ownerOf(context, this.userOf(data, held.request))
    await this.#checkAgain(context, held, owner, texts)
    const record = this.#newRecord(context, id, owner, { data, ...(!isLogin && { verifiedAt: null }) })
    const put = () => context.calls.create(record, context.call())
    const outcome = await (isLogin ? withinLimit(context, record, null, put) : put())
    context.reportOutcome(outcome, record)
    return outcome === 'created' ? context.begun(id, record) : outcome
  }

  /** The session, new or found by hand; `null` if it has ended meanwhile. */
  async #begin(held: Held, texts: Texts, byHand: boolean): Promise<Held | null> {
    const { sid } = held
    const context = this.context.begin()
    const key = context.keyOf(this.idOf(sid))
    const isEnded = () => context.recentlyEnded.isEnded(key)
    if (isEnded()) return null
    this.#checkNew(sid)
    const begun = await this.insert(held, texts, !byHand)
    if (begun === 'collision') {
      const there = byHand ? await this.load(sid) : null
      // A note says that it has ended.
      if (there !== null || (await context.storedRecord(key))?.kind === 'remember') return there
    }
    if (typeof begun === 'string') throw refusal(context, begun)
    // Destroyed by another part of this request, before the store had it.
    if (!isEnded()) return new Held(sid, begun, texts)
    await this.destroy(sid)
    return null
  }

  /** Writes what changed since then; `null` if the session has ended. */
  async #change({ sid, session, texts: before }: Held, texts: Texts, held: Held): Promise<AnySession | null> {
    if (session === null) return null
    const context = this.context.begin()
    const [record, data, change] = [recordOfSnapshot(context, session), dataOf(texts), changeOf(texts, before)]
    if (change === null && this.#idleIn(data) === idleOf(context, record)) return session
    const owner = change === null ? record : ownerOf(context, this.userOf(data, held.request), record.userId)
    if (owner.userId === null || owner.userId === record.userId)
      return writeData(context, session, change ?? {}, draft => this.#idleIn(draft as Values))
    await this.#checkAgain(context, held, owner, texts)
    const begun = await this.#logIn(context, session, { ...change }, owner)
    if (begun !== null) this.#keepMove(sid, begun)
    return begun
  }

  /**
   * A user in a session that was anybody else's: the application called no `regenerate`. The user of a record never changes, so
   * that another record takes its place, and a forward leads there for as long as it lives.
   */
  #logIn(context: Context, session: AnySession, change: Values, owner: Owner): Promise<AnySession | null> {
    return write(context, 'replace', fromSnapshot(context, session), async ({ id, record }) => {
      const data = { ...draftOf(context, record), ...change }
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
   * A request under way must not log in again whom another one has logged out since.
   * @throws SessionError ERR_SESSION_UNAUTHENTICATED
   */
  async #checkAgain(context: Context, late: Held, { userId }: Owner, texts: Texts): Promise<void> {
    if (userId === null) return
    for (let held = late.before; held !== null; held = held.before) {
      const { session, ended } = held
      if (session === null || ended === userId || recordOfSnapshot(context, session).userId !== userId) continue
      const found = await find(context, session.secret, context.now())
      if (found?.record.userId === userId) continue
      late.refused = texts
      throw refusal(context, 'orphan')
    }
  }

  #newRecord(
    context: Context,
    id: string,
    owner: Owner,
    given: { data: Values; verifiedAt?: null; over?: Over },
  ): SessionRecord {
    const { idle: longest, absolute } = context.options
    const idle = this.#idleIn(given.data)
    const data = initialData(context, { ...given, idleTimeout: idle < longest ? `${idle}ms` : undefined })
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
