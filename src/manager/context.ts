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
import { Endings } from './endings.ts'
import { emitTo, type SessionEvent } from './events.ts'
import { type ResolvedOptions, resolveOptions, type SessionOptions } from './options.ts'
import { Recent } from './recent.ts'
import { Sweeper } from './sweeper.ts'

/** How many namespaces are kept at hand: the name may be a client's choice. */
const MAX_TENANTS = 1000

/** A session record under the ID that leads to it now. */
export interface Found<Ids extends UserIds = UserIds> {
  readonly id: string
  readonly record: SessionRecord
  /** `null` in an anonymous session. */
  readonly userId: UserId<Ids> | null
  /** Whether it was found under an old ID whose grace has not run out. */
  readonly isFollowed: boolean
}

/** Of any data and user IDs: for code that looks at neither. */
// biome-ignore lint/suspicious/noExplicitAny: unknown would fit no context, since its options take and give both
export type AnyContext = Context<any, any, any>

/** What the methods of one manager work with: its options, its store, and what this process remembers. */
export class Context<
  Data extends object,
  Ids extends UserIds,
  // biome-ignore lint/suspicious/noExplicitAny: most methods read data and take none, so that its input may be of any type
  Input extends object = any,
> {
  readonly given: SessionOptions<Data, Ids, Input>
  readonly options: ResolvedOptions<Ids>
  readonly calls: StoreCalls
  readonly shape: DataShape<Data, Input>
  /** Writers to one session take turns. */
  readonly writers = new WriteQueue()
  /** When this process last wrote down that a session was used, by key. */
  readonly touched: Recent<number>
  readonly endings = new Endings()
  readonly sweeper: Sweeper
  /** The managers of namespaces, by name. */
  readonly tenants = new Recent<object>(Number.POSITIVE_INFINITY, MAX_TENANTS / 2)
  readonly users: Users<Ids>
  readonly namespace: string | null = null
  /** Keeps the keys of namespaces apart. */
  readonly space: string = ''

  constructor(given: SessionOptions<Data, Ids, Input>) {
    this.given = given
    this.options = resolveOptions(given)
    const { store, userIds, maxDataBytes, sweepInterval, touchInterval } = this.options
    this.calls = new StoreCalls(store, this.options, error => emitTo(given.onEvent, { type: 'store-error', error }))
    this.shape = new DataShape({ schema: given.schema, initial: given.initial, codec: given.codec, maxDataBytes })
    this.touched = new Recent(touchInterval)
    const sweep = (limit: number, now: number) => this.calls.sweep(limit, { now, deadline: this.calls.deadline() })
    this.sweeper = new Sweeper(store.sweep ? sweep : null, () => this.now(), sweepInterval)
    this.users = new Users(userIds, null, store)
  }

  /** Shares all but the names with this one. */
  tenant(namespace: string): Context<Data, Ids, Input> {
    const users = new Users(this.options.userIds, namespace, this.options.store)
    return Object.assign(Object.create(this), { namespace, space: `namespace\0${namespace}`, users })
  }

  now(): number {
    const now = this.options.now()
    if (!Number.isFinite(now)) throw new TypeError(`now: expected epoch milliseconds, got ${quote(now)}`)
    return Math.floor(now)
  }

  /** The deadline of a method that begins now. The first use of a manager starts its sweeper. */
  deadline(): number {
    this.sweeper.start()
    return this.calls.deadline()
  }

  /** What a store is told about a call that begins now. */
  call(deadline: number): { readonly now: number; readonly deadline: number } {
    return { now: this.now(), deadline }
  }

  async close(): Promise<void> {
    // The namespaces of one manager share its store.
    if (this.namespace !== null) return
    this.sweeper.stop()
    await this.calls.close(this.calls.deadline())
  }

  emit(event: SessionEvent<Ids>): void {
    const { namespace } = this
    emitTo(this.given.onEvent, namespace === null ? event : { ...event, namespace })
  }

  keyOf(id: string): SessionKey {
    return keyOf(id, this.space)
  }

  session({ record, userId, id, isFollowed }: Found<Ids>, isCookieDue = false): Session<Data, Ids> {
    return makeSession(this.parts(record, userId, isFollowed, isCookieDue), id)
  }

  info(record: SessionRecord): SessionInfo<Data, Ids> {
    return makeInfo(this.parts(record, this.userIdOf(record)))
  }

  /** For operators. An anonymous session has the namespace in its key alone, where it cannot be read. */
  stored(record: SessionRecord): StoredSession<Data, Ids> {
    const namespace = record.userId === null ? null : this.namespace
    return makeStored(this.parts(record, this.userIdOf(record)), namespace)
  }

  private parts(
    record: SessionRecord,
    userId: UserId<Ids> | null,
    isFollowed = false,
    isCookieDue = false,
  ): SessionParts<Data, Ids> {
    return { record, userId, isFollowed, isCookieDue, data: this.shape.known(record.data), home: this }
  }

  userIdOf({ userId }: Pick<SessionRecord, 'userId'>): UserId<Ids> | null {
    return userId === null ? null : this.users.fromText(userId)
  }

  decode(record: SessionRecord): Frozen<Data> {
    return this.shape.freeze(unseal(record.data).text, cause => this.reportReset(record, cause))
  }

  /** Stored data that could not be read, or no longer fits, was replaced by the start value. */
  reportReset(record: SessionRecord, cause: Error): void {
    this.emit({ type: 'data-reset', key: record.key as SessionKey, cause })
  }
}

// Registered, because a process may hold several copies of this package (its ESM and its CommonJS build, or one in each
// bundle of a framework) and keep one manager for all. Raise the number when visits need something else of a context.
const CONTEXT = Symbol.for('coatcheck.context.1')

/** Not a declared member: types show no way to it, and those of two copies of the package fit each other. */
export function keepContext<Manager extends object>(sessions: Manager, context: AnyContext): Manager {
  return Object.defineProperty(sessions, CONTEXT, { value: context })
}

/**
 * What is behind a manager, whichever copy of the package it is from.
 * @throws TypeError for anything else
 */
export function contextOf<Data extends object, Ids extends UserIds, Input extends object>(
  sessions: object,
): Context<Data, Ids, Input> {
  const isManager = typeof sessions === 'object' && sessions !== null && Object.hasOwn(sessions, CONTEXT)
  const context = isManager ? (sessions as { [CONTEXT]?: Context<Data, Ids, Input> })[CONTEXT] : undefined
  if (context === undefined)
    throw new TypeError(
      `expected a SessionManager, got ${quote(sessions)} (two versions of coatcheck in one process do not know each other: npm ls coatcheck)`,
    )
  return context
}
