// What the codes of PostgreSQL mean. No server is asked.
import { expect, it } from 'vitest'
import { faultOf, sqlState } from '../../../../stores/sql/postgres/server.ts'

const of = (code: unknown) => Object.assign(new Error('said by the server'), { code, severity: 'ERROR' })

it.each([
  ['40003', 'uncertain', 'whether the statement was completed is not known'],
  ['40001', 'busy', 'a serialization failure'],
  ['40P01', 'busy', 'a deadlock'],
  ['CR000', 'busy', 'a cluster that changes'],
  ['25001', 'unusable', 'a BEGIN in a transaction'],
  ['25P02', 'unusable', 'a statement in a transaction that has failed'],
  ['25006', 'wrong-server', 'a server that takes no writes'],
  ['0A000', 'refused', 'something that the server does not do'],
  ['22023', 'late', 'a time that is over'],
  ['23505', 'duplicate', 'a key that is taken'],
  ['42P01', 'foreign', 'a table that is missing'],
  ['42703', 'foreign', 'a column that is missing'],
  ['42804', 'foreign', 'a column of another type'],
  ['42883', 'foreign', 'a comparison that there is not'],
  ['3F000', 'foreign', 'a schema that is missing'],
  ['23502', 'foreign', 'a column that must have a value'],
  ['22001', 'foreign', 'a column that is too short'],
  ['08006', 'lost', 'a connection that failed'],
  ['08P01', 'lost', 'a protocol that was violated'],
  ['57P01', 'lost', 'an administrator who ends the server'],
  ['57014', 'refused', 'a statement that was cancelled'],
  ['53300', 'refused', 'too many connections'],
  ['10801', 'refused', 'a code that only contains another'],
])('takes %s for %s: %s', (code, fault) => {
  expect(sqlState(of(code))).toBe(code)
  expect(faultOf(of(code))).toBe(fault)
})

it('takes a prepared statement of before an ALTER for one to prepare anew, in whatever language it is said', () => {
  const said = Object.assign(of('0A000'), { routine: 'RevalidateCachedQuery' })
  expect(faultOf(said)).toBe('unusable')
})

it.each<[string, unknown]>([
  ['a code of Node.js', Object.assign(new Error('connect'), { code: 'EPIPE' })],
  ['five letters of a driver that are no answer of the server', Object.assign(new Error('no'), { code: 'EPIPE' })],
  ['a longer code', of('ECONNRESET')],
  ['a code that begins like one', of('40001x')],
  ['a code that ends like one', of('x40001')],
  ['small letters', of('abcde')],
  ['a code that is a number', of(40001)],
  ['no code', of(undefined)],
  ['nothing', null],
  ['nothing at all', undefined],
  ['text', '40001'],
])('takes %s for the end of the connection', (_, error) => {
  expect(sqlState(error)).toBe(null)
  expect(faultOf(error)).toBe('lost')
})
