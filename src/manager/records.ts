// From what the application gives to what a store keeps, and back.
import type { CreateOptions, SessionRecord } from '../contract/store.ts'
import { seal, unseal } from '../data/meta.ts'
import { expiryOf, type Lifetimes } from '../session/expiry.ts'
import { newWriteId } from '../session/id.ts'
import type { Login, Owner } from '../session/users.ts'
import { milliseconds } from '../text/duration.ts'
import type { Context } from './context.ts'

// biome-ignore lint/suspicious/noExplicitAny: of any data and user IDs
export type FirstData = Pick<Login<any, any, any>, 'data' | 'verifiedAt' | 'idleTimeout'>

/** How long a session may be idle, and live in all, in ms. */
export type Lifetime = Pick<Lifetimes, 'idle' | 'absolute'>

/** The data of a record, to edit. */
export function thaw(context: Context, record: SessionRecord): object {
  const { data, reset } = context.shape.thaw(unseal(record.data).text)
  if (reset) context.reportReset(record, reset)
  return data
}

/** Text of edited data, with what the record keeps beside it. */
export const encode = (context: Context, record: SessionRecord, draft: object): string =>
  seal(unseal(record.data).meta, context.shape.encode(draft))

/** Encoded first data; `before` is the session that ends here, if its data may be carried over. */
export function firstData(
  context: Context,
  { data, verifiedAt, idleTimeout }: FirstData,
  before: SessionRecord | null,
): string {
  const { shape } = context
  // Without a time of its own, the session's `createdAt` is when the password was verified.
  const isJustNow = verifiedAt === undefined || (verifiedAt !== null && verifiedAt >= context.now())
  const meta = {
    ...(!isJustNow && { verifiedAt }),
    ...(idleTimeout !== undefined && { idle: milliseconds(idleTimeout, 'idleTimeout') }),
  }
  if (typeof data !== 'function') return seal(meta, shape.first(data))
  return seal(meta, shape.first(data(before === null ? shape.start() : thaw(context, before))))
}

/** The record of a session that begins now. */
export function newRecord(
  context: Context,
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
export const idleOf = ({ options }: Context, { data }: SessionRecord): number =>
  Math.min(unseal(data).meta.idle ?? options.idle, options.idle)

/** `seenAt` and `expiresAt` of a record that is used at `now`: they only rise. */
export function seen(
  context: Context,
  record: SessionRecord,
  now: number,
): Pick<SessionRecord, 'seenAt' | 'expiresAt'> {
  return {
    // By the clock of another node it may not have been created yet: all the same it is used.
    seenAt: Math.max(record.seenAt, record.createdAt, now),
    expiresAt: Math.max(record.expiresAt, expiryOf(now, record.absoluteExpiresAt, idleOf(context, record))),
  }
}

/** The limit of sessions counts for users, not for anonymous sessions. */
export const limitFor = ({ options: { limit } }: Context, owner: Owner): CreateOptions =>
  limit !== null && owner.userId !== null ? { limit } : {}
