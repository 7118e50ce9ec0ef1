// From what the application gives to what a store keeps, and back.
import type { CreateOptions, SessionRecord } from '../contract/store.ts'
import { MAX_CHANGES, type Meta, seal, unseal } from '../data/meta.ts'
import { expiryOf, type Lifetimes } from '../session/expiry.ts'
import { newSalt, newWriteId } from '../session/id.ts'
import type { UserIds } from '../session/user-id.ts'
import type { Login, Owner } from '../session/users.ts'
import { milliseconds } from '../text/duration.ts'
import type { AnyContext, Context } from './context.ts'

type FirstData<D, I extends UserIds, In> = Pick<Login<D, I, In>, 'data' | 'verifiedAt' | 'idleTimeout'>

/** How long a session may be idle, and live in all, in ms. */
export type Lifetime = Pick<Lifetimes, 'idle' | 'absolute'>

/** The data of a record, to edit. */
export function thaw<D extends object>(context: Context<D, UserIds>, record: SessionRecord): D {
  const { data, reset } = context.shape.thaw(unseal(record.data).text)
  if (reset) context.reportReset(record, reset)
  return data
}

/** Text of edited data, with what the record keeps beside it. */
export const encode = (context: AnyContext, record: SessionRecord, draft: object): string =>
  seal(unseal(record.data).meta, context.shape.encode(draft))

/** Encoded first data; `before` is the session that ends here, where its data may be carried over. */
export function firstData<D extends object, I extends UserIds, In extends object>(
  context: Context<D, I, In>,
  { data, verifiedAt, idleTimeout }: FirstData<D, I, In>,
  before: SessionRecord | null,
): string {
  const { shape } = context
  const meta = {
    ...metaOf(context, verifiedAt),
    ...(idleTimeout !== undefined && { idle: milliseconds(idleTimeout, 'idleTimeout') }),
  }
  if (typeof data !== 'function') return seal(meta, shape.first(data))
  if (before === null) return seal(meta, shape.first(data(shape.start())))
  // What is made of changed data has the change: `updateUserSessions` must not make it again.
  const { changes } = unseal(before.data).meta
  return seal({ ...meta, ...(changes && { changes }) }, shape.first(data(thaw(context, before))))
}

/** A change of `updateUserSessions` is known by a name of its own, which goes wherever the data goes. */
export const newChange = (): string => newSalt().slice(0, 8)

export const hasChange = (record: SessionRecord, name: string): boolean =>
  unseal(record.data).meta.changes?.includes(name) === true

/** Text of data that has a change, with its name. */
export function withChange(data: string, name: string): string {
  const { meta, text } = unseal(data)
  return seal({ ...meta, changes: [...(meta.changes ?? []), name].slice(-MAX_CHANGES) }, text)
}

/** Nothing where the password was verified just now: without it the session's `createdAt` counts. */
function metaOf(context: AnyContext, verifiedAt: number | null | undefined): Meta {
  return verifiedAt === undefined || (verifiedAt !== null && verifiedAt >= context.now()) ? {} : { verifiedAt }
}

/** The record of a session that begins now. */
export function newRecord(
  context: AnyContext,
  id: string,
  owner: Owner,
  data: string,
  now: number,
  { idle, absolute }: Lifetime = context.options,
): SessionRecord {
  const absoluteExpiresAt = now + absolute
  return {
    key: context.keyOf(id),
    kind: 'session',
    parent: null,
    ...owner,
    data,
    version: 1,
    writeId: newWriteId(),
    createdAt: now,
    seenAt: now,
    expiresAt: expiryOf(now, absoluteExpiresAt, idle),
    absoluteExpiresAt,
  }
}

/** How long this session may be idle, in ms. */
export const idleOf = ({ options }: AnyContext, { data }: SessionRecord): number =>
  Math.min(unseal(data).meta.idle ?? options.idle, options.idle)

/** `seenAt` and `expiresAt` of a record that is visited at `now`: they only rise. */
export function seen(
  context: AnyContext,
  record: SessionRecord,
  now: number,
): Pick<SessionRecord, 'seenAt' | 'expiresAt'> {
  return {
    // By the clock of another node it may not have been created yet: all the same it is visited.
    seenAt: Math.max(record.seenAt, record.createdAt, now),
    expiresAt: Math.max(record.expiresAt, expiryOf(now, record.absoluteExpiresAt, idleOf(context, record))),
  }
}

/** The limit of sessions counts for users, not for anonymous sessions. */
export const limitFor = ({ options: { limit } }: AnyContext, owner: Owner): CreateOptions =>
  limit !== null && owner.userId !== null ? { limit } : {}
