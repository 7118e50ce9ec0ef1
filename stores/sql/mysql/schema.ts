import type { Names } from '../options.ts'
import { compile } from '../statement.ts'
import { type Column, type Content, type Schema, type Table, tablesOf } from '../tables.ts'

// Keys are compared by bytes. Text IDs are VARBINARY: of the collations that MySQL and MariaDB share, all take
// 'bob' and 'bob ' for the same.
const TYPES: Readonly<Record<Exclude<Content, 'user'>, Pick<Column, 'type' | 'collation'>>> = {
  key: { type: 'char(46)', collation: 'ascii_bin' },
  reference: { type: 'char(46)', collation: 'ascii_bin' },
  kind: { type: 'varchar(16)', collation: 'ascii_bin' },
  tenant: { type: 'varbinary(800)' },
  user_name: { type: 'varchar(256)', collation: 'utf8mb4_bin' },
  uint32: { type: 'int unsigned' },
  data: { type: 'mediumtext', collation: 'utf8mb4_bin' },
  writeId: { type: 'varchar(64)', collation: 'ascii_bin' },
  integer: { type: 'bigint' },
}

function line({ name, type, notNull, collation }: Column): string {
  const charset = collation === undefined ? '' : ` CHARACTER SET ${collation.split('_')[0]} COLLATE ${collation}`
  return `${name} ${type}${charset}${notNull ? ' NOT NULL' : ' NULL'}`
}

function ddl({ name, columns, primaryKey, indexes }: Table): readonly string[] {
  const lines = [
    ...columns.map(line),
    `PRIMARY KEY (${primaryKey})`,
    ...indexes.map(index => `KEY ${index.name} (${index.columns})`),
  ]
  const body = lines.map(each => `  ${each}`).join(',\n')
  return [`CREATE TABLE IF NOT EXISTS ${name} (\n${body}\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin`]
}

/** What overrides a `sql_select_limit` of the server, which would cut the rows of a SELECT without a word. */
export const ALL = 'LIMIT 18446744073709551615'

const found = compile(
  '?',
  `SELECT column_name, column_type, is_nullable = 'NO', collation_name,
     column_default IS NOT NULL OR extra <> '' OR is_nullable = 'YES'
   FROM information_schema.columns WHERE table_schema = COALESCE(:schema, DATABASE()) AND table_name = :plain ${ALL}`,
)
// biome-ignore lint/suspicious/noExplicitAny: cells as the driver gives them
const columnFound = ([name, type, notNull, collation, optional]: readonly any[]): Column => ({
  name,
  // MariaDB and MySQL before 8.0.19 add a display width, which means nothing.
  type: String(type).replace(/^((?:big)?int)\(\d+\)/, '$1'),
  notNull: Number(notNull) === 1,
  collation: collation ?? 'binary',
  optional: Number(optional) === 1,
})

export const mysqlSchema = (names: Names): Schema => ({
  tables: tablesOf(names, holds => {
    if (holds !== 'user') return TYPES[holds]
    return { type: names.userIds === 'bigint' ? 'bigint unsigned' : 'varbinary(800)' }
  }),
  ddl,
  found,
  columnFound,
})
