import { type Column, compareColumns } from '../columns.ts'
import type { Names } from '../options.ts'
import { Refusal } from '../patience.ts'
import { compile } from '../statement.ts'
import type { MysqlConnections } from './client.ts'

const MIGRATION_TIMEOUT = 60_000

type Row = readonly [name: string, type: string, notNull: boolean, collation?: string]

// Keys are compared by bytes. Text IDs are VARBINARY: of the collations that MySQL and MariaDB share, all take
// 'bob' and 'bob ' for the same.
const KEY = 'char(46)'
const ASCII = 'ascii_bin'
const UTF8 = 'utf8mb4_bin'

const userType = (names: Names) => (names.userIds === 'u64' ? 'bigint unsigned' : 'varbinary(800)')

const sessionColumns = (names: Names): readonly Row[] => [
  ['id', KEY, true, ASCII],
  ['kind', 'varchar(16)', true, ASCII],
  ['parent', KEY, false, ASCII],
  ['tenant', 'varbinary(800)', true],
  ['user_id', userType(names), false],
  ['username', 'varchar(256)', false, UTF8],
  ['password_version', 'int unsigned', false],
  ['data', 'mediumtext', true, UTF8],
  ['version', 'bigint', true],
  ['write_id', 'varchar(64)', true, ASCII],
  ['created_at', 'bigint', true],
  ['seen_at', 'bigint', true],
  ['expires_at', 'bigint', true],
  ['absolute_expires_at', 'bigint', true],
  ['moved_to', KEY, false, ASCII],
]
const userColumns = (names: Names): readonly Row[] => [
  ['tenant', 'varbinary(800)', true],
  ['user_id', userType(names), true],
  ['floor', 'int unsigned', true],
  ['floor_until', 'bigint', true],
  ['expires_at', 'bigint', true],
]

function tables(names: Names): readonly [sessions: string, users: string] {
  const lines = (columns: readonly Row[]) =>
    columns
      .map(([name, type, notNull, collation]) => {
        const charset = collation === undefined ? '' : ` CHARACTER SET ${collation.split('_')[0]} COLLATE ${collation}`
        return `  ${name} ${type}${charset}${notNull ? ' NOT NULL' : ' NULL'}`
      })
      .join(',\n')
  const { sessions, users, plain, quote } = names
  return [
    `CREATE TABLE IF NOT EXISTS ${sessions} (
${lines(sessionColumns(names))},
  PRIMARY KEY (id),
  KEY ${quote(`${plain.sessions}_user`)} (user_id, tenant),
  KEY ${quote(`${plain.sessions}_expires`)} (expires_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin`,
    `CREATE TABLE IF NOT EXISTS ${users} (
${lines(userColumns(names))},
  PRIMARY KEY (user_id, tenant),
  KEY ${quote(`${plain.users}_expires`)} (expires_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin`,
  ]
}

export const mysqlSchema = (names: Names) => `${tables(names).join(';\n')};\n`

const FOUND = compile(
  '?',
  `SELECT column_name, column_type, is_nullable = 'NO', collation_name,
     column_default IS NOT NULL OR extra <> '' OR is_nullable = 'YES'
   FROM information_schema.columns WHERE table_schema = COALESCE(:schema, DATABASE()) AND table_name = :table`,
)

export async function migrateMysql(connections: MysqlConnections, names: Names): Promise<void> {
  const end = performance.now() + MIGRATION_TIMEOUT
  const found = async (table: string): Promise<Column[]> =>
    (await connections.run(FOUND, { schema: names.schema, table }, end)).rows.map(
      ([name, type, notNull, collation, optional]) => ({
        name,
        // MariaDB and MySQL before 8.0.19 add a display width, which means nothing.
        type: String(type).replace(/^((?:big)?int)\(\d+\)/, '$1'),
        notNull: Number(notNull) === 1,
        collation: collation ?? 'binary',
        optional: Number(optional) === 1,
      }),
    )
  const [sessions, users] = tables(names)
  try {
    for (const [table, ddl, columns] of [
      [names.plain.sessions, sessions, sessionColumns(names)],
      [names.plain.users, users, userColumns(names)],
    ] as const) {
      // Only what is missing: a role without the right to create may call this on a finished schema.
      // CREATE TABLE IF NOT EXISTS waits for whoever is creating the same table.
      if ((await found(table)).length === 0) await connections.run({ name: '', text: ddl, order: [] }, {}, end)
      compareColumns(
        table,
        columns.map(([name, type, notNull, collation]) => ({
          name,
          type,
          notNull,
          ...(collation === undefined ? {} : { collation }),
        })),
        await found(table),
      )
    }
  } catch (error) {
    throw error instanceof Refusal && error.cause instanceof Error ? error.cause : error
  }
}
