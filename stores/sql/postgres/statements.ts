import { SWEEP_MARGIN } from '../../../src/contract/store.ts'
import type { Names } from '../options.ts'
import { COLUMNS, packedWith } from '../rows.ts'
import { compile } from '../statement.ts'

/**
 * The statements of PostgresStore. A statement that waited for a lock must not decide by its older snapshot, hence:
 * - whoever makes a user's session live locks the user's row first, in the same statement (`f`), and reads its newest
 *   floor; `deleteUser` locks that row in one statement and deletes in the next, which sees all that was committed;
 * - user row before session rows, everywhere.
 *
 * Each write carries its caller's deadline on the server's clock: after it the setting of a negative time is an error
 * (22023), before it the wait for locks, and that for the COMMIT of a transaction, end at it. So nothing is written after
 * its caller has given up, neither by what waited for a lock nor by what was on its way in a stalled network.
 */
export function postgresStatements(names: Names, batch: number) {
  const { sessions, users } = names
  const type = names.userIds === 'u64' ? 'numeric' : 'text'
  const columns = COLUMNS.join(', ')
  // 0 would mean no limit.
  const left = `COALESCE(NULLIF(:deadline::bigint - (extract(epoch FROM clock_timestamp()) * 1000)::bigint, 0), -1)::text`
  const [patience, idle] = ['lock_timeout', 'idle_in_transaction_session_timeout'].map(
    setting => `set_config('${setting}', ${left}, true)`,
  )
  const bounded = `(SELECT ${patience} || ${idle}) IS NOT NULL`
  const live = 'moved_to IS NULL AND expires_at > :now'

  // The conditional DO UPDATE locks the row and sees the newest floor, and writes nothing where the floor lets pass.
  const floor = `f AS (
    INSERT INTO ${users} AS u (tenant, user_id, floor, floor_until, expires_at)
    SELECT :tenant, :user::${type}, 0, 0, :userUntil::bigint FROM ${patience} a, ${idle} b
    ON CONFLICT (user_id, tenant) DO UPDATE SET floor = u.floor WHERE u.floor > :proof AND u.floor_until > :now
    RETURNING floor)`
  const passes = 'NOT EXISTS (SELECT 1 FROM f WHERE f.floor > :proof)'
  // FOR KEY SHARE: the parent is looked at as it is now, and cannot be ended until the birth is committed.
  const parent = (user: boolean) => `p AS (
    SELECT 1 FROM ${sessions} WHERE id = :parent AND ${live}
      AND ${user ? passes : bounded} FOR KEY SHARE)`

  const values = `:id::text, :kind::text, :parent::text, :tenant::text, :user::${type}, :username::text,
    :passwordVersion::bigint, :data::text, :version::bigint, :writeId::text, :createdAt::bigint, :seenAt::bigint,
    :expiresAt::bigint, :absoluteExpiresAt::bigint, NULL`
  const assignments = `id = :id, kind = :kind, parent = :parent, tenant = :tenant, user_id = :user::${type},
    username = :username, password_version = :passwordVersion, data = :data, version = :version, write_id = :writeId,
    created_at = :createdAt, seen_at = :seenAt, expires_at = :expiresAt, absolute_expires_at = :absoluteExpiresAt`
  const forward = `moved_to = :id, data = :salt, seen_at = :now, expires_at = :forgetAt, absolute_expires_at = :until,
    parent = NULL, tenant = '', user_id = NULL, username = NULL, password_version = NULL`

  const locks = (user: boolean, born: boolean, ...more: string[]) => {
    const parts = [...(user ? [floor] : []), ...(born ? [parent(user)] : []), ...more]
    return parts.length === 0 ? '' : `WITH ${parts.join(', ')}`
  }

  /** `user`: someone is logged in. `born`: there is a parent to ask for. */
  const create = (user: boolean, born: boolean) =>
    compile(
      '$',
      `${locks(user, born)} INSERT INTO ${sessions} (${columns}) SELECT ${values}
       WHERE ${user ? passes : bounded}${born ? ' AND EXISTS (SELECT 1 FROM p)' : ''}
       ON CONFLICT (id) DO NOTHING`,
    )
  const replace = (user: boolean, born: boolean, leaves: boolean) => {
    const where = `WHERE id = :old AND version = :oldVersion AND ${live} AND ${user ? passes : bounded}
      ${born ? 'AND (parent = :parent OR EXISTS (SELECT 1 FROM p))' : ''}`
    const old = `o AS (UPDATE ${sessions} SET ${forward} ${where} RETURNING 1)`
    return compile(
      '$',
      leaves
        ? `${locks(user, born, old)} INSERT INTO ${sessions} (${columns}) SELECT ${values} FROM o`
        : `${locks(user, born)} UPDATE ${sessions} SET ${assignments} ${where}`,
    )
  }

  return {
    create,
    replace,
    read: compile('$', `SELECT ${packedWith(parts => `concat(${parts.join(', ')})`)} FROM ${sessions} WHERE id = :id`),
    update: compile(
      '$',
      `UPDATE ${sessions} SET data = :data, version = version + 1, write_id = :writeId,
         seen_at = GREATEST(seen_at, :seenAt),
         expires_at = LEAST(absolute_expires_at, GREATEST(expires_at, :expiresAt))
       WHERE id = :id AND version = :version AND ${live} AND ${bounded}`,
    ),
    touch: compile(
      '$',
      `UPDATE ${sessions} SET seen_at = GREATEST(seen_at, :seenAt),
         expires_at = LEAST(absolute_expires_at, GREATEST(expires_at, :expiresAt))
       WHERE id = :id AND ${live} AND ${bounded}`,
    ),
    delete: compile('$', `DELETE FROM ${sessions} WHERE id = :id AND moved_to IS NULL AND ${bounded}`),
    remove: compile('$', `DELETE FROM ${sessions} WHERE id = :id AND ${bounded}`),
    /** Why nothing was written: the facts for a verdict, in one row. */
    facts: compile(
      '$',
      `SELECT n.id IS NOT NULL,
         CASE WHEN n.moved_to IS NULL AND n.tenant = :tenant AND n.user_id IS NOT DISTINCT FROM :user::${type}
           AND n.created_at = :createdAt THEN n.write_id END,
         o.version, o.parent,
         EXISTS (SELECT 1 FROM ${users} WHERE tenant = :tenant AND user_id = :user::${type} AND floor > :proof AND floor_until > :now),
         EXISTS (SELECT 1 FROM ${sessions} WHERE id = :parent AND ${live})
       FROM (SELECT 1) one
       LEFT JOIN ${sessions} n ON n.id = :id
       LEFT JOIN ${sessions} o ON o.id = :old AND o.moved_to IS NULL AND o.expires_at > :now`,
    ),
    /** The first of a transaction: locks the user's row, and bounds how long the server lets the transaction live. */
    lockUser: compile(
      '$',
      `INSERT INTO ${users} AS u (tenant, user_id, floor, floor_until, expires_at)
       SELECT :tenant, :user::${type}, :floor::bigint, :floorUntil::bigint, :userUntil::bigint
       FROM ${patience} a, ${idle} b, set_config('statement_timeout', ${left}, true) c
       ON CONFLICT (user_id, tenant) DO UPDATE SET
         floor = CASE WHEN u.floor_until > :now THEN GREATEST(u.floor, excluded.floor) ELSE excluded.floor END,
         floor_until = GREATEST(u.floor_until, excluded.floor_until),
         expires_at = GREATEST(u.expires_at, excluded.expires_at)
       WHERE excluded.floor_until > 0`,
    ),
    /**
     * Some of the user's records, how many of them were live sessions, and how many were found: one that somebody else
     * deletes in this moment counts as found. The excepted one may have been replaced before the lock was taken.
     */
    endSome: compile(
      '$',
      `WITH RECURSIVE e (id) AS (
         SELECT :except::text
         UNION SELECT s.moved_to FROM ${sessions} s JOIN e ON s.id = e.id WHERE s.moved_to IS NOT NULL),
       x AS MATERIALIZED (
         SELECT id FROM ${sessions} WHERE tenant = :tenant AND user_id = :user::${type} AND id NOT IN (SELECT id FROM e)
         LIMIT ${batch}),
       d AS (DELETE FROM ${sessions} t USING x WHERE t.id = x.id RETURNING t.kind, t.expires_at, t.moved_to)
       SELECT (SELECT count(*) FROM d WHERE kind = 'session' AND ${live}), (SELECT count(*) FROM x)`,
    ),
    listUser: compile(
      '$',
      `SELECT ${columns} FROM ${sessions} WHERE tenant = :tenant AND user_id = :user::${type} AND kind = :kind AND ${live}`,
    ),
    oldest: compile(
      '$',
      `SELECT id FROM ${sessions} WHERE tenant = :tenant AND user_id = :user::${type} AND kind = 'session' AND ${live}
         AND id <> :old AND id <> :id ORDER BY created_at, id`,
    ),
    end: compile('$', `DELETE FROM ${sessions} WHERE id = ANY (:ids::text[])`),
    sweep: [sessions, users].map(table =>
      compile(
        '$',
        // The earlier of the two clocks decides: a node whose clock is ahead ends nobody's session.
        `WITH x AS MATERIALIZED (
           SELECT ${table === sessions ? 'id' : 'user_id, tenant'} FROM ${table}
           WHERE expires_at < LEAST(:now::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) - ${SWEEP_MARGIN}
           ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED)
         DELETE FROM ${table} t USING x
         WHERE ${table === sessions ? 't.id = x.id' : 't.user_id = x.user_id AND t.tenant = x.tenant'}`,
      ),
    ),
  }
}
