import { checkOptionNames, optionNames } from '../../src/text/check-options.ts'
import { quote as quoteValue } from '../../src/text/quote.ts'

/** Options that all SQL stores share. */
export interface SqlOptions {
  /**
   * Name of the session table; each user's small row is kept in `${table}_users`.
   * @default 'coatcheck_sessions'
   */
  table?: string
  /**
   * Schema (PostgreSQL), database (MySQL, MariaDB) or attached database (SQLite) of the tables.
   * @default the connection's own
   */
  schema?: string
  /**
   * As the manager's option of the same name: `'u64'` and `'number'` are kept as exact numbers, `'text'` is for UUIDs,
   * ULIDs and names.
   * @default 'u64'
   */
  userIds?: 'u64' | 'number' | 'text'
}

export const SQL_OPTIONS = optionNames<SqlOptions>({ table: true, schema: true, userIds: true })
const HINTS = { userId: 'it is called userIds, as in the SessionManager' }

/** Refuses an option that there is not. @throws TypeError that names it */
export const checkSqlOptions = (store: string, options: SqlOptions, known = SQL_OPTIONS): void =>
  checkOptionNames(store, options, known, HINTS)

/** The quoted names that the statements of one store use. */
export interface Names {
  /** The session table, with its schema. */
  readonly sessions: string
  /** The users' table, with its schema. */
  readonly users: string
  readonly schema: string | null
  readonly plain: { readonly sessions: string; readonly users: string }
  /** Quotes one identifier. */
  quote(name: string): string
  /** How the tables keep user IDs. */
  readonly userIds: 'u64' | 'text'
}

// The shortest limit is PostgreSQL's 63 bytes, and "_users_expires" is added for an index.
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]{0,47}$/

/** Checks and quotes the names. @throws TypeError that quotes the option. */
export function namesOf(options: SqlOptions, mark: '"' | '`'): Names {
  const { table = 'coatcheck_sessions', schema, userIds = 'u64' } = options
  for (const [option, value] of Object.entries({ table, ...(schema === undefined ? {} : { schema }) }))
    if (typeof value !== 'string' || !IDENTIFIER.test(value))
      throw new TypeError(
        `${option} must be 1 to 48 letters, digits and underscores, not beginning with a digit; got ${quoteValue(value)}`,
      )
  if (userIds !== 'u64' && userIds !== 'number' && userIds !== 'text')
    throw new TypeError(`userIds must be 'u64', 'number' or 'text'; got ${quoteValue(userIds)}`)
  const quote = (name: string) => mark + name + mark
  const within = (name: string) => (schema === undefined ? quote(name) : `${quote(schema)}.${quote(name)}`)
  const plain = { sessions: table, users: `${table}_users` }
  return {
    sessions: within(plain.sessions),
    users: within(plain.users),
    schema: schema ?? null,
    plain,
    quote,
    userIds: userIds === 'text' ? 'text' : 'u64',
  }
}
