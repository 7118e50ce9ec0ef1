// Encrypted tokens (RFC 7516, section 7.1) whose key both sides have: "dir" (RFC 7518, section 4.5).
import { createDecipheriv, createHmac, timingSafeEqual } from 'node:crypto'

interface Encrypted {
  /** Authenticated beside the text (RFC 7516, section 5.1). */
  readonly header: Buffer
  readonly iv: Buffer
  readonly text: Buffer
  readonly tag: Buffer
}

/** By the name that the header gives. They throw if the key is another, or if anything was changed. */
const DECRYPT: Readonly<Record<string, (key: Buffer, token: Encrypted) => string>> = {
  // RFC 7518, section 5.3
  A256GCM(key, { header, iv, text, tag }) {
    const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: 16 }).setAAD(header).setAuthTag(tag)
    return Buffer.concat([decipher.update(text), decipher.final()]).toString()
  },
  // RFC 7518, section 5.2
  'A256CBC-HS512'(key, { header, iv, text, tag }) {
    const bits = Buffer.alloc(8)
    bits.writeBigUInt64BE(BigInt(header.length * 8))
    const mac = createHmac('sha512', key.subarray(0, 32)).update(header).update(iv).update(text).update(bits).digest()
    if (!timingSafeEqual(mac.subarray(0, 32), tag)) throw new Error('of another key')
    const decipher = createDecipheriv('aes-256-cbc', key.subarray(32), iv)
    return Buffer.concat([decipher.update(text), decipher.final()]).toString()
  },
}

/** The text in a token that one of the keys has encrypted; `null`, or an error, for any other. `keysOf` gets the encryption's name. */
export function decrypt(token: string, keysOf: (name: string) => readonly Buffer[]): string | null {
  const parts = token.split('.')
  const bytes = parts.map(part => Buffer.from(part, 'base64url'))
  // The same bytes, written in another way, would be another cookie: it could be imported once more.
  const isExact = bytes.every((part, at) => part.toString('base64url') === parts[at])
  const [head, none, iv, text, tag] = bytes
  if (parts.length !== 5 || !isExact || none!.length > 0) return null
  const { alg, enc } = JSON.parse(head!.toString()) as { alg?: unknown; enc?: unknown }
  if (alg !== 'dir' || typeof enc !== 'string' || !Object.hasOwn(DECRYPT, enc)) return null
  const encrypted = { header: Buffer.from(parts[0]!), iv: iv!, text: text!, tag: tag! }
  for (const key of keysOf(enc))
    try {
      return DECRYPT[enc]!(key, encrypted)
    } catch {
      // Perhaps the next key.
    }
  return null
}
