import { checkOptions, type OptionPlace, rule } from '../text/check-options.ts'
import { type CallbackStore, checkStore, destroyIn, readFrom } from './callback-store.ts'
import type { OldCookie, OldSessionId, OldSessions } from './from.ts'
import { decoded, isSignedBy, type Secret, secretsFrom, sign } from './signature.ts'

/** Where the sessions of express-session are, and what signed their cookies: the options that the old service gives `session(…)`. */
export interface FromExpressSessionOptions {
  /** Its `secret`: all that still count, the newest first. */
  secret: Secret | readonly Secret[]
  /** Its `store`: of connect-redis, connect-pg-simple, memorystore, or any other one. */
  store: CallbackStore
  /** Its `name`, with `path` and `domain` of its `cookie` if it sets them. @default 'connect.sid' */
  cookie?: string | OldCookie
}

export const aStoreOf =
  (library: string) =>
  (value: unknown, name: string): void =>
    checkStore(`${library}: ${name}`, value)
export const aCookie = rule(
  "the name of a cookie, or { name, path, domain }, such as 'connect.sid'",
  value => typeof value === 'string' || typeof (value as OldCookie | null)?.name === 'string',
)

const OPTIONS: OptionPlace<FromExpressSessionOptions> = {
  where: 'fromExpressSession',
  required: ['secret', 'store'],
  hints: { name: 'it is called cookie', key: 'it is called cookie' },
  rules: {
    secret: (value, name) => void secretsFrom(`fromExpressSession: ${name}`, value as Secret),
    store: aStoreOf('fromExpressSession'),
    cookie: aCookie,
  },
}

/**
 * The sessions of express-session, for `sessionImporter`. Its cookie is `s:` and the ID, a dot, and an HMAC-SHA256 of the ID in
 * base64 without padding; any other cookie is refused, and the store is not asked.
 * @throws TypeError that names the option
 */
export function fromExpressSession<T = Record<string, unknown>>(options: FromExpressSessionOptions): OldSessions<T> {
  checkOptions(OPTIONS, options)
  const { store, cookie = 'connect.sid' } = options
  const secrets = secretsFrom('secret', options.secret)
  return {
    cookie,
    parse(value) {
      const text = decoded(value)
      return text?.startsWith('s:') ? signedId(text.slice(2), secrets, 'sha256') : null
    },
    read: id => readFrom<T>(store, id, ['cookie']),
    destroy: id => destroyIn(store, id),
  }
}

/**
 * The ID in a signed value: an ID, a dot, and an HMAC of the ID in base64 by one of the secrets. `null` for any other value.
 * For the `parse` of a reader of your own.
 * @throws TypeError if there is no secret
 */
export function signedId(text: string, secret: Secret | readonly Secret[], algorithm = 'sha256'): OldSessionId | null {
  const secrets = secretsFrom('signedId', secret)
  const dot = text.lastIndexOf('.')
  if (dot <= 0) return null
  const id = text.slice(0, dot)
  const signatures = secrets.map(each => sign(id, each, algorithm))
  // Some libraries keep the padding.
  if (!isSignedBy(text.slice(dot + 1).replace(/={1,2}$/, ''), signatures)) return null
  // By each secret: nodes may have come to the rotation of secrets at different times.
  return { id, secrets: signatures.map(signature => `${id}.${signature}`) as [string, ...string[]] }
}
