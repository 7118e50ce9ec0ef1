import type { OptionsOf } from '../../text/check-options.ts'
import type { OldCookie, OldSessions } from '../from.ts'
import { aCookie, aSecret, checkReader } from './callback-store.ts'
import { heldIn, keygripCookie } from './keygrip.ts'
import type { Secret } from './signature.ts'

/** The keys and name of cookie-session's cookies: the options that the old service gives `cookieSession(…)`. */
export interface FromCookieSessionOptions {
  /** Its `keys`, or its `secret`: all that still count, the newest first. */
  keys: Secret | readonly Secret[]
  /** Its `name`, with `path` and `domain` if it sets them. @default 'session' */
  cookie?: string | OldCookie
}

const OPTIONS: OptionsOf<FromCookieSessionOptions> = {
  where: 'fromCookieSession',
  required: ['keys'],
  hints: { name: 'it is called cookie', secret: 'it is called keys' },
  rules: { keys: aSecret, cookie: aCookie },
}

/**
 * The sessions of cookie-session, for `sessionImporter`. The cookie is the whole session, and the cookie beside it,
 * `session.sig`, must hold its signature by one of the keys. The session does not say how old it is.
 * @throws TypeError that names the option
 */
export function fromCookieSession<T = Record<string, unknown>>(options: FromCookieSessionOptions): OldSessions<T> {
  checkReader(OPTIONS, options)
  const { keys, cookie = 'session' } = options
  return {
    ...keygripCookie(cookie, keys),
    read: value => {
      const data = heldIn(value)
      return data && { data: data as T }
    },
  }
}
