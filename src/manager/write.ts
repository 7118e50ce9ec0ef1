// How a session is changed while others change it: one loop for all methods that write, the writers of data, and the touch.
import { isDeepStrictEqual } from 'node:util'
import { SessionError, SessionStoreError } from '../contract/errors.ts'
import type { CreateOutcome, SessionRecord } from '../contract/store.ts'
import { runChange } from '../data/change.ts'
import { isPlain } from '../data/plain.ts'
import { newWriteId } from '../session/id.ts'
import type { AnySession } from '../session/session.ts'
import { quote } from '../text/quote.ts'
import type { Context, Found } from './context.ts'
import { find, fromSnapshot } from './lookup.ts'
import { encode, expiryOf, isCookieDueAt, isCookieOwed, isTouchDue, isUntouched, seen } from './records.ts'
import { setTouched } from './series.ts'

/** How often a new ID is drawn again; one more collision means that the generator repeats itself. */
export const MAX_COLLISIONS = 5

/** Why a session cannot be made live: a store's answer other than 'created', or the limit. */
export type Refused = Exclude<CreateOutcome, 'created'> | 'limit'
/** The result of one attempt to write, or why there is none: 'conflict' and 'gone' if another writer was first. */
type Attempt<T> = { readonly value: T } | Refused | 'conflict' | 'gone'
/** `isFirst`: what the caller holds may be out of date, which 'conflict' answers too. */
type Writer<T> = (found: Found, isFirst: boolean) => Promise<Attempt<T>>
type FindAgain = (found: Found) => Found | null | Promise<Found | null>

export function refusal({ options }: Context, outcome: Refused): SessionError {
  const reasons = {
    'stale-login': ['ERR_SESSION_STALE_LOGIN', 'the password was changed after it was verified: log in again'],
    limit: ['ERR_SESSION_LIMIT', `the user has ${options.limit?.max} sessions already: end one first`],
    orphan: ['ERR_SESSION_UNAUTHENTICATED', 'the session has ended meanwhile: log in again'],
    collision: ['ERR_SESSION_ID_COLLISION', 'new IDs collide: the random generator or the store is broken'],
  } as const
  // A store that answers anything else is broken too.
  const [code, message] = reasons[outcome] ?? reasons.collision
  return new SessionError(code, message)
}

/**
 * Writes to a session when the earlier writers of this process have left it. `null` if the session is gone.
 * @throws SessionError for what is refused, ERR_SESSION_CONFLICT if others kept writing until the deadline
 */
export function write<T>(
  context: Context,
  operation: 'create' | 'update' | 'replace',
  start: Found,
  attempt: Writer<T>,
  // Within the grace of its old ID this finds the session under its new one. Under another user it has ended, but what a
  // visitor changed late still goes into the session of whoever has logged in there: a cart.
  findAgain: FindAgain = async ({ id }) => {
    const found = await find(context, id, context.now())
    const { userId } = start.record
    return found?.record.userId === userId || (userId === null && operation === 'update') ? found : null
  },
): Promise<T | null> {
  const message = `${operation}: earlier writers of this session took all of storeTimeout`
  const late = () => context.calls.fail(operation, 'not-applied', message)
  return context.local.writers.inTurn(start.record.key, context.deadline, late, ({ latest }) => {
    const isNewer = latest !== null && latest.version > start.record.version
    return retry(context, isNewer ? { ...start, record: latest } : start, attempt, findAgain)
  })
}

/** Tries until it is written or refused. If another writer was first, finds the session again, until the deadline. */
async function retry<T>(context: Context, start: Found, attempt: Writer<T>, findAgain: FindAgain): Promise<T | null> {
  let found = start
  for (let [conflicts, collisions] = [0, 0]; ; ) {
    const outcome = await attempt(found, conflicts === 0)
    if (typeof outcome === 'object') return outcome.value
    if (outcome === 'collision' && collisions < MAX_COLLISIONS) {
      collisions += 1
      continue
    }
    if (outcome !== 'conflict' && outcome !== 'gone') throw refusal(context, outcome)
    if (!(await mayRetry(context, conflicts)))
      refuseForNow(context, found.record, 'gave up after storeTimeout: other requests kept changing this session')
    conflicts += 1
    const again = await findAgain(found)
    if (again === null) return null
    found = again
  }
}

/** A write that may succeed when it is repeated later. @throws SessionError always */
export function refuseForNow(context: Context, record: SessionRecord, message: string): never {
  context.reportRefused('conflict', record)
  throw new SessionError('ERR_SESSION_CONFLICT', message)
}

/** Keeps many writers apart, until the deadline. Full jitter: 100 writers need 13 tries each with it, and 70 without. */
async function mayRetry({ deadline }: Context, conflicts: number): Promise<boolean> {
  if (conflicts === 0) return true
  const wait = Math.random() * Math.min(100, 2 ** conflicts)
  if (performance.now() + wait >= deadline) return false
  await new Promise(resolve => setTimeout(resolve, wait))
  return true
}

/** Edits fresh data; `draft: null` leaves the data as it is. `again` makes the draft once more. `idle`: another idle time, in ms. */
type Edit = (draft: object, again: () => object) => { draft: object | null; idle?: number | undefined }

/**
 * Edits fresh data and writes it: the session as it is then, `null` if it is gone. It does not extend the session: only a `get`
 * and a new ID do, since their responses can send the cookie again. `named`: keys that count as changed.
 */
function edit(context: Context, start: Found, named: object, change: Edit, findAgain?: FindAgain) {
  const attempt: Writer<Found> = async (found, isFirst) => {
    const { record } = found
    const { draft, idle } = change(context.draftOf(record), () => context.draftOf(record))
    // The snapshot says nothing changes, but it may be stale: read once before answering.
    if (draft === null) return isFirst ? 'conflict' : { value: found }
    const { seenAt, absoluteExpiresAt } = record
    const expiresAt = idle === undefined ? record.expiresAt : expiryOf(seenAt, absoluteExpiresAt, idle)
    const written = { data: encode(context, record, draft, named, idle), seenAt, expiresAt, writeId: newWriteId() }
    const outcome = await context.calls.update(record.key, record.version, written, context.call())
    if (outcome !== 'updated') return outcome
    const latest = { ...record, ...written, version: record.version + 1 }
    context.local.writers.note(latest)
    return { value: { ...found, record: latest } }
  }
  return write(context, 'update', start, attempt, findAgain)
}

/**
 * Sets keys, or runs a function on fresh data: the session as it is then, `null` if it is gone. `idleIn` says how long a
 * session with the changed data may be idle, in ms; without it that stays.
 */
export async function writeData(
  context: Context,
  session: AnySession,
  change: object | ((draft: object) => unknown),
  idleIn?: (draft: object) => number,
): Promise<AnySession | null> {
  const named = isPlain(change) ? change : {}
  const written = await edit(context, fromSnapshot(context, session), named, (before, again) => {
    const draft = changed(change, before, again)
    return { draft, idle: idleIn?.(draft) }
  })
  return written && context.session(written)
}

/** Data after a change. `again` makes the draft once more. @throws TypeError for a change that is neither keys nor a function */
export function changed(change: object | ((draft: object) => unknown), draft: object, again: () => object): object {
  if (typeof change === 'function') {
    runChange(change as (draft: object) => unknown, draft, again)
    return draft
  }
  if (isPlain(change)) return { ...draft, ...change }
  throw new TypeError(`update: expected keys to set or a function that edits them, got ${quote(change)}`)
}

/** Reads and removes one key: the value, and the session as it is then, `null` if it is gone. */
export async function takeKey(
  context: Context,
  session: AnySession,
  name: string,
): Promise<{ session: AnySession | null; value: unknown }> {
  let value: unknown
  const written = await edit(context, fromSnapshot(context, session), {}, data => {
    const { [name]: found, ...rest } = data as Record<string, unknown>
    value = Object.hasOwn(data, name) ? found : undefined
    if (value === undefined) return { draft: null }
    const start = context.shape.start() as Record<string, unknown>
    if (!Object.hasOwn(start, name)) return { draft: rest }
    // Otherwise each request that asks for an absent flash message would write.
    if (isDeepStrictEqual(value, start[name])) return { draft: null }
    return { draft: { ...rest, [name]: start[name] } }
  })
  return written === null ? { session: null, value: undefined } : { session: context.session(written), value }
}

/**
 * Sets keys of a session by its record, for a caller without its ID; prolongs nothing. Answers the key under which it stands
 * then, or `null` if it is gone.
 */
export async function writeRecord(context: Context, record: SessionRecord, keys: object): Promise<string | null> {
  // By its key: the forward of any new ID is followed, not only of those in their grace. If another user has logged in there,
  // as `coatcheck/connect` allows, this user's session has ended.
  const findAgain = async (found: Found) => {
    const latest = await context.storedRecord(found.record.key)
    return latest?.userId === record.userId ? { ...found, record: latest } : null
  }
  const change = (draft: object) => ({ draft: { ...draft, ...keys } })
  const written = await edit(context, context.foundAs(record), keys, change, findAgain)
  return written === null ? null : written.record.key
}

/** Whether a use of the session may have to be written down, or bring its cookie. Of most requests: neither. */
export const isUseDue = (context: Context, record: SessionRecord, now: number): boolean =>
  isTouchDue(record.seenAt, now, context.options) || isUntouched(record) || isCookieOwed(context, record)

/**
 * Whether a use of the session has to be written down: once per interval in this process, however many requests run in
 * parallel. `canFollow`: whether the response of this request can send the cookie; `null` if there is none.
 */
export function isTouchNow(context: Context, record: SessionRecord, now: number, canFollow: boolean | null): boolean {
  const { touched } = context.local
  const isSending = canFollow === true && isCookieOwed(context, record)
  if (!isSending && !isTouchDue(record.seenAt, now, context.options) && !isUntouched(record)) return false
  // The first response that can send a cookie which is owed does not wait until late reads leave it an interval.
  const turn = isSending ? `owed ${record.key}` : record.key
  const last = touched.get(turn, now)
  if (last !== undefined && now >= last && now - last < context.options.touchInterval) return false
  touched.set(turn, now, now)
  return true
}

/** Writes down that a session is in use: the session as it is then. */
export async function writeTouch(
  context: Context,
  found: Found,
  now: number,
  canFollow: boolean | null,
): Promise<AnySession | null> {
  const { touched } = context.local
  const { id, record } = found
  const wasOwed = isCookieOwed(context, record)
  const isCookieDue = wasOwed || isCookieDueAt(context, record, now)
  const { seenAt, expiresAt } = seen(context, record, now, canFollow === null ? wasOwed : isCookieDue && !canFollow)
  let outcome: 'touched' | 'gone'
  try {
    if (record.parent !== null && isUntouched(record)) await setTouched(context, record)
    outcome = await context.calls.touch(record.key, seenAt, expiresAt, context.call(now))
  } catch (error) {
    if (!(error instanceof SessionStoreError)) throw error
    // The guard has emitted the event. A failed touch must not refuse the request. After a tenth of the interval the next
    // request tries again: with a long interval one failure would end the session.
    touched.set(record.key, now - Math.floor(context.options.touchInterval * 0.9), now)
    return context.session(found)
  }
  if (outcome === 'gone') {
    const again = await find(context, id, now)
    return again && context.session(again)
  }
  return context.session({ ...found, record: { ...record, seenAt, expiresAt } }, isCookieDue)
}
