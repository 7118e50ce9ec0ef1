import { expect, it } from 'vitest'
import { milliseconds } from '../../../src/text/duration.ts'
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
  1800n,
  '',
  '30',
  '30m ',
  '30min',
  '-30m',
  '0m',
  '0.4ms',
  '1e3s',
  '.5h',
  '١m',
  '30m\n',
  `${'9'.repeat(400)}s`,
  '36501d',
  Number.NaN,
  null,
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
