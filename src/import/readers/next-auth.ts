import { checkOptions, type OptionPlace, rule } from '../../text/check-options.ts'
import { instant, isObject, type OldCookie, type OldSession, type OldSessions } from '../from.ts'
import { aCookie, aSecret } from './callback-store.ts'
import { tokensOf } from './next-auth-token.ts'
import { decoded, type Secret, secretsFrom } from './signature.ts'

/** An adapter of NextAuth or Auth.js, or queries of your own, by the two methods that are used. */
export interface NextAuthAdapter<T> {
  getSessionAndUser?(token: string): T | null | undefined | PromiseLike<T | null | undefined>
  deleteSession?(token: string): unknown
}
/** The token of a JWT session, without the fields that your callback `jwt` has added. */
export interface NextAuthToken {
  sub?: string
  name?: string | null
  email?: string | null
  [claim: string]: unknown
}
/** The sessions of NextAuth 4 or Auth.js 5: `adapter` with the strategy 'database', `secret` with 'jwt'. */
export interface FromNextAuthOptions<T> {
  /** 'next-auth.session-token' in NextAuth 4, 'authjs.session-token' in Auth.js 5, with '__Secure-' before it over HTTPS. */
  cookie: string | OldCookie
  /** Its `adapter`, if the sessions are in the database. */
  adapter?: NextAuthAdapter<T>
  /** Its `secret`, if the cookie is the whole session: all that still count. */
  secret?: Secret | readonly Secret[]
}

const OPTIONS: OptionPlace<FromNextAuthOptions<unknown>> = {
  where: 'fromNextAuth',
  prefix: 'fromNextAuth: ',
  required: ['cookie'],
  rules: {
    cookie: aCookie,
    adapter: rule(
      'an adapter with getSessionAndUser(token)',
      value => typeof (isObject(value) && value.getSessionAndUser) === 'function',
    ),
    secret: aSecret,
  },
}

/**
 * The sessions of NextAuth 4 and Auth.js 5, for `sessionImporter`: of its strategy 'database' by the adapter, of 'jwt' by the
 * secret. A cookie that the secret has not encrypted is refused.
 * @throws TypeError that names the option
 */
export function fromNextAuth<T extends { session: unknown }>(
  options: FromNextAuthOptions<T> & { adapter: NextAuthAdapter<T> },
): OldSessions<T>
export function fromNextAuth<T = NextAuthToken>(
  options: FromNextAuthOptions<never> & { secret: Secret | readonly Secret[] },
): OldSessions<T>
export function fromNextAuth<T extends { session: unknown }>(options: FromNextAuthOptions<T>): OldSessions<T> {
  checkOptions(OPTIONS, options)
  const { cookie, adapter, secret } = options
  if ((adapter === undefined) === (secret === undefined))
    throw new TypeError("fromNextAuth: expected adapter (strategy 'database') or secret (strategy 'jwt'), one of both")
  if (adapter !== undefined)
    return {
      cookie,
      parse: value => ({ id: decoded(value)! }),
      async read(token): Promise<OldSession<T> | null> {
        const found = await adapter.getSessionAndUser!(token)
        if (!found) return null
        const { expires } = found.session as { expires?: unknown }
        return { data: found, expiresAt: instant(expires) }
      },
      destroy: token => adapter.deleteSession?.(token),
    }
  return tokensOf<T>(cookie, secretsFrom('secret', secret!))
}
