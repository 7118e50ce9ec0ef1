// What the tests of proofs have in common: a proof is read and verified in one step.
import * as proofs from '../../src/device-bound/proof.ts'
import { type DevicePair, registrationProof } from './device-key.ts'

export const CHALLENGE = 'a-challenge_of-ours'
export const PAYLOAD = { jti: CHALLENGE }

export type Refusal = proofs.ProofRefusal | 'malformed'

export function verifyRegistration(jws: string): { key: string; jti: string } | Refusal {
  const proof = proofs.readProof(jws, 'registration')
  if (proof === 'malformed') return proof
  const verified = proofs.verifyRegistration(proof)
  return typeof verified === 'string' ? verified : { ...verified, jti: proof.jti }
}

export function verifyRefresh(jws: string, key: string): { jti: string } | Refusal {
  const proof = proofs.readProof(jws, 'refresh')
  return proof === 'malformed' ? proof : (proofs.verifyRefresh(proof, key) ?? { jti: proof.jti })
}

/** `null`: verified. */
export const refusal = (result: object | Refusal) => (typeof result === 'string' ? result : null)

/** The key as a record keeps it. */
export function registered(pair: DevicePair): string {
  const result = verifyRegistration(registrationProof(pair, CHALLENGE))
  if (typeof result === 'string') throw new Error(result)
  return result.key
}
