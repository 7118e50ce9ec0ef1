import type { Names } from '../options.ts'
import { COLUMNS } from '../rows.ts'
import { compile } from '../statement.ts'

/** The statements of SqliteStore. Writers come one after the other, so a transaction may read, decide and write. */
export function sqliteStatements(names: Names) {
  const { sessions, users } = names
  const columns = COLUMNS.join(', ')
  const live = 'moved_to IS NULL AND expires_at > :now'
  const user = 'tenant = :tenant AND user_id = :user'
  const renew = 'seen_at = max(seen_at, :seenAt), expires_at = min(absolute_expires_at, max(expires_at, :expiresAt))'
  return {
    read: compile('?', `SELECT ${columns} FROM ${sessions} WHERE id = :id`),
    insert: compile(
      '?',
      `INSERT INTO ${sessions} (${columns}) VALUES (:id, :kind, :parent, :tenant, :user, :username, :passwordVersion,
         :data, :version, :writeId, :createdAt, :seenAt, :expiresAt, :absoluteExpiresAt, NULL)`,
    ),
    forward: compile(
      '?',
      `UPDATE ${sessions} SET moved_to = :id, data = :salt, seen_at = :now, expires_at = :forgetAt,
         absolute_expires_at = :until, parent = NULL, tenant = '', user_id = NULL, username = NULL,
         password_version = NULL WHERE id = :old`,
    ),
    update: compile(
      '?',
      `UPDATE ${sessions} SET data = :data, version = version + 1, write_id = :writeId, ${renew}
       WHERE id = :id AND version = :version AND ${live}`,
    ),
    touch: compile('?', `UPDATE ${sessions} SET ${renew} WHERE id = :id AND ${live}`),
    remove: compile('?', `DELETE FROM ${sessions} WHERE id = :id`),
    facts: compile(
      '?',
      `SELECT n.id IS NOT NULL,
         CASE WHEN n.moved_to IS NULL AND n.tenant = :tenant AND n.user_id IS :user AND n.created_at = :createdAt
           THEN n.write_id END,
         o.version, o.parent,
         EXISTS (SELECT 1 FROM ${users} WHERE ${user} AND floor > :proof AND floor_until > :now),
         EXISTS (SELECT 1 FROM ${sessions} WHERE id = :parent AND ${live})
       FROM (SELECT 1)
       LEFT JOIN ${sessions} n ON n.id = :id
       LEFT JOIN ${sessions} o ON o.id = :old AND o.moved_to IS NULL AND o.expires_at > :now`,
    ),
    oldest: compile(
      '?',
      `SELECT id FROM ${sessions} WHERE ${user} AND kind = 'session' AND ${live} AND id <> :old AND id <> :id
       ORDER BY created_at, id`,
    ),
    raiseFloor: compile(
      '?',
      `INSERT INTO ${users} (tenant, user_id, floor, floor_until, expires_at)
       VALUES (:tenant, :user, :floor, :floorUntil, :floorUntil)
       ON CONFLICT (user_id, tenant) DO UPDATE SET
         floor = CASE WHEN floor_until > :now THEN max(floor, excluded.floor) ELSE excluded.floor END,
         floor_until = max(floor_until, excluded.floor_until),
         expires_at = max(expires_at, excluded.expires_at)`,
    ),
    /** The first records of a user, the excepted one left out: how many, and how many of them are live sessions. */
    userPiece: compile(
      '?',
      `SELECT count(*), count(CASE WHEN kind = 'session' AND ${live} THEN 1 END)
       FROM (SELECT * FROM ${sessions} WHERE ${user} AND id <> :except ORDER BY rowid LIMIT :limit)`,
    ),
    /** Ends the same ones. */
    endUserPiece: compile(
      '?',
      `DELETE FROM ${sessions} WHERE rowid IN
         (SELECT rowid FROM ${sessions} WHERE ${user} AND id <> :except ORDER BY rowid LIMIT :limit)`,
    ),
    listUser: compile('?', `SELECT ${columns} FROM ${sessions} WHERE ${user} AND kind = :kind AND ${live}`),
    sweep: [sessions, users].map(table =>
      compile(
        '?',
        `DELETE FROM ${table} WHERE rowid IN
           (SELECT rowid FROM ${table} WHERE expires_at < :before ORDER BY expires_at LIMIT :limit)`,
      ),
    ),
  }
}
