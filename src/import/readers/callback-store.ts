// The common part of the readers of express-session and @fastify/session: signed cookies, and stores that call back.
import { type Rule, rule } from '../../text/check-options.ts'
import { answerOf, instant, isObject, lastUse, type OldCookie, type OldSession, type OldSessions } from '../from.ts'
import { decoded, type Secret, secretsFrom, signedId } from './signature.ts'

/** A store of express-session or of @fastify/session, by the two methods that are used. */
export interface CallbackStore {
  get(id: string, callback: (error: unknown, session?: unknown) => void): unknown
  destroy(id: string, callback: (error?: unknown) => void): unknown
}

export const aStore = rule('the store that the old service has, with get(id) and destroy(id)', store => {
  const { get, destroy } = (isObject(store) ? store : {}) as Partial<CallbackStore>
  return typeof get === 'function' && typeof destroy === 'function'
})
export const aSecret: Rule = (secret, name) => void secretsFrom(name, secret as Secret)
export const aCookie = rule(
  "the name of a cookie, or { name, path, domain }, such as 'connect.sid'",
  value => typeof value === 'string' || typeof (value as OldCookie | null)?.name === 'string',
)

/** Sessions whose cookie is a prefix and a signed ID, in such a store. `own`: the library's keys in a record. */
export function signedSessions<T>(
  cookie: string | OldCookie,
  { secret, store }: { secret: Secret | readonly Secret[]; store: CallbackStore },
  { prefix, algorithm, own }: { prefix: string; algorithm: string; own: readonly string[] },
): OldSessions<T> {
  const secrets = secretsFrom('secret', secret)
  return {
    cookie,
    parse(value) {
      const text = decoded(value)
      return text?.startsWith(prefix) ? signedId(text.slice(prefix.length), secrets, algorithm) : null
    },
    read: id => readFrom<T>(store, id, own),
    destroy: async id => void (await answerOf(callback => store.destroy(id, callback))),
  }
}

/** The session as such a store has it: the application's keys beside those of the library. */
async function readFrom<T>(store: CallbackStore, id: string, own: readonly string[]): Promise<OldSession<T> | null> {
  const found = await answerOf(callback => store.get(id, callback))
  if (!isObject(found)) return null
  const cookie = (isObject(found.cookie) ? found.cookie : {}) as { expires?: unknown; originalMaxAge?: unknown }
  const expiresAt = instant(cookie.expires)
  // A store may leave functions for its middleware: they are no data.
  const data = Object.entries(found).filter(([name, value]) => !own.includes(name) && typeof value !== 'function')
  return { data: Object.fromEntries(data) as T, seenAt: lastUse(expiresAt, cookie.originalMaxAge), expiresAt }
}
