// Remember-me: a long-lived token beside the session, never a longer session. One series per device; its verifier is
// used once and replaced by compare-and-set. The next token, and the ID of the session that begins with this one, are
// derived from it with a stored salt: parallel requests with one token all get the same answer.
import type { SessionRecord } from '../contract/store.ts'
import { firstKeyOf } from '../data/meta.ts'
import { afterWrite } from '../guard/store-calls.ts'
import { deriveId, hashOf, hmac, newId, newSalt, shardOf } from '../session/id.ts'
import type { AnySession, UserSession } from '../session/session.ts'
import type { UserIds } from '../session/users.ts'
import type { Context } from './context.ts'
import { withinLimit } from './limit.ts'
import { find, fromSnapshot, isOutdated } from './lookup.ts'
import { newRecord } from './records.ts'
import {
  endBegun,
  endSeries,
  type FoundSeries,
  isReuseLate,
  isSameDevice,
  isVerifier,
  type Presented,
  parseToken,
  readSeries,
  type Series,
  seriesKey,
  writeSeries,
} from './series.ts'
import { refusal, write } from './write.ts'

/** The answer to a redeemed token. */
export interface Redeemed<Data = Record<string, unknown>, Ids extends UserIds = 'bigint'> {
  readonly session: UserSession<Data, Ids>
  /** The token that replaces the presented one. */
  readonly token: string
  /** When the series ends, epoch ms. */
  readonly expiresAt: number
}

// biome-ignore lint/suspicious/noExplicitAny: of whichever data and user IDs
type AnyRedeemed = Redeemed<any, any>

/**
 * Begins a series for the device of this session, and answers its first token.
 * @throws SessionError ERR_SESSION_UNAUTHENTICATED if the session is gone
 */
export async function issueToken(context: Context, session: AnySession): Promise<string> {
  const { options, calls, users, namespace } = context
  const start = fromSnapshot(context, session)
  const life = options.rememberFor
  if (life === null) throw new TypeError("issueRememberToken: is off: give the manager { rememberFor: '30d' }")
  if (start.userId === null)
    throw new TypeError('issueRememberToken: expected the session of a user, got an anonymous one')
  const token = await write(context, 'create', start, async ({ record }) => {
    const selector = newId(users.shardOf(record.userId))
    const verifier = newId()
    const call = context.call()
    const series: Series = {
      current: hashOf(verifier),
      previous: null,
      salt: '',
      rotatedAt: call.now,
      createdAt: 0,
      touchedAt: null,
      issuedFor: firstKeyOf(record),
    }
    const stored: SessionRecord = {
      ...newRecord(context, selector, record, JSON.stringify(series), call.now, { idle: life, absolute: life }),
      key: seriesKey(namespace, selector),
      kind: 'remember',
      // It can begin only while the session lives: an invalidation in between wins.
      parent: record.key,
    }
    const outcome = await calls.create(stored, call)
    context.reportOutcome(outcome, record, record.key)
    // A parallel request may have given it a new ID.
    if (outcome === 'orphan') return 'gone'
    return outcome === 'created' ? { value: `${selector}.${verifier}` } : outcome
  })
  if (token === null) throw refusal(context, 'orphan')
  return token
}

/** The session of a remember token and the token that replaces it; `null` if the token is worth nothing. */
export async function redeemToken(context: Context, token: string): Promise<AnyRedeemed | null> {
  const presented = parseToken(context.namespace, token)
  if (presented === null || context.options.rememberFor === null) return null
  const found = await readUsable(context, presented.key)
  // It writes more than once: 'unknown', whichever step fails.
  return found === null ? null : afterWrite(() => redeem(context, presented, found))
}

/** The live series, unless the user's password version has refused it. */
async function readUsable(context: Context, key: string): Promise<FoundSeries | null> {
  const found = await readSeries(context, key)
  return found === null || (await isOutdated(context, found.record)) ? null : found
}

async function redeem(context: Context, presented: Presented, start: FoundSeries): Promise<AnyRedeemed | null> {
  const { key, selector, verifier } = presented
  for (let found: FoundSeries | null = start; found !== null; found = await readUsable(context, key)) {
    const { record, series } = found
    const now = context.now()
    const wasUsed = isVerifier(verifier, series.previous)
    const isLate = isReuseLate(series, now)
    // The session was used, so the browser has received the next token: after the window, someone else sends the old one.
    const isTheft = wasUsed ? isLate && series.touchedAt !== null : !isVerifier(verifier, series.current)
    if (isTheft) {
      await endSeries(context, record, 'theft')
      return null
    }
    let state = series
    let session = wasUsed && !isLate ? await sessionOf(context, record, presented, series, false) : undefined
    if (session === undefined) {
      // The answer of a used token was lost: nobody came with its session until it was over, or the window was. The next token
      // stays the same, so that whichever answer the browser has is good.
      state = nextInSeries(series, wasUsed ? null : verifier, now)
      const outcome = await writeSeries(context, record, state, now)
      if (outcome === 'gone') return null
      if (outcome === 'conflict') continue
      if (wasUsed) await context.endSession(context.keyOf(rememberedId(presented, series)), record, 'revoked')
      // Who has the current token has had the last answer: what began before it is of no more use.
      else if (series.previous !== null)
        await endBegun(context, record, 'revoked', ({ createdAt }) => createdAt < series.createdAt)
      session = await sessionOf(context, record, presented, state, true)
    }
    if (session?.user == null) return null
    const token = `${selector}.${nextVerifier(verifier, state.salt)}`
    return { session: session as UserSession<UserIds>, token, expiresAt: record.expiresAt }
  }
  return null
}

/** The series with another session, and with another token if this verifier was used for the first time. */
function nextInSeries(series: Series, verifier: string | null, now: number): Series {
  // Later than each session before it, whatever the clocks say: by this they are told apart. A new ID keeps it.
  const next = { ...series, rotatedAt: now, createdAt: Math.max(now, series.createdAt + 1), touchedAt: null }
  if (verifier === null) return next
  const salt = newSalt()
  return { ...next, current: hashOf(nextVerifier(verifier, salt)), previous: hashOf(verifier), salt }
}

/**
 * The session that follows from a remember token, begun if it is not there: its ID and `createdAt` are given, and it lives only
 * while the series does. `null` if the series is over, the user's limit refuses, or the session was used and is gone, or has
 * another ID; `undefined` if it is over and was never used.
 */
async function sessionOf(
  context: Context,
  series: SessionRecord,
  presented: Presented,
  state: Series,
  isNew: boolean,
): Promise<AnySession | null | undefined> {
  const { createdAt, touchedAt } = state
  const id = rememberedId(presented, state)
  const look = async () => {
    const found = await find(context, id, context.now())
    return found && context.session(found)
  }
  const known = isNew ? null : await look()
  // Used once, and gone now: it has ended, and does not begin again.
  if (known !== null || touchedAt !== null) return known
  const call = context.call()
  const fresh = newRecord(context, id, series, context.shape.encodeInitial(undefined), call.now)
  // A `seenAt` before `createdAt` means that it was not used yet. The first use is then written, and tells a lost response
  // from a theft.
  const seenAt = Math.min(call.now, createdAt) - context.options.touchInterval
  const record = { ...fresh, parent: series.key, createdAt, seenAt }
  const put = () => context.calls.create(record, call)
  // At the limit those that this device had before end first: it is not refused because of itself, and no other device ends.
  const outcome = await withinLimit(context, record, null, put, each => isSameDevice(series, each))
  context.reportOutcome(outcome, series)
  if (outcome === 'created') return context.begun(id, record)
  // The session is refused or has ended; the token is still good and works again as soon as a session is free.
  if (outcome !== 'collision') return null
  const begun = await look()
  if (begun !== null) return begun
  // Under another ID it may be on its way to the browser, in the answer to a parallel request.
  const moved = await context.storedRecord(record.key)
  return moved === null || moved.key === record.key ? undefined : null
}

/** Ends the series of a token, and the sessions that began with it. */
export async function revokeToken(context: Context, token: string): Promise<void> {
  const parsed = parseToken(context.namespace, token)
  if (parsed === null) return
  // Before the answer: a slow response must not bring the token, or a session that began with it, to the browser again.
  context.recentlyEnded.addEnd(parsed.key, false)
  const series = await context.storedRecord(parsed.key)
  if (series?.kind === 'remember') await endSeries(context, series, 'logout')
}

const rememberedId = ({ selector, verifier }: Presented, { salt, createdAt }: Series) =>
  deriveId(shardOf(selector), verifier, 'session', `${salt}\0${createdAt}`)
const nextVerifier = (verifier: string, salt: string) => hmac(verifier, `next\0${salt}`)
