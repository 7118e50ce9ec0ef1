// The signatures that other libraries put beside what they send: an HMAC in base64.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { quote } from '../text/quote.ts'

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

/** Whether one of the signatures is the one that came. All are compared, each in a time that tells nothing. */
export function isSignedBy(presented: string, signatures: readonly string[]): boolean {
  const bytes = Buffer.from(presented)
  let isGenuine = false
  for (const signature of signatures) {
    const expected = Buffer.from(signature)
    if (expected.length === bytes.length && timingSafeEqual(expected, bytes)) isGenuine = true
  }
  return isGenuine
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
