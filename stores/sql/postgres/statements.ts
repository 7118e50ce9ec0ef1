import { SWEEP_MARGIN } from '../../../src/contract/store.ts'
import type { Names } from '../options.ts'
import { packedList } from '../packed.ts'
import { compile } from '../statement.ts'
import { assignments, commonStatements, type Dialect, FORWARD, type Form, partsOf } from '../statements.ts'
import { pgType } from './schema.ts'

/**
 * The statements of PostgresStore. A statement that waited for a lock must not decide by its older snapshot, hence:
 * - what makes a user's session live locks the user's row first, in the same statement (`f`), and reads its newest floor
 *   there; `deleteUser` locks that row in one statement and deletes in the next, which sees all that was committed;
 * - all statements lock the user's row before session rows.
 *
 * Each write carries its caller's deadline on the server's clock: after it the setting of a negative time is an error
 * (22023), before it the wait for locks, and that for the COMMIT of a transaction, end at it. So nothing is written after
 * its caller has given up, neither by what waited for a lock nor by what was on its way in a stalled network.
 */
export function postgresStatements(names: Names, batch: number) {
  const { sessions, users } = names
  // 0 would mean no limit.
  const left = `COALESCE(NULLIF(:deadline::bigint - (extract(epoch FROM clock_timestamp()) * 1000)::bigint, 0), -1)::text`
  const [lockWait, idle] = ['lock_timeout', 'idle_in_transaction_session_timeout'].map(
    setting => `set_config('${setting}', ${left}, true)`,
  )
  const inTime = `(SELECT ${lockWait} || ${idle}) IS NOT NULL`
  const dialect: Dialect = {
    style: '$',
    greatest: 'GREATEST',
    least: 'LEAST',
    same: 'IS NOT DISTINCT FROM',
    parameter: ({ parameter, holds }) => `:${parameter}::${pgType(holds, names).type.replace(/\(.*/, '')}`,
    inTime,
  }
  const parts = partsOf(dialect)
  const { columns, live, ofUser, user } = parts
  const values = Object.values(parts.values).join(', ')

  const row = packedList(
    names.userIds,
    name => name,
    (cells, separator) => `concat(${cells.join(`, ${separator}, `)})`,
  )

  // The conditional DO UPDATE locks the row and sees the newest floor, and writes nothing where the floor lets pass.
  const floor = `f AS (
    INSERT INTO ${users} AS u (tenant, user_id, floor, min_password_version_until, expires_at)
    SELECT :tenant, ${user}, 0, 0, :userUntil::bigint FROM ${lockWait} a, ${idle} b
    ON CONFLICT (user_id, tenant) DO UPDATE SET floor = u.floor WHERE u.floor > :provenVersion AND u.min_password_version_until > :now
    RETURNING floor)`
  const mayWrite = (hasUser: boolean) =>
    hasUser ? 'NOT EXISTS (SELECT 1 FROM f WHERE f.floor > :provenVersion)' : inTime
  // FOR SHARE: the parent is looked at as it is now, and can neither be ended nor moved until the new session is committed.
  // FOR KEY SHARE would not do: it passes by an UPDATE that leaves the primary key alone, and sees the row before it.
  const parent = (hasUser: boolean) => `p AS (
    SELECT 1 FROM ${sessions} WHERE id = :parent AND ${live()} AND ${mayWrite(hasUser)} FOR SHARE)`
  const locks = ({ hasUser, checksParent }: Form, more: readonly string[] = []) => {
    const all = [...(hasUser ? [floor] : []), ...(checksParent ? [parent(hasUser)] : []), ...more]
    return all.length === 0 ? '' : `WITH ${all.join(', ')}`
  }

  const create = (form: Form) =>
    compile(
      '$',
      `${locks(form)} INSERT INTO ${sessions} (${columns}) SELECT ${values}
       WHERE ${mayWrite(form.hasUser)} ${form.checksParent ? 'AND EXISTS (SELECT 1 FROM p)' : ''}
       ON CONFLICT (id) DO NOTHING`,
    )
  const replace = (form: Form) => {
    const where = `WHERE id = :old AND version = :oldVersion AND ${live()} AND ${mayWrite(form.hasUser)}
      ${form.checksParent ? 'AND (parent = :parent OR EXISTS (SELECT 1 FROM p))' : ''}`
    const old = `o AS (UPDATE ${sessions} SET ${assignments(FORWARD)} ${where} RETURNING 1)`
    return compile(
      '$',
      form.leavesForward
        ? `${locks(form, [old])} INSERT INTO ${sessions} (${columns}) SELECT ${values} FROM o`
        : `${locks(form)} UPDATE ${sessions} SET ${assignments(parts.values)} ${where}`,
    )
  }
  // An array, for which the primary key is searched: a join with x may be done by reading the whole table.
  const anyOf = (column: string) => `${column} = ANY (ARRAY(SELECT ${column} FROM x))`
  const sweep = (table: string, key: string, found: string) =>
    compile(
      '$',
      // The earlier of the two clocks decides: a node whose clock is ahead ends no live session. Not clock_timestamp(), which
      // may differ from row to row: the index would not be searched with it, but read to its end.
      `WITH x AS MATERIALIZED (
         SELECT ${key}, expires_at FROM ${table}
         WHERE expires_at >= :from::bigint
           AND expires_at < LEAST(:now::bigint, (extract(epoch FROM statement_timestamp()) * 1000)::bigint) - ${SWEEP_MARGIN}
         ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED),
       d AS (DELETE FROM ${table} WHERE ${found} RETURNING 1)
       SELECT (SELECT count(*) FROM d), (SELECT COALESCE(max(expires_at), :from::bigint) FROM x)`,
    )

  return {
    ...commonStatements(names, dialect, parts),
    create,
    replace,
    read: compile('$', `SELECT ${row} FROM ${sessions} WHERE id = :id`),
    readEach: compile('$', `SELECT ${row} FROM ${sessions} WHERE id = ANY (:ids::text[])`),
    /** The first of a transaction: locks the user's row, and bounds how long the server lets the transaction live. */
    lockUser: compile(
      '$',
      `INSERT INTO ${users} AS u (tenant, user_id, floor, min_password_version_until, expires_at)
       SELECT :tenant, ${user}, :floor::bigint, :minPasswordVersionUntil::bigint, :userUntil::bigint
       FROM ${lockWait} a, ${idle} b, set_config('statement_timeout', ${left}, true) c
       ON CONFLICT (user_id, tenant) DO UPDATE SET
         floor = CASE WHEN u.min_password_version_until > :now THEN GREATEST(u.floor, excluded.floor) ELSE excluded.floor END,
         min_password_version_until = GREATEST(u.min_password_version_until, excluded.min_password_version_until),
         expires_at = GREATEST(u.expires_at, excluded.expires_at)
       WHERE excluded.min_password_version_until > 0`,
    ),
    /**
     * Some of the user's records, how many of them were live sessions, and how many were found: one that another call
     * deletes in this moment counts as found. The excepted one may have been replaced before the lock was taken.
     */
    endSome: compile(
      '$',
      `WITH RECURSIVE e (id) AS (
         SELECT :except::text
         UNION SELECT s.moved_to FROM ${sessions} s JOIN e ON s.id = e.id WHERE s.moved_to IS NOT NULL),
       x AS MATERIALIZED (
         SELECT id FROM ${sessions} WHERE ${ofUser()} AND id NOT IN (SELECT id FROM e) LIMIT ${batch}),
       d AS (DELETE FROM ${sessions} WHERE ${anyOf('id')} RETURNING kind, expires_at, moved_to)
       SELECT (SELECT count(*) FROM d WHERE kind = 'session' AND ${live()}), (SELECT count(*) FROM x)`,
    ),
    count: compile('$', `SELECT count(*) FROM ${sessions} WHERE kind = 'session' AND ${live()}`),
    removeAll: compile('$', `DELETE FROM ${sessions} WHERE id = ANY (:ids::text[]) RETURNING id`),
    sweep: {
      sessions: sweep(sessions, 'id', anyOf('id')),
      users: sweep(
        users,
        'user_id, tenant',
        `${anyOf('user_id')} AND (user_id, tenant) IN (SELECT user_id, tenant FROM x)`,
      ),
    },
  }
}
