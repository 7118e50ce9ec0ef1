// A rolling deploy: some nodes have the old store alone, and some both. What is saved here goes to both stores. A mark says of
// a session that it was in both, so that if one of them has lost it, it has ended there.
import { answerOf } from '../import/from.ts'
import { Marks, OVER } from '../import/marks.ts'
import type { CallbackStore } from '../import/readers/callback-store.ts'
import { type Context, contextOf } from '../manager/context.ts'
import type { KeptSessions, Loaded } from './kept-sessions.ts'
import { fromStore, toStore, type Values, valuesOf } from './values.ts'

/** The store that express-session, @fastify/session or koa-session had before. */
export interface OldConnectStore extends CallbackStore {
  set(sid: string, session: unknown, callback: (error?: unknown) => void): unknown
  touch?(sid: string, session: unknown, callback: (error?: unknown) => void): unknown
}

export class BesideOldStore implements Pick<KeptSessions, 'load' | 'save' | 'touch' | 'destroy'> {
  readonly #kept: KeptSessions
  readonly #old: OldConnectStore
  readonly #context: Context
  readonly #marks: Marks

  constructor(kept: KeptSessions, old: OldConnectStore) {
    this.#kept = kept
    this.#old = old
    this.#context = contextOf(kept.manager)
    this.#marks = new Marks(this.#context, 'connect')
  }

  async load(sid: string): ReturnType<KeptSessions['load']> {
    const [old, first] = await Promise.all([this.#ask('get', sid), this.#kept.load(sid)])
    let found = first
    if ((old === null) !== (found === null) && (await this.#isMarked(sid))) {
      // A mark is written after its session: another request may have been about to.
      found = old === null ? null : await this.#kept.load(sid)
      if (found === null) {
        await this.destroy(sid)
        return null
      }
    }
    if (old === null) return found
    const values = valuesOf(old)
    const loaded = await this.save(sid, values, found?.loaded, true, false)
    return loaded && { values: fromStore(toStore(values)), loaded }
  }

  async save(sid: string, given: Values, known: Loaded | undefined, byHand: boolean, toOld = true) {
    const loaded = await this.#kept.save(sid, given, known, byHand)
    if (loaded === null) return null
    if (toOld || known === undefined) await this.#mark(sid)
    if (toOld) await this.#ask('set', sid, given)
    return loaded
  }

  async touch(sid: string, given: Values, known: Loaded | undefined): Promise<Loaded | null> {
    const loaded = await this.#kept.touch(sid, given, known)
    if (loaded !== null && this.#old.touch) await this.#ask('touch', sid, given)
    return loaded
  }

  async destroy(sid: string): Promise<void> {
    await Promise.all([this.#kept.destroy(sid), this.#ask('destroy', sid)])
  }

  async #isMarked(sid: string): Promise<boolean> {
    return (await this.#marks.read(sid, this.#context.deadline())) !== undefined
  }

  async #mark(sid: string): Promise<void> {
    const now = this.#context.now()
    const life = { data: null, seenAt: now, expiresAt: now + this.#context.options.absolute }
    await this.#marks.create(sid, OVER, life, this.#context.deadline())
  }

  async #ask(verb: 'get' | 'set' | 'touch' | 'destroy', ...args: unknown[]): Promise<unknown> {
    const call = this.#old[verb] as (...args: unknown[]) => unknown
    return (await answerOf(callback => call.call(this.#old, ...args, callback))) ?? null
  }
}
