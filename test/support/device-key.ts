// A device's key as a browser keeps it, and proofs as it signs them; with every lever that an attacker would pull.
import { constants, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'

export type Algorithm = 'ES256' | 'RS256'

export interface DevicePair {
  readonly algorithm: Algorithm
  readonly privateKey: KeyObject
  /** The public part, as the header of a registration has it. */
  readonly jwk: Record<string, unknown>
}

/** A key of its own, as each registration has one. */
export function newDevice(): DevicePair {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { algorithm: 'ES256', privateKey, jwk: { ...publicKey.export({ format: 'jwk' }) } }
}

let rsa: DevicePair | null = null

/** A key for an algorithm that was not offered; the same one each time, since making it takes up to a second. */
export function rsaDevice(): DevicePair {
  if (rsa === null) {
    const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    rsa = { algorithm: 'RS256', privateKey, jwk: { ...publicKey.export({ format: 'jwk' }) } }
  }
  return rsa
}

export const encode = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

export function signatureOf({ algorithm, privateKey }: DevicePair, signed: string): Buffer {
  const data = Buffer.from(signed)
  return algorithm === 'ES256'
    ? sign('sha256', data, { key: privateKey, dsaEncoding: 'ieee-p1363' })
    : sign('sha256', data, { key: privateKey, padding: constants.RSA_PKCS1_PADDING })
}

/** Signs these two parts as they are; a text is taken as its JSON. */
export function jwsOf(device: DevicePair, header: unknown, payload: unknown): string {
  const signed = `${encode(header)}.${encode(payload)}`
  return `${signed}.${signatureOf(device, signed).toString('base64url')}`
}

/** What Chromium 150 sends to register its key. */
export const registrationProof = (device: DevicePair, challenge: string, header: object = {}): string =>
  jwsOf(device, { alg: device.algorithm, jwk: device.jwk, typ: 'dbsc+jwt', ...header }, { jti: challenge })

/** What Chromium 150 sends to refresh its cookie. */
export const refreshProof = (device: DevicePair, challenge: string, header: object = {}): string =>
  jwsOf(device, { alg: device.algorithm, typ: 'dbsc+jwt', ...header }, { jti: challenge })
