// Remember-me: a long-lived token beside the session, never a longer session. One series per device; its verifier is
// used once and rotated by compare-and-set. What follows a token (the next one, and the ID of the session born from it)
// is derived from it with a stored salt, so that parallel requests with one token all get the same answer.
import { timingSafeEqual } from 'node:crypto'
import { CLOCK_TOLERANCE, type SessionRecord } from '../contract/store.ts'
import { isForward, isRecord } from '../guard/store-calls.ts'
import { deriveId, hashOf, hmac, newId, newSalt, newWriteId, type SessionKey, shardOf } from '../session/id.ts'
import type { UserSession } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import { beginRemembered, MAX_COLLISIONS } from './begin.ts'
import type { Context } from './context.ts'
import { find, storedRecord } from './lookup.ts'
import { endChildren, endSeries, parseToken, seriesKey } from './series.ts'

/**
 * How long after the first visit with what a spent token bore that token gives the same answer again: the slowest of
 * parallel requests (a minute), by the clock of any node.
 */
const GRACE = 60_000 + CLOCK_TOLERANCE

/** What a series keeps as its record's data. */
interface Series {
  /** Hash of the verifier that is good now. */
  readonly current: string
  /** Hash of the one that was spent last, and what followed from it. */
  readonly previous: string | null
  readonly salt: string
  /** When the spent one was last found good for the answer that it gives. */
  readonly rotatedAt: number
  /** Key and `createdAt` of the session born at the last rotation, and when somebody first came back with it. */
  readonly session: string | null
  readonly bornAt: number
  readonly visitedAt: number | null
  /** `createdAt` of the session that asked for the token: the same device. */
  readonly origin: number
}

/** The answer to a redeemed token. */
export interface Recalled<D, I extends UserIds> {
  readonly session: UserSession<D, I>
  /** The token that replaces the presented one. */
  readonly token: string | null
  /** When the series ends, epoch ms. */
  readonly expiresAt: number
}

const isSame = (a: string, b: string) => a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b))

function parseSeries(text: string): Series | null {
  try {
    const series = JSON.parse(text) as Series
    const isSound =
      typeof series.current === 'string' &&
      (series.previous === null || typeof series.previous === 'string') &&
      typeof series.salt === 'string' &&
      typeof series.rotatedAt === 'number' &&
      (series.session === null || typeof series.session === 'string') &&
      typeof series.bornAt === 'number' &&
      (series.visitedAt === null || typeof series.visitedAt === 'number') &&
      typeof series.origin === 'number'
    return isSound ? series : null
  } catch {
    return null
  }
}

export class Remember<D extends object, I extends UserIds> {
  readonly #context: Context<D, I, any>

  constructor(context: Context<D, I, any>) {
    this.#context = context
  }

  async issue(record: SessionRecord, deadline: number): Promise<string> {
    const { options, calls, users } = this.#context
    if (options.remember === null) throw new TypeError("remember: is off: give the manager { remember: '30d' }")
    if (record.userId === null) throw new TypeError('remember: expected the session of a user, got an anonymous one')
    for (let tries = 0; ; tries += 1) {
      const selector = newId(users.shardOf(record.userId))
      const verifier = newId()
      const now = this.#context.now()
      const series: Series = {
        current: hashOf(verifier),
        previous: null,
        salt: '',
        rotatedAt: now,
        session: null,
        bornAt: 0,
        visitedAt: null,
        origin: record.createdAt,
      }
      const { outcome } = await calls.create(
        {
          key: seriesKey(this.#context.namespace, selector),
          kind: 'remember',
          // Born only while the session lives: an invalidation in between wins.
          parent: record.key,
          userId: record.userId,
          username: record.username,
          passwordVersion: record.passwordVersion,
          data: JSON.stringify(series),
          version: 1,
          writeId: newWriteId(),
          createdAt: now,
          seenAt: now,
          expiresAt: now + options.remember,
          absoluteExpiresAt: now + options.remember,
        },
        {},
        { now, deadline },
      )
      if (outcome === 'created') return `${selector}.${verifier}`
      if (outcome !== 'collision' || tries >= MAX_COLLISIONS) throw this.#context.refusal(outcome)
    }
  }

  async redeem(token: string, deadline: number): Promise<Recalled<D, I> | null> {
    const parsed = parseToken(this.#context.namespace, token)
    if (parsed === null || this.#context.options.remember === null) return null
    const { key, selector, verifier } = parsed
    const presented = hashOf(verifier)
    /** `bornAt` of a session that expired before anybody came back with it. */
    let expired: number | null = null
    for (;;) {
      const found = await this.#read(key, deadline)
      if (found === null) return null
      const { record, series } = found
      const now = this.#context.now()
      const isSpent = series.previous !== null && isSame(presented, series.previous)
      if (!isSpent && !isSame(presented, series.current)) return this.#theft(record, deadline)
      const age = now - (series.visitedAt ?? series.rotatedAt)
      // The browser had the next token before that visit: no request of its own takes so long.
      if (isSpent && series.visitedAt !== null && age > GRACE) return this.#theft(record, deadline)
      // Nobody ever came back with what it bore: the response was lost, the token was not stolen. The old answer is
      // given up only where no node, however late its clock, may still be giving it.
      const isLost = isSpent && age > GRACE + CLOCK_TOLERANCE
      const follow = (salt: string) => this.#follow(series, selector, verifier, salt, now)
      let next = series
      if (!isSpent || isLost) next = follow(newSalt())
      else if (series.bornAt === expired) next = follow(series.salt)
      else if (age > GRACE) next = { ...series, rotatedAt: now }
      if (next !== series) {
        const outcome = await this.#write(record, next, now, deadline)
        if (outcome === 'gone') return null
        if (outcome === 'conflict') continue
      }
      if (isLost) await endChildren(this.#context, record, next.session, 'revoked', deadline)
      const answer = await this.#answer(record, selector, verifier, next, deadline)
      if (answer !== 'expired') return answer
      expired = next.bornAt
    }
  }

  /** What follows from a token: with a new salt the next token and a session, with the old one another session alone. */
  #follow(series: Series, selector: string, verifier: string, salt: string, now: number): Series {
    // Tells what was born now from all that was born before, whatever the clocks say.
    const bornAt = Math.max(now, series.bornAt + 1)
    return {
      ...series,
      current: hashOf(nextVerifier(verifier, salt)),
      previous: hashOf(verifier),
      salt,
      rotatedAt: now,
      session: this.#context.keyOf(bornId(selector, verifier, salt, bornAt)),
      bornAt,
      visitedAt: null,
    }
  }

  /** Ends the series of a token, and the sessions that began with it. */
  async forget(token: string, deadline: number): Promise<void> {
    const context = this.#context
    const parsed = parseToken(context.namespace, token)
    if (parsed === null) return
    // Before the answer: a slow response must not bring the token, or a session that began with it, to the browser again.
    const began = context.endings.end(parsed.key, 'left')
    for (const each of began) await context.end(each, null, 'logout', deadline)
    const series = await storedRecord(context, parsed.key, deadline)
    if (series?.kind !== 'remember') return
    const ended = await endSeries(context, series, 'logout', deadline)
    // Also where it was getting a new ID, so that the list had neither.
    const last = parseSeries(series.data)?.session ?? null
    if (last !== null && !ended.includes(last)) await context.end(last, series.userId, 'logout', deadline)
  }

  /** From now on a spent token of the series is a stolen one: what it bore has reached somebody. */
  async noteVisit(session: SessionRecord, deadline: number): Promise<void> {
    for (;;) {
      const found = await this.#read(session.parent!, deadline)
      if (found === null || found.series.visitedAt !== null) return
      // Born at the last rotation, under its first ID or a newer one: not at an earlier rotation.
      if (session.createdAt !== found.series.bornAt) return
      const now = this.#context.now()
      const visited = { ...found.series, visitedAt: now }
      if ((await this.#write(found.record, visited, now, deadline)) !== 'conflict') return
    }
  }

  /** Ends the series of the device that a session belongs to, and what else was born from them. */
  async endDevice(session: SessionRecord, deadline: number): Promise<void> {
    const { calls, options } = this.#context
    if (options.remember === null || session.userId === null) return
    for (const record of await calls.listUser(session.userId, 'remember', { now: this.#context.now(), deadline })) {
      const isSameDevice = record.key === session.parent || parseSeries(record.data)?.origin === session.createdAt
      if (!isSameDevice) continue
      await endSeries(this.#context, record, 'revoked', deadline, session.key)
    }
  }

  async #read(key: string, deadline: number): Promise<{ record: SessionRecord; series: Series } | null> {
    const context = this.#context
    const now = context.now()
    const answer = await context.calls.read(key, { now, deadline })
    if (answer === null || isForward(answer)) return null
    if (!isRecord(answer)) {
      context.emit({ type: 'corrupt-record', key: key as SessionKey, cause: answer.corrupt })
      return null
    }
    if (answer.kind !== 'remember' || answer.key !== key || !(answer.expiresAt > now)) return null
    const series = parseSeries(answer.data)
    if (series === null || answer.userId === null || context.users.fromText(answer.userId) === null) {
      await context.calls.delete(key, { now, deadline })
      context.emit({ type: 'corrupt-record', key: key as SessionKey, cause: 'not a remember-me series' })
      return null
    }
    return (await context.isOutdated(answer, deadline)) ? null : { record: answer, series }
  }

  #write(record: SessionRecord, series: Series, now: number, deadline: number) {
    const change = { data: JSON.stringify(series), seenAt: now, expiresAt: record.expiresAt, writeId: newWriteId() }
    return this.#context.calls.update(record.key, record.version, change, { now, deadline })
  }

  /** The session that follows from a token, made where it does not exist yet, and the next token. */
  async #answer(
    series: SessionRecord,
    selector: string,
    verifier: string,
    { salt, bornAt, visitedAt }: Series,
    deadline: number,
  ): Promise<Recalled<D, I> | 'expired' | null> {
    const context = this.#context
    const id = bornId(selector, verifier, salt, bornAt)
    const found = await find(context, id, context.now(), deadline)
    // One that somebody came back with, and is gone, has ended: it is not born again.
    if (found === null && visitedAt !== null) return null
    const session =
      found === null
        ? await beginRemembered(context, id, series, bornAt, deadline)
        : context.session(found.record, found.id, true)
    if (session === 'expired') return session
    if (session === null || session.user === null) return null
    const token = `${selector}.${nextVerifier(verifier, salt)}`
    return { session: session as UserSession<D, I>, token, expiresAt: series.expiresAt }
  }

  /** The series first: from then on nothing can be born from it. */
  async #theft(series: SessionRecord, deadline: number): Promise<null> {
    const context = this.#context
    const userId = series.userId!
    context.endings.end(series.key, 'ended')
    const isFirst = await context.calls.delete(series.key, { now: context.now(), deadline })
    if (context.options.onTheft === 'end-user') await context.endUser(userId, {}, deadline)
    else await endChildren(context, series, null, 'theft', deadline)
    // Parallel requests with one stolen token are one theft.
    if (isFirst)
      context.emit({ type: 'remember-theft', key: series.key as SessionKey, userId: context.users.fromText(userId) })
    return null
  }
}

const bornId = (selector: string, verifier: string, salt: string, bornAt: number) =>
  deriveId(shardOf(selector), verifier, 'session', `${salt}\0${bornAt}`)
const nextVerifier = (verifier: string, salt: string) => hmac(verifier, `next\0${salt}`)
