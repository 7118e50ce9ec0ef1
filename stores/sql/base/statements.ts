// The text of the statements. MySQL, which has neither ON CONFLICT nor RETURNING, writes some of its own.
import { SWEEP_MARGIN } from '../../../src/contract/store.ts'
import type { Dialect } from './engine.ts'
import { type Names, SESSION_COLUMNS } from './schema.ts'

/** The parameter that an INSERT gives to a column. */
const parameterOf = (column: string) =>
  column === 'moved_to' ? 'NULL' : `:${column.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())}`

/** Which conditions the statement of a `create` or `replace` has. */
export interface Form {
  readonly hasUser: boolean
  readonly checksParent: boolean
  readonly replaces: boolean
  readonly leavesForward: boolean
}

/** Parts that the statements of all databases share. */
export function partsOf({ users }: Names, { greatest, least, clock, isRemote }: Dialect) {
  const columns = SESSION_COLUMNS.map(({ name }) => name)
  const ofUser = (table = '') => `${table}user_id = :userId AND ${table}namespace = :namespace`
  return {
    columns: columns.join(', '),
    /** The value that an INSERT gives to each column. */
    values: Object.fromEntries(columns.map(name => [name, parameterOf(name)])) as Readonly<Record<string, string>>,
    ofUser,
    /** The row is a live record. A sum, which no index serves: the planner's statistics are older than most live sessions. */
    live: (table = '') => `${table}moved_to IS NULL AND ${table}expires_at + 0 > :now`,
    /** How an update and a touch set the expiry. */
    slide: `seen_at = ${greatest}(seen_at, :seenAt),
      expires_at = ${least}(absolute_expires_at, ${greatest}(expires_at, :expiresAt))`,
    /** How a `replace` with a forward changes the old row. */
    forwardOf: {
      moved_to: ':id',
      data: ':salt',
      seen_at: ':now',
      expires_at: ':forgetAt',
      absolute_expires_at: ':until',
      parent_key: 'NULL',
      namespace: "''",
      user_id: 'NULL',
      user_name: 'NULL',
      password_version: 'NULL',
    } as Readonly<Record<string, string>>,
    /** True until the tolerance of clocks after the caller's end is over. SQLite has no network that could delay a write. */
    inTime: isRemote ? `${clock} <= :latest` : '1 = 1',
    stale: `SELECT 1 FROM ${users} WHERE ${ofUser()} AND min_password_version > :proven
      AND min_password_version_until > :now`,
  }
}

/** The SET list of an UPDATE. */
export const assignments = (values: Readonly<Record<string, string>>, table = '') =>
  Object.entries(values)
    .map(([name, value]) => `${table}${name} = ${value}`)
    .join(', ')

/**
 * A statement that waited for a lock must not decide by its older snapshot. Hence on servers:
 * - a statement that makes a user's session live locks the user's row first (`f`), and reads its newest
 *   password version there; `deleteUser` locks that row in one statement and deletes in the next;
 * - all statements lock the user's row before session rows.
 */
export function statements(names: Names, dialect: Dialect) {
  const { sessions, users } = names
  const { greatest, least, clock, locks, same } = dialect
  const { columns, values, ofUser, live, slide, forwardOf, inTime, stale } = partsOf(names, dialect)
  const all = Object.values(values).join(', ')
  const parent = `SELECT 1 FROM ${sessions} WHERE id = :parentKey AND ${live()}`
  const upsert = (version: string, until: string) =>
    `INSERT INTO ${users} AS u (namespace, user_id, min_password_version, min_password_version_until, expires_at)
     VALUES (:namespace, :userId, ${version}, ${until}, :userUntil) ON CONFLICT (user_id, namespace) DO UPDATE SET`

  /** The statements of a `create` or `replace`; the first one decides whether it takes place. */
  function make({ hasUser, checksParent, replaces, leavesForward }: Form): readonly string[] {
    // Every CTE must read `f`: PostgreSQL runs an unreferenced data-modifying CTE last, which would lock session rows before
    // the user's row.
    const mayLogIn = hasUser
      ? `NOT EXISTS (${locks ? 'SELECT 1 FROM f WHERE min_password_version > :proven' : stale})`
      : '1 = 1'
    const parentLives = `EXISTS (${locks ? 'SELECT 1 FROM p' : parent})`
    const hasParent = !checksParent ? '1 = 1' : replaces ? `(parent_key = :parentKey OR ${parentLives})` : parentLives
    const old = replaces ? `id = :old AND version = :oldVersion AND ${live()} AND` : ''
    const where = `WHERE ${old} NOT EXISTS (SELECT 1 FROM ${sessions} WHERE id = :id)
      AND ${mayLogIn} AND ${hasParent} AND ${inTime}`
    const first: string[] = []
    // The conditional DO UPDATE locks the row and sees its newest version; it writes nothing if the login may pass.
    if (locks && hasUser)
      first.push(`f AS (${upsert('0', '0')} min_password_version = u.min_password_version
        WHERE u.min_password_version > :proven AND u.min_password_version_until > :now RETURNING min_password_version)`)
    // FOR SHARE: the parent can neither end nor move until the new session is committed. FOR KEY SHARE would not do.
    if (locks && checksParent) first.push(`p AS (${parent} AND ${mayLogIn} FOR SHARE)`)
    const move = `UPDATE ${sessions} SET ${assignments(forwardOf)}`
    if (locks && leavesForward) first.push(`o AS (${move} ${where} RETURNING 1)`)
    const before = first.length === 0 ? '' : `WITH ${first.join(', ')} `
    const insert = `${before}INSERT INTO ${sessions} (${columns}) SELECT ${all}`
    if (leavesForward)
      return locks ? [`${insert} FROM o`] : [`${insert} FROM ${sessions} ${where}`, `${move} WHERE id = :old`]
    if (!replaces) return [`${insert} ${where}`]
    return [`${before}UPDATE ${sessions} SET ${assignments(values)} ${where}`]
  }

  const some = (key: string, table: string, where: string, lock: string) => {
    const found = `SELECT ${key} FROM ${table} WHERE ${where} LIMIT :limit ${locks ? lock : ''}`
    // An array, for which the primary key is searched: a join may read the whole table.
    return `DELETE FROM ${table} WHERE ${key} ${locks ? `= ANY (ARRAY(${found}))` : `IN (${found})`}`
  }
  // The earlier of the two clocks decides, so a node whose clock is ahead ends no live session.
  const sweep = (key: string, table: string) =>
    some(
      key,
      table,
      `expires_at < ${least}(:now, ${dialect.startClock}) - ${SWEEP_MARGIN} ORDER BY expires_at`,
      'FOR UPDATE SKIP LOCKED',
    )
  const isSession = `kind = 'session' AND ${live()}`

  return {
    make,
    read: `SELECT ${columns} FROM ${sessions} WHERE id = :id`,
    /** The same with the clock, which a refusal compares. */
    look: `SELECT ${columns}, ${clock} AS clock FROM ${sessions} WHERE id = :id`,
    update: `UPDATE ${sessions} SET data = :data, version = version + 1, write_id = :writeId, ${slide}
      WHERE id = :id AND version = :version AND ${live()} AND ${inTime}`,
    touch: `UPDATE ${sessions} SET ${slide} WHERE id = :id AND ${live()}`,
    delete: `DELETE FROM ${sessions} WHERE id = :id AND moved_to IS NULL`,
    remove: `DELETE FROM ${sessions} WHERE id = :id`,
    /** The facts for a verdict, in one row. */
    facts: `SELECT n.id AS taken, CASE WHEN n.moved_to IS NULL AND n.namespace = :namespace
        AND n.user_id ${same} :userId AND n.created_at = :createdAt THEN n.write_id END AS write_id,
        o.version, o.parent_key, (${stale}) AS stale, (${parent}) AS parent_lives, ${clock} AS clock
      FROM (SELECT 1) one LEFT JOIN ${sessions} n ON n.id = :id LEFT JOIN ${sessions} o ON o.id = :old AND ${live('o.')}`,
    /** Locks the user's row, and raises the minimum password version. */
    lockUser: `${upsert(':minPasswordVersion', ':minPasswordVersionUntil')}
        min_password_version = CASE WHEN u.min_password_version_until > :now
          THEN ${greatest}(u.min_password_version, excluded.min_password_version) ELSE excluded.min_password_version END,
        min_password_version_until = ${greatest}(u.min_password_version_until, excluded.min_password_version_until),
        expires_at = ${greatest}(u.expires_at, excluded.expires_at)
      WHERE excluded.min_password_version_until > 0`,
    /**
     * Some of a user's records, without the excepted one and the one that its forwards lead to. They are locked first:
     * fewer than the limit are all.
     */
    endUser: `${some(
      'id',
      sessions,
      `${ofUser()} AND id NOT IN (WITH RECURSIVE e (id) AS (SELECT CAST(:except AS text)
         UNION SELECT s.moved_to FROM ${sessions} s JOIN e ON s.id = e.id WHERE s.moved_to IS NOT NULL) SELECT id FROM e)`,
      'FOR UPDATE',
    )} RETURNING kind, expires_at, moved_to`,
    list: `SELECT ${columns} FROM ${sessions} WHERE ${ofUser()} AND kind = :kind AND ${live()}`,
    scan: `SELECT ${columns} FROM ${sessions} WHERE id > :after ORDER BY id LIMIT :limit`,
    count: `SELECT count(*) AS live FROM ${sessions} WHERE ${isSession}`,
    sweep: { sessions: sweep('id', sessions), users: sweep(locks ? 'ctid' : 'rowid', users) },
  }
}
