import { aFunction, type OptionsOf } from '../../text/check-options.ts'
import { instant, isObject, nameOf, type OldCookie, type OldSessions } from '../from.ts'
import { aCookie, aSecret, checkReader } from './callback-store.ts'
import { decoded, type Secret, secretsFrom, signedId } from './signature.ts'

/** The argument of `toLogin`. */
export interface BetterAuthSession {
  session: { userId: string; [field: string]: unknown }
  user: { id: string; name: string; email: string; [field: string]: unknown }
}

/** The store of better-auth's sessions, and the secret of their cookies. */
export interface FromBetterAuthOptions {
  /** Its `secret`: all that still count. */
  secret: Secret | readonly Secret[]
  /** 'better-auth.session_token', with '__Secure-' before it over HTTPS. */
  cookie: string | OldCookie
  /** The session and its user by the token, `null` if there is none; or their JSON, as a secondary storage has it. */
  read(token: string): unknown
  /** Removes the session of a token. */
  destroy?(token: string): unknown
}

const OPTIONS: OptionsOf<FromBetterAuthOptions> = {
  where: 'fromBetterAuth',
  required: ['secret', 'cookie', 'read'],
  rules: { secret: aSecret, cookie: aCookie, read: aFunction, destroy: aFunction },
}

/**
 * The sessions of better-auth, for `sessionImporter`, from its database or its secondary storage. The cookie is the token of a
 * session, a dot, and its HMAC-SHA256 in base64; any other is refused, and nothing is read.
 * @throws TypeError that names the option
 */
export function fromBetterAuth(options: FromBetterAuthOptions): OldSessions<BetterAuthSession> {
  checkReader(OPTIONS, options)
  const { cookie, secret, read, destroy } = options
  const secrets = secretsFrom('secret', secret)
  const name = nameOf(cookie)
  return {
    cookie,
    alsoClear: ['session_data', 'dont_remember'].map(each => name.replace('session_token', each)),
    parse: value => signedId(decoded(value) ?? '', secrets),
    async read(token) {
      const answer = await read(token)
      const found = typeof answer === 'string' ? JSON.parse(answer) : answer
      if (!isObject(found?.session) || !isObject(found.user)) return null
      const { token: own = token, createdAt, updatedAt, expiresAt } = found.session
      if (own !== token) return null
      return {
        data: { session: found.session, user: found.user } as unknown as BetterAuthSession,
        createdAt: instant('session.createdAt', createdAt),
        seenAt: instant('session.updatedAt', updatedAt),
        expiresAt: instant('session.expiresAt', expiresAt),
      }
    },
    ...(destroy && { destroy }),
  }
}
