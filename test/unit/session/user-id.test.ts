import { SessionManager, type UserIds } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { USER_ID_FORMATS } from '../../../src/session/users.ts'
import { quote } from '../../../src/text/quote.ts'
import { BOUNDARY_IDS } from '../../support/guarantee-kit.ts'

const { bigint, number, string } = USER_ID_FORMATS

// A function is taken for a callback, and refused as one.
const badForAll: unknown[] = [undefined, null, true, Symbol('id'), {}, [], [1], new Date(0), Number.NaN, '']
const badNumbers: unknown[] = [
  ...badForAll,
  -1,
  -1n,
  1.5,
  Number.POSITIVE_INFINITY,
  2 ** 53,
  2 ** 64,
  -(2 ** 53),
  '0x10',
  '12',
  ' 12',
  '1e3',
  new Number(1),
]
const bad: Record<UserIds, unknown[]> = {
  bigint: [...badNumbers, 2n ** 64n, 2n ** 65n],
  number: [...badNumbers, 1n, 0n],
  string: [...badForAll, 12, 12n, 'x'.repeat(129), 'a\tb', 'a\0b', 'a\nb', '\u007f', '\ud800', 'a\udfffb'],
}

for (const kind of ['bigint', 'number', 'string'] as const) {
  describe(`userIds: '${kind}'`, () => {
    it.each(bad[kind].map(value => [quote(value), value]))(
      '%s is a TypeError that quotes it',
      async (quoted, value) => {
        const sessions = new SessionManager({ store: new MemoryStore(), userIds: kind as any, sweepInterval: false })
        const id = value as never
        const error = new RegExp(
          `^user ID: expected .*, got ${quoted.replace(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)}(?:; .*)?$`,
        )
        for (const attempt of [
          () => sessions.create({ user: { id, name: 'ada' } }),
          () => sessions.logIn(null, { user: { id, name: 'ada' } }),
          () => sessions.invalidateUser(id),
          () => sessions.list(id),
          () => sessions.revoke(id, 'k'),
        ]) {
          await expect(attempt()).rejects.toThrow(TypeError)
          await expect(attempt()).rejects.toThrow(error)
        }
      },
    )
  })
}

it('an error says which IDs this manager takes', () => {
  expect(() => bigint.toText(-1)).toThrow(
    'user ID: expected a bigint from 0n to 18446744073709551615n (or a safe integer), got -1',
  )
  expect(() => number.toText(-1)).toThrow('user ID: expected a safe integer from 0 (userIds is "number"), got -1')
  expect(() => string.toText('')).toThrow(
    'user ID: expected text of 1 to 128 characters without control characters (userIds is "string"), got ""',
  )
})

it('-0 is user 0', () => {
  expect([bigint.toText(-0), number.toText(-0)]).toEqual(['0', '0'])
})

it.each([
  ['bigint', 'b6f1c7b2-7f0e-4c0a-9a59-3d1f3f0f2c11', "; for such IDs set userIds: 'string' in the manager's options"],
  ['bigint', '42', "; convert it, with BigInt(id) or Number(id), or set userIds: 'string' in the manager's options"],
  ['bigint', -1, ''],
  ['bigint', 2n ** 64n, ''],
  ['number', 'ada', "; for such IDs set userIds: 'string' in the manager's options"],
  ['number', 42n, "; for such IDs set userIds: 'bigint' in the manager's options"],
  ['string', 42, "; for such IDs set userIds: 'number' in the manager's options"],
  ['string', 42n, "; for such IDs set userIds: 'bigint' in the manager's options"],
  ['string', '', ''],
  ['string', 'x'.repeat(129), ''],
] as const)("at userIds: '%s' the error for %s names what to set instead", (kind, id, hint) => {
  let message = ''
  try {
    USER_ID_FORMATS[kind].toText(id as never)
  } catch (error) {
    message = (error as Error).message
  }
  expect(message).toMatch(/^user ID: expected/)
  expect(message.replace(/^[^;]*/, '')).toBe(hint)
})

it('bigint IDs are exact from 0 to 2^64-1, in and out', () => {
  for (const id of BOUNDARY_IDS) expect(bigint.fromText(bigint.toText(id))).toBe(id)
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), id => bigint.fromText(bigint.toText(id)) === id),
    { numRuns: 1000 },
  )
})

it('a safe integer is the same user as the bigint', () => {
  for (const id of [0, -0, 1, 42, Number.MAX_SAFE_INTEGER]) expect(bigint.toText(id)).toBe(bigint.toText(BigInt(id)))
})

it('only canonical decimal text in range comes back as a number', () => {
  for (const stored of [
    '',
    '00',
    '01',
    '-0',
    '-1',
    '+1',
    '0x10',
    '1e3',
    ' 12',
    '12 ',
    '1.0',
    '18446744073709551616',
    '٣',
  ])
    expect([stored, bigint.fromText(stored), number.fromText(stored)]).toEqual([stored, null, null])
  expect(number.fromText('9007199254740992')).toBeNull()
  expect(bigint.fromText('18446744073709551615')).toBe(18446744073709551615n)
  expect(bigint.fromText('99999999999999999999')).toBeNull()
})

it('text IDs keep every well-formed character but control characters', () => {
  for (const id of [
    '0',
    ' ',
    'x'.repeat(128),
    '6ba7b810-9dad-11d1-80b4-00c04fd430c8',
    '__proto__',
    'Ä€😀',
    "'; --",
    '%00',
  ])
    expect(string.fromText(string.toText(id))).toBe(id)
  // Not one user but two: nothing is normalised.
  expect(string.toText('\u00e4')).not.toBe(string.toText('a\u0308'))
})

it('the text IDs 0, 00 and __proto__ are three users', async () => {
  const sessions = new SessionManager({ store: new MemoryStore(), userIds: 'string', sweepInterval: false })
  for (const id of ['0', '00', '__proto__', 'constructor', ' 0']) await sessions.create({ user: { id, name: '' } })
  for (const id of ['0', '00', '__proto__', 'constructor', ' 0']) {
    expect((await sessions.list(id)).map(({ user }) => user?.id)).toEqual([id])
    expect(await sessions.invalidateUser(id)).toBe(1)
  }
})

it('user 0 with an empty name is a user', async () => {
  for (const [userIds, id] of [
    ['bigint', 0n],
    ['number', 0],
    ['string', '0'],
  ] as const) {
    const sessions = new SessionManager({ store: new MemoryStore(), userIds: userIds as any, sweepInterval: false })
    const session = await sessions.create({ user: { id: id as never, name: '' } })
    expect((await sessions.get(session.secret))?.user).toEqual({ id, name: '' })
    expect(await sessions.list(id as never)).toHaveLength(1)
  }
})

const user = (more: object) => ({ id: 1n, name: 'ada', ...more }) as never
it.each([
  ['user: expected { id, name, passwordVersion? }, got undefined', undefined],
  ['user: expected { id, name, passwordVersion? }, got null', null],
  ['user: expected { id, name, passwordVersion? }, got 42', 42],
  ['user.name: expected text of at most 256 characters without NUL, got undefined', user({ name: undefined })],
  ['user.name: expected text of at most 256 characters without NUL, got 7', user({ name: 7 })],
  [String.raw`user.name: expected text of at most 256 characters without NUL, got "a\u0000b"`, user({ name: 'a\0b' })],
  [String.raw`user.name: expected text of at most 256 characters without NUL, got "\ud800"`, user({ name: '\ud800' })],
  ['user.name: expected text of at most 256 characters without NUL, got "x x', user({ name: 'x '.repeat(129) })],
  ['user.passwordVersion: expected a whole number from 0 to 4294967295, got -1', user({ passwordVersion: -1 })],
  ['user.passwordVersion: expected a whole number from 0 to 4294967295, got 1.5', user({ passwordVersion: 1.5 })],
  ['user.passwordVersion: expected a whole number from 0 to 4294967295, got "1"', user({ passwordVersion: '1' })],
  ['user.passwordVersion: expected a whole number from 0 to 4294967295, got 1n', user({ passwordVersion: 1n })],
  [
    'user.passwordVersion: expected a whole number from 0 to 4294967295, got 4294967296',
    user({ passwordVersion: 2 ** 32 }),
  ],
  [
    'user.passwordVersion: expected a whole number from 0 to 4294967295, got NaN',
    user({ passwordVersion: Number.NaN }),
  ],
])('%s', async (message, wrong) => {
  const sessions = new SessionManager({ store: new MemoryStore(), sweepInterval: false })
  await expect(sessions.create({ user: wrong } as never)).rejects.toThrow(TypeError)
  await expect(sessions.create({ user: wrong } as never)).rejects.toThrow(message)
  await expect(sessions.logIn(null, { user: wrong } as never)).rejects.toThrow(message)
})

it('names and password versions at their limits are kept exactly', async () => {
  const sessions = new SessionManager({ store: new MemoryStore(), sweepInterval: false })
  for (const name of ['', ' ', 'x'.repeat(256), '__proto__', '😀', '\u0001<script>'])
    for (const passwordVersion of [null, undefined, 0, 1, 2 ** 32 - 1]) {
      const { secret } = await sessions.create({ user: { id: 7, name, passwordVersion } })
      const found = await sessions.get(secret)
      expect([found?.user?.name, found?.user?.passwordVersion]).toEqual([name, passwordVersion ?? null])
    }
})
