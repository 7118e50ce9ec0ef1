import { SWEEP_MARGIN } from '../../../src/contract/store.ts'
import type { Names } from '../options.ts'
import { compile } from '../statement.ts'
import { assignments, commonStatements, type Dialect, FORWARD, partsOf } from '../statements.ts'

export const SQLITE: Dialect = {
  style: '?',
  greatest: 'max',
  least: 'min',
  same: 'IS',
  parameter: ({ parameter }) => `:${parameter}`,
  inTime: '',
}

/** How many rows are counted at once: the event loop waits for some milliseconds. */
const COUNT_BATCH = 10_000

/**
 * The statements of SQLite. Writers come one after the other, so a transaction may read, decide and write. `spared`: which
 * of a user's records no `deleteUser` ends.
 */
export function sqliteStatements(names: Names, { spared = 'id = :except', dialect = SQLITE } = {}) {
  const { sessions, users } = names
  const parts = partsOf(dialect)
  const { columns, values, live, ofUser } = parts
  const piece = (what: string) =>
    `SELECT ${what} FROM ${sessions} WHERE ${ofUser()} AND NOT (${spared}) ORDER BY rowid LIMIT :limit`
  const sweep = (table: string) =>
    compile(
      '?',
      // The earlier of the two clocks decides: a node whose clock is ahead ends no live session.
      `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table}
         WHERE expires_at < min(:now, :clock) - ${SWEEP_MARGIN} ORDER BY expires_at LIMIT :limit)`,
    )
  return {
    ...commonStatements(names, dialect, parts),
    insert: compile('?', `INSERT INTO ${sessions} (${columns}) VALUES (${Object.values(values).join(', ')})`),
    forward: compile('?', `UPDATE ${sessions} SET ${assignments(FORWARD)} WHERE id = :old`),
    /** Raises the user's floor. The other writers wait for the whole file. */
    lockUser: compile(
      '?',
      `INSERT INTO ${users} (tenant, user_id, floor, min_password_version_until, expires_at)
       SELECT :tenant, :userId, :floor, :minPasswordVersionUntil, :userUntil WHERE :minPasswordVersionUntil > 0
       ON CONFLICT (user_id, tenant) DO UPDATE SET
         floor = CASE WHEN min_password_version_until > :now THEN max(floor, excluded.floor) ELSE excluded.floor END,
         min_password_version_until = max(min_password_version_until, excluded.min_password_version_until),
         expires_at = max(expires_at, excluded.expires_at)`,
    ),
    /** The first records of a user, the excepted one left out: how many, and how many of them are live sessions. */
    userPiece: compile(
      '?',
      `SELECT count(*), count(CASE WHEN kind = 'session' AND ${live()} THEN 1 END) FROM (${piece('*')})`,
    ),
    /** Ends the same ones. */
    endUserPiece: compile('?', `DELETE FROM ${sessions} WHERE rowid IN (${piece('rowid')})`),
    /** The next rows in the order of the file: how many live sessions are among them, and the last of them, as text. */
    countPiece: compile(
      '?',
      `SELECT count(CASE WHEN kind = 'session' AND ${live()} THEN 1 END), CAST(max(place) AS TEXT) FROM (
         SELECT rowid AS place, kind, moved_to, expires_at FROM ${sessions}
         WHERE rowid > CAST(:after AS INTEGER) ORDER BY rowid LIMIT ${COUNT_BATCH})`,
    ),
    sweep: { sessions: sweep(sessions), users: sweep(users) },
  }
}
