import { type OptionPlace, oneOf, rule } from '../../src/text/check-options.ts'

/** Options that all SQL stores share. */
export interface SqlStoreOptions {
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
   * As the manager's option of the same name: `'bigint'` and `'number'` are kept as exact numbers, `'string'` is for UUIDs,
   * ULIDs and names.
   * @default 'bigint'
   */
  userIds?: 'bigint' | 'number' | 'string'
}

// The shortest limit is PostgreSQL's 63 bytes, and "_users_expires" is added for an index.
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]{0,47}$/
const identifier = rule(
  '1 to 48 letters, digits and underscores, not beginning with a digit',
  value => typeof value === 'string' && IDENTIFIER.test(value),
)

const RULES: OptionPlace<SqlStoreOptions>['rules'] = {
  table: identifier,
  schema: identifier,
  userIds: oneOf('bigint', 'number', 'string'),
}

/** The options of one store; `more` are those that only it has. */
export const optionsOf = <O extends SqlStoreOptions = SqlStoreOptions>(
  where: string,
  more: Omit<OptionPlace<O>['rules'], keyof SqlStoreOptions>,
): OptionPlace<O> => ({
  where,
  rules: { ...RULES, ...more } as OptionPlace<O>['rules'],
  hints: { userId: 'it is called userIds, as in the SessionManager' },
})

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
  readonly userIds: 'bigint' | 'string'
}

/** Quotes the names. */
export function namesOf({ table = 'coatcheck_sessions', schema, userIds }: SqlStoreOptions, mark: '"' | '`'): Names {
  const quote = (name: string) => mark + name + mark
  const within = (name: string) => (schema === undefined ? quote(name) : `${quote(schema)}.${quote(name)}`)
  const plain = { sessions: table, users: `${table}_users` }
  return {
    sessions: within(plain.sessions),
    users: within(plain.users),
    schema: schema ?? null,
    plain,
    quote,
    userIds: userIds === 'string' ? 'string' : 'bigint',
  }
}
