import { quote } from '../text/quote.ts'
import type { OldSession } from './from.ts'
import { instant, isObject } from './from.ts'

/** A store of express-session or of @fastify/session, by the two methods that are used. */
export interface CallbackStore {
  get(id: string, callback: (error: unknown, session?: unknown) => void): unknown
  destroy(id: string, callback: (error?: unknown) => void): unknown
}

/** @throws TypeError that says what to pass */
export function checkStore(where: string, store: unknown): void {
  const { get, destroy } = (isObject(store) ? store : {}) as Partial<CallbackStore>
  if (typeof get !== 'function' || typeof destroy !== 'function')
    throw new TypeError(
      `${where}: expected the store that the old service has, with get(id) and destroy(id), got ${quote(store)}`,
    )
}

/** Some of these stores answer by the callback alone; some return a promise too, and only that rejects. */
function answerOf(call: (callback: (error: unknown, value?: unknown) => void) => unknown): Promise<unknown> {
  return new Promise((resolve, reject) => {
    Promise.resolve(call((error, value) => (error ? reject(error) : resolve(value)))).catch(reject)
  })
}

/** The session as such a store has it: the application's keys beside those of the library. */
export async function readFrom<T>(
  store: CallbackStore,
  id: string,
  own: readonly string[],
): Promise<OldSession<T> | null> {
  let found: unknown
  try {
    found = await answerOf(callback => store.get(id, callback))
  } catch (error) {
    // A store of files says so of an absent session, and both libraries take it for that.
    if ((error as { code?: unknown } | null)?.code === 'ENOENT') return null
    throw error
  }
  if (!isObject(found)) return null
  const cookie = (isObject(found.cookie) ? found.cookie : {}) as { expires?: unknown; originalMaxAge?: unknown }
  const expiresAt = instant(cookie.expires)
  const { originalMaxAge: age } = cookie
  // Both libraries set `expires` this far ahead at each visit.
  const seenAt = expiresAt !== null && typeof age === 'number' && age > 0 ? Math.floor(expiresAt - age) : null
  const data = Object.entries(found).filter(([name]) => !own.includes(name))
  return { data: Object.fromEntries(data) as T, seenAt, expiresAt }
}

export async function destroyIn(store: CallbackStore, id: string): Promise<void> {
  await answerOf(callback => store.destroy(id, callback))
}
