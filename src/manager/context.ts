import type { SessionRecord } from '../contract/store.ts'
import { unseal } from '../data/meta.ts'
import { DataShape, type Frozen } from '../data/schema.ts'
import { StoreCalls } from '../guard/store-calls.ts'
import { WriteQueue } from '../guard/write-queue.ts'
import { keyOf, type SessionKey } from '../session/id.ts'
import {
  makeInfo,
  makeSession,
  makeStored,
  type Session,
  type SessionInfo,
  type SessionParts,
  type StoredSession,
} from '../session/session.ts'
import type { UserId, UserIds } from '../session/user-id.ts'
import { Users } from '../session/users.ts'
import { quote } from '../text/quote.ts'
import { Deadlines } from '../time/deadlines.ts'
import { Endings } from './endings.ts'
import { emitTo, type SessionEvent } from './events.ts'
import { type ResolvedOptions, resolveOptions, type SessionOptions } from './options.ts'
import { Recent } from './recent.ts'
import { Sweeper } from './sweeper.ts'

/** How many tenants are kept at hand: the name may be a client's choice. */
const MAX_TENANTS = 1000

/** A session record under the ID that leads to it now. */
export interface Found<I extends UserIds = UserIds> {
  readonly id: string
  readonly record: SessionRecord
  /** `null` in an anonymous session. */
  readonly userId: UserId<I> | null
  /** Whether it was found under an ID that a rotation within its grace had replaced. */
  readonly isFollowed: boolean
}

/**
 * What a manager shares with its tenants: the options, the store behind its guard, and the memory of this process, whose
 * keys and user texts name the tenant.
 */
interface Shared<D extends object, I extends UserIds, In extends object> {
  readonly given: SessionOptions<D, I, In>
  readonly options: ResolvedOptions<I>
  readonly calls: StoreCalls
  readonly shape: DataShape<D, In>
  /** Writers to one session take turns. */
  readonly writers: WriteQueue
  /** When this process last wrote down a visit, by key. */
  readonly touched: Recent<number>
  readonly endings: Endings
  readonly sweeper: Sweeper
  /** The managers of tenants, by name. */
  readonly tenants: Recent<object>
  /** Of calls to the application's own functions. */
  readonly deadlines: Deadlines
}

/** Of whichever data and user IDs: for what looks at neither. */
// biome-ignore lint/suspicious/noExplicitAny: unknown would fit no context, since its options take and give both
export type AnyContext = Context<any, any, any>

/** What the verbs of one manager, or of one tenant of it, work with. */
export class Context<
  D extends object,
  I extends UserIds,
  // biome-ignore lint/suspicious/noExplicitAny: most verbs read data and take none, so that its input may be of any type
  In extends object = any,
> implements Shared<D, I, In>
{
  readonly given: SessionOptions<D, I, In>
  readonly options: ResolvedOptions<I>
  readonly calls: StoreCalls
  readonly shape: DataShape<D, In>
  readonly writers: WriteQueue
  readonly touched: Recent<number>
  readonly endings: Endings
  readonly sweeper: Sweeper
  readonly tenants: Recent<object>
  readonly deadlines: Deadlines
  readonly users: Users<I>
  readonly namespace: string | null
  /** Keeps the keys of tenants apart. */
  readonly space: string

  private constructor(shared: Shared<D, I, In>, namespace: string | null) {
    this.given = shared.given
    this.options = shared.options
    this.calls = shared.calls
    this.shape = shared.shape
    this.writers = shared.writers
    this.touched = shared.touched
    this.endings = shared.endings
    this.sweeper = shared.sweeper
    this.tenants = shared.tenants
    this.deadlines = shared.deadlines
    this.namespace = namespace
    this.space = namespace === null ? '' : `namespace\0${namespace}`
    this.users = new Users(this.options.userIds, namespace, this.options.store)
  }

  static from<D extends object, I extends UserIds, In extends object>(
    given: SessionOptions<D, I, In>,
  ): Context<D, I, In> {
    const options = resolveOptions(given)
    const { store, maxDataBytes, sweepInterval } = options
    const calls = new StoreCalls(store, options, error => emitTo(given.onEvent, { type: 'store-error', error }))
    const sweep = (limit: number, now: number) => calls.sweep(limit, { now, deadline: calls.deadline() })
    const context: Context<D, I, In> = new Context(
      {
        given,
        options,
        calls,
        shape: new DataShape({ schema: given.schema, initial: given.initial, codec: given.codec, maxDataBytes }),
        writers: new WriteQueue(),
        touched: new Recent(options.touchInterval),
        endings: new Endings(),
        sweeper: new Sweeper(store.sweep ? sweep : null, () => context.now(), sweepInterval),
        tenants: new Recent(Number.POSITIVE_INFINITY, MAX_TENANTS / 2),
        deadlines: new Deadlines(),
      },
      null,
    )
    return context
  }

  tenant(namespace: string): Context<D, I, In> {
    return new Context(this, namespace)
  }

  now(): number {
    const now = this.options.now()
    if (!Number.isFinite(now)) throw new TypeError(`now: expected epoch milliseconds, got ${quote(now)}`)
    return Math.floor(now)
  }

  /** The deadline of a verb that begins now: the first use of a manager, by itself or by a tenant, starts its sweeper. */
  deadline(): number {
    this.sweeper.start()
    return this.calls.deadline()
  }

  async close(): Promise<void> {
    // The tenants of one manager share its store.
    if (this.namespace !== null) return
    this.sweeper.stop()
    await this.calls.close(this.calls.deadline())
  }

  emit(event: SessionEvent<I>): void {
    const { namespace } = this
    emitTo(this.given.onEvent, namespace === null ? event : { ...event, namespace })
  }

  keyOf(id: string): SessionKey {
    return keyOf(id, this.space)
  }

  session({ record, userId, id, isFollowed }: Found<I>, isCookieDue = false): Session<D, I> {
    return makeSession(this.#parts(record, userId, isFollowed, isCookieDue), id)
  }

  /** A session that was stored just now, under an ID that no browser has yet. */
  begun(found: Found<I>): Session<D, I> {
    return this.session(found)
  }

  info(record: SessionRecord): SessionInfo<D, I> {
    return makeInfo(this.#parts(record, this.userIdOf(record)))
  }

  /** For operators. An anonymous session has the tenant's name in its key alone, where it cannot be read. */
  stored(record: SessionRecord): StoredSession<D, I> {
    const namespace = record.userId === null ? null : this.namespace
    return makeStored(this.#parts(record, this.userIdOf(record)), namespace)
  }

  #parts(record: SessionRecord, userId: UserId<I> | null, isFollowed = false, isCookieDue = false): SessionParts<D, I> {
    const { space } = this
    const data = this.shape.known(record.data)
    return { record, userId, isFollowed, isCookieDue, data, decode: this.#decode, space }
  }

  userIdOf({ userId }: Pick<SessionRecord, 'userId'>): UserId<I> | null {
    return userId === null ? null : this.users.fromText(userId)
  }

  /** Stored data that could not be read, or no longer fits, was replaced by the start value. */
  reportReset(record: SessionRecord, cause: Error): void {
    this.emit({ type: 'data-reset', key: record.key as SessionKey, cause })
  }

  readonly #decode = (record: SessionRecord): Frozen<D> =>
    this.shape.freeze(unseal(record.data).text, cause => this.reportReset(record, cause))
}
