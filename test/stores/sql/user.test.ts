// User IDs as the tables keep them: the namespace apart, and only what comes back exactly as it was given.
import { expect, it } from 'vitest'
import { isU64, joinUser, splitUser, userFault } from '../../../stores/sql/user.ts'

it.each(['0', '7', '42', '9999999999999999999', '10000000000000000000', '18446744073709551615'])(
  'takes %s for a number',
  text => {
    expect(isU64(text)).toBe(true)
    expect(userFault(text, 'bigint')).toBe(null)
    expect(userFault(`shop\t${text}`, 'bigint')).toBe(null)
  },
)

it.each([
  '',
  '00',
  '01',
  '-1',
  '1.0',
  '1e3',
  ' 1',
  '1 ',
  '1\n',
  'a1',
  '1a',
  '18446744073709551616',
  '99999999999999999999',
  '100000000000000000000',
])('takes %j for no number, but for text', text => {
  expect(isU64(text)).toBe(false)
  if (text === '') return
  expect(userFault(text, 'bigint')).toBe(
    "the user ID is not an integer from 0 to 2^64-1; give the store the option userIds: 'string'",
  )
  expect(userFault(text, 'string')).toBe(null)
})

it.each([
  ['ada', '', 'ada'],
  ['shop\tada', 'shop', 'ada'],
  ['a\tb\tada', 'a\tb', 'ada'],
  ['shop\t', 'shop', ''],
  ['\tada', '', '\tada'],
  ['', '', ''],
])('keeps %j as namespace %j and user %j, and joins them again', (whole, tenant, userId) => {
  expect(splitUser(whole)).toEqual({ tenant, userId })
  expect(joinUser(tenant, userId)).toBe(whole)
})

it.each([
  ['', 'the user ID is not text or is empty'],
  [7 as unknown as string, 'the user ID is not text or is empty'],
  [['ada'] as unknown as string, 'the user ID is not text or is empty'],
  ['a\0', 'the user ID is not well-formed Unicode without NUL'],
  ['\ud800', 'the user ID is not well-formed Unicode without NUL'],
  ['a\0\tada', 'the user ID is not well-formed Unicode without NUL'],
  ['x'.repeat(201), 'the user ID is longer than 200 characters'],
  [`${'x'.repeat(201)}\tada`, 'the user ID is longer than 200 characters'],
  [`shop\t${'x'.repeat(201)}`, 'the user ID is longer than 200 characters'],
])('refuses %j and says why', (given, fault) => {
  expect(userFault(given, 'string')).toBe(fault)
})

it('keeps a user ID and a namespace of 200 characters each', () => {
  expect(userFault(`${'ш'.repeat(200)}\t${'😀'.repeat(100)}`, 'string')).toBe(null)
  expect(userFault(`${'ш'.repeat(200)}\t42`, 'bigint')).toBe(null)
})
