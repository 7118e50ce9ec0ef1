import { SWEEP_MARGIN } from '../../../src/contract/store.ts'
import type { Names } from '../options.ts'
import { COLUMNS } from '../rows.ts'
import { SWEEP_BATCH } from '../server-store.ts'
import { compile, type Statement } from '../statement.ts'

/**
 * The statements of MysqlStore. Locking reads see what is committed, whatever the isolation level, hence:
 * - whoever makes a user's session live locks the user's row in the same statement (FOR UPDATE, or as the first table
 *   of an UPDATE) and reads its floor there; `deleteUser` locks that row before it deletes;
 * - user row before session rows, everywhere: STRAIGHT_JOIN keeps the order.
 *
 * Each write carries its caller's deadline on the server's clock, and refuses to run after it.
 *
 * User IDs are cast to UNSIGNED, because a comparison with text would be one of floats; text IDs and tenants are
 * compared as bytes.
 */
export function mysqlStatements(names: Names, batch: number) {
  const { sessions, users } = names
  const userValue = names.userIds === 'u64' ? 'CAST(:user AS UNSIGNED)' : ':user'
  // mysql2 gives an exact BIGINT only as text.
  const readable: Readonly<Record<string, string>> = {
    user_id: names.userIds === 'u64' ? 'CAST(user_id AS CHAR)' : 'CONVERT(user_id USING utf8mb4)',
    tenant: 'CONVERT(tenant USING utf8mb4)',
  }
  const columns = COLUMNS.join(', ')
  const selected = COLUMNS.map(name => readable[name] ?? name).join(', ')
  const live = (table: string) => `${table}.moved_to IS NULL AND ${table}.expires_at > :now`
  const user = (table: string) => `${table}.user_id = ${userValue} AND ${table}.tenant = :tenant`
  // An error (1690) after the deadline, looked at for each row once its lock is held: SYSDATE is the time now.
  const inTime = '18446744073709551615 + (UNIX_TIMESTAMP(SYSDATE(6)) * 1000 > :deadline) > 0'
  const passes = '(u.floor <= :proof OR u.floor_until <= :now)'
  const parentLives = `p.id = :parent AND ${live('p')}`
  const renew = `seen_at = GREATEST(seen_at, :seenAt),
    expires_at = LEAST(absolute_expires_at, GREATEST(expires_at, :expiresAt))`

  const values: readonly string[] = [
    ':id',
    ':kind',
    ':parent',
    ':tenant',
    userValue,
    ':username',
    ':passwordVersion',
    ':data',
    ':version',
    ':writeId',
    ':createdAt',
    ':seenAt',
    ':expiresAt',
    ':absoluteExpiresAt',
    'NULL',
  ]
  const forward: Readonly<Record<string, string>> = {
    id: ':old',
    parent: 'NULL',
    tenant: "''",
    user_id: 'NULL',
    username: 'NULL',
    password_version: 'NULL',
    data: ':salt',
    seen_at: ':now',
    expires_at: ':forgetAt',
    absolute_expires_at: ':until',
    moved_to: ':id',
  }

  const create = (known: boolean, born: boolean): Statement => {
    const from = [...(known ? [`${users} u`] : []), ...(born ? [`${sessions} p`] : [])].join(' STRAIGHT_JOIN ')
    const where = [...(known ? [user('u'), passes] : []), ...(born ? [parentLives] : []), inTime].join(' AND ')
    return compile(
      '?',
      `INSERT INTO ${sessions} (${columns})
       SELECT ${values.join(', ')} FROM ${from === '' ? 'DUAL' : from} WHERE ${where}${from === '' ? '' : ' FOR UPDATE'}`,
    )
  }

  /** Only for a record whose parent is the old one's: another's birth needs a transaction. */
  const replace = (known: boolean, leaves: boolean): Statement => {
    const from = `${known ? `${users} u STRAIGHT_JOIN ` : ''}${sessions} o`
    const where = `${known ? `${user('u')} AND ${passes} AND ` : ''}
      o.id = :old AND o.version = :oldVersion AND ${live('o')} AND (:born = 0 OR o.parent = :parent) AND ${inTime}`
    if (!leaves)
      return compile(
        '?',
        `UPDATE ${from} SET ${COLUMNS.map((name, i) => `o.${name} = ${values[i]}`).join(', ')} WHERE ${where}`,
      )
    // Two rows in one statement: the first meets the old key and turns its record into the forward.
    const cells = COLUMNS.map((name, i) => (forward[name] ? `IF(k.f, ${forward[name]}, ${values[i]})` : values[i]))
    return compile(
      '?',
      `INSERT INTO ${sessions} (${columns}) SELECT ${cells.join(', ')}
       FROM ${from} STRAIGHT_JOIN (SELECT 1 AS f UNION ALL SELECT 0) k
       WHERE ${where} AND NOT EXISTS (SELECT 1 FROM ${sessions} n WHERE n.id = :id) FOR UPDATE
       ON DUPLICATE KEY UPDATE ${Object.keys(forward)
         .filter(name => name !== 'id')
         .map(name => `${name} = VALUES(${name})`)
         .join(', ')}`,
    )
  }

  return {
    create,
    replace,
    read: compile('?', `SELECT ${selected} FROM ${sessions} WHERE id = :id`),
    update: compile(
      '?',
      `UPDATE ${sessions} s SET data = :data, version = version + 1, write_id = :writeId, ${renew}
       WHERE id = :id AND version = :version AND ${live('s')} AND ${inTime}`,
    ),
    touch: compile('?', `UPDATE ${sessions} s SET ${renew} WHERE id = :id AND ${live('s')} AND ${inTime}`),
    delete: compile('?', `DELETE FROM ${sessions} WHERE id = :id AND moved_to IS NULL AND ${inTime}`),
    remove: compile('?', `DELETE FROM ${sessions} WHERE id = :id AND ${inTime}`),
    facts: compile(
      '?',
      `SELECT n.id IS NOT NULL,
         IF(n.moved_to IS NULL AND n.tenant = :tenant AND n.user_id <=> ${userValue} AND n.created_at = :createdAt,
           n.write_id, NULL),
         o.version, o.parent,
         EXISTS (SELECT 1 FROM ${users} u WHERE ${user('u')} AND u.floor > :proof AND u.floor_until > :now),
         EXISTS (SELECT 1 FROM ${sessions} p WHERE ${parentLives})
       FROM (SELECT 1 AS one) one
       LEFT JOIN ${sessions} n ON n.id = :id
       LEFT JOIN ${sessions} o ON o.id = :old AND ${live('o')}`,
    ),
    /** The user's row where there is none yet; 1 row if it was made. What IGNORE could cut was checked before. */
    meet: compile(
      '?',
      `INSERT IGNORE INTO ${users} (tenant, user_id, floor, floor_until, expires_at)
       VALUES (:tenant, ${userValue}, 0, 0, :userUntil)`,
    ),
    /** The first of a transaction: locks the user's row, and raises its floor. */
    lockUser: compile(
      '?',
      `INSERT INTO ${users} (tenant, user_id, floor, floor_until, expires_at)
       SELECT :tenant, ${userValue}, :floor, :floorUntil, :userUntil FROM DUAL WHERE ${inTime}
       ON DUPLICATE KEY UPDATE
         floor = IF(floor_until > :now, GREATEST(floor, VALUES(floor)), VALUES(floor)),
         floor_until = GREATEST(floor_until, VALUES(floor_until)),
         expires_at = GREATEST(expires_at, VALUES(expires_at))`,
    ),
    lockParent: compile('?', `SELECT p.id FROM ${sessions} p WHERE p.id = :parent FOR UPDATE`),
    /** Some of the user's live sessions; of those that are left, some of the rest. */
    endUser: compile(
      '?',
      `DELETE FROM ${sessions} WHERE user_id = ${userValue} AND tenant = :tenant AND id <> :except
         AND kind = 'session' AND moved_to IS NULL AND expires_at > :now AND ${inTime} LIMIT ${batch}`,
    ),
    endRest: compile(
      '?',
      `DELETE FROM ${sessions} WHERE user_id = ${userValue} AND tenant = :tenant AND id <> :except AND ${inTime} LIMIT ${batch}`,
    ),
    movedTo: compile('?', `SELECT moved_to FROM ${sessions} WHERE id = :id`),
    listUser: compile(
      '?',
      `SELECT ${selected} FROM ${sessions} s WHERE ${user('s')} AND kind = :kind AND ${live('s')}`,
    ),
    oldest: compile(
      '?',
      `SELECT id FROM ${sessions} s WHERE ${user('s')} AND kind = 'session' AND ${live('s')}
         AND id <> :old AND id <> :id ORDER BY created_at, id`,
    ),
    sweep: [
      { table: sessions, key: ['id'] },
      { table: users, key: ['user_id', 'tenant'] },
    ].map(({ table, key }) => {
      const isNumber = (name: string) => name === 'user_id' && names.userIds === 'u64'
      // The earlier of the two clocks decides: a node whose clock is ahead ends nobody's session.
      const past = `expires_at < LEAST(:now, UNIX_TIMESTAMP() * 1000) - ${SWEEP_MARGIN}`
      const place = (i: number) =>
        key.map((name, k) => (isNumber(name) ? `CAST(:k${k}n${i} AS UNSIGNED)` : `:k${k}n${i}`)).join(', ')
      const places = Array.from({ length: SWEEP_BATCH }, (_, i) => `(${place(i)})`)
      return {
        find: compile(
          '?',
          `SELECT ${key.map(name => (isNumber(name) ? `CAST(${name} AS CHAR)` : name)).join(', ')} FROM ${table}
           WHERE ${past} ORDER BY expires_at LIMIT ${SWEEP_BATCH}`,
        ),
        /** By the primary key, in its order, so that of two sweepers one waits and finds nothing left. */
        remove: compile('?', `DELETE FROM ${table} WHERE (${key.join(', ')}) IN (${places.join(', ')}) AND ${past}`),
      }
    }),
  }
}
