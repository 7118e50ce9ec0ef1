// Why a session was not written, by what the tables say, and which records they cannot keep.
import { expect, it } from 'vitest'
import { answer, changeFault, type Facts, recordFault, verdict } from '../../../stores/sql/verdict.ts'
import { anonymous, newKey, newWriteId, record } from '../../support/sql/records.ts'

const CLEAR: Facts = { writeId: null, taken: false, old: null, stale: false, parentLives: false }
const parent = newKey()
const fresh = record()
const child = record({ parent })
/** The facts of a replace of version 3 that nothing stands in the way of. */
const WITH_OLD: Facts = { ...CLEAR, old: { version: 3, parent: null } }

it('finds nothing in the way of a login, or of a new ID', () => {
  expect(verdict(fresh, CLEAR)).toBe(null)
  expect(verdict(fresh, WITH_OLD, 3)).toBe(null)
  expect(verdict(child, { ...CLEAR, parentLives: true })).toBe(null)
})

it('takes its own write for written, whatever else has happened since', () => {
  const facts: Facts = { ...CLEAR, writeId: fresh.writeId, taken: true, stale: true }
  expect(verdict(fresh, facts)).toBe('created')
  expect(verdict(fresh, facts, 3)).toBe('created')
  expect(verdict(fresh, { ...facts, writeId: newWriteId() })).toBe('collision')
})

it('answers for the session that is to be replaced first', () => {
  const facts: Facts = { ...CLEAR, taken: true, stale: true }
  expect(verdict(fresh, facts, 3)).toBe('gone')
  expect(verdict(fresh, { ...facts, old: { version: 2, parent: null } }, 3)).toBe('conflict')
  expect(verdict(fresh, { ...facts, old: { version: 4, parent: null } }, 3)).toBe('conflict')
  expect(verdict(fresh, { ...facts, old: { version: 3, parent: null } }, 3)).toBe('collision')
})

it('asks nothing about an old session where there is none to replace', () => {
  expect(verdict(fresh, { ...CLEAR, old: { version: 3, parent: null } })).toBe(null)
})

it('answers that the password is older before it looks for the parent', () => {
  expect(verdict(child, { ...CLEAR, stale: true })).toBe('stale-login')
  expect(verdict(child, { ...WITH_OLD, stale: true }, 3)).toBe('stale-login')
})

it('needs a parent that is live, unless the replaced session had the same', () => {
  expect(verdict(child, CLEAR)).toBe('orphan')
  expect(verdict(child, WITH_OLD, 3)).toBe('orphan')
  expect(verdict(child, { ...CLEAR, old: { version: 3, parent: newKey() } }, 3)).toBe('orphan')
  expect(verdict(child, { ...CLEAR, old: { version: 3, parent: newKey() }, parentLives: true }, 3)).toBe(null)
  expect(verdict(child, { ...CLEAR, old: { version: 3, parent } }, 3)).toBe(null)
})

it('answers with the outcome, and with nobody ended', () => {
  expect(answer('limit')).toEqual({ outcome: 'limit', ended: [] })
})

const NAME = 'the name is longer than 256 characters, or not well-formed Unicode without NUL'
const DATA = 'the data is not well-formed Unicode without NUL'
const WRITE_ID = 'the write ID is malformed'
const NO_NUMBER = "the user ID is not an integer from 0 to 2^64-1; give the store the option userIds: 'string'"

it.each([
  ['a key of another form', { key: 'x' }, 'key is malformed'],
  ['a user ID that is no number', { userId: 'ada' }, NO_NUMBER],
  ['a name that is too long', { userName: 'x'.repeat(257) }, NAME],
  ['a name with NUL', { userName: 'a\0' }, NAME],
  ['a name with half a character', { userName: '\ud800' }, NAME],
  ['data with NUL', { data: '"\0"' }, DATA],
  ['data with half a character', { data: '"\udc00"' }, DATA],
  ['an empty write ID', { writeId: '' }, WRITE_ID],
  ['a write ID that is too long', { writeId: 'x'.repeat(65) }, WRITE_ID],
  ['a write ID with other characters', { writeId: 'abc|def' }, WRITE_ID],
  ['a write ID that ends otherwise', { writeId: 'abc\n' }, WRITE_ID],
  ['a write ID that begins otherwise', { writeId: ' abc' }, WRITE_ID],
])('cannot keep %s', (_, changes, fault) => {
  expect(recordFault(record(changes), 'bigint')).toBe(fault)
})

it('keeps a name of 256 characters, a write ID of 64, no user, and a user whose ID is text', () => {
  const longest = { userName: 'ü'.repeat(256), writeId: '-_'.repeat(32) }
  expect(recordFault(record(longest), 'bigint')).toBe(null)
  expect(recordFault(anonymous(), 'bigint')).toBe(null)
  expect(recordFault(record({ userId: 'ada' }), 'string')).toBe(null)
})

it('asks the same of what an update writes', () => {
  expect(changeFault({ data: '"😀"', writeId: 'w' })).toBe(null)
  expect(changeFault({ data: '"\0"', writeId: 'w' })).toBe(DATA)
  expect(changeFault({ data: '', writeId: '' })).toBe(WRITE_ID)
})
