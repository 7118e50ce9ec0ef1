// A rolling deploy: some nodes have only the old store, and some have both. Each save here goes to both stores. A mark says
// that a session was in both: if one of them no longer has it, it has ended there.
import { answerOf } from '../import/from.ts'
import { Marks, OVER } from '../import/marks.ts'
import type { CallbackStore } from '../import/readers/callback-store.ts'
import { type Context, contextOf } from '../manager/context.ts'
import { Held, type KeptSessions } from './kept-sessions.ts'
import { dataOf, type Texts, textsOf, withCookie } from './values.ts'

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

  async load(sid: string): Promise<Held | null> {
    const [old, kept] = await Promise.all([this.#ask('get', sid), this.#kept.load(sid)])
    const isInOne = (old === null) !== (kept === null)
    // A mark is written after its session: another request may have been about to.
    if (isInOne && (await this.#isMarked(sid)) && (old === null || (await this.#kept.load(sid)) === null)) {
      await this.destroy(sid)
      return null
    }
    if (old === null) return kept
    const held = kept ?? new Held(sid)
    if (!(await this.#kept.save(held, textsOf(old), true))) return null
    if (kept === null) await this.#mark(sid)
    return held
  }

  async save(held: Held, given: Texts, byHand: boolean): Promise<boolean> {
    if (!(await this.#kept.save(held, given, byHand))) return false
    await this.#mark(held.sid)
    await this.#ask('set', held.sid, dataOf(given))
    return true
  }

  async touch(held: Held, cookie: unknown): Promise<boolean> {
    const isThere = await this.#kept.touch(held, cookie)
    if (isThere) await this.#ask('touch', held.sid, dataOf(withCookie(held.texts, cookie)))
    return isThere
  }

  async destroy(sid: string): Promise<void> {
    await Promise.all([this.#kept.destroy(sid), this.#ask('destroy', sid)])
  }

  async #isMarked(sid: string): Promise<boolean> {
    return (await this.#marks.read(sid, this.#context.begin().deadline)) !== undefined
  }

  async #mark(sid: string): Promise<void> {
    const now = this.#context.now()
    const life = { data: null, seenAt: now, expiresAt: now + this.#context.options.absolute }
    await this.#marks.create(sid, OVER, life, this.#context.begin().deadline)
  }

  /** koa-session's stores have no `touch`. */
  async #ask(verb: 'get' | 'set' | 'touch' | 'destroy', ...args: unknown[]): Promise<unknown> {
    const call = this.#old[verb] as undefined | ((...args: unknown[]) => unknown)
    return call && ((await answerOf(callback => call.call(this.#old, ...args, callback))) ?? null)
  }
}
