// From the application's values to a stored record, and back.
import type { SessionRecord } from '../contract/store.ts'
import { packMeta, unpackMeta } from '../data/meta.ts'
import type { Over } from '../data/schema.ts'
import { newWriteId } from '../session/id.ts'
import { ANONYMOUS, checkAnonymous, checkLogin, type Login, type Owner } from '../session/users.ts'
import { refuse } from '../text/check-options.ts'
import { milliseconds } from '../text/duration.ts'
import type { Context } from './context.ts'
import type { ResolvedOptions } from './options.ts'

// biome-ignore lint/suspicious/noExplicitAny: of any data and user IDs
type AnyLogin = Login<any, any, any>
export type InitialData = Pick<AnyLogin, 'data' | 'verifiedAt' | 'idleTimeout'> & { readonly over?: Over }

/** How long a session may be idle, and live in all, in ms. */
type Lifetime = Pick<ResolvedOptions, 'idle' | 'absolute'>

/** The input for a new session. */
export interface NewSession {
  readonly owner: Owner
  readonly first: InitialData
  readonly lifetime: Lifetime
}

/** What a login asks for, or a visitor. @throws TypeError that says what is wrong with it */
export function startOf(context: Context, method: string, given: object, isLogin: boolean): NewSession {
  if (isLogin) checkLogin(method, given)
  else checkAnonymous(given, method)
  const first = given as AnyLogin
  const owner = isLogin ? context.users.ownerOf(first, context.now()) : ANONYMOUS
  return { owner, first, lifetime: lifetimeOf(first, context.options) }
}

/**
 * Text of edited data, with the fields that the record keeps beside it; `named` are keys that count as changed, and `idle`
 * takes the place of the idle time there, in ms.
 */
export function encode(context: Context, record: SessionRecord, draft: object, named: object, idle?: number): string {
  const { meta, text } = unpackMeta(record.data)
  const changed = idle === undefined ? meta : { ...meta, idle: idle < context.options.idle ? idle : undefined }
  return packMeta(changed, context.shape.encode(draft, { text, named }))
}

/** Encoded first data; `before` is the session that ends here, if its data may be carried over. */
export function initialData(
  context: Context,
  { data, verifiedAt, idleTimeout, over }: InitialData,
  before: SessionRecord | null = null,
): string {
  const { shape } = context
  // Without a time of its own, the session's `createdAt` is when the password was verified.
  const isJustNow = verifiedAt === undefined || (verifiedAt !== null && verifiedAt >= context.now())
  const meta = {
    ...(!isJustNow && { verifiedAt }),
    ...(idleTimeout !== undefined && { idle: milliseconds(idleTimeout, 'idleTimeout') }),
  }
  if (typeof data !== 'function') return packMeta(meta, shape.encodeInitial(data, over))
  return packMeta(meta, shape.encodeInitial(data(before === null ? shape.start() : context.draftOf(before))))
}

/** The record of a session that begins now. */
export function newRecord(
  context: Context,
  id: string,
  { userId, userName, passwordVersion }: Owner,
  data: string,
  now: number,
  { idle, absolute }: Lifetime = context.options,
): SessionRecord {
  const absoluteExpiresAt = now + absolute
  return {
    key: context.keyOf(id),
    kind: 'session',
    parent: null,
    userId,
    userName,
    passwordVersion,
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
  Math.min(unpackMeta(data).meta.idle ?? options.idle, options.idle)

/**
 * A record as the time limits of today hold it, this manager's and its own idle time: they may have become shorter, and stores
 * only raise `expiresAt`. What they end stays in the store: another service may have longer ones.
 */
export function held({ options }: Context, record: SessionRecord): SessionRecord {
  const { seenAt, createdAt } = record
  const { idle = options.idle, newIds } = unpackMeta(record.data).meta
  const absoluteExpiresAt = Math.min(record.absoluteExpiresAt, createdAt + options.absolute)
  // A new ID is a use too, also of a remembered session that is stored as not yet seen.
  const usedAt = Math.max(seenAt, createdAt, newIds === undefined ? 0 : newIds.since)
  const expiresAt = Math.min(usedAt + Math.min(idle, options.idle), absoluteExpiresAt)
  const isShorter = expiresAt < record.expiresAt || absoluteExpiresAt < record.absoluteExpiresAt
  return isShorter ? { ...record, expiresAt: Math.min(expiresAt, record.expiresAt), absoluteExpiresAt } : record
}

/**
 * `seenAt` and `expiresAt` of a record that is used at `now`: they only rise. `isOwed`: its cookie was due, and this response
 * cannot send it.
 */
export function seen(
  context: Context,
  record: SessionRecord,
  now: number,
  isOwed = false,
): Pick<SessionRecord, 'seenAt' | 'expiresAt'> {
  // By the clock of this node it may not have been created yet. It is in use anyway.
  const seenAt = Math.max(record.seenAt, record.createdAt, now)
  const expiresAt = expiryOf(seenAt, record.absoluteExpiresAt, idleOf(context, record)) - Number(isOwed)
  return { seenAt, expiresAt: Math.max(record.expiresAt, expiresAt) }
}

/**
 * Whether the session was extended by a request whose response could not send its cookie any more: it ends 1 ms early then.
 * The next response that can sends it, at whichever node.
 */
export const isCookieOwed = (context: Context, record: SessionRecord): boolean =>
  // Most sessions end exactly when they were idle: nothing else is looked at.
  record.expiresAt - record.seenAt !== context.options.idle &&
  record.expiresAt === expiryOf(record.seenAt, record.absoluteExpiresAt, idleOf(context, record)) - 1

/** A session expires when it was idle too long or is too old, whichever comes first (OWASP ASVS 5.0, 7.3.1 and 7.3.2). */
export const expiryOf = (seenAt: number, absoluteExpiresAt: number, idle: number): number =>
  Math.min(seenAt + idle, absoluteExpiresAt)

/**
 * How long a session of this login may live: what the login asks for, within what the manager allows.
 * @throws TypeError that quotes the value
 */
function lifetimeOf(
  login: Pick<AnyLogin, 'idleTimeout' | 'absoluteTimeout'>,
  { idle, absolute, touchInterval }: ResolvedOptions,
): Lifetime {
  const within = (name: 'idleTimeout' | 'absoluteTimeout', longest: number): number => {
    const asked = login[name]
    if (asked === undefined) return longest
    const time = milliseconds(asked, name)
    if (time > longest) refuse(name, `at most the manager's ${name} (${longest} ms)`, asked)
    return time
  }
  const own = { idle: within('idleTimeout', idle), absolute: within('absoluteTimeout', absolute) }
  if (own.idle < 2 * touchInterval)
    refuse(
      'idleTimeout',
      `at least twice the touchInterval (${touchInterval} ms), else a session in use would expire`,
      login.idleTimeout,
    )
  return own
}

/** Whether the store should hear of this visit: `seenAt` is written at most once per interval, and never set back. */
export const isTouchDue = (seenAt: number, now: number, { touchInterval }: ResolvedOptions): boolean =>
  now - seenAt >= touchInterval

/**
 * Whether the touch at `now` asks for the cookie to be sent again: the first one, and the one that crosses half of the idle
 * time. From then on the cookie lasts for the rest of the absolute time, and only the server decides.
 */
export function isCookieDueAt(context: Context, before: SessionRecord, now: number): boolean {
  const half = before.createdAt + idleOf(context, before) / 2
  return before.seenAt <= before.createdAt || (before.seenAt < half && now >= half)
}

/**
 * True until a remembered session is first used. Until then `seenAt` is stored below `createdAt`. A write in the request
 * that began it does not count as one: the response to that request may be lost.
 */
export const isUntouched = ({ seenAt, createdAt }: Pick<SessionRecord, 'seenAt' | 'createdAt'>): boolean =>
  seenAt < createdAt
