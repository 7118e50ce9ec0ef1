// A device's key as a browser keeps it, and proofs as it signs them and as they are judged; with every lever that an attacker
// would pull.
import { constants, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { type ProofRefusal, readProof, verifyProof } from '../../src/device-bound/proof.ts'

export interface DevicePair {
  readonly algorithm: 'ES256' | 'RS256'
  readonly privateKey: KeyObject
  /** The public part, as the header of a registration has it. */
  readonly jwk: Record<string, unknown>
}

/** A key of its own, as each registration has one. */
export function newDevice(): DevicePair {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { algorithm: 'ES256', privateKey, jwk: { ...publicKey.export({ format: 'jwk' }) } }
}

let rsa: DevicePair | undefined
/** A key for an algorithm that was not offered: one, since it takes long to make. */
export function rsaDevice(): DevicePair {
  if (rsa !== undefined) return rsa
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  rsa = { algorithm: 'RS256', privateKey, jwk: { ...publicKey.export({ format: 'jwk' }) } }
  return rsa
}

export const encode = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

export const signatureOf = ({ algorithm, privateKey: key }: DevicePair, signed: string): Buffer =>
  algorithm === 'ES256'
    ? sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' })
    : sign('sha256', Buffer.from(signed), { key, padding: constants.RSA_PKCS1_PADDING })

/** Signs these two parts as they are; a text is taken as its JSON. */
export function jwsOf(device: DevicePair, header: unknown, payload: unknown): string {
  const signed = `${encode(header)}.${encode(payload)}`
  return `${signed}.${signatureOf(device, signed).toString('base64url')}`
}

/** What Chromium 150 sends to register its key. */
export const registrationProof = (device: DevicePair, challenge: string, header: object = {}): string =>
  jwsOf(device, { alg: device.algorithm, jwk: device.jwk, typ: 'dbsc+jwt', ...header }, { jti: challenge })

/** What Chromium 150 sends to refresh its cookie. */
export const refreshProof = (device: DevicePair, challenge: string): string =>
  jwsOf(device, { alg: device.algorithm, typ: 'dbsc+jwt' }, { jti: challenge })

export const CHALLENGE = 'a-challenge_of-ours'
export const PAYLOAD = { jti: CHALLENGE }
export type Refusal = ProofRefusal | 'malformed'
type Verdict = { key: string; jti: string } | Refusal

function judge(use: 'registration' | 'refresh', jws: string, key?: string): Verdict {
  const proof = readProof(jws, use)
  if (proof === 'malformed') return proof
  const verified = verifyProof(proof, key)
  return typeof verified === 'string' ? verified : { ...verified, jti: proof.jti }
}
export const verifyRegistration = (jws: string): Verdict => judge('registration', jws)
export const verifyRefresh = (jws: string, key: string): Verdict => judge('refresh', jws, key)

/** `null`: verified. */
export const refusal = (verdict: Verdict): Refusal | null => (typeof verdict === 'string' ? verdict : null)

/** The key as a record keeps it. */
export const registered = (pair: DevicePair): string =>
  (verifyRegistration(registrationProof(pair, CHALLENGE)) as { key: string }).key
