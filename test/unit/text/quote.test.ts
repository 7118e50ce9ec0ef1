import { expect, it } from 'vitest'
import { quote } from '../../../src/text/quote.ts'

it('a quoted value is short, on one line, and shows its type where that is not plain', () => {
  expect(quote('a\nb"c')).toBe(String.raw`"a\nb\"c"`)
  expect(quote('x '.repeat(1000))).toHaveLength(63)
  expect(quote('x '.repeat(30))).toBe(`"${'x '.repeat(30)}"`)
  expect(quote(`${'x '.repeat(30)}y`)).toBe(`"${'x '.repeat(30)}"…`)
  expect(quote('x'.repeat(43))).toBe('43 characters (not shown: it may be a secret)')
  const odd = [1n, -0, undefined, null, () => {}, [], {}, Symbol('s')]
  expect(odd.map(quote).join()).toBe('1n,-0,undefined,null,a function,an array,an object,Symbol(s)')
})

it('a URL that may contain a password is not shown', () => {
  for (const url of [
    'redis://:hunter2@host',
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
