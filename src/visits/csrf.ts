import { randomBytes, timingSafeEqual } from 'node:crypto'

/**
 * The token under a fresh random mask: a compressed page never contains the same secret twice (BREACH). It is the
 * base64url text of the mask and of the token XOR the mask.
 */
export function maskToken(token: string): string {
  const raw = Buffer.from(token, 'latin1')
  const masked = Buffer.concat([randomBytes(raw.length), raw])
  for (let at = 0; at < raw.length; at++) masked[raw.length + at]! ^= masked[at]!
  return masked.toString('base64url')
}

/** Whether `given` is the token, masked or as it is. Takes the same time wherever they differ. */
export function isToken(token: string, given: unknown): boolean {
  if (typeof given !== 'string') return false
  const raw = Buffer.from(token, 'latin1')
  if (given.length === token.length) {
    const plain = Buffer.from(given)
    return plain.length === raw.length && timingSafeEqual(raw, plain)
  }
  if (given.length !== Math.ceil((raw.length * 8) / 3)) return false
  const masked = Buffer.from(given, 'base64url')
  if (masked.length !== raw.length * 2) return false
  for (let at = 0; at < raw.length; at++) masked[raw.length + at]! ^= masked[at]!
  return timingSafeEqual(raw, masked.subarray(raw.length))
}
