// What a row of the session table says, whatever a driver or a hand has made of its cells.
import type { SessionRecord } from 'coatcheck/custom-store'
import { describe, expect, it } from 'vitest'
import { AT, fromRow, isKey, ROW_COLUMNS, recordValues } from '../../../stores/sql/rows.ts'
import { anonymous, NOW, newKey, record } from '../../support/sql/records.ts'

type Cells = Partial<Record<(typeof ROW_COLUMNS)[number], unknown>>

/** The row of a session, with the cells that were changed. */
function rowOf(one: SessionRecord, changes: Cells = {}) {
  const cells: Cells = {
    id: one.key,
    kind: one.kind,
    parent: one.parent,
    password_version: one.passwordVersion,
    version: one.version,
    write_id: one.writeId,
    created_at: one.createdAt,
    seen_at: one.seenAt,
    expires_at: one.expiresAt,
    absolute_expires_at: one.absoluteExpiresAt,
    moved_to: null,
    user_id: one.userId,
    tenant: '',
    user_name: one.userName,
    data: one.data,
    ...changes,
  }
  return ROW_COLUMNS.map(name => cells[name])
}

const INTEGERS = ['password_version', 'version', 'created_at', 'seen_at', 'expires_at', 'absolute_expires_at'] as const
const one = record({ passwordVersion: 3, parent: newKey() })

it.each([
  ['numbers', (cell: number) => cell],
  ['text', String],
  ['big integers', BigInt],
])('reads the same session where a driver gives integers as %s', (_, as) => {
  const row = [...rowOf(one)]
  for (const name of INTEGERS) row[AT[name]] = as(row[AT[name]] as number)
  expect(fromRow(row, NOW, 'bigint')).toEqual(one)
})

it.each([[''], ['x'], [true], [null], [undefined], [[7]], [Buffer.from('7')]])('takes %j for no integer', cell => {
  for (const name of INTEGERS)
    if (name !== 'password_version' || cell !== null)
      expect(fromRow(rowOf(one, { [name]: cell }), NOW, 'bigint'), name).toEqual({ corrupt: expect.any(String) })
})

it('takes a session for over in the instant in which it expires, and not before', () => {
  expect(fromRow(rowOf(one, { expires_at: NOW + 1 }), NOW, 'bigint')).toEqual({ ...one, expiresAt: NOW + 1 })
  for (const expiresAt of [NOW, NOW - 1, 0])
    expect(fromRow(rowOf(one, { expires_at: expiresAt }), NOW, 'bigint')).toBe(null)
  const damaged = fromRow(rowOf(one, { expires_at: -1 }), NOW, 'bigint')
  expect(damaged).toEqual({ corrupt: 'expiresAt is not an instant' })
})

it('reads a session without a user, and one without a password version', () => {
  const guest = anonymous()
  expect(fromRow(rowOf(guest), NOW, 'bigint')).toEqual(guest)
  expect(fromRow(rowOf(guest, { user_id: '42' }), NOW, 'bigint')).toHaveProperty('corrupt')
  const user = record({ passwordVersion: null })
  expect(fromRow(rowOf(user), NOW, 'bigint')).toEqual(user)
})

it('reads the user of a namespace', () => {
  const found = fromRow(rowOf(one, { tenant: 'shop', user_id: '7' }), NOW, 'bigint')
  expect(found).toMatchObject({ userId: 'shop\t7' })
})

it.each<[string, Cells]>([
  ['a user ID that is a number of the driver', { user_id: 42 }],
  ['a namespace that is no text', { tenant: null }],
  ['a user ID that is no number', { user_id: 'ada' }],
  ['a user ID beyond 2^64-1', { user_id: '18446744073709551616' }],
])('takes no row for a session with %s', (_, changes) => {
  expect(fromRow(rowOf(one, changes), NOW, 'bigint')).toEqual({ corrupt: 'user ID is empty' })
})

it('reads any text as a user ID where user IDs are text', () => {
  expect(fromRow(rowOf(one, { user_id: 'ada' }), NOW, 'string')).toMatchObject({ userId: 'ada' })
  for (const tenant of ['', 'shop'])
    expect(fromRow(rowOf(one, { tenant, user_id: 42 }), NOW, 'string')).toEqual({ corrupt: 'user ID is empty' })
})

describe('a forward', () => {
  const next = newKey()
  const cells: Cells = { moved_to: next, data: 'c2FsdA', absolute_expires_at: NOW + 5, user_id: null, user_name: null }

  it('says where it leads, until when, and by which salt', () => {
    expect(fromRow(rowOf(one, cells), NOW, 'bigint')).toEqual({ movedTo: next, salt: 'c2FsdA', until: NOW + 5 })
    expect(fromRow(rowOf(one, { ...cells, absolute_expires_at: `${NOW + 5}` }), NOW, 'bigint')).toMatchObject({
      until: NOW + 5,
    })
  })

  it('is over when it may be forgotten', () => {
    expect(fromRow(rowOf(one, { ...cells, expires_at: NOW }), NOW, 'bigint')).toBe(null)
  })

  it.each<[string, Cells]>([
    ['leads to what is no key', { moved_to: 'x' }],
    ['leads to nothing', { moved_to: '' }],
    ['has no salt', { data: null }],
    ['says no time', { absolute_expires_at: 'x' }],
    ['says a time of no clock', { absolute_expires_at: 2 ** 53 }],
    ['does not say when it may be forgotten', { expires_at: 'x' }],
  ])('is malformed where it %s', (_, changes) => {
    expect(fromRow(rowOf(one, { ...cells, ...changes }), NOW, 'bigint')).toEqual({ corrupt: 'forward is malformed' })
  })
})

it.each([
  ['x'.repeat(46), true],
  [`-_09azAZ${'x'.repeat(38)}`, true],
  ['x'.repeat(45), false],
  ['x'.repeat(47), false],
  [`${'x'.repeat(46)}\n`, false],
  [`${'x'.repeat(45)}|`, false],
  [['x'.repeat(46)], false],
  [null, false],
])('knows whether %j has the form of a key', (key, is) => {
  expect(isKey(key)).toBe(is)
})

it('binds the values of a session under the names of the columns, its namespace apart', () => {
  const { key, userId: _, ...rest } = one
  expect(recordValues(one)).toEqual({ ...rest, id: key, tenant: '', userId: '42', provenVersion: 3 })
  expect(recordValues({ ...one, userId: 'shop\t7' })).toMatchObject({ tenant: 'shop', userId: '7' })
  const guest = anonymous()
  expect(recordValues(guest)).toMatchObject({ tenant: '', userId: null, provenVersion: 0 })
})
