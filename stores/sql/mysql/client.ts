// The part of mysql2 that the store uses, and the meaning of its errors.
import { type Failure, NOT_APPLIED, NOT_MIGRATED, READ_ONLY } from '../base/retry.ts'

/** The part of a connection of mysql2 that the store uses. One of `mysql2/promise` has it as `connection`. */
export interface MysqlConnection {
  execute(options: string | object, values: unknown, callback: (error: unknown, result?: unknown) => void): unknown
  query(options: object, callback: (error: unknown, result?: unknown) => void): unknown
  on(event: 'error', listener: () => void): unknown
  removeListener(event: 'error', listener: () => void): unknown
  release(): void
  destroy(): void
  readonly threadId: number | null
  // biome-ignore lint/suspicious/noExplicitAny: the application's own settings
  readonly config?: any
}

/** A pool of `mysql2/promise`. */
export interface MysqlPromisePool {
  // biome-ignore lint/suspicious/noExplicitAny: mysql2 types the inner connection differently in each release
  getConnection(): Promise<{ connection: any; release(): void }>
}
/** A pool of `mysql2/promise`, or one of `mysql2` (with callbacks), which has `promise()`. */
export type MysqlPool = MysqlPromisePool | { promise(): MysqlPromisePool }

/** Checks that this is a pool of mysql2. @throws TypeError */
export function checkMysqlPool(pool: MysqlPool): MysqlPool {
  const given = pool as unknown as Record<string, unknown> | null | undefined
  if (typeof given?.promise !== 'function' && typeof given?.getConnection !== 'function')
    throw new TypeError('MysqlStore expects a pool of mysql2 or mysql2/promise: an object with getConnection()')
  // A single connection of mysql2 has promise() as well, but no second connection to give.
  if (typeof given.getConnection !== 'function')
    throw new TypeError('MysqlStore expects a pool, got a single connection: use createPool() of mysql2')
  return pool
}

const LOST: Failure = { outcome: 'unknown', retry: false, destroy: true }
const BUSY: Failure = { outcome: 'not-applied', retry: true }
const ELSEWHERE: Failure = { ...BUSY, destroy: true }

export const DUPLICATE = 1062
const FAILURES = new Map<number, Failure>([
  // The connection is gone: shutdown, killed, closed as idle, network errors.
  ...[1053, 1152, 1158, 1159, 1160, 1161, 1927, 4031].map(errno => [errno, LOST] as const),
  // Deadlock, lock wait timeout, and a row that changed since it was read: MariaDB with innodb_snapshot_isolation.
  ...[1213, 1205, 1020].map(errno => [errno, BUSY] as const),
  // The application left a transaction open on this connection, or locked tables.
  ...[1568, 1792, 1099, 1100].map(errno => [errno, ELSEWHERE] as const),
  ...[1290, 1836].map(errno => [errno, READ_ONLY] as const),
  // Unknown table, column or database; a column without default; NULL where none may be; wrong or too long values.
  ...[1146, 1054, 1049, 1364, 1048, 1366, 1406, 1265].map(errno => [errno, NOT_MIGRATED] as const),
])

/** The meaning of an error of mysql2. */
export function failureOf(error: unknown): Failure {
  const { errno, sqlState } = (error ?? {}) as { errno?: unknown; sqlState?: unknown }
  // All others are not the server's.
  if (typeof errno !== 'number' || errno <= 0 || typeof sqlState !== 'string') return LOST
  return FAILURES.get(errno) ?? NOT_APPLIED
}
