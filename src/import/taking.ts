// How a session of another library becomes one of ours, exactly once. Any number of requests, on any number of nodes, may
// come with its cookie at the same moment:
//
// 1. each that finds no mark begins a session of its own, under an ID that is derived from what its browser sent and a
//    random salt; no browser has it yet. It ends again where the old record has ended meanwhile;
// 2. each writes a mark that says so. The store lets the first one through: its session is the one. The others end theirs,
//    and derive the ID of that one with the salt in the mark;
// 3. the old record is removed.
//
// A crash after 1 leaves a session that no browser can have, until it expires; after 2 an old record that nothing leads to.
// Where the mark's session is gone, its browser has logged out, or the session was ended otherwise: none begins again.
import { SessionStoreError } from '../contract/errors.ts'
import type { SessionRecord } from '../contract/store.ts'
import type { Context } from '../manager/context.ts'
import { contextOf } from '../manager/context-of.ts'
import { endSession } from '../manager/end.ts'
import { find } from '../manager/lookup.ts'
import type { SessionManager } from '../manager/manager.ts'
import { firstData, newRecord } from '../manager/records.ts'
import { refusal } from '../manager/refusals.ts'
import { expiryOf, isUnvisited, lifetimeOf } from '../session/expiry.ts'
import { deriveId, newSalt, type SessionId, shardOf } from '../session/id.ts'
import type { Session } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import { ANONYMOUS, checkAnonymous, checkLogin } from '../session/users.ts'
import { quote } from '../text/quote.ts'
import { isObject, type OldSession, type OldSessionId } from './from.ts'
import { isInGrace, type Mark, Marks, WORTHLESS } from './marks.ts'
import { epoch, OldStore } from './old-store.ts'
import type { OldLogin, OldVisitor, SessionImporterOptions } from './options.ts'

/**
 * How long the old cookie leads to the new session once the browser was seen to have the new cookie: the slowest of parallel
 * requests, in ms. As long as a browser was not, since the response that brought it may be lost, the time begins anew.
 */
const GRACE = 120_000

/** What an old cookie leads to; the session is `null` where it has ended. */
export interface Taken<D extends object, I extends UserIds> {
  readonly id: SessionId
  readonly session: Session<D, I> | null
  /** The browser goes on with the old cookie alone. */
  readonly isLent: boolean
}

type FullTicket = Required<OldSessionId>

export class Taking<D extends object, I extends UserIds, In extends object, T> {
  readonly #sessions: SessionManager<D, I, In>
  readonly #context: Context<D, I, In>
  readonly #marks: Marks
  readonly #old: OldStore<T>
  readonly #keepOld: boolean
  readonly #toLogin: SessionImporterOptions<D, I, In, T>['toLogin']
  readonly #tell: (error: Error) => void
  /** Requests of one browser in this process share one look. */
  readonly #underWay = new Map<string, Promise<Taken<D, I> | null>>()

  constructor(
    sessions: SessionManager<D, I, In>,
    source: string,
    options: SessionImporterOptions<D, I, In, T>,
    tell: (error: Error) => void,
  ) {
    this.#sessions = sessions
    this.#context = contextOf<D, I, In>(sessions)
    this.#marks = new Marks(this.#context, source)
    this.#old = new OldStore(this.#context, options.from, tell)
    this.#keepOld = options.keepOld ?? false
    this.#toLogin = (data, session) => options.toLogin(data, session)
    this.#tell = tell
  }

  /** What a genuine old cookie leads to, taken over where it was not yet; `null`: nothing of ours. */
  take(ticket: FullTicket): Promise<Taken<D, I> | null> {
    const { id } = ticket
    let taking = this.#underWay.get(id)
    if (taking === undefined) {
      taking = this.#take(ticket, this.#context.deadline()).finally(() => this.#underWay.delete(id))
      this.#underWay.set(id, taking)
    }
    return taking
  }

  /** The browser logs in or out: its old cookie leads nowhere any more, whatever the old store keeps. */
  async leave({ id }: FullTicket, deadline: number): Promise<void> {
    while (!(await this.#marks.create(id, WORTHLESS, null, deadline))) {
      const mark = await this.#marks.read(id, deadline)
      if (mark !== null && (await this.#marks.change(mark, WORTHLESS, deadline))) break
    }
    // Nodes of the old service ask their store alone: there the session has to end, or the logout has failed.
    if (this.#keepOld) await this.#old.end(id, deadline)
    else await this.#endOld(id, deadline)
  }

  endUser(user: string, deadline: number): Promise<void> {
    return this.#marks.endUser(user, deadline)
  }

  async #take(ticket: FullTicket, deadline: number): Promise<Taken<D, I> | null> {
    const mark = await this.#marks.read(ticket.id, deadline)
    if (mark !== null) await this.#quietly(this.#marks.sight(mark, deadline))
    if (mark !== null && !(mark.isLent && this.#keepOld)) return this.#follow(ticket, mark, deadline)
    const old = await this.#old.read(ticket.id, deadline)
    if (mark !== null) return this.#lend(ticket, mark, old, deadline)
    if (old !== null) return this.#begin(ticket, old, deadline)
    // It may have been taken over between both looks.
    const late = await this.#marks.read(ticket.id, deadline)
    return late === null ? null : this.#follow(ticket, late, deadline)
  }

  /** The session that the mark names, for requests which came with the old cookie before the browser had the new one. */
  async #follow(ticket: FullTicket, mark: Mark, deadline: number): Promise<Taken<D, I> | null> {
    const id = this.#idFrom(ticket, mark)
    if (id === null) return null
    const now = this.#context.now()
    const found = await find(this.#context, id, now, deadline)
    const taken = (session: Session<D, I> | null): Taken<D, I> => ({ id, session, isLent: false })
    if (found === null) return taken(null)
    if (mark.isLent) {
      // The old nodes are gone: the browser gets our cookie, and the old record goes.
      const moved = { ...mark, isLent: false, until: now + GRACE }
      if (!(await this.#marks.change(mark, moved, deadline))) return this.#take(ticket, deadline)
      await this.#endOld(ticket.id, deadline)
      return taken(this.#context.session(found, true))
    }
    const isUnvisitedYet = isUnvisited(found.record)
    if (!isUnvisitedYet && !isInGrace(mark, now)) return null
    if (isUnvisitedYet && now > mark.until - GRACE / 2)
      await this.#quietly(this.#marks.change(mark, { ...mark, until: now + GRACE }, deadline))
    return taken(this.#context.session(found, true))
  }

  /** While nodes of the old service run: the session lives as long as the old record does. */
  async #lend(
    ticket: FullTicket,
    mark: Mark,
    old: OldSession<T> | null,
    deadline: number,
  ): Promise<Taken<D, I> | null> {
    const id = this.#idFrom(ticket, mark)
    if (id === null) return null
    if (old === null) {
      // Logged out at an old node, unless a node that moves sessions has taken it over meanwhile.
      const latest = await this.#marks.read(ticket.id, deadline)
      if (latest !== null && !latest.isLent) return this.#follow(ticket, latest, deadline)
      await endSession(this.#context, mark.key, null, 'logout', deadline)
      return { id, session: null, isLent: true }
    }
    return { id, session: await this.#sessions.get(id), isLent: true }
  }

  async #begin(ticket: FullTicket, old: OldSession<T>, deadline: number): Promise<Taken<D, I> | null> {
    const { calls } = this.#context
    const login = await this.#toLogin(old.data, old)
    if (login === null || login === undefined) return null
    const now = this.#context.now()
    const made = this.#recordFor(ticket, login, old, now)
    // Older than a session of ours may be: it has ended, as the others of its age have.
    if (made === null) return null
    const { id, salt, record, known } = made
    const call = { now, deadline }
    const refuse = async () => {
      await this.#marks.create(ticket.id, WORTHLESS, old, deadline)
      await this.#endOld(ticket.id, deadline)
      return null
    }
    // No limit of sessions: this user is logged in already, and moving ends no other session.
    const { outcome } = await calls.create(record, {}, call)
    // The password was changed after the old session's was verified: for good, also when the floor is forgotten.
    if (outcome === 'stale-login') return refuse()
    if (outcome !== 'created') throw refusal(this.#context, outcome)
    const undo = () => calls.delete(record.key, { now: this.#context.now(), deadline })
    let isFirst: boolean
    try {
      // Asked after the session began: one that began before the end of the user's sessions has ended with them.
      if (record.userId !== null && (await this.#marks.hasUserEnded(record.userId, known, deadline))) {
        await undo()
        return refuse()
      }
      // Asked again for the same reason: where the old store was emptied before `invalidateAll`, that has not met this session.
      if ((await this.#old.read(ticket.id, deadline)) === null) {
        await undo()
        return this.#take(ticket, deadline)
      }
      const mark = { key: record.key, salt, until: now + GRACE, isLent: this.#keepOld }
      isFirst = await this.#marks.create(ticket.id, mark, old, deadline)
    } catch (error) {
      // Where the mark may have been written, the session stays: it leads there.
      if (error instanceof SessionStoreError && error.outcome === 'not-applied') await this.#quietly(undo())
      throw error
    }
    if (!isFirst) {
      await undo()
      return this.#take(ticket, deadline)
    }
    const userId = this.#context.userIdOf(record)
    const session = this.#context.begun({ id, record, userId, isFollowed: false })
    this.#context.emit({ type: 'created', key: session.key, userId, remembered: false })
    if (!this.#keepOld) await this.#endOld(ticket.id, deadline)
    return { id, session, isLent: this.#keepOld }
  }

  /** The record of the session that takes the old one's place; `null` where it would have expired already. */
  #recordFor(
    { secrets }: FullTicket,
    given: OldLogin<D, I, In> | OldVisitor<In>,
    old: OldSession<T>,
    now: number,
  ): { id: SessionId; salt: string; record: SessionRecord; known: number | null } | null {
    if (!isObject(given) || !('user' in given || 'data' in given))
      throw new TypeError(`toLogin: expected { user: { id, name }, data }, { data } or null, got ${quote(given)}`)
    const { createdAt: said, verifiedAt = null, ...rest } = given as OldLogin<D, I, In>
    const login = { ...rest, verifiedAt }
    checkLogin('toLogin', login)
    const isVisitor = !('user' in given)
    if (isVisitor) checkAnonymous(rest)
    const begun = epoch('createdAt', said)
    const owner = isVisitor ? ANONYMOUS : this.#context.users.ownerOf(login, now)
    const { idle, absolute } = lifetimeOf(login, this.#context.options)
    const known = begun ?? old.createdAt ?? null
    const createdAt = Math.max(1, Math.min(now, known ?? old.seenAt ?? now))
    const absoluteExpiresAt = createdAt + absolute
    if (absoluteExpiresAt <= now) return null
    const salt = newSalt()
    const shard = this.#context.users.shardOf(owner.userId) ?? shardOf(newSalt())
    const id = deriveId(shard, secrets[0], 'import', salt) as SessionId
    const { data: first } = login
    const data = firstData(this.#context, isVisitor ? { ...(first !== undefined && { data: first }) } : login, null)
    const record = {
      ...newRecord(this.#context, id, owner, data, now),
      createdAt,
      // Not used yet: its first visit tells that the browser has the new cookie.
      seenAt: createdAt - 1,
      // Beside nodes of the old service their record says when the session was idle for too long: they see visits that we do
      // not.
      expiresAt: this.#keepOld ? absoluteExpiresAt : expiryOf(now, absoluteExpiresAt, idle),
      absoluteExpiresAt,
    }
    return { id, salt, record, known }
  }

  /** The ID that the holder of the old cookie derives; a reader of both stores cannot. */
  #idFrom({ secrets }: FullTicket, { key, salt }: Mark): SessionId | null {
    for (const secret of secrets) {
      const id = deriveId(shardOf(key), secret, 'import', salt)
      if (this.#context.keyOf(id) === key) return id as SessionId
    }
    return null
  }

  /** The mark keeps the old record from being used again: where it cannot be removed now, it expires by itself. */
  async #endOld(id: string, deadline: number): Promise<void> {
    try {
      await this.#old.end(id, deadline)
    } catch (cause) {
      this.#tell(new Error('import: the record of a session that was taken over could not be removed', { cause }))
    }
  }

  /** For what the next request does as well; a failure was told as an event. */
  async #quietly(work: Promise<unknown>): Promise<void> {
    await work.catch(() => {})
  }
}
