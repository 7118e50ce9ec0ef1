import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { USER_ID_FORMATS, type UserIds } from '../../../src/session/users.ts'
import { quote } from '../../../src/text/quote.ts'
import { BOUNDARY_IDS } from '../../support/guarantee-kit.ts'

const { bigint, number, string } = USER_ID_FORMATS
const EXPECTED: Record<UserIds, string> = {
  bigint: 'a bigint from 0n to 18446744073709551615n (or a safe integer)',
  number: 'a safe integer from 0 (userIds is "number")',
  string: 'text of 1 to 128 characters without control characters (userIds is "string")',
}
const CONVERT = "; convert it, with BigInt(id) or Number(id), or set userIds: 'string' in the manager's options"
const hintOf = (kind: UserIds | null) =>
  kind === null ? '' : `; for such IDs set userIds: '${kind}' in the manager's options`

const badForAll: unknown[] = [undefined, null, true, Symbol('id'), {}, [], [1], new Date(0), Number.NaN, '']
const badNumbers: unknown[] = [
  ...badForAll,
  ...[-1, -1n, 1.5, Number.POSITIVE_INFINITY, 2 ** 53, 2 ** 64, -(2 ** 53), '0x10', ' 12', '1e3', new Number(1)],
]
const bad: Record<UserIds, unknown[]> = {
  bigint: [...badNumbers, 2n ** 64n, 2n ** 65n],
  number: [...badNumbers, 1n, 0n],
  string: [...badForAll, 12, 12n, 'x'.repeat(129), 'a\tb', 'a\0b', 'a\nb', '\u007f', '\u009f', '\ud800', 'a\udfffb'],
}

describe.each(['bigint', 'number', 'string'] as const)("userIds: '%s'", kind => {
  it.each(bad[kind].map(value => [quote(value), value]))(
    '%s is a TypeError that says which IDs there are',
    (quoted, id) => {
      const toText = () => USER_ID_FORMATS[kind].toText(id as never)
      expect(toText).toThrow(TypeError)
      expect(toText).toThrow(`user ID: expected ${EXPECTED[kind]}, got ${quoted}`)
    },
  )
})

it.each([
  ['bigint', 'b6f1c7b2-7f0e-4c0a-9a59-3d1f3f0f2c11', hintOf('string')],
  ['bigint', '42', CONVERT],
  ['bigint', -1, ''],
  ['bigint', 2n ** 64n, ''],
  ['number', 'ada', hintOf('string')],
  ['number', 42n, hintOf('bigint')],
  ['string', 42, hintOf('number')],
  ['string', 42n, hintOf('bigint')],
  ['string', '', ''],
] as const)("at userIds: '%s' the error for %s names what to set instead", (kind, id, hint) => {
  const message = `user ID: expected ${EXPECTED[kind]}, got ${quote(id)}${hint}`
  expect(() => USER_ID_FORMATS[kind].toText(id as never)).toThrow(new TypeError(message))
})

it('bigint IDs are exact from 0 to 2^64-1, in and out; a safe integer is the same user', () => {
  for (const id of BOUNDARY_IDS) expect(bigint.fromText(bigint.toText(id))).toBe(id)
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), id => bigint.fromText(bigint.toText(id)) === id),
    { numRuns: 1000 },
  )
  for (const id of [0, -0, 1, 42, Number.MAX_SAFE_INTEGER]) expect(bigint.toText(id)).toBe(bigint.toText(BigInt(id)))
  expect(number.toText(-0)).toBe('0')
})

it('only canonical decimal text in range comes back as a number', () => {
  const max = '18446744073709551615'
  for (const stored of ['', '01', '-1', '+1', '0x10', '1e3', ' 12', '12 ', '1.0', '18446744073709551616', '٣'])
    expect([stored, bigint.fromText(stored), number.fromText(stored)]).toEqual([stored, null, null])
  expect([number.fromText('9007199254740992'), bigint.fromText('99999999999999999999')]).toEqual([null, null])
  expect(bigint.fromText(max)).toBe(2n ** 64n - 1n)
})

it('text IDs keep every well-formed character but control characters', () => {
  for (const id of ['0', ' ', 'x'.repeat(128), '6ba7b810-9dad-11d1-80b4-00c04fd430c8', '__proto__', 'Ä€😀', "'; --"])
    expect(string.fromText(string.toText(id))).toBe(id)
  // Not one user but two: nothing is normalised.
  expect(string.toText('\u00e4')).not.toBe(string.toText('a\u0308'))
})
