import { SWEEP_MARGIN } from '../../../src/contract/store.ts'
import { type Names, SESSION_COLUMNS } from '../base/schema.ts'
import { assignments, type Form, partsOf, statements } from '../base/statements.ts'
import { MYSQL } from './driver.ts'

/** How many keys a shared read may ask for at once: each is a statement that a connection prepares once. */
export const READ_SIZES = [4, 16, 64, 256] as const

/** Overrules a `sql_select_limit` of the server, which would cut the rows of a SELECT without a word. */
const ALL = 'LIMIT 18446744073709551615'

/**
 * The statements of MySQL and MariaDB, which lack ON CONFLICT and a RETURNING that both know. Locking reads see all
 * committed rows, whatever the isolation level. Hence:
 * - a statement that makes a user's session live locks the user's row (FOR UPDATE, or as the first table of an
 *   UPDATE) and reads its minimum password version there; `deleteUser` locks that row before it deletes;
 * - all statements lock the user's row before session rows: STRAIGHT_JOIN keeps the order.
 */
export function mysqlStatements(names: Names) {
  const { sessions, users } = names
  const { columns, values, ofUser, live, inTime, forwardOf } = partsOf(names, MYSQL)
  const common = statements(names, MYSQL)
  const mayLogIn = `${ofUser('u.')} AND (u.min_password_version <= :proven OR u.min_password_version_until <= :now)`
  const parentLives = `p.id = :parentKey AND ${live('p.')}`

  const create = (hasUser: boolean, checksParent: boolean): string => {
    const tables = [...(hasUser ? [`${users} u`] : []), ...(checksParent ? [`${sessions} p`] : [])]
    const conditions = [...(hasUser ? [mayLogIn] : []), ...(checksParent ? [parentLives] : []), inTime]
    const from = tables.length === 0 ? 'DUAL' : tables.join(' STRAIGHT_JOIN ')
    return `INSERT INTO ${sessions} (${columns}) SELECT ${Object.values(values).join(', ')}
      FROM ${from} WHERE ${conditions.join(' AND ')} ${tables.length === 0 ? '' : 'FOR UPDATE'}`
  }

  /** One statement, which decides whether the `create` or `replace` takes place. If the key is taken, it fails with 1062. */
  function make({ hasUser, checksParent, replaces, leavesForward }: Form): readonly string[] {
    if (!replaces) return [create(hasUser, checksParent)]
    const from = `${hasUser ? `${users} u STRAIGHT_JOIN ` : ''}${sessions} o
      ${checksParent ? `LEFT JOIN ${sessions} p ON ${parentLives}` : ''}`
    const where = `${hasUser ? `${mayLogIn} AND` : ''} o.id = :old AND o.version = :oldVersion AND ${live('o.')}
      ${checksParent ? 'AND (o.parent_key = :parentKey OR p.id IS NOT NULL)' : ''} AND ${inTime}`
    if (!leavesForward) return [`UPDATE ${from} SET ${assignments(values, 'o.')} WHERE ${where}`]
    // Inserts two rows in one statement: one collides with the old key and turns that record into the forward.
    const cells = Object.entries({ ...values, id: 'IF(k.f, :old, :id)' }).map(([name, value]) =>
      name in forwardOf ? `IF(k.f, ${forwardOf[name]}, ${value})` : value,
    )
    const changes = Object.keys(forwardOf).map(name => `${name} = VALUES(${name})`)
    return [
      `INSERT INTO ${sessions} (${columns}) SELECT ${cells.join(', ')}
       FROM ${from} STRAIGHT_JOIN (SELECT 1 AS f UNION ALL SELECT 0) k
       WHERE ${where} AND NOT EXISTS (SELECT 1 FROM ${sessions} n WHERE n.id = :id) FOR UPDATE
       ON DUPLICATE KEY UPDATE ${changes.join(', ')}`,
    ]
  }

  const sweep = (table: string) =>
    `DELETE FROM ${table} WHERE expires_at < LEAST(:now, ${MYSQL.startClock}) - ${SWEEP_MARGIN}
     ORDER BY expires_at LIMIT :limit`
  const ofRest = `${ofUser()} AND id <> :except`
  // JSON_ARRAY would encode a VARBINARY.
  const cells = SESSION_COLUMNS.map(({ name, holds }) => (holds === 'id' ? `CONVERT(${name} USING utf8mb4)` : name))
  const row = `SELECT JSON_ARRAY(${cells.join(', ')}) AS cells FROM ${sessions}`
  const placeholders = (size: number) => Array.from({ length: size }, (_, i) => `:k${i}`).join(', ')

  return {
    ...common,
    make,
    read: `${common.read} LIMIT 1`,
    list: `${common.list} ${ALL}`,
    /** The statements of `sharedFind`: for one row, and for each of `READ_SIZES`. */
    readOne: `${row} WHERE id = :id LIMIT 1`,
    readMany: READ_SIZES.map(size => `${row} WHERE id IN (${placeholders(size)}) LIMIT ${size}`),
    /** Adds the user's row if there is none yet. IGNORE would cut long values, but the manager gives none. */
    insertUser: `INSERT IGNORE INTO ${users} (namespace, user_id, min_password_version, min_password_version_until, expires_at)
      VALUES (:namespace, :userId, 0, 0, :userUntil)`,
    lockUser: `INSERT INTO ${users} (namespace, user_id, min_password_version, min_password_version_until, expires_at)
      VALUES (:namespace, :userId, :minPasswordVersion, :minPasswordVersionUntil, :userUntil)
      ON DUPLICATE KEY UPDATE
        min_password_version = IF(min_password_version_until > :now,
          GREATEST(min_password_version, VALUES(min_password_version)), VALUES(min_password_version)),
        min_password_version_until = GREATEST(min_password_version_until, VALUES(min_password_version_until)),
        expires_at = GREATEST(expires_at, VALUES(expires_at))`,
    /** Some of the user's live sessions; if none of those is left, some of the rest. */
    endUser: `DELETE FROM ${sessions} WHERE ${ofRest} AND kind = 'session' AND ${live()} LIMIT :limit`,
    endRest: `DELETE FROM ${sessions} WHERE ${ofRest} LIMIT :limit`,
    sweep: { sessions: sweep(sessions), users: sweep(users) },
  }
}
