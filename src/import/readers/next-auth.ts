import { hkdfSync } from 'node:crypto'
import type { OptionsOf } from '../../text/check-options.ts'
import { instant, nameOf, type OldCookie, type OldSessions } from '../from.ts'
import { aCookie, aSecret, checkReader, withMethods } from './callback-store.ts'
import { decrypt } from './jwe.ts'
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

const OPTIONS: OptionsOf<FromNextAuthOptions<unknown>> = {
  where: 'fromNextAuth',
  required: ['cookie'],
  rules: {
    cookie: aCookie,
    adapter: withMethods('an adapter with getSessionAndUser(token)', 'getSessionAndUser'),
    secret: aSecret,
  },
}

/** Every key that may have encrypted the cookie `name`, by the encryption. */
function keysFor(name: string, secrets: readonly Secret[]): (encryption: string) => Buffer[] {
  const derive = (length: number, salt: string, info: string) =>
    secrets.map(secret => Buffer.from(hkdfSync('sha256', secret, salt, info, length)))
  const five = (length: number) => derive(length, name, `Auth.js Generated Encryption Key (${name})`)
  const four = derive(32, '', 'NextAuth.js Generated Encryption Key')
  const keys: Record<string, Buffer[]> = { A256GCM: [...four, ...five(32)], 'A256CBC-HS512': five(64) }
  return encryption => keys[encryption] ?? []
}

const seconds = (value: unknown) => (typeof value === 'number' ? Math.floor(value * 1000) : null)

/**
 * Sessions in a database: of NextAuth and Auth.js, and of Lucia. `idOf`: the ID there of the cookie's token. A row whose field `idField`
 * names another ID is none: a database that compares without case finds one for each spelling.
 */
export const byAdapter = <T extends { session: unknown }>(
  cookie: string | OldCookie,
  idField: string,
  find: (id: string) => T | null | undefined | PromiseLike<T | null | undefined>,
  destroy: (id: string) => unknown,
  idOf = (token: string) => token,
): OldSessions<T> => ({
  cookie,
  parse: value => ({ id: idOf(decoded(value)!) }),
  async read(id) {
    const found = await find(id)
    const { [idField]: own = id, expiresAt, expires = expiresAt } = (found?.session ?? {}) as Record<string, unknown>
    return found && own === id ? { data: found, expiresAt: instant('session.expires', expires) } : null
  },
  destroy,
})

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
  checkReader(OPTIONS, options)
  const { cookie, adapter, secret } = options
  if ((adapter === undefined) === (secret === undefined))
    throw new TypeError("fromNextAuth: expected adapter (strategy 'database') or secret (strategy 'jwt'), one of both")
  if (adapter !== undefined)
    return byAdapter(
      cookie,
      'sessionToken',
      token => adapter.getSessionAndUser!(token),
      token => adapter.deleteSession?.(token),
    )
  // Tokens: the whole session, encrypted with a key derived from the secret.
  const keys = keysFor(nameOf(cookie), secretsFrom('secret', secret!))
  return {
    cookie,
    isChunked: true,
    parse: token => (decrypt(token, keys) === null ? null : { id: token }),
    read(token) {
      const claims = JSON.parse(decrypt(token, keys)!)
      return { data: claims, seenAt: seconds(claims.iat), expiresAt: seconds(claims.exp) }
    },
  }
}
