// The options that all SQL stores share, and the names that follow from them.
import { SqliteStore } from 'coatcheck/stores/sqlite'
import { expect, it } from 'vitest'
import { checkOptions } from '../../../src/text/check-options.ts'
import { namesOf, optionsOf, type SqlStoreOptions } from '../../../stores/sql/base/schema.ts'
import { MYSQL } from '../../../stores/sql/mysql/driver.ts'
import { SQLITE } from '../../../stores/sql/sqlite/engine.ts'

const OPTIONS = optionsOf('SqlStore', {})
const check = (options: object) => checkOptions(OPTIONS, options as SqlStoreOptions)

it('names the tables after the option, with the schema before both', () => {
  const names = namesOf({ table: 'visits', schema: 'auth' }, MYSQL)
  expect(names).toMatchObject({ sessions: '`auth`.`visits`', users: '`auth`.`visits_users`', schema: 'auth' })
  const usual = { sessions: '"coatcheck_sessions"', users: '"coatcheck_sessions_users"', schema: null }
  expect(namesOf({}, SQLITE)).toMatchObject(usual)
})

it('creates both tables, and their indexes, under these names', () => {
  const created = SqliteStore.ddl({ table: 'visits' }).match(/CREATE \w+ IF NOT EXISTS "\w+"( ON "\w+")?/g)
  expect(created).toEqual([
    'CREATE TABLE IF NOT EXISTS "visits"',
    'CREATE INDEX IF NOT EXISTS "visits_user" ON "visits"',
    'CREATE INDEX IF NOT EXISTS "visits_expires" ON "visits"',
    'CREATE TABLE IF NOT EXISTS "visits_users"',
    'CREATE INDEX IF NOT EXISTS "visits_users_expires" ON "visits_users"',
  ])
})

it.each(['a', '_', 'A_9', 'x'.repeat(48)])('takes %s for the name of a table or schema', name => {
  expect(() => check({ table: name, schema: name })).not.toThrow()
})

it.each(['', '9a', 'a-b', 'a b', 'a"b', 'a`b', 'a\n', ' a', 'ä', 'x'.repeat(49), 7, null, ['a']])(
  'refuses the name %j, and says what it expects',
  name => {
    const expected = /: expected 1 to 48 letters, digits and underscores, not beginning with a digit, got /
    expect(() => check({ table: name })).toThrow(expected)
    expect(() => check({ schema: name })).toThrow(expected)
  },
)
