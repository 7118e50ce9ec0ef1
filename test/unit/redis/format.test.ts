import { describe, expect, it } from 'vitest'
import { FORWARD_LIFETIME, type SessionRecord } from '../../../src/contract/store.ts'
import { decode, encodeForward, encodeRecord, live, text } from '../../../stores/redis/format.ts'
import { HOUR, T0 } from '../../support/redis/records.ts'

const KEY = `abc${'x'.repeat(43)}`
const RECORD: SessionRecord = {
  key: KEY,
  kind: 'session',
  parent: null,
  userId: '42',
  userName: 'ada lovelace',
  passwordVersion: 7,
  data: '{}',
  version: 3,
  writeId: 'Zk1vX0bq7TnE',
  createdAt: 1,
  seenAt: 2,
  expiresAt: 3,
  absoluteExpiresAt: 4,
}
const FIELDS = 's 3 Zk1vX0bq7TnE 1 2 3 4 0 7 - 42 ada%20lovelace'.split(' ')
/** The line of `RECORD` with another text in place of this field. */
const line = (place: number, text: string) => `${FIELDS.toSpliced(place, 1, text).join(' ')}\n{}`

// test/proof/fuzz draws records and lines by lot, and asks a second implementation of these rules.
describe('the text of a session in Redis', () => {
  it('is one line for people, and the data', () => {
    expect(encodeRecord(RECORD)).toBe(`${FIELDS.join(' ')}\n{}`)
  })

  it.each<Partial<SessionRecord>>([
    { kind: 'remember', parent: KEY },
    { userId: null, userName: null, passwordVersion: null },
    { userId: '-', userName: '' },
    { userId: '-1', userName: 'a b\n% é😀' },
    { passwordVersion: 0xffff_ffff, version: Number.MAX_SAFE_INTEGER },
    { data: '' },
    { data: '{"a":\n 1}' },
    { createdAt: 0, seenAt: T0, expiresAt: T0 - HOUR, absoluteExpiresAt: 8_640_000_000_000_000 },
  ])('brings back a record as it was: %j', change => {
    const record = { ...RECORD, ...change }
    expect(decode(KEY, encodeRecord(record))).toEqual(record)
  })

  it.each([
    ['nothing', ''],
    ['another library’s session', '{"cookie":{"originalMaxAge":null},"passport":{"user":1}}'],
    ['a line without an end', FIELDS.join(' ')],
    ['a line that is cut', `${FIELDS.slice(0, 5).join(' ')}\n{}`],
    ['a field too many', line(11, 'ada lovelace')],
    ['another kind', line(0, 'p')],
    ['version 0', line(1, '0')],
    ['a version beyond all numbers', line(1, '9'.repeat(16))],
    ['a version in hexadecimal digits', line(1, '0x1')],
    ['a date with a zero in front', line(3, '01')],
    ['a date before the epoch', line(4, '-1')],
    ['a date after the end of time', line(5, '8640000000000001')],
    ['no end of its time in Redis', line(7, 'x')],
    ['a password version of 2^32', line(8, '4294967296')],
    ['a parent that is no key', line(9, 'abc')],
    ['a name without a user', line(10, '-')],
    ['a user ID cut in the middle of a character', line(10, '%E2%82')],
  ])('is refused where it is %s', (_, value) => {
    expect(decode(KEY, value)).toEqual({ corrupt: expect.stringMatching(/\S/) })
  })

  it('takes no longer to refuse where it is long and never ends its line', () => {
    for (const value of ['s 1 '.repeat(100_000), `s 1 ${'x'.repeat(400_000)}`, '0'.repeat(400_000)])
      expect(decode(KEY, value)).toEqual({ corrupt: expect.any(String) })
  })
})

describe('the text of a forward in Redis', () => {
  const movedTo = `abc${'y'.repeat(43)}`

  it('brings back where it leads, its salt and its end, and is kept for longer', () => {
    for (const [salt, until, now] of [
      ['a b', T0, T0 + HOUR],
      ['', T0 + HOUR, T0],
    ] as const) {
      const found = decode(KEY, encodeForward(movedTo, { salt, until }, now)) as Parameters<typeof live>[0]
      const kept = T0 + HOUR + FORWARD_LIFETIME
      expect(live(found, kept - 1)).toEqual({ movedTo, salt, until })
      expect(live(found, kept)).toBe(null)
    }
  })

  it('is written as people read it', () => {
    expect(encodeForward(movedTo, { salt: 'a b', until: 5 }, 7)).toBe(`f ${movedTo} 5 ${7 + FORWARD_LIFETIME} a%20b`)
  })

  it('is refused where a field breaks its rule', () => {
    for (const value of [
      'f ',
      `f ${movedTo}`,
      `f ${movedTo} 5`,
      `f ${movedTo} 5 9`,
      `f ${movedTo} x 9 salt`,
      `f ${movedTo} -5 9 salt`,
      `f ${movedTo} 05 9 salt`,
      `f ${movedTo} 5x 9 salt`,
      `f ${movedTo} 5 x salt`,
      `f ${movedTo} 5 9 salt x`,
      `f ${movedTo} 5 9 salt\n`,
      `f ${movedTo} 5 9 %E2%82`,
      `f ${movedTo}y 5 9 salt`,
      `f y${movedTo} 5 9 salt`,
      `f ${movedTo.slice(1)} 5 9 salt`,
      `f ${movedTo.slice(1)}! 5 9 salt`,
      `f  5 9 salt`,
    ])
      expect(decode(KEY, value), value).toEqual({ corrupt: expect.any(String) })
  })
})

describe('what is in the place of a session in Redis', () => {
  it('is no session where it has ended for a login on another shard', () => {
    for (const value of ['x writeid123', 'x ']) expect(decode(KEY, value)).toBeNull()
    for (const value of ['x', 'p a', 'f', ' x a', 's x p f ', 'xx a', ''])
      expect(decode(KEY, value), value).toEqual({ corrupt: expect.stringContaining('header line') })
  })

  it('is read the same from a Buffer', () => {
    expect([text('ada'), text(Buffer.from('Łódź'))]).toEqual(['ada', 'Łódź'])
  })
})
