import { contextOf } from '../manager/context.ts'
import { endSession } from '../manager/end.ts'
import { storedRecord } from '../manager/lookup.ts'
import type { SessionManager } from '../manager/manager.ts'
import { thaw } from '../manager/records.ts'
import { isKey } from '../session/id.ts'

/** What callers of `req.sessionStore` give: it hears the error, or `null` and what was found. */
export type StoreCallback<T = void> = ((error: unknown, value?: T) => void) | undefined

/** `req.sessionStore`: what middleware asks of it, by `req.sessionID`. All else is an error that says what to call instead. */
export interface RequestSessionStore {
  /** The data of a live session, `null` for any other. */
  get(sid: unknown, callback?: StoreCallback<object | null>): void
  load(sid: unknown, callback?: StoreCallback<object | null>): void
  /** Ends a session, as `sessions.revoke` does; nothing where there is none. */
  destroy(sid: unknown, callback?: StoreCallback): void
  /** `request.session.regenerate(callback)`. */
  regenerate(request: { session?: unknown }, callback?: StoreCallback): void
  /** Does nothing: a session in use lives on by itself. */
  touch(sid: unknown, session: unknown, callback?: StoreCallback): void
}

const ABSENT: Readonly<Record<string, string>> = {
  set: 'assign to req.session, and call req.session.save(callback)',
  generate: 'call req.session.regenerate(callback)',
  createSession: 'req.session is made by the middleware, for its own request alone',
  all: 'the SessionManager walks over the sessions: sessions.all()',
  length: 'the SessionManager counts the sessions: sessions.count()',
  clear: 'the SessionManager ends the sessions: sessions.invalidateAll()',
  ids: 'the SessionManager walks over the sessions: sessions.all()',
}

function answer<T>(asked: () => Promise<T>, callback: StoreCallback<T>): void {
  asked().then(
    value => process.nextTick(callback ?? (() => {}), null, value),
    error => process.nextTick(callback ?? warn, error),
  )
}

function warn(error: unknown): void {
  process.emitWarning(`req.sessionStore: ${error instanceof Error ? error.message : error}`, 'CoatcheckWarning')
}

/** One for all requests of a bridge. */
export function makeSessionStore(
  // biome-ignore lint/suspicious/noExplicitAny: of whichever data and user IDs
  sessions: SessionManager<any, any, any>,
): RequestSessionStore {
  const context = contextOf(sessions)
  const find = async (sid: unknown) => {
    const record = isKey(sid) ? await storedRecord(context, sid, context.deadline()) : null
    return record?.kind === 'session' ? record : null
  }
  const get = (sid: unknown, callback: StoreCallback<object | null>) =>
    answer(async () => {
      const record = await find(sid)
      return record === null ? null : thaw(context, record)
    }, callback)
  const store = {
    get,
    load: get,
    destroy: (sid: unknown, callback: StoreCallback) =>
      answer(async () => {
        const record = await find(sid)
        const userId = record === null ? null : context.userIdOf(record)
        // A user's session ends with the remember-me series of its device.
        if (record !== null && userId !== null) await sessions.revoke(userId, record.key)
        else if (record !== null) await endSession(context, record.key, null, 'revoked', context.deadline())
      }, callback),
    regenerate: (request: { session?: unknown }, callback: StoreCallback) => {
      const { session } = request as { session?: { regenerate(back: StoreCallback): void } }
      if (session === undefined || session === null)
        throw new TypeError('req.sessionStore.regenerate: this request has no session: it was destroyed')
      session.regenerate(callback)
    },
    touch: (_sid: unknown, _session: unknown, callback: StoreCallback) => answer(async () => {}, callback),
  }
  for (const [name, advice] of Object.entries(ABSENT))
    Object.defineProperty(store, name, {
      value: () => {
        throw new TypeError(`req.sessionStore.${name}: there is no such method over coatcheck; ${advice}`)
      },
    })
  return Object.freeze(store)
}
