import type { Names } from './options.ts'
import { type Outcome, plain, type Statement, type Steps } from './statement.ts'

/** What a column holds. Each database has one type for it. */
export type Content =
  | 'key'
  | 'reference'
  | 'kind'
  | 'tenant'
  | 'user'
  | 'user_name'
  | 'uint32'
  | 'data'
  | 'writeId'
  | 'integer'

/** A column of ours. Values are bound to it under `parameter`, its name in camel case. */
export interface OurColumn<N extends string = string> {
  readonly name: N
  readonly holds: Content
  readonly notNull: boolean
  readonly parameter: string
}

const column = <const N extends string>(name: N, holds: Content, notNull = true): OurColumn<N> => ({
  name,
  holds,
  notNull,
  parameter: name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
})

/**
 * The columns of the session table, in the order of every INSERT. A row with `moved_to` is a forward: `data`
 * is its salt, `absolute_expires_at` its `until`, and `expires_at` when it may be forgotten.
 */
export const SESSION_COLUMNS = [
  column('id', 'key'),
  column('kind', 'kind'),
  column('parent', 'reference', false),
  column('tenant', 'tenant'),
  column('user_id', 'user', false),
  column('user_name', 'user_name', false),
  column('password_version', 'uint32', false),
  column('data', 'data'),
  column('version', 'integer'),
  column('write_id', 'writeId'),
  column('created_at', 'integer'),
  column('seen_at', 'integer'),
  column('expires_at', 'integer'),
  column('absolute_expires_at', 'integer'),
  column('moved_to', 'reference', false),
] as const

const USER_COLUMNS = [
  column('tenant', 'tenant'),
  column('user_id', 'user'),
  column('floor', 'uint32'),
  column('min_password_version_until', 'integer'),
  column('expires_at', 'integer'),
] as const

export type ColumnName = (typeof SESSION_COLUMNS)[number]['name']

/** What a column has to be, in the words of the database's catalogue. */
export interface Column {
  readonly name: string
  readonly type: string
  readonly notNull: boolean
  /** Collation, where the comparison of keys depends on it. */
  readonly collation?: string
  /** Only of columns found: whether an INSERT that does not name it succeeds. */
  readonly optional?: boolean
}

/** One of the two tables. */
export interface Table {
  /** Quoted, with its schema. */
  readonly name: string
  readonly plain: string
  readonly columns: readonly Column[]
  readonly primaryKey: string
  readonly indexes: readonly Index[]
}
interface Index {
  readonly name: string
  readonly columns: string
  /** Which rows it is for, where the database can leave out others; '' for all. */
  readonly where: string
}

/** The tables of a store; `typeOf` says what its database calls the type of a column. */
export function tablesOf(
  names: Names,
  typeOf: (holds: Content) => Pick<Column, 'type' | 'collation'>,
): readonly [sessions: Table, users: Table] {
  const { sessions, users, plain, quote } = names
  const typed = (columns: readonly OurColumn[]) =>
    columns.map(({ name, holds, notNull }) => ({ name, notNull, ...typeOf(holds) }))
  const expires = (table: string) => ({ name: quote(`${table}_expires`), columns: 'expires_at', where: '' })
  const ofUser = {
    name: quote(`${plain.sessions}_user`),
    columns: 'user_id, tenant',
    where: ' WHERE user_id IS NOT NULL',
  }
  return [
    {
      name: sessions,
      plain: plain.sessions,
      columns: typed(SESSION_COLUMNS),
      primaryKey: 'id',
      indexes: [ofUser, expires(plain.sessions)],
    },
    {
      name: users,
      plain: plain.users,
      columns: typed(USER_COLUMNS),
      primaryKey: 'user_id, tenant',
      indexes: [expires(plain.users)],
    },
  ]
}

/** How one database keeps the tables. */
export interface Schema {
  readonly tables: readonly Table[]
  ddl(table: Table): readonly string[]
  /** Lists the columns that a table has, by its `:name` (quoted) or `:schema` and `:plain` name. */
  readonly found: Statement
  // biome-ignore lint/suspicious/noExplicitAny: cells as the driver gives them
  columnFound(cells: readonly any[]): Column
  /** Where two migrations at once would meet: waits until this is the only one. */
  readonly alone?: Statement
}

/** The statements that create the tables, as `schema()` prints them. */
export const printed = ({ tables, ddl }: Schema) => `${tables.flatMap(ddl).join(';\n')};\n`

function* columnsFound({ found, columnFound }: Schema, { name, plain }: Table, schema: string | null) {
  const { rows }: Outcome = yield [found, { name, plain, schema }] as const
  return rows.map(columnFound)
}

/** Whether both tables are there; throws where one of them is not ours. */
export function* isMigrated(schema: Schema, { schema: place }: Names): Steps<boolean> {
  for (const table of schema.tables) {
    const found: Column[] = yield* columnsFound(schema, table, place)
    if (found.length === 0) return false
    compareColumns(table.name, table.columns, found)
  }
  return true
}

/** Creates what is missing. */
export function* migrate(schema: Schema, { schema: place }: Names): Steps<void> {
  if (schema.alone !== undefined) yield [schema.alone, { name: schema.tables[0]!.name }]
  for (const table of schema.tables) {
    const found: Column[] = yield* columnsFound(schema, table, place)
    if (found.length === 0) for (const text of schema.ddl(table)) yield [plain(text), {}]
  }
}

/** Refuses a table that is not ours. @throws Error that names each difference. */
function compareColumns(table: string, expected: readonly Column[], found: readonly Column[]): void {
  const faults: string[] = []
  for (const column of expected) {
    const other = found.find(({ name }) => name === column.name)
    if (other === undefined) faults.push(`column ${column.name} is missing`)
    else if (other.type !== column.type) faults.push(`column ${column.name} is ${other.type}, not ${column.type}`)
    else if (column.collation !== undefined && other.collation !== column.collation)
      faults.push(`column ${column.name} is collated ${other.collation}, not ${column.collation}`)
    else if (other.notNull && !column.notNull) faults.push(`column ${column.name} is NOT NULL`)
  }
  for (const { name, notNull, optional } of found)
    if (notNull && optional !== true && !expected.some(column => column.name === name))
      faults.push(`column ${name} is unknown, NOT NULL, and has no default`)
  if (faults.length > 0)
    throw new Error(`table ${table} has another schema than this version of coatcheck needs: ${faults.join('; ')}`)
}
