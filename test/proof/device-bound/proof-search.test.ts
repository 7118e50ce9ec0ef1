// Proofs that fast-check makes and spoils; test/unit/device-bound/proof.test.ts has the rules one by one.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import {
  CHALLENGE,
  jwsOf,
  newDevice,
  PAYLOAD,
  type Refusal,
  refreshProof,
  refusal,
  registered,
  registrationProof,
  verifyRefresh,
  verifyRegistration,
} from '../../support/device-key.ts'

const REFUSALS: readonly (Refusal | null)[] = [null, 'malformed', 'algorithm', 'key', 'signature']
const [device, other] = [newDevice(), newDevice()]
const proofs = [
  { jws: registrationProof(device, CHALLENGE), check: verifyRegistration },
  { jws: refreshProof(device, CHALLENGE), check: (jws: string) => verifyRefresh(jws, registered(device)) },
]

it('a proof of which one bit is turned is refused', () => {
  for (const { jws, check } of proofs)
    jws.split('.').forEach((part, index, parts) => {
      const bytes = Buffer.from(part, 'base64url')
      // Every third: odd, so that each bit of a byte has its turn.
      for (let bit = 0; bit < 8 * bytes.length; bit += 3) {
        bytes[bit >> 3]! ^= 1 << (bit & 7)
        const turned = parts.with(index, bytes.toString('base64url')).join('.')
        bytes[bit >> 3]! ^= 1 << (bit & 7)
        expect(refusal(check(turned)), `bit ${bit} of part ${index}`).not.toBeNull()
      }
    })
})

it('characters that are changed, put in or taken out never verify and never throw', () => {
  const text = fc.oneof(fc.string({ maxLength: 3 }), fc.constantFrom('.', '=', 'A', '{}', 'AA', '..'))
  const edits = fc.array(fc.record({ at: fc.nat(1200), drop: fc.nat(3), text }), { minLength: 1, maxLength: 3 })
  const spoils = fc.property(fc.constantFrom(...proofs), edits, ({ jws, check }, changes) => {
    let changed = jws
    for (const { at, drop, text } of changes) {
      const place = at % (changed.length + 1)
      changed = changed.slice(0, place) + text + changed.slice(place + drop)
    }
    const why = refusal(check(changed))
    expect(REFUSALS).toContain(why)
    expect(why === null).toBe(changed === jws)
  })
  fc.assert(spoils, { numRuns: 2000 })
})

it('any text, and any JSON in a signed proof, is refused for a reason that is documented', () => {
  const part = fc.oneof(fc.json(), fc.string())
  const signed = fc.tuple(part, part).map(([header, payload]) => jwsOf(device, header, payload))
  const refuses = fc.property(fc.oneof(fc.string({ unit: 'binary' }), signed), jws => {
    for (const { check } of proofs) expect(REFUSALS.slice(1)).toContain(refusal(check(jws)))
  })
  fc.assert(refuses, { numRuns: 1000 })
})

it('a header with any members of any kind is refused or verified, by the key that signed it', () => {
  const bytes = fc.uint8Array({ minLength: 32, maxLength: 32 }).map(each => Buffer.from(each).toString('base64url'))
  const key = {
    kty: fc.constantFrom('EC', 'RSA', 'oct'),
    crv: fc.constantFrom('P-256', 'P-384'),
    x: fc.oneof(fc.constant(device.jwk.x), bytes, fc.jsonValue()),
    y: fc.oneof(fc.constant(device.jwk.y), fc.jsonValue()),
  }
  const members = {
    alg: fc.oneof(fc.constantFrom('ES256', 'RS256', 'none', 'HS256'), fc.jsonValue()),
    typ: fc.oneof(fc.constant('dbsc+jwt'), fc.jsonValue()),
    crit: fc.jsonValue(),
    jwk: fc.oneof(fc.constantFrom(device.jwk, other.jwk), fc.record(key, { requiredKeys: [] })),
  }
  const header = fc.record(members, { requiredKeys: [] })
  const judges = fc.property(header, fc.constantFrom(device, other), (given, signer) => {
    const result = verifyRegistration(jwsOf(signer, given, PAYLOAD))
    expect(REFUSALS).toContain(refusal(result))
    if (typeof result === 'object') expect(result.key).toEqual(registered(signer))
  })
  fc.assert(judges, { numRuns: 500 })
})
