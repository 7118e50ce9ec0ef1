// The tokens of NextAuth and Auth.js: the whole session, encrypted with a key derived from the secret.
import { hkdfSync } from 'node:crypto'
import { nameOf, type OldCookie, type OldSessions } from '../from.ts'
import { decrypt } from './jwe.ts'
import type { Secret } from './signature.ts'

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

export function tokensOf<T>(cookie: string | OldCookie, secrets: readonly Secret[]): OldSessions<T> {
  const keys = keysFor(nameOf(cookie), secrets)
  return {
    cookie,
    isChunked: true,
    parse: token => (decrypt(token, keys) === null ? null : { id: token }),
    read(token) {
      const claims = JSON.parse(decrypt(token, keys)!)
      return { data: claims as T, seenAt: seconds(claims.iat), expiresAt: seconds(claims.exp) }
    },
  }
}
