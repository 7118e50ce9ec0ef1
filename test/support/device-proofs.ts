// What the tests of proofs have in common.
import { type DeviceKey, type ProofRefusal, verifyRegistration } from '../../src/device-bound/proof.ts'
import { type DevicePair, registrationProof } from './device-key.ts'

export const BOTH = ['ES256', 'RS256'] as const
export const CHALLENGE = 'a-challenge_of-ours'
export const PAYLOAD = { jti: CHALLENGE }

/** `null`: verified. */
export const refusal = (result: object | ProofRefusal) => (typeof result === 'string' ? result : null)

/** The key as a record keeps it. */
export function registered(pair: DevicePair): DeviceKey {
  const result = verifyRegistration(registrationProof(pair, CHALLENGE), BOTH)
  if (typeof result === 'string') throw new Error(result)
  return result.device
}
