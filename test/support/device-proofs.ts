// What the tests of proofs have in common: a proof is read and verified in one step.
import * as proofs from '../../src/device-bound/proof.ts'
import { type DevicePair, registrationProof } from './device-key.ts'

export const CHALLENGE = 'a-challenge_of-ours'
export const PAYLOAD = { jti: CHALLENGE }

export type Refusal = proofs.ProofRefusal | 'malformed'

const verify = (
  use: 'registration' | 'refresh',
  jws: string,
  registered?: string,
): { key: string; jti: string } | Refusal => {
  const proof = proofs.readProof(jws, use)
  if (proof === 'malformed') return proof
  const verified = proofs.verifyProof(proof, registered)
  return typeof verified === 'string' ? verified : { ...verified, jti: proof.jti }
}
export const verifyRegistration = (jws: string) => verify('registration', jws)
export const verifyRefresh = (jws: string, key: string) => verify('refresh', jws, key)

/** `null`: verified. */
export const refusal = (result: object | Refusal) => (typeof result === 'string' ? result : null)

/** The key as a record keeps it. */
export function registered(pair: DevicePair): string {
  const result = verifyRegistration(registrationProof(pair, CHALLENGE))
  if (typeof result === 'string') throw new Error(result)
  return result.key
}
