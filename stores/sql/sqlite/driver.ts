import { quote } from '../../../src/text/quote.ts'
import { unusable } from '../base/retry.ts'

/** A prepared statement, by the methods that the store uses. */
export interface SqliteStatement {
  // biome-ignore-start lint/suspicious/noExplicitAny: each driver has its own type of values
  run(...values: any[]): { changes: number | bigint }
  get(...values: any[]): unknown
  all(...values: any[]): unknown[]
  // biome-ignore-end lint/suspicious/noExplicitAny: each driver has its own type of values
}
/** The part of better-sqlite3, libsql, node:sqlite (`DatabaseSync`) and bun:sqlite that the store uses. */
export interface SqliteDatabase {
  prepare(sql: string): SqliteStatement
  exec(sql: string): unknown
}

const EXPECTED =
  'SqliteStore expects a connection of better-sqlite3, libsql, node:sqlite or bun:sqlite: an object with prepare() and exec() that answer at once'

/** Drivers with callbacks or promises have these two methods too; their first answer gives them away. */
export const answersLater = (what: string) => unusable(`${EXPECTED}; ${what}`)

export const has = (value: unknown, name: string) =>
  typeof (value as Record<string, unknown> | null | undefined)?.[name] === 'function'

/** Why this is no SQLite connection, and what to pass instead; `null` if it looks like one. */
// biome-ignore lint/suspicious/noExplicitAny: what an application passed in, looked at member by member
function connectionFault(given: any): string | null {
  if (typeof given === 'string') return `got ${quote(given)}: open it, new Database(path), and pass the connection`
  if (has(given, 'then')) return 'got a promise: await it'
  if (typeof given === 'function') return 'got a function: pass a connection that it opened'
  // A statement of that client that met a lock stays open, and its later writes are not committed.
  if (has(given, 'executeMultiple'))
    return "got the client of @libsql/client: open the file with the package libsql, new Database('sessions.db'); for a database on a network see the page on SQLite"
  if (has(given, 'batch') && has(given, 'dump')) return 'got a D1 database: pass it to D1Store'
  // sqlite3, and the package `sqlite` around it.
  const late = ['parallelize', 'getDatabaseInstance'].find(name => has(given, name))
  if (late !== undefined) return `got a driver whose answers come later (it has ${late}())`
  const missing = ['prepare', 'exec'].filter(name => !has(given, name))
  if (missing.length === 0) return null
  const inside = ['$client', 'driver', 'db'].find(name => has(given?.[name], 'prepare') && has(given[name], 'exec'))
  if (inside !== undefined) return `got an object around one: pass its ${inside}`
  return `got ${quote(given)}${given === null || typeof given !== 'object' ? '' : ` without ${missing.join('() and ')}()`}`
}

/** Checks that this is a SQLite connection. @throws TypeError that says what to pass instead */
export function checkSqlite(database: SqliteDatabase): SqliteDatabase {
  const fault = connectionFault(database)
  if (fault !== null) throw new TypeError(`${EXPECTED}; ${fault}`)
  return database
}
