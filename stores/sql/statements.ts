import type { Names } from './options.ts'
import { ROW_COLUMNS } from './rows.ts'
import { compile, type Statement } from './statement.ts'
import { type ColumnName, type OurColumn, SESSION_COLUMNS } from './tables.ts'

/** How one database writes what the statements of all have in common. */
export interface Dialect {
  readonly style: '$' | '?'
  readonly greatest: string
  readonly least: string
  /** Equality that takes NULL for a value. */
  readonly same: string
  /** The parameter of a column, as the column's type. */
  parameter(column: OurColumn): string
  /** What ends a SELECT that means all rows, where a setting of the server would cut those that do not say it. */
  readonly all?: string
  /** How a column is read, where not by its name. */
  readonly readable?: Readonly<Partial<Record<ColumnName, string>>>
  /** What refuses a write after its deadline; '' where no write is late. */
  readonly inTime: string
}

/** What the statements of a database are made of. */
export interface Parts {
  /** The columns of the session table, and the values that an INSERT gives them. */
  readonly columns: string
  readonly values: Readonly<Record<ColumnName, string>>
  readonly user: string
  /** Conditions: the row of this table (`''` or `'alias.'`) is a live record, or one of the user. */
  live(table?: string): string
  ofUser(table?: string): string
}

/** What a `replace` with a forward makes of the row under the old key. */
export const FORWARD: Readonly<Partial<Record<ColumnName, string>>> = {
  moved_to: ':id',
  data: ':salt',
  seen_at: ':now',
  expires_at: ':forgetAt',
  absolute_expires_at: ':until',
  parent: 'NULL',
  tenant: "''",
  user_id: 'NULL',
  user_name: 'NULL',
  password_version: 'NULL',
}

export const assignments = (values: Readonly<Partial<Record<ColumnName, string>>>) =>
  Object.entries(values)
    .map(([name, value]) => `${name} = ${value}`)
    .join(', ')

export function partsOf(dialect: Dialect): Parts {
  const entries = SESSION_COLUMNS.map(column => [
    column.name,
    column.name === 'moved_to' ? 'NULL' : dialect.parameter(column),
  ])
  const values: Parts['values'] = Object.fromEntries(entries)
  return {
    columns: SESSION_COLUMNS.map(({ name }) => name).join(', '),
    values,
    user: values.user_id,
    // A sum, for which no index serves. What is live now was often stored after the planner's statistics were taken: it takes
    // all of it for a row or none, and would read everybody's live sessions to find one by its key, or those of one user.
    live: (table = '') => `${table}moved_to IS NULL AND ${table}expires_at + 0 > :now`,
    ofUser: (table = '') => `${table}user_id = ${values.user_id} AND ${table}tenant = :tenant`,
  }
}

/** The statements that all databases have in common. */
export function commonStatements({ sessions, users }: Names, dialect: Dialect, { user, live, ofUser }: Parts) {
  const { greatest, least, readable = {}, same, style, all = '' } = dialect
  const inTime = dialect.inTime === '' ? '' : `AND ${dialect.inTime}`
  const selected = ROW_COLUMNS.map(name => readable[name] ?? name).join(', ')
  const slide = `seen_at = ${greatest}(seen_at, :seenAt),
    expires_at = ${least}(absolute_expires_at, ${greatest}(expires_at, :expiresAt))`
  const read: Statement = {
    ...compile(style, `SELECT ${selected} FROM ${sessions} WHERE id = :id ${all}`),
    single: true,
  }
  return {
    read,
    update: compile(
      style,
      `UPDATE ${sessions} SET data = :data, version = version + 1, write_id = :writeId, ${slide}
       WHERE id = :id AND version = :version AND ${live()} ${inTime}`,
    ),
    touch: compile(style, `UPDATE ${sessions} SET ${slide} WHERE id = :id AND ${live()} ${inTime}`),
    delete: compile(style, `DELETE FROM ${sessions} WHERE id = :id AND moved_to IS NULL ${inTime}`),
    remove: compile(style, `DELETE FROM ${sessions} WHERE id = :id ${inTime}`),
    /** What a verdict needs to know, in one row. */
    facts: compile(
      style,
      `SELECT n.id IS NOT NULL,
         CASE WHEN n.moved_to IS NULL AND n.tenant = :tenant AND n.user_id ${same} ${user}
           AND n.created_at = :createdAt THEN n.write_id END,
         o.version, o.parent,
         EXISTS (SELECT 1 FROM ${users} WHERE ${ofUser()} AND floor > :provenVersion AND min_password_version_until > :now),
         EXISTS (SELECT 1 FROM ${sessions} WHERE id = :parent AND ${live()})
       FROM (SELECT 1) one
       LEFT JOIN ${sessions} n ON n.id = :id
       LEFT JOIN ${sessions} o ON o.id = :old AND ${live('o.')} ${all}`,
    ),
    /** The user's other live sessions, oldest first. */
    oldest: compile(
      style,
      `SELECT id FROM ${sessions} WHERE ${ofUser()} AND kind = 'session' AND ${live()}
         AND id <> :old AND id <> :id ORDER BY created_at, id ${all}`,
    ),
    listUser: compile(
      style,
      `SELECT ${selected} FROM ${sessions} WHERE ${ofUser()} AND kind = :kind AND ${live()} ${all}`,
    ),
    /**
     * A page of a walk: so many rows, expired ones too, that each page costs the same. The number is in the text, because
     * mysql2 sends numbers as floats, which LIMIT does not take.
     */
    scan: (limit: number) =>
      compile(style, `SELECT ${selected} FROM ${sessions} WHERE id > :after ORDER BY id LIMIT ${limit}`),
  }
}

/** What SqlStore runs. */
export interface SqlStatements extends Readonly<ReturnType<typeof commonStatements>> {
  /** The first of a transaction: locks the user's row (SQLite needs no lock), and raises its floor. */
  readonly lockUser: Statement
}

/** The statements that make a session live where one of them does all of it. */
export interface OneStatementForms {
  create(form: Form): Statement
  replace(form: Form): Statement
}
export interface Form {
  readonly hasUser: boolean
  /** Whether the statement has to look after the record's parent. */
  readonly checksParent: boolean
  readonly leavesForward: boolean
}
