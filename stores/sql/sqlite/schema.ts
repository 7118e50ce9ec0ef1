import type { Names } from '../options.ts'
import { compile } from '../statement.ts'
import { type Schema, type Table, tablesOf } from '../tables.ts'

function ddl(table: Table, { quote, schema }: Names): readonly string[] {
  const { name, plain, columns, primaryKey, indexes } = table
  const lines = [
    ...columns.map(column => `${column.name} ${column.type}${column.notNull ? ' NOT NULL' : ''}`),
    `PRIMARY KEY (${primaryKey})`,
  ]
  // An index is in the schema of its table, which is named without one.
  const within = schema === null ? '' : `${quote(schema)}.`
  return [
    `CREATE TABLE IF NOT EXISTS ${name} (\n${lines.map(line => `  ${line}`).join(',\n')}\n)`,
    ...indexes.map(
      index => `CREATE INDEX IF NOT EXISTS ${within}${index.name} ON ${quote(plain)} (${index.columns})${index.where}`,
    ),
  ]
}

export const sqliteSchema = (names: Names): Schema => ({
  // User IDs are text also where they are numbers: SQLite keeps 2^64-1 and 2^64-2 as one float.
  tables: tablesOf(names, holds => ({ type: holds === 'uint32' || holds === 'integer' ? 'INTEGER' : 'TEXT' })),
  ddl: table => ddl(table, names),
  found: compile(
    '?',
    `SELECT name, type, "notnull", dflt_value IS NOT NULL FROM pragma_table_info(:plain, COALESCE(:schema, 'main'))`,
  ),
  columnFound: ([name, type, notNull, optional]) => ({
    name: String(name),
    type: String(type).toUpperCase(),
    notNull: Number(notNull) === 1,
    optional: Number(optional) === 1,
  }),
})
