// The two tables, the options that name them, and one migration for all databases.
import { type OptionsOf, rule } from '../../../src/text/check-options.ts'
import type { Content, Dialect, Steps } from './engine.ts'
import { Refusal } from './retry.ts'

/** Options of every SQL store. */
export interface SqlStoreOptions {
  /**
   * Name of the session table; `${table}_users` has a small row for each user.
   * @default 'coatcheck_sessions'
   */
  table?: string
  /**
   * Schema (PostgreSQL), database (MySQL, MariaDB) or attached database (SQLite) of the tables.
   * @default the connection's own
   */
  schema?: string
}

// The shortest limit is PostgreSQL's 63 bytes, and "_users_expires" is added for an index.
const identifier = rule(
  '1 to 48 letters, digits and underscores, not beginning with a digit',
  value => typeof value === 'string' && /^[A-Za-z_][A-Za-z0-9_]{0,47}$/.test(value),
)

/** The options of one store; `more` are those that it alone has. */
export const optionsOf = <O extends SqlStoreOptions = SqlStoreOptions>(
  where: string,
  more: Omit<OptionsOf<O>['rules'], keyof SqlStoreOptions>,
): OptionsOf<O> => ({
  where,
  rules: { table: identifier, schema: identifier, ...more } as OptionsOf<O>['rules'],
  hints: { userIds: 'the SessionManager has it, a store keeps any user ID as text' },
})

interface Column {
  readonly name: string
  readonly holds: Content
  readonly notNull: boolean
}
const column = (name: string, holds: Content, notNull = true): Column => ({ name, holds, notNull })

/**
 * In the order of every INSERT. A row with `moved_to` is a forward: `data` is its salt, `absolute_expires_at` its
 * `until`, `expires_at` when it may be forgotten.
 */
export const SESSION_COLUMNS: readonly Column[] = [
  column('id', 'key'),
  column('kind', 'word'),
  column('parent_key', 'word', false),
  column('namespace', 'id'),
  column('user_id', 'id', false),
  column('user_name', 'name', false),
  column('password_version', 'integer', false),
  column('data', 'data'),
  column('version', 'integer'),
  column('write_id', 'word'),
  column('created_at', 'integer'),
  column('seen_at', 'integer'),
  column('expires_at', 'integer'),
  column('absolute_expires_at', 'integer'),
  column('moved_to', 'word', false),
]
const USER_COLUMNS: readonly Column[] = [
  column('namespace', 'id'),
  column('user_id', 'id'),
  column('min_password_version', 'integer'),
  column('min_password_version_until', 'integer'),
  column('expires_at', 'integer'),
]

/** The tables' names. `sessions` and `users` are quoted, with their schema. */
export interface Names {
  readonly sessions: string
  readonly users: string
  readonly plain: { readonly sessions: string; readonly users: string }
  readonly schema: string | null
}

export function namesOf({ table = 'coatcheck_sessions', schema }: SqlStoreOptions, { quote }: Dialect): Names {
  const within = schema === undefined ? '' : `${quote}${schema}${quote}.`
  const plain = { sessions: table, users: `${table}_users` }
  return {
    sessions: `${within}${quote}${plain.sessions}${quote}`,
    users: `${within}${quote}${plain.users}${quote}`,
    plain,
    schema: schema ?? null,
  }
}

/** The statements that create the tables. */
export function ddl(names: Names, dialect: Dialect): readonly string[] {
  const { types, quote, tableOptions, partialIndexes, indexesInSchema } = dialect
  const within = indexesInSchema && names.schema !== null ? `${quote}${names.schema}${quote}.` : ''
  const table = (which: 'sessions' | 'users', columns: readonly Column[], key: string) => {
    const plain = names.plain[which]
    const indexes = [
      ...(which === 'sessions'
        ? [{ name: `${plain}_user`, on: 'user_id, namespace', where: 'user_id IS NOT NULL' }]
        : []),
      { name: `${plain}_expires`, on: 'expires_at', where: '' },
    ]
    const lines = [
      ...columns.map(({ name, holds, notNull }) => `${name} ${types[holds]}${notNull ? ' NOT NULL' : ''}`),
      `PRIMARY KEY (${key})`,
      ...(partialIndexes ? [] : indexes.map(({ name, on }) => `KEY ${quote}${name}${quote} (${on})`)),
    ]
    return [
      `CREATE TABLE IF NOT EXISTS ${names[which]} (\n${lines.map(line => `  ${line}`).join(',\n')}\n)${tableOptions}`,
      ...(partialIndexes ? indexes : []).map(
        ({ name, on, where }) =>
          `CREATE INDEX IF NOT EXISTS ${within}${quote}${name}${quote} ON ${within ? `${quote}${plain}${quote}` : names[which]} (${on})${where && ` WHERE ${where}`}`,
      ),
    ]
  }
  return [...table('sessions', SESSION_COLUMNS, 'id'), ...table('users', USER_COLUMNS, 'user_id, namespace')]
}

/** Whether both tables are there. @throws Refusal that names each difference of a table with another schema, or an encoding */
export function* isMigrated(names: Names, dialect: Dialect): Steps<boolean> {
  if (dialect.encodingFault !== undefined) {
    const [row] = (yield [dialect.encodingFault, {}]).rows
    if (typeof row?.fault === 'string') throw new Refusal(row.fault)
  }
  const sessions = yield* isThere(names, 'sessions', SESSION_COLUMNS, dialect)
  return (yield* isThere(names, 'users', USER_COLUMNS, dialect)) && sessions
}

/** Creates the missing tables and indexes. */
export function* migrate(names: Names, dialect: Dialect): Steps<void> {
  if (dialect.alone !== null) yield [dialect.alone, {}]
  if (!(yield* isMigrated(names, dialect))) for (const text of ddl(names, dialect)) yield [text, {}]
}

function* isThere(
  { plain, schema }: Names,
  which: 'sessions' | 'users',
  columns: readonly Column[],
  { types, columnsFound }: Dialect,
): Steps<boolean> {
  const { rows } = yield [columnsFound, { table: plain[which], schema }]
  if (rows.length === 0) return false
  const faults: string[] = []
  for (const { name, holds, notNull } of columns) {
    const found = rows.find(row => row.name === name)
    if (found === undefined) faults.push(`column ${name} is missing`)
    else if (found.type !== types[holds]) faults.push(`column ${name} is ${found.type}, not ${types[holds]}`)
    else if (!notNull && Number(found.required) === 1) faults.push(`column ${name} is NOT NULL`)
  }
  for (const { name, required } of rows)
    if (Number(required) === 1 && !columns.some(column => column.name === name))
      faults.push(`column ${name} is unknown, NOT NULL, and has no default`)
  if (faults.length > 0)
    throw new Refusal(
      `table ${plain[which]} has another schema than this version of coatcheck needs: ${faults.join('; ')}`,
    )
  return true
}
