// The sessions of a middleware as records of ours. The middleware draws the ID, and loads and saves a session as a whole; what
// is remembered of each load lets a save write only what it changed, and only if the session is still there.
import { SessionError } from '../contract/errors.ts'
import { copyPlain } from '../data/plain.ts'
import { identityOf } from '../express-session/identity.ts'
import type { BridgedUser } from '../express-session/options.ts'
import { changeOf, dataOf, type Texts } from '../express-session/values.ts'
import { regenerated } from '../manager/begin.ts'
import { type Context, contextOf } from '../manager/context.ts'
import { fromSnapshot, recordOfSnapshot } from '../manager/lookup.ts'
import type { SessionManager } from '../manager/manager.ts'
import { draftOf, initialData, limitFor, newRecord } from '../manager/records.ts'
import { refusal, write } from '../manager/write.ts'
import { deriveId, hashOf, newSalt, type SessionId, shardOf } from '../session/id.ts'
import type { AnySession } from '../session/session.ts'
import { ANONYMOUS, type Owner } from '../session/users.ts'
import { Recent } from '../time/recent.ts'
import { fromStore, hasExpired, textsOf, toStore, type Values } from './values.ts'

// biome-ignore lint/suspicious/noExplicitAny: of any data and user IDs
export type AnyManager = SessionManager<any, any, any>

/** What a session object of a middleware was when it was loaded or last saved. */
export interface Loaded {
  readonly sid: string
  readonly session: AnySession
  /** Of this object: parallel requests may have changed other keys in the store. */
  readonly texts: Texts
}

/** How often `find` of the manager follows forwards. */
const MAX_MOVES = 8
/** 120 random bits in base64, as nanoid has them at least. */
const MIN_LENGTH = 20
const MIN_DIFFERENCE = 8

export class KeptSessions {
  readonly manager: AnyManager
  readonly #context: Context
  readonly #userOf: (data: Values) => BridgedUser | null | undefined
  readonly #shard: string
  /** The IDs of sessions that moved, by the first one, so that a request reads once. */
  readonly #moved = new Recent<SessionId>(Number.POSITIVE_INFINITY)
  #lastNew = ''

  constructor(manager: AnyManager, userOf: (data: Values) => BridgedUser | null | undefined) {
    this.manager = manager
    this.#context = contextOf(manager, 'connectStore: ')
    this.#userOf = userOf
    const [shard = '', ...others] = ['1', '2', '3'].map(user => this.#context.users.shardOf(user))
    if (others.some(other => (other ?? '') !== shard))
      throw new TypeError(
        'connectStore: the middleware draws the ID of a session before it knows the user, so that the sessions of all users have to share a slot of Redis: new RedisStore(client, { singleSlot: true })',
      )
    this.#shard = shard
  }

  /** As good a secret as the middleware's own ID, and a session ID in shape. The store sees a hash of it. */
  idOf(sid: string): SessionId {
    return (this.#shard + hashOf(`connect\0${sid}`).slice(this.#shard.length)) as SessionId
  }

  async load(sid: string): Promise<{ values: Values; loaded: Loaded } | null> {
    const moved = this.#moved.get(sid, performance.now())
    const session: AnySession | null = await this.manager.get(moved ?? this.idOf(sid))
    if (session === null) return null
    this.#noteMove(sid, session)
    const stored = copyPlain(session.data) as Values
    if (hasExpired(stored)) return null
    return { values: fromStore(stored), loaded: { sid, session, texts: textsOf(stored) } }
  }

  /**
   * Writes what changed since the object was loaded, `null` if the session is gone. An object that was never loaded begins a
   * session; one `byHand` takes the place of what is there, as in other stores.
   */
  async save(sid: string, given: Values, known: Loaded | undefined, byHand: boolean): Promise<Loaded | null> {
    if (hasExpired(given)) {
      await this.destroy(sid)
      return null
    }
    const values = toStore(given)
    const texts = textsOf(values)
    const owner = this.#ownerOf(values)
    let loaded = known?.sid === sid ? known : undefined
    if (loaded === undefined) {
      const begun = await this.#create(sid, values, owner, byHand)
      if (begun !== 'taken') return begun && { sid, session: begun, texts }
      loaded = byHand ? (await this.load(sid))?.loaded : undefined
      if (loaded === undefined) throw refusal(this.#context, 'collision')
    }
    const change = changeOf(texts, loaded.texts)
    if (change === null) return loaded
    const isLogin = owner.userId !== null && owner.userId !== this.#recordOf(loaded).userId
    const session = isLogin ? await this.#logIn(loaded, values, change, owner) : await this.#update(loaded, change)
    return session && { sid, session, texts }
  }

  /** Of a request that changed nothing. That the session is in use was written down when it was loaded; its cookie may be new. */
  async touch(sid: string, given: Values, known: Loaded | undefined): Promise<Loaded | null> {
    const loaded = known?.sid === sid ? known : (await this.load(sid))?.loaded
    const cookie = textsOf(toStore(given)).get('cookie')
    if (loaded === undefined || cookie === undefined || cookie === loaded.texts.get('cookie')) return loaded ?? null
    const session = await this.#update(loaded, { cookie: JSON.parse(cookie) })
    return session && { ...loaded, session, texts: new Map(loaded.texts).set('cookie', cookie) }
  }

  destroy(sid: string): Promise<void> {
    return this.manager.destroy(this.idOf(sid))
  }

  async #create(sid: string, values: Values, owner: Owner, byHand: boolean): Promise<AnySession | null | 'taken'> {
    const context = this.#context
    const id = this.idOf(sid)
    const isEnded = () => context.recentlyEnded.isEnded(context.keyOf(id))
    if (isEnded()) return null
    this.#checkNew(sid)
    const call = context.call(context.deadline())
    // No password was verified for what is put there by hand.
    const data = initialData(context, { data: values, ...(byHand && { verifiedAt: null }) }, null)
    const record = newRecord(context, id, owner, data, call.now)
    const answer = await context.calls.create(record, limitFor(context, owner), call)
    context.reportAnswer(answer, owner)
    if (answer.outcome === 'collision') return 'taken'
    if (answer.outcome !== 'created') throw refusal(context, answer.outcome)
    const session = context.created(id, record)
    // Destroyed by another part of this request, before the store had it.
    if (!isEnded()) return session
    await this.destroy(sid)
    return null
  }

  /**
   * Sets and removes keys of what is stored now. What began as a user's request writes nothing into a session that is
   * somebody else's, or nobody's, by now.
   */
  #update(loaded: Loaded, change: Values): Promise<AnySession | null> {
    const before = this.#recordOf(loaded).userId === null ? null : this.#ownerOf(dataOf(loaded.texts)).userId
    return this.manager.update(loaded.session, (draft: Values) => {
      if (before === null || this.#ownerOf(draft).userId === before) apply(draft, change)
    })
  }

  /**
   * A user in a session that was anybody else's: the application called no `regenerate`. The user of a record never changes, so
   * that another record takes its place, and a forward leads there for as long as it lives.
   */
  async #logIn(loaded: Loaded, values: Values, change: Values, owner: Owner): Promise<AnySession | null> {
    const context = this.#context
    const deadline = context.deadline()
    await this.#checkMoves(loaded, deadline)
    const { userId: before } = this.#recordOf(loaded)
    const session = await write(
      context,
      'replace',
      fromSnapshot(context, loaded.session),
      deadline,
      async ({ id, record }) => {
        const isOthers = ![null, before, owner.userId].includes(record.userId)
        const data = isOthers ? values : apply(draftOf(context, record) as Values, change)
        const salt = newSalt()
        const nextId = deriveId(shardOf(id), id, 'regenerate', salt)
        const call = context.call(deadline)
        const next = newRecord(context, nextId, owner, initialData(context, { data }, null), call.now)
        const forward = { salt, until: next.absoluteExpiresAt }
        const options = { ...limitFor(context, owner), forward }
        const answer = await context.calls.replace(record.key, record.version, next, options, call)
        context.reportAnswer(answer, owner, record.key)
        if (answer.outcome !== 'created') return answer.outcome
        context.recentlyEnded.noteNewId(record.key, next.key)
        return { value: regenerated(context, record, nextId, next) }
      },
    )
    if (session !== null) this.#noteMove(loaded.sid, session)
    return session
  }

  #noteMove(sid: string, { secret }: AnySession): void {
    if (secret !== this.idOf(sid)) this.#moved.set(sid, secret, performance.now())
  }

  async #checkMoves({ sid, session }: Loaded, deadline: number): Promise<void> {
    const context = this.#context
    const id = this.idOf(sid)
    if (session.secret === id) return
    const { keys } = await context.chainFrom(context.keyOf(id), context.now(), deadline)
    if (keys.size > MAX_MOVES)
      throw new SessionError(
        'ERR_SESSION_CONFLICT',
        `${MAX_MOVES} users have logged in to this session: call regenerate at each login`,
      )
  }

  /** @throws TypeError for what is no random ID; it is not quoted */
  #checkNew(sid: string): void {
    const refuse = (what: string): never => {
      throw new TypeError(
        `genid: expected a random ID of at least ${MIN_LENGTH} characters, ${what}: who guesses the ID of a session has the session`,
      )
    }
    if (typeof sid !== 'string' || sid.length < MIN_LENGTH) refuse(`got one of ${String(sid).length}`)
    const last = this.#lastNew
    const different = [...sid].filter((character, index) => character !== last[index]).length
    if (sid !== last && different < MIN_DIFFERENCE) refuse(`got two that differ in ${different} characters`)
    this.#lastNew = sid
  }

  #recordOf(loaded: Loaded) {
    return recordOfSnapshot(this.#context, loaded.session)
  }

  #ownerOf(values: Values): Owner {
    const { users, options } = this.#context
    const identity = identityOf(options.userIds, this.#userOf(values))
    return identity === null ? ANONYMOUS : users.ownerOf({ user: identity.user as never }, this.#context.now())
  }
}

/** Defines, not assigns: a key named `__proto__` stays a key, which the codec refuses. */
function apply(draft: Values, change: Values): Values {
  for (const [key, value] of Object.entries(change))
    if (value === undefined) delete draft[key]
    else Object.defineProperty(draft, key, { value, enumerable: true, configurable: true, writable: true })
  return draft
}
