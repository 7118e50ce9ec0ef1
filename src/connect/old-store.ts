// The way over from another store: each of its sessions moves here at its first load, under the same ID. Nothing is ever
// written to it. As long as it is named, what ends here leaves a note under its own key: neither a slow load nor a late save of
// an old node can bring the session back.
import { answerOf } from '../import/from.ts'
import { createNote } from '../import/notes.ts'
import { askOldStore } from '../import/old-store.ts'
import type { CallbackStore } from '../import/readers/callback-store.ts'
import type { Context } from '../manager/context.ts'
import { DAY } from '../session/note.ts'
import { warnOnce } from '../text/warn-once.ts'
import { type AnyManager, Held, KeptSessions, type Loaded, type UserOf } from './kept-sessions.ts'
import { asLive, toStore, valuesOf } from './values.ts'

/** The store that express-session, @fastify/session or koa-session had before, by the two methods that are used. */
export type OldConnectStore = CallbackStore

export class MovingSessions extends KeptSessions {
  readonly #old: OldConnectStore

  constructor(manager: AnyManager, userOf: UserOf, old: OldConnectStore) {
    super(manager, userOf)
    this.#old = old
  }

  override async load(sid: string): Promise<Loaded | null> {
    const kept = await super.load(sid)
    const old = kept === null ? await this.#ask('get', sid) : null
    // One that is not there may have moved between both looks.
    if (old === null) return kept ?? super.load(sid)
    const values = toStore(asLive(valuesOf(old)))
    const user = this.userOf(values, {})
    // It would be dead from birth, and today's version may be that of a change since.
    if (user && user.passwordVersion === undefined && this.context.options.getPasswordVersion !== undefined) {
      warnOnce(
        'COATCHECK_NO_PASSWORD_VERSION',
        'connectStore: sessions of the old store do not move, and their users log in again: with getPasswordVersion the option userOf has to give the passwordVersion by their data, or null for a user who has none',
      )
      return null
    }
    const held = new Held(sid)
    const outcome = await this.insert(held, values)
    if (outcome === 'collision') return super.load(sid)
    // It was ended at an old node while it moved, or its password was changed since.
    if (typeof outcome === 'string' || (await this.#ask('get', sid)) === null) await this.#end(held, true)
    // If this fails, an event tells of it: the old record counts for nothing while the session, or its note, is here.
    await this.#ask('destroy', sid).catch(() => {})
    return super.load(sid)
  }

  /** Moves a session first: the logout of a stranger finds nothing, and leaves nothing. One that cannot move ends all the same. */
  override async destroy(held: Held): Promise<void> {
    const isThere = (await this.load(held.sid).catch(() => true)) !== null
    // The old record first: a slow load looks for it again after it has inserted the session.
    const destroying = this.#ask('destroy', held.sid)
    await destroying.catch(() => {})
    await this.#end(held, isThere)
    await destroying
  }

  async #end(held: Held, leavesNote: boolean): Promise<void> {
    const context = this.context.begin()
    const key = context.keyOf(this.idOf(held.sid))
    // Until a note is there. That of another request stays.
    for (let isOver = false; !isOver && (await context.storedRecord(key))?.kind !== 'remember'; )
      try {
        await super.destroy(held)
      } finally {
        // The answer may be lost, and it may have met the note of another logout: the note is written in any case.
        isOver = !leavesNote || (await this.#note(context, key))
      }
  }

  /** `false` if a session has begun there once more. */
  async #note(context: Context, key: string): Promise<boolean> {
    try {
      return await createNote(context, key, '', context.options.absolute + DAY)
    } catch (cause) {
      const told =
        'create: a session has ended, and its note was refused: a late save in the old store may bring it back'
      context.calls.fail('create', 'not-applied', told, { cause })
      return true
    }
  }

  #ask(verb: 'get' | 'destroy', sid: string): Promise<unknown> {
    const operation = verb === 'get' ? 'read' : 'delete'
    const run = async () => (await answerOf(callback => this.#old[verb](sid, callback))) ?? null
    return askOldStore(this.context.begin(), operation, sid, run)
  }
}
