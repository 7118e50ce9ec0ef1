// Proofs that fast-check makes and spoils; proof.test.ts has the rules one by one.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { jwsOf, newDevice, refreshProof, registrationProof } from '../../support/device-key.ts'
import {
  CHALLENGE,
  PAYLOAD,
  type Refusal,
  refusal,
  registered,
  verifyRefresh,
  verifyRegistration,
} from '../../support/device-proofs.ts'

const REFUSALS: readonly (Refusal | null)[] = [null, 'malformed', 'algorithm', 'key', 'signature']

const device = newDevice()
const other = newDevice()

describe('whatever comes', () => {
  const proofs = [
    { jws: registrationProof(device, CHALLENGE), verify: (jws: string) => verifyRegistration(jws) },
    { jws: refreshProof(device, CHALLENGE), verify: (jws: string) => verifyRefresh(jws, registered(device)) },
  ]

  it('a proof of which one bit is turned is refused', () => {
    for (const { jws, verify: check } of proofs) {
      const parts = jws.split('.')
      parts.forEach((part, index) => {
        const bytes = Buffer.from(part, 'base64url')
        // Every third: odd, so that each bit of a byte has its turn.
        for (let bit = 0; bit < 8 * bytes.length; bit += 3) {
          bytes[bit >> 3]! ^= 1 << (bit & 7)
          const turned = parts.with(index, bytes.toString('base64url')).join('.')
          bytes[bit >> 3]! ^= 1 << (bit & 7)
          expect(refusal(check(turned)), `bit ${bit} of part ${index}`).not.toBeNull()
        }
      })
    }
  })

  it('characters that are changed, put in or taken out never verify and never throw', () => {
    const edit = fc.record({
      at: fc.nat(1200),
      drop: fc.nat(3),
      text: fc.oneof(fc.string({ maxLength: 3 }), fc.constantFrom('.', '=', 'A', '{}', 'AA', '..')),
    })
    fc.assert(
      fc.property(
        fc.constantFrom(...proofs),
        fc.array(edit, { minLength: 1, maxLength: 3 }),
        ({ jws, verify: check }, edits) => {
          let changed = jws
          for (const { at, drop, text } of edits) {
            const place = at % (changed.length + 1)
            changed = changed.slice(0, place) + text + changed.slice(place + drop)
          }
          const why = refusal(check(changed))
          expect(REFUSALS).toContain(why)
          expect(why === null).toBe(changed === jws)
        },
      ),
      { numRuns: 2000 },
    )
  })

  it('any text, and any JSON in a signed proof, is refused for a reason that is documented', () => {
    const part = fc.oneof(fc.json(), fc.string())
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary' }),
          fc.tuple(part, part).map(([a, b]) => jwsOf(device, a, b)),
        ),
        jws => {
          for (const result of [verifyRegistration(jws), verifyRefresh(jws, registered(device))]) {
            expect(REFUSALS).toContain(refusal(result))
            expect(refusal(result)).not.toBeNull()
          }
        },
      ),
      { numRuns: 1000 },
    )
  })

  it('a header with any members of any kind is refused or verified, and throws nothing', () => {
    const members = fc.record(
      {
        alg: fc.oneof(fc.constantFrom('ES256', 'RS256', 'none', 'HS256'), fc.jsonValue()),
        typ: fc.oneof(fc.constant('dbsc+jwt'), fc.jsonValue()),
        crit: fc.jsonValue(),
        jwk: fc.oneof(
          fc.constantFrom(device.jwk, other.jwk),
          fc.record(
            {
              kty: fc.constantFrom('EC', 'RSA', 'oct'),
              crv: fc.constantFrom('P-256', 'P-384'),
              x: fc.oneof(
                fc.constant(device.jwk.x),
                fc.uint8Array({ minLength: 32, maxLength: 32 }).map(b => Buffer.from(b).toString('base64url')),
                fc.jsonValue(),
              ),
              y: fc.oneof(fc.constant(device.jwk.y), fc.jsonValue()),
            },
            { requiredKeys: [] },
          ),
        ),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(members, fc.constantFrom(device, other), (header, signer) => {
        const result = verifyRegistration(jwsOf(signer, header, PAYLOAD))
        expect(REFUSALS).toContain(refusal(result))
        if (typeof result === 'object') expect(result.key).toEqual(registered(signer))
      }),
      { numRuns: 500 },
    )
  })
})
