import { expect, it } from 'vitest'
import { checkOptions, listOf, oneOf, wholeNumber } from '../../../src/text/check-options.ts'
import { durationUpTo } from '../../../src/text/duration.ts'

it('a rule takes its least and its greatest value, and says of all others what it expects', () => {
  for (const [each, right, wrong, expected] of [
    [wholeNumber(0, 100), [0, 100], [-1, 101, 1.5, '1', Number.NaN], 'a whole number from 0 to 100'],
    [wholeNumber(0), [2 ** 53 - 1], [2 ** 53], 'a whole number from 0'],
    [oneOf('a', 'b', 'c'), ['a', 'b', 'c'], ['d', ['a'], undefined], "'a', 'b' or 'c'"],
    [durationUpTo('2m'), ['120s'], ['121s', '3m'], "at most '2m'"],
    [listOf('letters', oneOf('a')), [[], ['a', 'a']], [['a', 'b']], "'a'"],
  ] as const) {
    for (const value of right) expect(() => each(value, 'limit.max')).not.toThrow()
    for (const value of wrong) {
      expect(() => each(value, 'limit.max')).toThrow(TypeError)
      expect(() => each(value, 'limit.max')).toThrow(`limit.max: expected ${expected}, got `)
    }
  }
})

it('an option of null has a value, and one of undefined has none', () => {
  const place = { where: 'limit', rules: { max: wholeNumber(1) } }
  expect(() => checkOptions(place, { max: undefined })).not.toThrow()
  expect(() => checkOptions(place, { max: null })).toThrow('max: expected a whole number from 1, got null')
})
