// How a session of another library becomes one of ours, exactly once. Any number of requests, on any number of nodes, may
// come with its cookie at the same moment:
//
// 1. each that finds no note begins a session. The ID that its cookie and a random salt derive leads there by a forward, as
//    after `regenerate` with a grace: each response brings the browser the session's own ID;
// 2. each writes a note with the salt. The store lets one through, and that session is the one. The others end theirs.
//
// A crash after 1 leaves a session that no browser can have, until it has been idle for too long. The old record is removed
// when the browser comes with our cookie: until then it could go back to the old service.
import { SessionStoreError } from '../contract/errors.ts'
import type { SessionRecord } from '../contract/store.ts'
import type { Context } from '../manager/context.ts'
import type { SessionManager } from '../manager/manager.ts'
import { expiryOf, initialData, lifetimeOf, newRecord } from '../manager/records.ts'
import { deriveId, newSalt, newWriteId, type SessionId, shardOf } from '../session/id.ts'
import type { UserIdInput, UserIds } from '../session/users.ts'
import { ANONYMOUS, checkAnonymous, checkLogin } from '../session/users.ts'
import { quote } from '../text/quote.ts'
import { Recent } from '../time/recent.ts'
import { within } from '../time/within.ts'
import { isObject, type OldSession, type OldSessionId } from './from.ts'
import { type Note, Notes, OVER } from './notes.ts'
import { epoch, OldStore } from './old-store.ts'
import type { OldLogin, OldVisitor, SessionImporterOptions } from './options.ts'

type OldId = Required<OldSessionId>
/** Where an old cookie leads: to this ID, nowhere any more (`OVER`), or to nothing of ours. */
type Lead = SessionId | typeof OVER | undefined

export class Import<Data extends object, Ids extends UserIds, Input extends object> {
  readonly #sessions: SessionManager<Data, Ids, Input>
  readonly #context: Context
  readonly #notes: Notes
  readonly #old: OldStore
  readonly #options: SessionImporterOptions<Data, Ids, Input>
  /** Whether old cookies were of no more use, for five minutes. */
  readonly #spent = new Recent<boolean>(5 * 60_000)
  /** Requests of one browser in this process share one look. */
  readonly #underWay = new Map<string, Promise<Lead>>()

  constructor(
    sessions: SessionManager<Data, Ids, Input>,
    context: Context,
    source: string,
    options: SessionImporterOptions<Data, Ids, Input>,
  ) {
    this.#sessions = sessions
    this.#context = context
    this.#notes = new Notes(this.#context, source)
    this.#old = new OldStore(this.#context, options.from)
    this.#options = options
  }

  /** Where a genuine old cookie leads. Its session is imported unless it was. */
  take(old: OldId): Promise<Lead> {
    let taking = this.#underWay.get(old.id)
    if (taking === undefined) {
      taking = this.#take(old, this.#context.begin().deadline).finally(() => this.#underWay.delete(old.id))
      this.#underWay.set(old.id, taking)
    }
    return taking
  }

  /** Logout: ends the session behind an old cookie for good, imported or not. Writes nothing if there is none. */
  async end({ id }: OldId): Promise<void> {
    const context = this.#context.begin()
    const { deadline } = context
    let note = await this.#notes.read(id, deadline)
    if (note === undefined) {
      const found = await this.#old.read(id, deadline)
      const isFirst = found !== null && (await this.#notes.create(id, OVER, found, deadline))
      note = isFirst ? OVER : await this.#notes.read(id, deadline)
    }
    if (note === undefined) return
    if (note !== OVER) await context.endSession(note.key, { userId: null }, 'logout')
    await this.#old.destroy(id, deadline)
  }

  /** Whether old cookies are of no more use to a browser that has a session of ours. Old records of imported sessions are removed. */
  async areSpent(old: readonly OldId[]): Promise<boolean> {
    const { deadline } = this.#context.begin()
    return (await Promise.all(old.map(({ id }) => this.#isSpent(id, deadline)))).every(is => is)
  }

  /** Asked once in five minutes: who has a session here must not wait for a dead old store at each request. A logout ends both. */
  async #isSpent(id: string, deadline: number): Promise<boolean> {
    const known = this.#spent.get(id, performance.now())
    if (known !== undefined) return known
    this.#spent.set(id, false, performance.now())
    const wasImported = (await this.#notes.read(id, deadline)) !== undefined
    if (wasImported) await this.#old.destroy(id, deadline)
    // If the old store cannot say, that does not concern this browser.
    const isSpent = wasImported || (await this.#old.read(id, deadline).catch(() => undefined)) === null
    this.#spent.set(id, isSpent, performance.now())
    return isSpent
  }

  endUser(userId: UserIdInput<Ids>): Promise<void> {
    return this.#notes.endUser(this.#context.users.toText(userId), this.#context.begin().deadline)
  }

  async #take(old: OldId, deadline: number): Promise<Lead> {
    const note = await this.#notes.read(old.id, deadline)
    if (note !== undefined) return this.#follow(old, note)
    const found = await this.#old.read(old.id, deadline)
    if (found !== null) return this.#begin(old, found, deadline)
    // Between both looks another node may have imported it, and the browser may have come with our cookie.
    const late = await this.#notes.read(old.id, deadline)
    return late === undefined ? undefined : this.#follow(old, late)
  }

  async #follow({ secret }: OldId, note: Note | typeof OVER): Promise<Lead> {
    if (note === OVER) return OVER
    const id = deriveId(shardOf(note.key), secret, 'import', note.salt) as SessionId
    // It came with another cookie for the same ID, such as one that the old service has signed anew since.
    if (this.#context.keyOf(id) !== note.key) return undefined
    return (await this.#sessions.get(id, { touch: false })) === null ? OVER : id
  }

  async #begin(old: OldId, found: OldSession, deadline: number): Promise<Lead> {
    const asked = (async () => this.#options.toLogin(found.data, found))()
    const login = await within(deadline, asked, {
      accept: answer => answer,
      failed: cause => cause,
      late: () => this.#context.calls.fail('read', 'not-applied', 'read: toLogin did not answer within storeTimeout'),
    })
    if (login === null || login === undefined) return undefined
    const begun = this.#beginningOf(old, login, found)
    // Older than a session of ours may be: it has ended, as the others of its age have.
    if (begun === null) return undefined
    const { record, next, note } = begun
    const { calls } = this.#context
    const call = () => ({ now: this.#context.now(), deadline })
    const undo = () => calls.delete(record.key, call())
    let mayLead = false
    try {
      // No limit of sessions: this user is logged in already, and moving ends no other session.
      const outcome = await calls.create(record, call())
      if (outcome !== 'created' && outcome !== 'stale-login')
        throw calls.fail('create', 'not-applied', `create: the store answered '${outcome}'`)
      // Refused if the password was changed after it was verified for the old session, or if the user's sessions ended.
      let isOver = outcome !== 'created'
      isOver ||= (await calls.replace(record.key, 1, next, { forward: begun.forward }, call())) !== 'created'
      // Asked after the session began: if it began before their end, it has ended with them.
      isOver ||= record.userId !== null && (await this.#notes.hasUserEnded(record.userId, begun.since, deadline))
      // For the same reason: if the old store was emptied before `invalidateAll`, that may not have met this session.
      const isGone = !isOver && (await this.#old.read(old.id, deadline)) === null
      if (isOver || isGone) await undo()
      if (isGone) return this.#take(old, deadline)
      mayLead = true
      if (!(await this.#notes.create(old.id, isOver ? OVER : note, found, deadline))) {
        await undo()
        return this.#take(old, deadline)
      }
      if (isOver) return OVER
    } catch (error) {
      // If the note may have been written, it leads to this session. Before, no browser can have it.
      mayLead &&= error instanceof SessionStoreError && error.outcome === 'unknown'
      if (!mayLead) await undo().catch(() => {})
      throw error
    }
    const userId = this.#context.userIdOf(next)
    this.#context.emit({ type: 'created', key: this.#context.keyOf(begun.id), userId, remembered: false })
    return this.#follow(old, note)
  }

  /** The session that takes the old one's place; `null` if it would have expired already. */
  #beginningOf({ secret }: OldId, given: OldLogin<Data, Ids, Input> | OldVisitor<Input>, old: OldSession) {
    if (!isObject(given) || !('user' in given || 'data' in given))
      throw new TypeError(`toLogin: expected { user: { id, name }, data }, { data } or null, got ${quote(given)}`)
    const { createdAt: said, verifiedAt = null, ...rest } = given as OldLogin<Data, Ids, Input>
    const login = { ...rest, verifiedAt }
    const isVisitor = !('user' in given)
    if (isVisitor) checkAnonymous(rest, 'toLogin')
    else checkLogin('toLogin', login)
    const context = this.#context
    const now = context.now()
    const owner = isVisitor ? ANONYMOUS : context.users.ownerOf(login, now)
    const lifetime = lifetimeOf(login, context.options)
    const since = epoch('createdAt', said) ?? old.createdAt ?? null
    const createdAt = Math.max(1, Math.min(now, since ?? old.seenAt ?? now))
    const absoluteExpiresAt = createdAt + lifetime.absolute
    if (absoluteExpiresAt <= now) return null

    const shard = context.users.shardOf(owner.userId) ?? shardOf(newSalt())
    const [salt, nextSalt] = [newSalt(), newSalt()]
    const first = deriveId(shard, secret, 'import', salt)
    const id = deriveId(shard, first, 'regenerate', nextSalt)
    const record: SessionRecord = {
      ...newRecord(context, first, owner, initialData(context, isVisitor ? rest : login), now, lifetime),
      createdAt,
      expiresAt: expiryOf(now, absoluteExpiresAt, lifetime.idle),
      absoluteExpiresAt,
    }
    const next = { ...record, key: context.keyOf(id), writeId: newWriteId() }
    const forward = { salt: nextSalt, until: absoluteExpiresAt }
    return { record, next, forward, id, note: { key: record.key, salt }, since }
  }
}
