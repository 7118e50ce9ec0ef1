// The signatures that other libraries put beside a cookie's value: an HMAC in base64.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { quote } from '../../text/quote.ts'
import type { OldSessionId } from '../from.ts'

/** Text or bytes, as node:crypto takes a key. */
export type Secret = string | Uint8Array

/** @throws TypeError if there is no secret, or one is neither text nor bytes; none is quoted */
export function secretsFrom(where: string, given: Secret | readonly Secret[]): readonly [Secret, ...Secret[]] {
  const secrets = typeof given === 'string' || given instanceof Uint8Array ? [given] : given
  if (!Array.isArray(secrets) || secrets.length === 0)
    throw new TypeError(
      `${where}: expected the secret that the cookies were signed with, or several, got ${quote(given)}`,
    )
  for (const secret of secrets)
    if (!(typeof secret === 'string' || secret instanceof Uint8Array) || secret.length === 0)
      throw new TypeError(`${where}: expected text or bytes that are not empty`)
  return [...secrets] as [Secret, ...Secret[]]
}

/** Without padding, as cookie-signature, @fastify/cookie and keygrip have it. */
export const sign = (text: string, secret: Secret, algorithm: string): string =>
  createHmac(algorithm, secret).update(text).digest('base64').replaceAll('=', '')

/** The signature that was presented, if it is one of these. All are compared, each in constant time. */
export function matching(presented: string, signatures: readonly string[]): string | undefined {
  const bytes = Buffer.from(presented)
  const isSame = (signature: string) => {
    const expected = Buffer.from(signature)
    return expected.length === bytes.length && timingSafeEqual(expected, bytes)
  }
  return signatures.filter(isSame)[0]
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
  const signature = matching(text.slice(dot + 1).replace(/={1,2}$/, ''), signatures)
  return signature === undefined ? null : { id, secret: `${id}.${signature}` }
}

/** The value of a cookie as libraries read it: with percent-encoding undone. `null` if it is malformed. */
export function decoded(value: string): string | null {
  const bare = value.length > 1 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value
  try {
    return decodeURIComponent(bare)
  } catch {
    return null
  }
}
