import { expect, it } from 'vitest'
import { checkOptionNames } from '../../src/text/check-options.ts'
import { quote } from '../../src/text/quote.ts'

const known = ['idleTimeout', 'absoluteTimeout', 'store']
const check = (options: unknown) => () =>
  checkOptionNames('SessionManager', options, known, { secret: 'no secret is needed' })

it('takes the options that there are', () => {
  expect(check({})).not.toThrow()
  expect(check({ store: 1, idleTimeout: undefined })).not.toThrow()
})

it('names the nearest option where one is misspelt, and all that there are', () => {
  expect(check({ idletimeout: 1 })).toThrow(
    'SessionManager: "idletimeout" is not an option; did you mean idleTimeout? (there are: idleTimeout, absoluteTimeout, store)',
  )
  expect(check({ timeoutIdle: 1 })).toThrow('"timeoutIdle" is not an option (there are')
})

it('says what to do instead of an option of another library', () => {
  expect(check({ secret: 1 })).toThrow('SessionManager: "secret" is not an option; no secret is needed (there are')
})

it('refuses what is no object', () => {
  for (const wrong of [null, 'x', 1, []]) expect(check(wrong)).toThrow('SessionManager: expected an object of options')
})

it('shows no URL that may contain a password', () => {
  expect(quote('redis://:hunter2@host')).toBe('a URL (not shown: it may contain a password)')
  for (const url of ['postgres://u:hunter2@host/db', 'mysql://host/db?password=hunter2', ' redis://\n:hunter2@host'])
    expect(quote(url)).not.toContain('hunter2')
  expect(quote('https://app.example.com/')).toBe('"https://app.example.com/"')
})
