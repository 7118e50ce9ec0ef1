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
import { find } from '../manager/lookup.ts'
import { expiryOf, initialData, newRecord, startOf } from '../manager/records.ts'
import { deriveId, newSalt, newWriteId, type SessionId, shardOf } from '../session/id.ts'
import type { UserIdInput, UserIds } from '../session/users.ts'
import { quote } from '../text/quote.ts'
import { Recent } from '../time/recent.ts'
import { within } from '../time/within.ts'
import { isObject, type OldSession, type OldSessionId } from './from.ts'
import { type Note, Notes, OVER } from './notes.ts'
import { destroyOld, epoch, readOld } from './old-store.ts'
import type { OldLogin, OldVisitor, SessionImporterOptions } from './options.ts'

type OldId = Required<OldSessionId>
/** Where an old cookie leads: to this ID, nowhere any more (`OVER`), or to nothing of ours. */
type Lead = SessionId | typeof OVER | undefined

/** Knows no types of data and user IDs: the importer adds them. */
export class Import {
  readonly #context: Context
  readonly #notes: Notes
  readonly #options: SessionImporterOptions
  /** Whether old cookies were of no more use, for five minutes. */
  readonly #spent = new Recent<boolean>(5 * 60_000)
  /** Requests of one browser in this process share one look. */
  readonly #underWay = new Map<string, Promise<Lead>>()

  constructor(context: Context, source: string, options: SessionImporterOptions) {
    this.#context = context
    this.#notes = new Notes(source)
    this.#options = options
  }

  /** Where a genuine old cookie leads. Its session is imported unless it was. */
  take(old: OldId): Promise<Lead> {
    let taking = this.#underWay.get(old.id)
    if (taking === undefined) {
      taking = this.#take(this.#context.begin(), old).finally(() => this.#underWay.delete(old.id))
      this.#underWay.set(old.id, taking)
    }
    return taking
  }

  /** Logout: ends the session behind an old cookie for good, imported or not. Writes nothing if there is none. */
  async end({ id }: OldId): Promise<void> {
    const context = this.#context.begin()
    const { from } = this.#options
    let note = await this.#notes.read(context, id)
    if (note === undefined) {
      const found = await readOld(context, from, id)
      const isFirst = found !== null && (await this.#notes.create(context, id, OVER, found))
      note = isFirst ? OVER : await this.#notes.read(context, id)
    }
    if (note === undefined) return
    if (note !== OVER) await context.endSession(note.key, { userId: null }, 'logout')
    await destroyOld(context, from, id)
  }

  /** Whether old cookies are of no more use to a browser that has a session of ours. Old records of imported sessions are removed. */
  async areSpent(old: readonly OldId[]): Promise<boolean> {
    const context = this.#context.begin()
    return (await Promise.all(old.map(({ id }) => this.#isSpent(context, id)))).every(is => is)
  }

  /** Asked once in five minutes: who has a session here must not wait for a dead old store at each request. A logout ends both. */
  async #isSpent(context: Context, id: string): Promise<boolean> {
    const known = this.#spent.get(id, performance.now())
    if (known !== undefined) return known
    this.#spent.set(id, false, performance.now())
    const { from } = this.#options
    const wasImported = (await this.#notes.read(context, id)) !== undefined
    if (wasImported) await destroyOld(context, from, id)
    // If the old store cannot say, that does not concern this browser.
    const isSpent = wasImported || (await readOld(context, from, id).catch(() => undefined)) === null
    this.#spent.set(id, isSpent, performance.now())
    return isSpent
  }

  endUser(userId: UserIdInput<UserIds>): Promise<void> {
    return this.#notes.endUser(this.#context.begin(), this.#context.users.toText(userId))
  }

  async #take(context: Context, old: OldId): Promise<Lead> {
    const note = await this.#notes.read(context, old.id)
    if (note !== undefined) return this.#follow(context, old, note)
    const found = await readOld(context, this.#options.from, old.id)
    if (found !== null) return this.#begin(context, old, found)
    // Between both looks another node may have imported it, and the browser may have come with our cookie.
    const late = await this.#notes.read(context, old.id)
    return late === undefined ? undefined : this.#follow(context, old, late)
  }

  async #follow(context: Context, { secret }: OldId, note: Note | typeof OVER): Promise<Lead> {
    if (note === OVER) return OVER
    const id = deriveId(shardOf(note.key), secret, 'import', note.salt) as SessionId
    // It came with another cookie for the same ID, such as one that the old service has signed anew since.
    if (context.keyOf(id) !== note.key) return undefined
    return (await find(context, id, context.now())) === null ? OVER : id
  }

  async #begin(context: Context, old: OldId, found: OldSession): Promise<Lead> {
    const { calls, deadline } = context
    const asked = (async () => this.#options.toLogin(found.data, found))()
    const login = await within(deadline, asked, {
      late: () => calls.fail('read', 'not-applied', 'read: toLogin did not answer within storeTimeout'),
    })
    if (login === null || login === undefined) return undefined
    const begun = this.#beginningOf(context, old, login, found)
    // Older than a session of ours may be: it has ended, as the others of its age have.
    if (begun === null) return undefined
    const { record, next, note } = begun
    const undo = () => calls.delete(record.key, context.call())
    let mayLead = false
    try {
      // No limit of sessions: this user is logged in already, and moving ends no other session.
      const outcome = await calls.create(record, context.call())
      if (outcome !== 'created' && outcome !== 'stale-login')
        throw calls.fail('create', 'not-applied', `create: the store answered '${outcome}'`)
      // Refused if the password was changed after it was verified for the old session, or if the user's sessions ended.
      let isOver = outcome !== 'created'
      isOver ||= (await calls.replace(record.key, 1, next, { forward: begun.forward }, context.call())) !== 'created'
      // Asked after the session began: if it began before their end, it has ended with them.
      isOver ||= record.userId !== null && (await this.#notes.hasUserEnded(context, record.userId, begun.since))
      // For the same reason: if the old store was emptied before `invalidateAll`, that may not have met this session.
      const isGone = !isOver && (await readOld(context, this.#options.from, old.id)) === null
      if (isOver || isGone) await undo()
      if (isGone) return this.#take(context, old)
      mayLead = true
      if (!(await this.#notes.create(context, old.id, isOver ? OVER : note, found))) {
        await undo()
        return this.#take(context, old)
      }
      if (isOver) return OVER
    } catch (error) {
      // If the note may have been written, it leads to this session. Before, no browser can have it.
      mayLead &&= error instanceof SessionStoreError && error.outcome === 'unknown'
      if (!mayLead) await undo().catch(() => {})
      throw error
    }
    const userId = context.userIdOf(next)
    context.emit({ type: 'created', key: context.keyOf(begun.id), userId, remembered: false })
    return this.#follow(context, old, note)
  }

  /** The session that takes the old one's place; `null` if it would have expired already. */
  #beginningOf(context: Context, { secret }: OldId, given: OldLogin | OldVisitor, old: OldSession) {
    if (!isObject(given) || !('user' in given || 'data' in given))
      throw new TypeError(`toLogin: expected { user: { id, name }, data }, { data } or null, got ${quote(given)}`)
    const { createdAt: said, verifiedAt = null, ...rest } = given as OldLogin
    const isLogin = 'user' in given
    const login = isLogin ? { ...rest, verifiedAt } : rest
    const { owner, lifetime } = startOf(context, 'toLogin', login, isLogin)
    const now = context.now()
    const since = epoch('createdAt', said) ?? old.createdAt ?? null
    const createdAt = Math.max(1, Math.min(now, since ?? old.seenAt ?? now))
    const absoluteExpiresAt = createdAt + lifetime.absolute
    if (absoluteExpiresAt <= now) return null

    const shard = context.users.shardOf(owner.userId) ?? shardOf(newSalt())
    const [salt, nextSalt] = [newSalt(), newSalt()]
    const first = deriveId(shard, secret, 'import', salt)
    const id = deriveId(shard, first, 'regenerate', nextSalt)
    const record: SessionRecord = {
      ...newRecord(context, first, owner, initialData(context, login), now, lifetime),
      createdAt,
      expiresAt: expiryOf(now, absoluteExpiresAt, lifetime.idle),
      absoluteExpiresAt,
    }
    const next = { ...record, key: context.keyOf(id), writeId: newWriteId() }
    const forward = { salt: nextSalt, until: absoluteExpiresAt }
    return { record, next, forward, id, note: { key: record.key, salt }, since }
  }
}
