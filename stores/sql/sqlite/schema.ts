import { type Column, compareColumns } from '../columns.ts'
import type { Names } from '../options.ts'
import type { SqliteConnection } from './client.ts'

// User IDs are text also where they are numbers: SQLite keeps 2^64-1 and 2^64-2 as one float.
const SESSIONS: readonly (readonly [name: string, type: string, notNull: boolean])[] = [
  ['id', 'TEXT', true],
  ['kind', 'TEXT', true],
  ['parent', 'TEXT', false],
  ['tenant', 'TEXT', true],
  ['user_id', 'TEXT', false],
  ['username', 'TEXT', false],
  ['password_version', 'INTEGER', false],
  ['data', 'TEXT', true],
  ['version', 'INTEGER', true],
  ['write_id', 'TEXT', true],
  ['created_at', 'INTEGER', true],
  ['seen_at', 'INTEGER', true],
  ['expires_at', 'INTEGER', true],
  ['absolute_expires_at', 'INTEGER', true],
  ['moved_to', 'TEXT', false],
]
const USERS: typeof SESSIONS = [
  ['tenant', 'TEXT', true],
  ['user_id', 'TEXT', true],
  ['floor', 'INTEGER', true],
  ['floor_until', 'INTEGER', true],
  ['expires_at', 'INTEGER', true],
]

function tables(names: Names): { sessions: string[]; users: string[] } {
  const { sessions, users, plain, quote, schema } = names
  const lines = (columns: typeof SESSIONS) =>
    columns.map(([name, type, notNull]) => `  ${name} ${type}${notNull ? ' NOT NULL' : ''}`).join(',\n')
  // An index is in the schema of its table, which is named without one.
  const index = (name: string) => (schema === null ? '' : `${quote(schema)}.`) + quote(name)
  return {
    sessions: [
      `CREATE TABLE IF NOT EXISTS ${sessions} (\n${lines(SESSIONS)},\n  PRIMARY KEY (id)\n)`,
      `CREATE INDEX IF NOT EXISTS ${index(`${plain.sessions}_user`)} ON ${quote(plain.sessions)} (user_id, tenant) WHERE user_id IS NOT NULL`,
      `CREATE INDEX IF NOT EXISTS ${index(`${plain.sessions}_expires`)} ON ${quote(plain.sessions)} (expires_at)`,
    ],
    users: [
      `CREATE TABLE IF NOT EXISTS ${users} (\n${lines(USERS)},\n  PRIMARY KEY (user_id, tenant)\n)`,
      `CREATE INDEX IF NOT EXISTS ${index(`${plain.users}_expires`)} ON ${quote(plain.users)} (expires_at)`,
    ],
  }
}

export function sqliteSchema(names: Names): string {
  const { sessions, users } = tables(names)
  return `${[...sessions, ...users].join(';\n')};\n`
}

export function migrateSqlite(connection: SqliteConnection, names: Names): void {
  const found = (table: string): Column[] =>
    connection
      .rows('SELECT name, type, "notnull", dflt_value IS NOT NULL FROM pragma_table_info(?, ?)', [
        table,
        names.schema ?? 'main',
      ])
      .map(([name, type, notNull, optional]) => ({
        name: String(name),
        type: String(type).toUpperCase(),
        notNull: Number(notNull) === 1,
        optional: Number(optional) === 1,
      }))
  const expected = (columns: typeof SESSIONS) => columns.map(([name, type, notNull]) => ({ name, type, notNull }))
  const { sessions, users } = names.plain
  // A finished schema is only looked at: a file may be read-only for this process.
  if (found(sessions).length === 0 || found(users).length === 0)
    connection.transaction(change => {
      if (found(sessions).length === 0) for (const ddl of tables(names).sessions) change(ddl, [])
      if (found(users).length === 0) for (const ddl of tables(names).users) change(ddl, [])
    })
  compareColumns(sessions, expected(SESSIONS), found(sessions))
  compareColumns(users, expected(USERS), found(users))
}
