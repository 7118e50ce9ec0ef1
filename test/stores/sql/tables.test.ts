// What a table has to be, by the catalogue of the database, and what it is created as. No database is asked.
import { describe, expect, it } from 'vitest'
import { mysqlSchema } from '../../../stores/sql/mysql/schema.ts'
import { namesOf } from '../../../stores/sql/options.ts'
import { postgresSchema } from '../../../stores/sql/postgres/schema.ts'
import { sqliteSchema } from '../../../stores/sql/sqlite/schema.ts'
import { followNow, type Statement, type Values } from '../../../stores/sql/statement.ts'
import { type Column, isMigrated, migrate, printed, type Schema, SESSION_COLUMNS } from '../../../stores/sql/tables.ts'

const names = namesOf({}, '"')
const [SESSIONS, USERS] = ['"coatcheck_sessions"', '"coatcheck_sessions_users"']

/** A schema whose catalogue lists these columns, by the name of the table. */
function catalogue(columns: Readonly<Record<string, readonly Column[]>>, schema = postgresSchema(names)) {
  const asked: (Values & { text?: string })[] = []
  const run = (statement: Statement, values: Values) => {
    asked.push(statement === schema.found ? values : { ...values, text: statement.text })
    return { rows: (columns[values.name as string] ?? []) as never, changed: 0 }
  }
  const listing: Schema = { ...schema, columnFound: column => column as unknown as Column }
  return {
    asked,
    isMigrated: () => followNow(isMigrated(listing, names), run),
    migrate: () => followNow(migrate(listing, names), run),
  }
}

/** The columns of both tables as they should be. */
const ours = () => postgresSchema(names).tables.map(({ columns }) => columns) as [readonly Column[], readonly Column[]]
type Changed = (sessions: readonly Column[]) => readonly Column[]
const but =
  (name: string, changes: Partial<Column>): Changed =>
  sessions =>
    sessions.map(column => (column.name === name ? { ...column, ...changes } : column))
const without =
  (left: string): Changed =>
  sessions =>
    sessions.filter(({ name }) => name !== left)
const and =
  (column: Partial<Column>): Changed =>
  sessions => [...sessions, { name: 'shop', type: 'text', notNull: false, ...column }]
function withSessions(changed: Changed) {
  const [sessions, users] = ours()
  return catalogue({ [SESSIONS]: changed(sessions), [USERS]: users })
}

describe('a table that is there', () => {
  it('is taken for ours where it has our columns', () => {
    const { asked, isMigrated } = withSessions(sessions => sessions)
    expect(isMigrated()).toBe(true)
    expect(asked).toEqual([
      { name: SESSIONS, plain: 'coatcheck_sessions', schema: null },
      { name: USERS, plain: 'coatcheck_sessions_users', schema: null },
    ])
  })

  it('is not enough where the other one is missing', () => {
    const [sessions, users] = ours()
    expect(catalogue({ [SESSIONS]: sessions }).isMigrated()).toBe(false)
    expect(catalogue({ [USERS]: users }).isMigrated()).toBe(false)
  })

  it.each<[string, Changed, string]>([
    ['lacks a column', without('data'), 'column data is missing'],
    ['has a column of another type', but('data', { type: 'bytea' }), 'column data is bytea, not text'],
    ['compares keys otherwise', but('id', { collation: 'default' }), 'column id is collated default, not C'],
    ['requires what we leave out', but('parent', { notNull: true }), 'column parent is NOT NULL'],
    ['requires what we do not know', and({ notNull: true }), 'column shop is unknown, NOT NULL, and has no default'],
    [
      'differs in several ways',
      sessions => without('kind')(but('data', { type: 'bytea' })(sessions)),
      'column kind is missing; column data is bytea, not text',
    ],
  ])('is refused where it %s', (_, changed, fault) => {
    const expected = `table ${SESSIONS} has another schema than this version of coatcheck needs: ${fault}`
    expect(() => withSessions(changed).isMigrated()).toThrow(new Error(expected))
  })

  it.each<[string, Changed]>([
    ['allows NULL where we never write it', but('data', { notNull: false })],
    ['has a collation where ours does not matter', but('data', { collation: 'de_DE' })],
    ['has a column more that may be NULL', and({})],
    ['has a column more with a default', and({ notNull: true, optional: true })],
  ])('is taken for ours where it %s', (_, changed) => {
    expect(withSessions(changed).isMigrated()).toBe(true)
  })
})

describe('a migration', () => {
  it('waits until it is alone, and creates only what is missing', () => {
    const { asked, migrate } = catalogue({ [SESSIONS]: ours()[0] })
    migrate()
    expect(asked.map(({ text, name }) => text?.slice(0, 26) ?? name)).toEqual([
      'SELECT pg_advisory_xact_lo',
      SESSIONS,
      USERS,
      'CREATE TABLE IF NOT EXISTS',
      'CREATE INDEX IF NOT EXISTS',
    ])
    expect(asked[0]).toMatchObject({ name: SESSIONS })
    expect(asked[3]!.text).toContain(USERS)
  })

  it('waits for none where the database needs no such lock', () => {
    const schema = sqliteSchema(names)
    const [sessions, users] = ours()
    const { asked, migrate } = catalogue({ [SESSIONS]: sessions, [USERS]: users }, schema)
    migrate()
    expect(asked.length).toBe(2)
  })
})

it('binds each column under its name in camel case', () => {
  expect(Object.fromEntries(SESSION_COLUMNS.map(({ name, parameter }) => [name, parameter]))).toMatchObject({
    id: 'id',
    password_version: 'passwordVersion',
    absolute_expires_at: 'absoluteExpiresAt',
  })
})

describe('a column in the catalogue', () => {
  const found = { name: 'c', notNull: false, optional: false }

  it('is read as PostgreSQL says it', () => {
    const { columnFound } = postgresSchema(names)
    expect(columnFound(['c', 'text', 'f', null, 'f'])).toEqual({ ...found, type: 'text', collation: 'default' })
    expect(columnFound(['c', 'bigint', 't', 'C', 'f'])).toEqual({
      ...found,
      type: 'bigint',
      notNull: true,
      collation: 'C',
    })
    expect(columnFound(['c', 'text', 'f', null, 't'])).toMatchObject({ notNull: false, optional: true })
  })

  it.each([
    ['bigint(20)', 'bigint'],
    ['bigint(20) unsigned', 'bigint unsigned'],
    ['int(10) unsigned', 'int unsigned'],
    ['int unsigned', 'int unsigned'],
    ['char(46)', 'char(46)'],
    ['varbinary(800)', 'varbinary(800)'],
    ['tinyint(1)', 'tinyint(1)'],
  ])('is read as MySQL and MariaDB say it: %s', (given, type) => {
    const { columnFound } = mysqlSchema(names)
    expect(columnFound(['c', given, 0, null, '0'])).toEqual({ ...found, type, collation: 'binary' })
    expect(columnFound(['c', given, '1', 'ascii_bin', 0])).toEqual({
      ...found,
      type,
      notNull: true,
      collation: 'ascii_bin',
    })
    expect(columnFound(['c', given, '0', null, 1n])).toMatchObject({ notNull: false, optional: true })
  })

  it('is read as SQLite says it, which keeps the type as it was written', () => {
    const { columnFound } = sqliteSchema(names)
    expect(columnFound(['c', 'Text', 0n, 0n])).toEqual({ ...found, type: 'TEXT' })
    expect(columnFound(['c', 'INTEGER', 1, 0])).toEqual({ ...found, type: 'INTEGER', notNull: true })
    expect(columnFound(['c', 'INTEGER', 0, 1])).toEqual({ ...found, type: 'INTEGER', optional: true })
  })
})

describe('the printed schema', () => {
  it('is that of PostgreSQL', () => {
    expect(printed(postgresSchema(namesOf({ schema: 'auth', table: 's' }, '"')))).toMatchInlineSnapshot(`
      "CREATE TABLE IF NOT EXISTS "auth"."s" (
        id text COLLATE "C" PRIMARY KEY,
        kind text NOT NULL,
        parent text,
        tenant text COLLATE "C" NOT NULL,
        user_id numeric(20),
        username text,
        password_version bigint,
        data text NOT NULL,
        version bigint NOT NULL,
        write_id text NOT NULL,
        created_at bigint NOT NULL,
        seen_at bigint NOT NULL,
        expires_at bigint NOT NULL,
        absolute_expires_at bigint NOT NULL,
        moved_to text
      );
      CREATE INDEX IF NOT EXISTS "s_user" ON "auth"."s" (user_id, tenant) WHERE user_id IS NOT NULL;
      CREATE INDEX IF NOT EXISTS "s_expires" ON "auth"."s" (expires_at);
      CREATE TABLE IF NOT EXISTS "auth"."s_users" (
        tenant text COLLATE "C" NOT NULL,
        user_id numeric(20) NOT NULL,
        floor bigint NOT NULL,
        min_password_version_until bigint NOT NULL,
        expires_at bigint NOT NULL,
        PRIMARY KEY (user_id, tenant)
      );
      CREATE INDEX IF NOT EXISTS "s_users_expires" ON "auth"."s_users" (expires_at);
      "
    `)
    expect(printed(postgresSchema(namesOf({ userIds: 'string' }, '"')))).toContain('  user_id text COLLATE "C",\n')
  })

  it('is that of MySQL and MariaDB', () => {
    expect(printed(mysqlSchema(namesOf({ schema: 'auth', table: 's' }, '`')))).toMatchInlineSnapshot(`
      "CREATE TABLE IF NOT EXISTS \`auth\`.\`s\` (
        id char(46) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        kind varchar(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        parent char(46) CHARACTER SET ascii COLLATE ascii_bin NULL,
        tenant varbinary(800) NOT NULL,
        user_id bigint unsigned NULL,
        username varchar(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
        password_version int unsigned NULL,
        data mediumtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        version bigint NOT NULL,
        write_id varchar(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        created_at bigint NOT NULL,
        seen_at bigint NOT NULL,
        expires_at bigint NOT NULL,
        absolute_expires_at bigint NOT NULL,
        moved_to char(46) CHARACTER SET ascii COLLATE ascii_bin NULL,
        PRIMARY KEY (id),
        KEY \`s_user\` (user_id, tenant),
        KEY \`s_expires\` (expires_at)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
      CREATE TABLE IF NOT EXISTS \`auth\`.\`s_users\` (
        tenant varbinary(800) NOT NULL,
        user_id bigint unsigned NOT NULL,
        floor int unsigned NOT NULL,
        min_password_version_until bigint NOT NULL,
        expires_at bigint NOT NULL,
        PRIMARY KEY (user_id, tenant),
        KEY \`s_users_expires\` (expires_at)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
      "
    `)
    expect(printed(mysqlSchema(namesOf({ userIds: 'string' }, '`')))).toContain('  user_id varbinary(800) NULL,\n')
  })

  it('is that of SQLite', () => {
    expect(printed(sqliteSchema(namesOf({ schema: 'auth', table: 's' }, '"')))).toMatchInlineSnapshot(`
      "CREATE TABLE IF NOT EXISTS "auth"."s" (
        id TEXT NOT NULL,
        kind TEXT NOT NULL,
        parent TEXT,
        tenant TEXT NOT NULL,
        user_id TEXT,
        username TEXT,
        password_version INTEGER,
        data TEXT NOT NULL,
        version INTEGER NOT NULL,
        write_id TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        seen_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        absolute_expires_at INTEGER NOT NULL,
        moved_to TEXT,
        PRIMARY KEY (id)
      );
      CREATE INDEX IF NOT EXISTS "auth"."s_user" ON "s" (user_id, tenant) WHERE user_id IS NOT NULL;
      CREATE INDEX IF NOT EXISTS "auth"."s_expires" ON "s" (expires_at);
      CREATE TABLE IF NOT EXISTS "auth"."s_users" (
        tenant TEXT NOT NULL,
        user_id TEXT NOT NULL,
        floor INTEGER NOT NULL,
        min_password_version_until INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        PRIMARY KEY (user_id, tenant)
      );
      CREATE INDEX IF NOT EXISTS "auth"."s_users_expires" ON "s_users" (expires_at);
      "
    `)
    expect(printed(sqliteSchema(namesOf({ userIds: 'string', table: 's' }, '"')))).toContain(
      'CREATE INDEX IF NOT EXISTS "s_user" ON "s"',
    )
  })
})
