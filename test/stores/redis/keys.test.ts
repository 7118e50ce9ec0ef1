// Which slot a key is in, and the sets of slots: as the specification of Redis Cluster says, without a server.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkOptions } from '../../../src/text/check-options.ts'
import {
  aKeyPrefix,
  keysUnder,
  memberOf,
  patternUnder,
  SLOTS,
  shardIn,
  shardOf,
  shardOfKey,
  slotOf,
} from '../../../stores/redis/keys.ts'
import { allSlots, hasSlots, slotsFrom, slotsText } from '../../../stores/redis/slots.ts'

describe('the hash slot of a key', () => {
  it('is that of CLUSTER KEYSLOT', () => {
    // The check value of CRC16/XMODEM, and answers of a server.
    expect(slotOf('123456789')).toBe(0x31c3)
    expect([slotOf('foo'), slotOf('bar'), slotOf('')]).toEqual([12182, 5061, 0])
  })

  it('has a shard of its own, whichever it is', () => {
    for (const slot of [0, 1, 5461, 10_922, SLOTS - 1]) {
      expect(shardIn(slot)).toMatch(/^[A-Za-z0-9_-]{3}$/)
      expect(slotOf(shardIn(slot))).toBe(slot)
    }
    expect(() => shardIn(SLOTS)).toThrow(new RangeError('no shard has slot 16384'))
  })
})

describe('the names of keys in Redis', () => {
  it('put all that belongs to a user into one slot, and each thing under a name of its own', () => {
    const keys = keysUnder('app:')
    const shard = shardOf('42')
    expect(shard).toMatch(/^[A-Za-z0-9_-]{3}$/)
    expect([keys.session(`${shard}rest`), keys.index('42'), keys.floor('42')]).toEqual([
      `app:{${shard}}:rest`,
      `app:{${shard}}:u:42`,
      `app:{${shard}}:f:42`,
    ])
    expect(shardOfKey(`${shard}rest`) + memberOf(`${shard}rest`)).toBe(`${shard}rest`)
    expect(shardOfKey(`${shard}rest`)).toBe(shard)
    expect(new Set(Array.from({ length: 100 }, (_, user) => shardOf(`${user}`))).size).toBeGreaterThan(90)
  })

  it('match a pattern in which the prefix stands for itself', () => {
    expect(patternUnder('')).toBe(`{???}:${'?'.repeat(43)}`)
    expect(patternUnder('a*b?[c]\\:')).toBe(`a\\*b\\?\\[c\\]\\\\:{???}:${'?'.repeat(43)}`)
  })

  it('begin with nothing that would move the hash tag or break a line', () => {
    const check = (prefix: unknown) =>
      checkOptions({ where: 'Store', rules: { prefix: aKeyPrefix } }, { prefix } as { prefix: string })
    for (const sound of ['', 'app1:', 'ä:', 'x'.repeat(64)]) expect(() => check(sound)).not.toThrow()
    for (const wrong of ['{', 'a}', 'a b', 'a\n', ' a', 'a\u0000', 'a\u007f', 'x'.repeat(65), 5, null])
      expect(() => check(wrong), String(wrong)).toThrow(
        "at most 64 characters without braces, spaces and control characters, such as 'app1:'",
      )
  })
})

describe('a set of hash slots', () => {
  const slots = (...ranges: string[]) => slotsText(slotsFrom(ranges))

  it('is written as CLUSTER NODES writes it, and read back', () => {
    for (const ranges of [['0'], ['16383'], ['0-99', '5461'], ['0-16383'], ['1-2', '4-16383'], ['7', '9']])
      expect(slots(...ranges)).toBe(ranges.join(','))
    expect(slots('5-9', '0-4', '7')).toBe('0-9')
    expect(slots()).toBe('')
    expect(slotsText(allSlots())).toBe('0-16383')
    const set = fc.uniqueArray(fc.integer({ min: 0, max: SLOTS - 1 }), { maxLength: 40 })
    fc.assert(
      fc.property(set, members => {
        const text = slots(...members.map(String))
        const read = slotsFrom(text === '' ? [] : text.split(','))
        expect([...read.keys()].filter(slot => read[slot] === 1)).toEqual(members.toSorted((a, b) => a - b))
      }),
      { numRuns: 30 },
    )
  })

  it('says whether it has any', () => {
    expect([hasSlots(slotsFrom([])), hasSlots(slotsFrom(['0'])), hasSlots(slotsFrom(['16383']))]).toEqual([
      false,
      true,
      true,
    ])
  })
})
