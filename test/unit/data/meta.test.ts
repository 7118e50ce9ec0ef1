import fc from 'fast-check'
import { expect, it } from 'vitest'
import { packMeta, unpackMeta } from '../../../src/data/meta.ts'
import { anyText } from '../../support/any-text.ts'

const meta = fc.record(
  {
    verifiedAt: fc.oneof(fc.constant(null), fc.nat({ max: 864e13 })),
    csrf: fc.uint8Array({ minLength: 32, maxLength: 32 }).map(bytes => Buffer.from(bytes).toString('base64url')),
    idle: fc.integer({ min: 1, max: 100 * 365 * 86_400_000 }),
    firstKey: fc.string({ unit: fc.constantFrom(...'aZ09_-'), minLength: 46, maxLength: 46 }),
    newIds: fc.record({ count: fc.integer({ min: 1, max: 999 }), since: fc.nat({ max: 864e13 }) }),
  },
  { requiredKeys: [] },
)
const text = fc.oneof(
  fc.json(),
  anyText(),
  fc.tuple(meta, fc.string()).map(([kept, rest]) => packMeta(kept, rest)),
  fc.string({ unit: fc.constantFrom('@', 'v', 'i', '-', '1', '{', '}') }),
)

it('what is kept beside the data, and the data, come back as they were, whatever text a codec makes', () => {
  fc.assert(
    fc.property(meta, text, (kept, codecText) => {
      expect(unpackMeta(packMeta(kept, codecText))).toEqual({ meta: kept, text: codecText })
    }),
    { examples: [[{}, '@v1@{}']] },
  )
})

it('data of a session with nothing beside it is stored as the codec wrote it', () => {
  fc.assert(fc.property(fc.json(), json => packMeta({}, json) === json && unpackMeta(json).text === json))
})

it('what is broken is data that cannot be read, of a session that is not fresh', () => {
  for (const broken of [
    '@',
    '@v',
    '@v@{}',
    '@vx@{}',
    '@v--@{}',
    '@x1@{}',
    '@v1{}',
    '@v99999999999999999@{}',
    '@v8640000000000001@{}',
    '@c@{}',
    '@i@{}',
    '@ix@{}',
    '@i1v1@{}',
    '@n@{}',
    '@n1@{}',
    '@nt1@{}',
    '@n1000t1@{}',
    '@t1n1@{}',
    '@i99999999999999@{}',
    `@c${'a'.repeat(42)}@{}`,
    `@f${'a'.repeat(45)}@{}`,
  ])
    expect(unpackMeta(broken)).toEqual({ meta: { verifiedAt: null }, text: broken })
})
