import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FORWARD_LIFETIME, type SessionRecord } from '../../../src/contract/store.ts'
import { decode, encodeForward, encodeRecord, live, text } from '../../../stores/redis/format.ts'
import { HOUR, recordAt, T0 } from '../../support/records.ts'

const character = fc.constantFrom(...'abcXYZ019_-')
const keys = fc.string({ unit: character, minLength: 46, maxLength: 46 })
const instants = fc.integer({ min: 0, max: 8_640_000_000_000_000 })
const words = fc.oneof(fc.string({ unit: 'grapheme', minLength: 1 }), fc.constantFrom('-', '%', ' ', 'a b', '-1', '\n'))
const records: fc.Arbitrary<SessionRecord> = fc
  .record({
    kind: fc.constantFrom('session' as const, 'remember' as const),
    parent: fc.option(keys),
    user: fc.option(fc.tuple(words, fc.oneof(words, fc.constant('')))),
    passwordVersion: fc.option(fc.integer({ min: 0, max: 0xffff_ffff })),
    data: fc.oneof(fc.string({ unit: 'grapheme' }), fc.constant('{"a":\n 1}')),
    version: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    writeId: fc.string({ unit: character, minLength: 8, maxLength: 32 }),
    createdAt: instants,
    seenAt: instants,
    expiresAt: instants,
    absoluteExpiresAt: instants,
  })
  .map(({ user, ...rest }) => ({
    ...rest,
    key: `abc${'x'.repeat(43)}`,
    userId: user === null ? null : user[0],
    userName: user === null ? null : user[1],
  }))

const FIELDS = 's 3 Zk1vX0bq7TnE 1 2 3 4 0 7 - 42 ada%20lovelace'.split(' ')
/** A line with another text in place of this field. */
const line = (place: number, text: string) => `${FIELDS.toSpliced(place, 1, text).join(' ')}\n{}`

describe('the text of a session in Redis', () => {
  it('is one line for people, and the data', () => {
    const user = { userName: 'ada lovelace', passwordVersion: 7 }
    const times = { createdAt: 1, seenAt: 2, expiresAt: 3, absoluteExpiresAt: 4 }
    const record = recordAt(0, { ...user, version: 3, writeId: 'Zk1vX0bq7TnE', ...times })
    expect(encodeRecord(record)).toBe(`${FIELDS.join(' ')}\n{}`)
  })

  it('brings back each record as it was', () => {
    fc.assert(
      fc.property(records, record => {
        expect(decode(record.key, encodeRecord(record))).toEqual(record)
      }),
    )
  })

  it.each([
    ['nothing', ''],
    ['another library’s session', '{"cookie":{"originalMaxAge":null},"passport":{"user":1}}'],
    ['a line without an end', FIELDS.join(' ')],
    ['a line that is cut', `${FIELDS.slice(0, 5).join(' ')}\n{}`],
    ['a field too many', line(11, 'ada lovelace')],
    ['a blank before it', ` ${line(0, 's')}`],
    ['another kind', line(0, 'p')],
    ['version 0', line(1, '0')],
    ['a version beyond all numbers', line(1, '9'.repeat(16))],
    ['a version in hexadecimal digits', line(1, '0x1')],
    ['a date with a zero in front', line(3, '01')],
    ['a date before the epoch', line(4, '-1')],
    ['a date after the end of time', line(5, '8640000000000001')],
    ['no end of its time in Redis', line(7, 'x')],
    ['a password version of 2^32', line(8, '4294967296')],
    ['a password version that is empty', line(8, '')],
    ['a parent that is no key', line(9, 'abc')],
    ['a name without a user', line(10, '-')],
    ['a user ID cut in the middle of a character', line(10, '%E2%82')],
  ])('is refused where it is %s', (_, value) => {
    expect(decode(`abc${'x'.repeat(43)}`, value)).toEqual({ corrupt: expect.stringMatching(/\S/) })
  })

  it('takes no longer to refuse where it is long and never ends its line', () => {
    for (const value of ['s 1 '.repeat(100_000), `s 1 ${'x'.repeat(400_000)}`, '0'.repeat(400_000)])
      expect(decode(`abc${'x'.repeat(43)}`, value)).toEqual({ corrupt: expect.any(String) })
  })
})

describe('the text of a forward in Redis', () => {
  const key = `abc${'x'.repeat(43)}`
  const movedTo = `abc${'y'.repeat(43)}`

  it('brings back where it leads, its salt and its end, and is kept for longer', () => {
    const salts = fc.oneof(words, fc.constant(''))
    const until = fc.integer({ min: 0, max: T0 + HOUR })
    fc.assert(
      fc.property(keys, salts, until, fc.integer({ min: 0, max: T0 }), (to, salt, until, now) => {
        const value = encodeForward(to, { salt, until }, now)
        const found = decode(key, value) as Exclude<ReturnType<typeof decode>, { corrupt: string }>
        const kept = Math.max(now, until) + FORWARD_LIFETIME
        expect(live(found, kept - 1)).toEqual({ movedTo: to, salt, until })
        expect(live(found, kept)).toBe(null)
      }),
    )
  })

  it('is written as people read it', () => {
    expect(encodeForward(movedTo, { salt: 'a b', until: 5 }, 7)).toBe(`f ${movedTo} 5 ${7 + FORWARD_LIFETIME} a%20b`)
  })

  it('is refused where a field breaks its rule', () => {
    for (const value of [
      `f ${movedTo}`,
      `f ${movedTo} 5 9`,
      `f ${movedTo} x 9 salt`,
      `f ${movedTo} 05 9 salt`,
      `f ${movedTo} 5 x salt`,
      `f ${movedTo} 5 9 salt x`,
      `f ${movedTo} 5 9 salt\n`,
      `f ${movedTo} 5 9 %E2%82`,
      `f ${movedTo}y 5 9 salt`,
      `f ${movedTo.slice(1)} 5 9 salt`,
      `f  5 9 salt`,
    ])
      expect(decode(key, value), value).toEqual({ corrupt: expect.any(String) })
  })
})

describe('what is in the place of a session in Redis', () => {
  it('is no session where it has ended for a login on another shard', () => {
    const key = `abc${'x'.repeat(43)}`
    for (const value of ['x writeid123', 'x ']) expect(decode(key, value)).toBeNull()
    for (const value of ['x', 'p a', 'f', ' x a', 's x p f ', 'xx a', ''])
      expect(decode(key, value), value).toEqual({ corrupt: expect.stringContaining('header line') })
  })

  it('is read the same from a Buffer', () => {
    expect([text('ada'), text(Buffer.from('Łódź'))]).toEqual(['ada', 'Łódź'])
  })
})
