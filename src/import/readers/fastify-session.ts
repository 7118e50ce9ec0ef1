import { checkOptions, type OptionPlace, rule } from '../../text/check-options.ts'
import type { OldCookie, OldSessions } from '../from.ts'
import { aCookie, aSecret, aStore, type CallbackStore, signedSessions } from './callback-store.ts'
import type { Secret } from './signature.ts'

/** The store of @fastify/session's sessions, and the secret of their cookies: the options that the old service registers it with. */
export interface FromFastifySessionOptions {
  /** Its `secret`: all that still count, the newest first. */
  secret: Secret | readonly Secret[]
  /** Its `store`. */
  store: CallbackStore
  /** Its `cookieName`, with `path` and `domain` of its `cookie` if it sets them. @default 'sessionId' */
  cookie?: string | OldCookie
  /** Its `cookiePrefix`. @default '' */
  cookiePrefix?: string
  /** Its `algorithm`. @default 'sha256' */
  algorithm?: string
}

const aText = rule('text', value => typeof value === 'string')

const OPTIONS: OptionPlace<FromFastifySessionOptions> = {
  where: 'fromFastifySession',
  prefix: 'fromFastifySession: ',
  required: ['secret', 'store'],
  hints: { cookieName: 'it is called cookie' },
  rules: {
    secret: aSecret,
    store: aStore,
    cookie: aCookie,
    cookiePrefix: aText,
    algorithm: aText,
  },
}

/**
 * The sessions of @fastify/session, for `sessionImporter`. Its cookie is the ID, a dot, and an HMAC of the ID in base64 without
 * padding; any other cookie is refused, and the store is not asked.
 * @throws TypeError that names the option
 */
export function fromFastifySession<T = Record<string, unknown>>(options: FromFastifySessionOptions): OldSessions<T> {
  checkOptions(OPTIONS, options)
  const { cookie = 'sessionId', cookiePrefix: prefix = '', algorithm = 'sha256' } = options
  return signedSessions(cookie, options, { prefix, algorithm, own: ['cookie', 'sessionId', 'encryptedSessionId'] })
}
