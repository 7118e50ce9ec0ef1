// The proof that a browser has the private key of a session: a JWS in compact form (RFC 7515), as Device Bound Session
// Credentials uses it (https://w3c.github.io/webappsec-dbsc/#format-jwt). Pure functions: they know no session, no clock
// and no store. Whether `jti` is a challenge of the session, and still good, is for the caller to say.
import { createPublicKey, type KeyObject, verify } from 'node:crypto'

/** The one that is offered (RFC 7518, section 3.4): ECDSA with P-256 and SHA-256. */
export const ALGORITHM = 'ES256'

/** Why a proof is refused. `signature`: all is well formed, and signed by another key or over other bytes. */
export type ProofRefusal = 'algorithm' | 'key' | 'signature'

const MAX_BYTES = 8192
/** Both coordinates, in bytes. */
const COORDINATE = 32
/** Members that only a private or a shared key has (RFC 7518, sections 6.2.2, 6.3.2 and 6.4). */
const SECRET_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']

/** The bytes, if no other text stands for the same ones: unused bits are zero, and there is no padding. */
function bytesOf(text: unknown): Buffer | null {
  if (typeof text !== 'string' || text === '') return null
  // Buffer leaves out characters that are no base64url: the text does not come back.
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : null
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A map: an object would also find inherited members. */
const ownMembers = (value: object): ReadonlyMap<string, unknown> => new Map(Object.entries(value))

/** The members of a JSON object. Of two that have one name the last one counts (RFC 7515, section 4). */
function membersOf(bytes: Uint8Array): ReadonlyMap<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(UTF8.decode(bytes))
    return isObject(value) ? ownMembers(value) : null
  } catch {
    return null
  }
}

/**
 * Reads a proof. `'malformed'`: it is over 8 KiB, not three parts of strict base64url, no JSON objects, of another `typ`
 * than `dbsc+jwt`, without `jti`, or with `crit`; at a registration it has no `jwk`, at a refresh it has one.
 */
export function readProof(jws: string, use: 'registration' | 'refresh') {
  // Characters first: an over-long text is not even encoded.
  if (jws.length > MAX_BYTES) return 'malformed'
  const parts = jws.split('.', 4)
  if (parts.length !== 3) return 'malformed'
  const [headerBytes, payloadBytes, signature] = parts.map(bytesOf)
  if (!headerBytes || !payloadBytes || !signature) return 'malformed'
  const header = membersOf(headerBytes)
  const payload = membersOf(payloadBytes)
  const algorithm = header?.get('alg')
  const jti = payload?.get('jti')
  if (!header || typeof algorithm !== 'string' || typeof jti !== 'string' || jti === '') return 'malformed'
  // A token for something else, or with an extension that we do not know (RFC 7515, section 4.1.11).
  if (header.get('typ') !== 'dbsc+jwt' || header.has('crit')) return 'malformed'
  if (header.has('jwk') !== (use === 'registration')) return 'malformed'
  const signed = Buffer.from(`${parts[0]}.${parts[1]}`)
  return { algorithm, jwk: header.get('jwk'), jti, signed, signature }
}

/** A proof that was read and not yet verified: `jti` is the challenge that it answers, `jwk` the key that a registration brings. */
export type Proof = Exclude<ReturnType<typeof readProof>, 'malformed'>

/** The key that a registration brings: both coordinates in base64url. `null` if it is private, or of another kind. */
function keyFrom(jwk: unknown): string | null {
  if (!isObject(jwk)) return null
  const members = ownMembers(jwk)
  if (SECRET_MEMBERS.some(name => members.has(name))) return null
  if (members.has('alg') && members.get('alg') !== ALGORITHM) return null
  if (members.has('use') && members.get('use') !== 'sig') return null
  if (members.get('kty') !== 'EC' || members.get('crv') !== 'P-256') return null
  const point = [members.get('x'), members.get('y')]
  // RFC 7518, section 6.2.1.2: of full size, leading zeros included.
  return point.every(each => bytesOf(each)?.length === COORDINATE) ? point.join('') : null
}

/**
 * Verifies a proof: it is signed by `device`, a key that was registered, or without one by the key that the proof brings. The
 * key that signed it, or why it is refused.
 */
export function verifyProof(proof: Proof, device = keyFrom(proof.jwk)): { readonly key: string } | ProofRefusal {
  if (proof.algorithm !== ALGORITHM) return 'algorithm'
  if (device === null) return 'key'
  const [x, y] = [device.slice(0, device.length / 2), device.slice(device.length / 2)]
  let key: KeyObject
  try {
    // Throws for a point that is not on the curve.
    key = createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y }, format: 'jwk' })
  } catch {
    return 'key'
  }
  // RFC 7518, section 3.4: r and s of 32 bytes each, not DER.
  if (proof.signature.length !== 2 * COORDINATE) return 'signature'
  const isGood = verify('sha256', proof.signed, { key, dsaEncoding: 'ieee-p1363' }, proof.signature)
  return isGood ? { key: device } : 'signature'
}

/** A string of a structured field (RFC 9651, section 3.3.3) without escapes, which none of ours needs; with parameters. */
const QUOTED = /^"([\x20\x21\x23-\x5b\x5d-\x7e]*)"(?:[ \t]*;[\x20-\x7e]*)?$/

/**
 * The text in `Secure-Session-Response` or `Sec-Secure-Session-Id`: Chromium 150 sends it without quotation marks, the
 * specification says a string of a structured field, whose parameters are ignored. `null` for anything else; `undefined` if
 * the header did not come.
 */
export function headerText(header: string | null | undefined): string | null | undefined {
  if (header == null) return undefined
  return header.startsWith('"') ? (QUOTED.exec(header)?.[1] ?? null) : header
}
