import { checkOptions, type OptionPlace } from '../../text/check-options.ts'
import type { OldCookie, OldSessions } from '../from.ts'
import { aCookie, aSecret, aStore, type CallbackStore, signedSessions } from './callback-store.ts'
import type { Secret } from './signature.ts'

/** The store of express-session's sessions, and the secret of their cookies: the options that the old service gives `session(…)`. */
export interface FromExpressSessionOptions {
  /** Its `secret`: all that still count, the newest first. */
  secret: Secret | readonly Secret[]
  /** Its `store`: of connect-redis, connect-pg-simple, memorystore, or any other one. */
  store: CallbackStore
  /** Its `name`, with `path` and `domain` of its `cookie` if it sets them. @default 'connect.sid' */
  cookie?: string | OldCookie
}

const OPTIONS: OptionPlace<FromExpressSessionOptions> = {
  where: 'fromExpressSession',
  prefix: 'fromExpressSession: ',
  required: ['secret', 'store'],
  hints: { name: 'it is called cookie', key: 'it is called cookie' },
  rules: { secret: aSecret, store: aStore, cookie: aCookie },
}

/**
 * The sessions of express-session, for `sessionImporter`. Its cookie is `s:` and the ID, a dot, and an HMAC-SHA256 of the ID in
 * base64 without padding; any other cookie is refused, and the store is not asked.
 * @throws TypeError that names the option
 */
export function fromExpressSession<T = Record<string, unknown>>(options: FromExpressSessionOptions): OldSessions<T> {
  checkOptions(OPTIONS, options)
  return signedSessions(options.cookie ?? 'connect.sid', options, {
    prefix: 's:',
    algorithm: 'sha256',
    own: ['cookie'],
  })
}
