// The CSRF token of a session is derived from the session's first ID. Forms that were rendered before a new ID must still
// work, so the token moves along in the record, masked with a value that only the holder of the new ID can derive:
// a reader of the store learns nothing, and each mask is used once. The record of a login begins without it.
import { packMeta, unpackMeta } from '../data/meta.ts'
import { hmac } from './id.ts'

export const xor = (bytes: Uint8Array, mask: Uint8Array): Uint8Array => bytes.map((byte, at) => byte ^ mask[at]!)

function masked(text: string, id: string): string {
  const mask = Buffer.from(hmac(id, 'csrf\0mask'), 'base64url')
  return Buffer.from(xor(Buffer.from(text, 'base64url'), mask)).toString('base64url')
}

/** The token of the session with this ID and this stored data. */
export function csrfTokenOf(id: string, data: string): string {
  const { csrf } = unpackMeta(data).meta
  return csrf === undefined ? hmac(id, 'csrf') : masked(csrf, id)
}

/** The data of a session that goes on under `nextId`. */
export function withCsrfToken(data: string, id: string, nextId: string): string {
  const { meta, text } = unpackMeta(data)
  return packMeta({ ...meta, csrf: masked(csrfTokenOf(id, data), nextId) }, text)
}
