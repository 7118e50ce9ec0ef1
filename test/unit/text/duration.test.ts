import { expect, it } from 'vitest'
import { aDuration, durationUpTo, milliseconds } from '../../../src/text/duration.ts'
import { quote } from '../../../src/text/quote.ts'

it('a duration is a number with its unit', () => {
  const cases = { '1ms': 1, '500ms': 500, '1s': 1000, '30m': 1_800_000, '12h': 43_200_000, '1d': 86_400_000 } as const
  for (const [text, ms] of Object.entries(cases)) expect(milliseconds(text as '1ms', 'x')).toBe(ms)
  expect(milliseconds('1.5h', 'x')).toBe(5_400_000)
  expect(milliseconds('0.0005s', 'x')).toBe(1)
  expect(milliseconds('36500d', 'x')).toBe(36_500 * 86_400_000)
})

const bad: unknown[] = [
  30,
  0,
  1800n,
  '',
  '30',
  '30 m',
  ' 30m',
  '30m ',
  '30M',
  '30min',
  '-30m',
  '+30m',
  '0m',
  '0.4ms',
  '1e3s',
  '0x10s',
  '.5h',
  '1.h',
  '١m',
  '30m\n',
  `${'9'.repeat(400)}s`,
  '36501d',
  'm',
  'Infinitys',
  Number.NaN,
  null,
  true,
  {},
  ['30m'],
  new String('30m'),
  Symbol('30m'),
]
it.each(bad.map(value => [quote(value), value]))('%s is refused with its value and the right form', (quoted, value) => {
  expect(() => milliseconds(value as '1s', 'idleTimeout')).toThrow(TypeError)
  expect(() => milliseconds(value as '1s', 'idleTimeout')).toThrow(
    `idleTimeout: expected a duration with its unit, such as '500ms', '30m' or '12h' (more than 0, at most 100 years), got ${quoted}`,
  )
})

it('an option that is a duration is checked as one, and may have an upper end', () => {
  expect(() => aDuration('30m', 'maxAge')).not.toThrow()
  expect(() => aDuration('30', 'maxAge')).toThrow(/^maxAge: expected a duration with its unit/)
  const upToADay = durationUpTo('1d', ', which is a day')
  expect(() => upToADay('24h', 'maxAge')).not.toThrow()
  expect(() => upToADay('86400001ms', 'maxAge')).toThrow(
    'maxAge: expected at most \'1d\', which is a day, got "86400001ms"',
  )
})

it('a quoted value is short, on one line, and shows its type where that is not plain', () => {
  expect(quote('a\nb"c')).toBe(String.raw`"a\nb\"c"`)
  expect(quote('x '.repeat(1000))).toHaveLength(63)
  expect(quote('x '.repeat(30))).toBe(`"${'x '.repeat(30)}"`)
  expect(quote(`${'x '.repeat(30)}y`)).toBe(`"${'x '.repeat(30)}"…`)
  expect(quote('x'.repeat(43))).toBe('43 characters (not shown: it may be a secret)')
  expect([1n, -0, undefined, null, () => {}, [], {}, Symbol('s')].map(quote)).toEqual([
    '1n',
    '-0',
    'undefined',
    'null',
    'a function',
    'an array',
    'an object',
    'Symbol(s)',
  ])
})
