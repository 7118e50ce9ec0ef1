import { SessionError } from '../contract/errors.ts'
import type { CreateResult, SessionLimit, SessionRecord } from '../contract/store.ts'
import { type Meta, seal, unseal } from '../data/meta.ts'
import { DataShape, type Frozen } from '../data/schema.ts'
import { Deadlines } from '../guard/deadlines.ts'
import { StoreCalls } from '../guard/store-calls.ts'
import { WriteQueue } from '../guard/write-queue.ts'
import { expiryOf } from '../session/expiry.ts'
import { keyOf, newWriteId, type SessionKey } from '../session/id.ts'
import {
  makeInfo,
  makeSession,
  nextOrder,
  type Session,
  type SessionInfo,
  type SessionParts,
} from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import { type Login, type Owner, passwordVersionOf, Users } from '../session/users.ts'
import { quote } from '../text/quote.ts'
import { Endings } from './endings.ts'
import { emitTo, type SessionEvent } from './events.ts'
import { LogIns } from './log-ins.ts'
import { type ResolvedOptions, resolveOptions, type SessionOptions } from './options.ts'
import { Recent } from './recent.ts'
import { Sweeper } from './sweeper.ts'

type First<D, I extends UserIds, In> = Pick<Login<D, I, In>, 'data' | 'verifiedAt'>
type EndReason = Extract<SessionEvent, { type: 'destroyed' }>['reason']

/**
 * What a manager shares with its tenants: the options, the store behind its guard, and the memory of this process, whose
 * keys and user texts name the tenant.
 */
class Common<D extends object, I extends UserIds, In extends object> {
  readonly given: SessionOptions<D, I, In>
  readonly options: ResolvedOptions<I>
  readonly calls: StoreCalls
  readonly shape: DataShape<D, In>
  readonly lines = new WriteQueue()
  readonly touched: Recent<number>
  readonly endings = new Endings()
  readonly logIns = new LogIns()
  readonly sweeper: Sweeper | null
  readonly deadlines = new Deadlines()

  constructor(given: SessionOptions<D, I, In>) {
    this.given = given
    this.options = resolveOptions(given)
    const { store, maxDataBytes, touchInterval } = this.options
    this.calls = new StoreCalls(store, this.options, error => emitTo(given.onEvent, { type: 'store-error', error }))
    this.shape = new DataShape({ schema: given.schema, initial: given.initial, codec: given.codec, maxDataBytes })
    this.touched = new Recent(touchInterval)
    const { sweepInterval } = this.options
    this.sweeper = sweepInterval === null ? null : new Sweeper(sweepInterval, () => this.sweep())
  }

  now(): number {
    const now = this.options.now()
    if (!Number.isFinite(now)) throw new TypeError(`now: expected epoch milliseconds, got ${quote(now)}`)
    return Math.floor(now)
  }

  async sweep(): Promise<number> {
    const { calls, options } = this
    if (!options.store.sweep) return 0
    return Sweeper.sweepAll(limit => calls.sweep(limit, { now: this.now(), deadline: calls.deadline() }))
  }
}

/** What the verbs of one manager share: its options, its store behind the guard, and how records become sessions. */
export class Context<D extends object, I extends UserIds, In extends object> {
  readonly given: SessionOptions<D, I, In>
  readonly options: ResolvedOptions<I>
  readonly calls: StoreCalls
  readonly shape: DataShape<D, In>
  readonly users: Users<I>
  readonly namespace: string | null
  /** Keeps the keys of tenants apart. */
  readonly space: string
  readonly lines: WriteQueue
  /** When this process last wrote down a visit, by key. */
  readonly touched: Recent<number>
  readonly endings: Endings
  readonly logIns: LogIns
  readonly #common: Common<D, I, In>

  private constructor(common: Common<D, I, In>, namespace: string | null) {
    this.#common = common
    this.given = common.given
    this.options = common.options
    this.calls = common.calls
    this.shape = common.shape
    this.lines = common.lines
    this.touched = common.touched
    this.endings = common.endings
    this.logIns = common.logIns
    this.namespace = namespace
    this.space = namespace === null ? '' : `namespace\0${namespace}`
    this.users = new Users(this.options.userIds, namespace, this.options.store)
  }

  static from<D extends object, I extends UserIds, In extends object>(
    given: SessionOptions<D, I, In>,
  ): Context<D, I, In> {
    return new Context(new Common(given), null)
  }

  tenant(namespace: string): Context<D, I, In> {
    return new Context(this.#common, namespace)
  }

  now(): number {
    return this.#common.now()
  }

  /** The deadline of a verb that begins now: the first use of a manager, by itself or by a tenant, starts its sweeper. */
  deadline(): number {
    this.#common.sweeper?.start()
    return this.calls.deadline()
  }

  sweep(): Promise<number> {
    return this.#common.sweep()
  }

  async close(): Promise<void> {
    // The tenants of one manager share its store.
    if (this.namespace !== null) return
    this.#common.sweeper?.stop()
    await this.calls.close(this.calls.deadline())
  }

  emit(event: SessionEvent<I>): void {
    emitTo(this.given.onEvent, event)
  }

  keyOf(id: string): SessionKey {
    return keyOf(id, this.space)
  }

  parts(record: SessionRecord, followed = false): SessionParts<D, I> {
    const userId = record.userId === null ? null : this.users.fromText(record.userId)
    return { record, userId, order: nextOrder(), followed, decode: this.#decode, space: this.space }
  }

  session(record: SessionRecord, id: string, cookieDue: boolean, followed = false): Session<D, I> {
    return makeSession(this.parts(record, followed), id, cookieDue)
  }

  info(record: SessionRecord): SessionInfo<D, I> {
    return makeInfo(this.parts(record))
  }

  readonly #decode = (record: SessionRecord): Frozen<D> =>
    this.shape.freeze(unseal(record.data).text, cause => this.#reportReset(record, cause))

  /** The data of a record, to edit. */
  thaw(record: SessionRecord): D {
    const { data, reset } = this.shape.thaw(unseal(record.data).text)
    if (reset) this.#reportReset(record, reset)
    return data
  }

  #reportReset(record: SessionRecord, cause: Error): void {
    this.emit({ type: 'data-reset', key: record.key as SessionKey, cause })
  }

  /** Text of edited data, with what the record keeps beside it. */
  encode(record: SessionRecord, draft: object): string {
    return seal(unseal(record.data).meta, this.shape.encode(draft))
  }

  /** Encoded first data; `before` is the session that ends here, where its data may be carried over. */
  firstData({ data, verifiedAt }: First<D, I, In>, before: SessionRecord | null): string {
    const meta = this.#verified(verifiedAt)
    if (typeof data !== 'function') return seal(meta, this.shape.first(data))
    return seal(meta, this.shape.first(data(before === null ? this.shape.start() : this.thaw(before))))
  }

  #verified(verifiedAt: number | null | undefined): Meta {
    return verifiedAt === undefined || (verifiedAt !== null && verifiedAt >= this.now()) ? {} : { verifiedAt }
  }

  newRecord(id: string, owner: Owner, data: string, now: number): SessionRecord {
    const absoluteExpiresAt = now + this.options.absolute
    return {
      key: this.keyOf(id),
      kind: 'session',
      parent: null,
      ...owner,
      data,
      version: 1,
      writeId: newWriteId(),
      createdAt: now,
      seenAt: now,
      expiresAt: expiryOf(now, absoluteExpiresAt, this.options),
      absoluteExpiresAt,
    }
  }

  /** `seenAt` and `expiresAt` of a record that is visited at `now`: they only rise. */
  seen(record: SessionRecord, now: number): { seenAt: number; expiresAt: number } {
    return {
      // By the clock of another node it may not have been created yet: all the same it is visited.
      seenAt: Math.max(record.seenAt, record.createdAt, now),
      expiresAt: Math.max(record.expiresAt, expiryOf(now, record.absoluteExpiresAt, this.options)),
    }
  }

  limitFor(owner: Owner): { limit: SessionLimit } | null {
    return this.options.limit !== null && owner.userId !== null ? { limit: this.options.limit } : null
  }

  /** Whether the application raised the user's password version since this record's credentials were verified. */
  async isOutdated(record: SessionRecord, deadline: number): Promise<boolean> {
    return record.userId !== null && (record.passwordVersion ?? 0) < (await this.versionNow(record.userId, deadline))
  }

  /** The user's password version; 0 where the application does not say. It has what is left of `storeTimeout`, as a store. */
  versionNow(user: string, deadline: number): Promise<number> {
    const { passwordVersion } = this.given
    if (!passwordVersion) return Promise.resolve(0)
    return new Promise((resolve, reject) => {
      const { deadlines } = this.#common
      const late = 'read: passwordVersion() did not answer within storeTimeout'
      const pending = deadlines.open(deadline, () => reject(this.calls.fail('read', 'not-applied', late)))
      const asked = (async () =>
        passwordVersionOf(await passwordVersion(this.users.fromText(user)!), 'passwordVersion()'))()
      asked.then(
        version => deadlines.close(pending) && resolve(version ?? 0),
        error => deadlines.close(pending) && reject(error),
      )
    })
  }

  refusal(outcome: Exclude<CreateResult['outcome'], 'created'>): SessionError {
    switch (outcome) {
      case 'stale-login':
        return new SessionError(
          'ERR_SESSION_STALE_LOGIN',
          'the password was changed after it was verified: log in again',
        )
      case 'limit':
        return new SessionError(
          'ERR_SESSION_LIMIT',
          `the user has ${this.options.limit?.max} sessions already: end one first`,
        )
      case 'orphan':
        return new SessionError('ERR_SESSION_UNAUTHENTICATED', 'the session has ended meanwhile: log in again')
      case 'collision':
        return new SessionError(
          'ERR_SESSION_ID_COLLISION',
          'new IDs collide: the random generator or the store is broken',
        )
    }
  }

  created(record: SessionRecord, id: string): Session<D, I> {
    const session = this.session(record, id, true)
    this.emit({ type: 'created', key: session.key, userId: session.user?.id ?? null })
    return session
  }

  /** The same session goes on under a new ID. */
  regenerated(oldKey: string, record: SessionRecord, id: string): Session<D, I> {
    this.endings.moved(oldKey, record.key)
    return this.#renamed(oldKey, record, id)
  }

  /** A new session stands in the old one's place. */
  replaced(oldKey: string, record: SessionRecord, id: string): Session<D, I> {
    this.endings.end(oldKey, 'left', record.key)
    return this.#renamed(oldKey, record, id)
  }

  #renamed(oldKey: string, record: SessionRecord, id: string): Session<D, I> {
    const session = this.session(record, id, true)
    const userId = session.user?.id ?? null
    this.emit({ type: 'regenerated', key: session.key, oldKey: oldKey as SessionKey, userId })
    return session
  }

  /** Deletes a session, the successor that its key leads to, and what began in its place in this process. */
  async end(key: string, userId: string | null, reason: EndReason, deadline: number): Promise<boolean> {
    // Before the answer: even where it is lost, a slow response must not send this cookie again.
    const began = this.endings.end(key, fateOf(reason))
    const existed = await this.calls.delete(key, { now: this.now(), deadline })
    if (existed) this.noticeEnd(key, userId, reason)
    for (const each of began)
      if (await this.calls.delete(each, { now: this.now(), deadline })) this.noticeEnd(each, null, reason)
    return existed
  }

  noticeEnd(key: string, userId: string | null, reason: EndReason): void {
    this.endings.end(key, fateOf(reason))
    const user = userId === null ? null : this.users.fromText(userId)
    this.emit({ type: 'destroyed', key: key as SessionKey, userId: user, reason })
  }

  noticeLimit(ended: readonly string[], owner: Owner): void {
    for (const key of ended) this.noticeEnd(key, owner.userId, 'limit')
  }

  /** Ends everything of a user; also where the answer is lost, no slow response sends one of these cookies again. */
  async endUser(
    user: string,
    options: { exceptKey?: string; passwordVersion?: number },
    deadline: number,
  ): Promise<number> {
    const now = this.now()
    const floorUntil = now + this.options.floorLifetime
    this.endings.endUser(user, options.exceptKey ?? null)
    const count = await this.calls.deleteUser(user, { floorUntil, ...options }, { now, deadline })
    this.endings.endUser(user, options.exceptKey ?? null)
    this.emit({ type: 'invalidated', userId: this.users.fromText(user)!, count })
    return count
  }
}

const fateOf = (reason: EndReason) => (reason === 'logout' ? 'left' : 'ended')
