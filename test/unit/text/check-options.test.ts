import { expect, it } from 'vitest'
import {
  aBoolean,
  aFunction,
  checkOptions,
  listOf,
  type OptionsOf,
  oneOf,
  rule,
  wholeNumber,
} from '../../../src/text/check-options.ts'
import { durationUpTo } from '../../../src/text/duration.ts'
import { quote } from '../../../src/text/quote.ts'

it('says what a value should be, and quotes it', () => {
  const wrong = (each: (value: unknown, name: string) => void, value: unknown) => () => each(value, 'limit.max')
  for (const [each, value, message] of [
    [aBoolean, 0, 'true or false, got 0'],
    [aFunction, {}, 'a function, got an object'],
    [oneOf('on'), 'off', '\'on\', got "off"'],
    [oneOf('on', 'off'), ['on'], "'on' or 'off', got an array"],
    [oneOf('a', 'b', 'c'), undefined, "'a', 'b' or 'c', got undefined"],
    [wholeNumber(1), 1.5, 'a whole number from 1, got 1.5'],
    [wholeNumber(1), '1', 'a whole number from 1, got "1"'],
    [wholeNumber(0, 100), 101, 'a whole number from 0 to 100, got 101'],
    [wholeNumber(0, 100), -1, 'a whole number from 0 to 100, got -1'],
    [wholeNumber(0), 2 ** 53, 'a whole number from 0, got 9007199254740992'],
    [durationUpTo('2m'), '3m', 'at most \'2m\', got "3m"'],
    [durationUpTo('2m', ', since clocks differ'), '121s', 'at most \'2m\', since clocks differ, got "121s"'],
    [durationUpTo('2m'), 120, 'a duration with its unit'],
    [listOf('names', oneOf('on')), 'on', 'an array of names, got "on"'],
    [listOf('names', oneOf('on')), ['on', 'off'], '\'on\', got "off"'],
    [rule('a token', () => false), 'x', 'a token, got "x"'],
  ] as const) {
    expect(wrong(each, value)).toThrow(TypeError)
    expect(wrong(each, value)).toThrow(`limit.max: expected ${message}`)
  }
  for (const [each, value] of [
    [oneOf('on', 'off'), 'off'],
    [wholeNumber(0, 100), 0],
    [wholeNumber(0, 100), 100],
    [durationUpTo('2m'), '120s'],
    [listOf('names', oneOf('on')), ['on']],
  ] as const)
    expect(wrong(each, value)).not.toThrow()
})

it('asks for a value only where there is one, or where there must be one', () => {
  const checked: [unknown, string][] = []
  const note = (value: unknown, name: string) => void checked.push([value, name])
  const limit: OptionsOf<{ max: number; onLimit?: string }> = {
    where: 'limit',
    prefix: 'limit.',
    required: ['max'],
    rules: { max: note, onLimit: note },
  }
  checkOptions(limit, { onLimit: undefined })
  checkOptions(limit, { max: 3, onLimit: null })
  expect(checked).toEqual([
    [undefined, 'limit.max'],
    [3, 'limit.max'],
    [null, 'limit.onLimit'],
  ])
})

it('shows no URL that may contain a password', () => {
  expect(quote('redis://:hunter2@host')).toBe('a URL (not shown: it may contain a password)')
  for (const url of [
    'postgres://u:hunter2@host/db',
    'mysql://host/db?password=hunter2',
    ' redis://\n:hunter2@host',
    'REDIS_URL=redis://:hunter2@host',
    '"redis://:hunter2@host"',
    'http://a.example redis://:hunter2@host',
    'file:app.db?key=hunter2',
    'the file is file:app.db?cipher=x&key=hunter2',
    'sqlite:app.db?key=hunter2',
    'default:hunter2@eu1.upstash.example',
  ])
    expect(quote(url)).toBe('a URL (not shown: it may contain a password)')
  for (const shown of ['https://app.example.com/', 'ada@example.com', 'why?', 'why? https://app.example.com'])
    expect(quote(shown)).toBe(`"${shown}"`)
})
