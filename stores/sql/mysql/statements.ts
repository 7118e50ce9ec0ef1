import { SWEEP_MARGIN } from '../../../src/contract/store.ts'
import type { Names } from '../options.ts'
import { packedList } from '../packed.ts'
import { compile, type Statement } from '../statement.ts'
import { commonStatements, type Dialect, FORWARD, type Form, partsOf } from '../statements.ts'
import { SWEEP_BATCH } from '../store.ts'
import type { ColumnName } from '../tables.ts'
import { ALL } from './schema.ts'

/** How many keys a shared read may ask for at once: each is a statement that a connection prepares once. */
export const READ_SIZES = [4, 16, 64, 256] as const

/**
 * The statements of MysqlStore. Locking reads see what is committed, whatever the isolation level, hence:
 * - what makes a user's session live locks the user's row in the same statement (FOR UPDATE, or as the first table of an
 *   UPDATE) and reads its floor there; `deleteUser` locks that row before it deletes;
 * - all statements lock the user's row before session rows: STRAIGHT_JOIN keeps the order.
 *
 * Each write carries its caller's deadline on the server's clock, and refuses to run after it.
 *
 * User IDs are cast to UNSIGNED, because a comparison with text would be one of floats; text IDs and tenants are
 * compared as bytes.
 */
export function mysqlStatements(names: Names, batch: number) {
  const { sessions, users } = names
  const isNumber = names.userIds === 'bigint'
  // An error (1690) after the deadline, looked at for each row once its lock is held: SYSDATE is the time now.
  const inTime = '18446744073709551615 + (UNIX_TIMESTAMP(SYSDATE(6)) * 1000 > :deadline) > 0'
  // mysql2 gives an exact BIGINT only as text.
  const readable: Dialect['readable'] & object = {
    user_id: isNumber ? 'CAST(user_id AS CHAR)' : 'CONVERT(user_id USING utf8mb4)',
    tenant: 'CONVERT(tenant USING utf8mb4)',
  }
  const dialect: Dialect = {
    style: '?',
    greatest: 'GREATEST',
    least: 'LEAST',
    same: '<=>',
    parameter: ({ parameter, holds }) =>
      holds === 'user' && isNumber ? `CAST(:${parameter} AS UNSIGNED)` : `:${parameter}`,
    readable,
    all: ALL,
    inTime,
  }
  const parts = partsOf(dialect)
  const { columns, values, live, ofUser, user } = parts
  const passes = '(u.floor <= :provenVersion OR u.min_password_version_until <= :now)'
  const parentLives = `p.id = :parent AND ${live('p.')}`

  const create = ({ hasUser, checksParent }: Form): Statement => {
    const tables = [...(hasUser ? [`${users} u`] : []), ...(checksParent ? [`${sessions} p`] : [])]
    const conditions = [...(hasUser ? [ofUser('u.'), passes] : []), ...(checksParent ? [parentLives] : []), inTime]
    const from = tables.length === 0 ? 'DUAL' : tables.join(' STRAIGHT_JOIN ')
    return compile(
      '?',
      `INSERT INTO ${sessions} (${columns}) SELECT ${Object.values(values).join(', ')}
       FROM ${from} WHERE ${conditions.join(' AND ')} ${tables.length === 0 ? '' : 'FOR UPDATE'}`,
    )
  }

  // Only for a record whose parent is the old one's: to look for another parent needs a transaction.
  const replace = ({ hasUser, leavesForward }: Form): Statement => {
    const from = `${hasUser ? `${users} u STRAIGHT_JOIN ` : ''}${sessions} o`
    const where = `${hasUser ? `${ofUser('u.')} AND ${passes} AND ` : ''}
      o.id = :old AND o.version = :oldVersion AND ${live('o.')}
      AND (:checksParent = 0 OR o.parent = :parent) AND ${inTime}`
    if (!leavesForward) {
      const changes = Object.entries(values).map(([name, value]) => `o.${name} = ${value}`)
      return compile('?', `UPDATE ${from} SET ${changes.join(', ')} WHERE ${where}`)
    }
    // Two rows in one statement: the first meets the old key and turns its record into the forward.
    const forward: typeof FORWARD = { id: ':old', ...FORWARD }
    const cells = Object.entries(values).map(([name, value]) => {
      const cell = forward[name as ColumnName]
      return cell === undefined ? value : `IF(k.f, ${cell}, ${value})`
    })
    return compile(
      '?',
      `INSERT INTO ${sessions} (${columns}) SELECT ${cells.join(', ')}
       FROM ${from} STRAIGHT_JOIN (SELECT 1 AS f UNION ALL SELECT 0) k
       WHERE ${where} AND NOT EXISTS (SELECT 1 FROM ${sessions} n WHERE n.id = :id) FOR UPDATE
       ON DUPLICATE KEY UPDATE ${Object.keys(FORWARD)
         .map(name => `${name} = VALUES(${name})`)
         .join(', ')}`,
    )
  }

  const sweep = (table: string, ...key: readonly string[]) => {
    const exact = (name: string) => name === 'user_id' && isNumber
    // The earlier of the two clocks decides: a node whose clock is ahead ends no live session.
    const past = `expires_at < LEAST(:now, UNIX_TIMESTAMP() * 1000) - ${SWEEP_MARGIN}`
    const place = (i: number) =>
      key.map((name, k) => (exact(name) ? `CAST(:k${k}n${i} AS UNSIGNED)` : `:k${k}n${i}`)).join(', ')
    const places = Array.from({ length: SWEEP_BATCH }, (_, i) => `(${place(i)})`)
    const found = key.map(name => (exact(name) ? `CAST(${name} AS CHAR)` : name))
    return {
      find: compile(
        '?',
        `SELECT ${found.join(', ')}, expires_at FROM ${table} WHERE expires_at >= :from AND ${past}
         ORDER BY expires_at LIMIT ${SWEEP_BATCH}`,
      ),
      /** By the primary key, in its order, so that of two sweepers one waits and finds nothing left. */
      remove: compile('?', `DELETE FROM ${table} WHERE (${key.join(', ')}) IN (${places.join(', ')}) AND ${past}`),
    }
  }

  // CONCAT_WS leaves out what is NULL, and its separator with it. SPACE(0), because MariaDB's EMPTY_STRING_IS_NULL takes ''
  // for NULL.
  const row = packedList(
    names.userIds,
    name => readable[name] ?? name,
    // The names are short, because the server sends them with each row, and mysql2 compares them with those of before.
    (cells, separator) => `CONCAT_WS(${separator}, ${cells.map(cell => `IFNULL(${cell}, SPACE(0))`).join(', ')}) AS p`,
  )
  const select = (where: string, most: number): Statement => ({
    ...compile('?', `SELECT ${row} FROM ${sessions} WHERE ${where} LIMIT ${most}`),
    namesColumns: true,
  })
  const places = (size: number) => Array.from({ length: size }, () => ':id').join(', ')

  return {
    ...commonStatements(names, dialect, parts),
    read: select('id = :id', 1),
    /** One statement for each of `READ_SIZES`. */
    readEach: READ_SIZES.map(size => select(`id IN (${places(size)})`, size)),
    create,
    replace,
    /** The user's row where there is none yet; 1 row if it was made. What IGNORE could cut was checked before. */
    insertUser: compile(
      '?',
      `INSERT IGNORE INTO ${users} (tenant, user_id, floor, min_password_version_until, expires_at)
       VALUES (:tenant, ${user}, 0, 0, :userUntil)`,
    ),
    lockUser: compile(
      '?',
      `INSERT INTO ${users} (tenant, user_id, floor, min_password_version_until, expires_at)
       SELECT :tenant, ${user}, :floor, :minPasswordVersionUntil, :userUntil FROM DUAL WHERE ${inTime}
       ON DUPLICATE KEY UPDATE
         floor = IF(min_password_version_until > :now, GREATEST(floor, VALUES(floor)), VALUES(floor)),
         min_password_version_until = GREATEST(min_password_version_until, VALUES(min_password_version_until)),
         expires_at = GREATEST(expires_at, VALUES(expires_at))`,
    ),
    lockParent: compile('?', `SELECT p.id FROM ${sessions} p WHERE p.id = :parent LIMIT 1 FOR UPDATE`),
    /** Some of the user's live sessions; of those that are left, some of the rest. */
    endUser: compile(
      '?',
      `DELETE FROM ${sessions} WHERE ${ofUser()} AND id <> :except AND kind = 'session' AND ${live()} AND ${inTime}
       LIMIT ${batch}`,
    ),
    endRest: compile('?', `DELETE FROM ${sessions} WHERE ${ofUser()} AND id <> :except AND ${inTime} LIMIT ${batch}`),
    sweep: { sessions: sweep(sessions, 'id'), users: sweep(users, 'user_id', 'tenant') },
  }
}
