import type { Names } from '../options.ts'
import { compile } from '../statement.ts'
import { type Column, type Content, type Schema, type Table, tablesOf } from '../tables.ts'

const TEXT = { type: 'text' }
const BIGINT = { type: 'bigint' }
const BY_BYTES = { type: 'text', collation: 'C' }
const TYPES: Readonly<Record<Exclude<Content, 'user'>, Pick<Column, 'type' | 'collation'>>> = {
  key: BY_BYTES,
  reference: TEXT,
  kind: TEXT,
  tenant: BY_BYTES,
  user_name: TEXT,
  uint32: BIGINT,
  data: TEXT,
  writeId: TEXT,
  integer: BIGINT,
}
const NUMBER = { type: 'numeric(20,0)' }

/** The type of a column, in the words of the catalogue. */
export const pgType = (holds: Content, { userIds }: Names) => {
  if (holds !== 'user') return TYPES[holds]
  return userIds === 'bigint' ? NUMBER : BY_BYTES
}

function ddl({ name, columns, primaryKey, indexes }: Table): readonly string[] {
  const lines = columns.map(({ name, type, notNull, collation }) => {
    const constraint = name === primaryKey ? ' PRIMARY KEY' : notNull ? ' NOT NULL' : ''
    return `${name} ${type.replace(',0)', ')')}${collation === undefined ? '' : ` COLLATE "${collation}"`}${constraint}`
  })
  if (primaryKey.includes(',')) lines.push(`PRIMARY KEY (${primaryKey})`)
  return [
    `CREATE TABLE IF NOT EXISTS ${name} (\n${lines.map(line => `  ${line}`).join(',\n')}\n)`,
    ...indexes.map(index => `CREATE INDEX IF NOT EXISTS ${index.name} ON ${name} (${index.columns})${index.where}`),
  ]
}

export const postgresSchema = (names: Names): Schema => ({
  tables: tablesOf(names, holds => pgType(holds, names)),
  ddl,
  found: compile(
    '$',
    `SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, c.collname, a.atthasdef OR a.attidentity <> ''
     FROM pg_attribute a LEFT JOIN pg_collation c ON c.oid = a.attcollation
     WHERE a.attrelid = to_regclass(:name) AND a.attnum > 0 AND NOT a.attisdropped`,
  ),
  columnFound: ([name, type, notNull, collation, optional]) => ({
    name,
    type,
    notNull: notNull === 't',
    collation: collation ?? 'default',
    optional: optional === 't',
  }),
  // CREATE ... IF NOT EXISTS by two at once ends in a unique violation of the catalogue.
  alone: compile('$', `SELECT pg_advisory_xact_lock(hashtextextended('coatcheck ' || :name, 0))`),
})
